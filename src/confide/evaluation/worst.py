"""Who is covered least, and who surely less than was promised: classes, groups and set sizes, looked at all at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from confide.evaluation.parts import CONFIDENCE, Counted, Subgroup
from confide.guarantee import coverage_text
from confide.sets import exact_interval

Part: TypeAlias = Literal["class", "group", "end", "set size"]
"""What a part of the records is."""

_PLURAL = {"class": "classes", "group": "groups", "end": "ends", "set size": "set sizes"}
_REMEDY = {
    "class": "The promise is an average over all classes; calibrate with --by-class for one to each class.",
    "group": "The promise is an average over all groups; calibrate with --by and --groups for one to each group.",
    "set size": "The promise is an average over all set sizes, and none can be made to each; another score, such as "
    "aps, may even them out.",
}
MOST_NAMED = 10


@dataclass(frozen=True)
class WorstPart:
    """The least covered of all parts of one kind, and those that are surely covered less than was promised.

    Parameters
    ----------
    kind
        What the parts are.
    part
        The one with the smallest share of covered records.
    below
        The parts whose exact interval lies below what is promised, with intervals that hold for all parts at once with
        probability 95 % (Bonferroni), the least covered first: whoever looks at the worst of many is not misled.
    parts
        How many there are.
    promised
        The smallest coverage that is promised for any part in `below`, or for the least covered one.
    """

    kind: Part
    part: Subgroup
    below: tuple[Subgroup, ...]
    parts: int
    promised: float

    @property
    def sentence(self) -> str:
        """Who is surely covered less than promised, and what helps; empty if nobody is."""
        if not self.below:
            return ""
        called = "size " if self.kind == "set size" else ""
        named = [f"{called}{one.name}" for one in self.below[:MOST_NAMED]]
        names = ", ".join(named) + (", ..." if self.below[MOST_NAMED:] else "")
        some = f"{len(self.below)} of {self.parts} {_PLURAL[self.kind]}"
        remedy = _REMEDY.get(self.kind, "")
        if self.part.promised is not None:
            remedy = (
                "Each of them has a promise of its own, on average over calibrations: this calibration fell short of "
                "it, or these records differ from those that calibrated."
            )
        are = "is" if len(self.below) == 1 else "are"
        return f"{some} {are} surely covered less than {coverage_text(self.promised)}: {names}. {remedy}"

    def fields(self) -> dict[str, Any]:
        """As JSON values."""
        c = self.part.coverage
        least = {"name": self.part.name, "n": self.part.n, "coverage": c.value, "low": c.low, "high": c.high}
        below = [one.name for one in self.below]
        told = {"promised": self.promised, "parts": self.parts, "surely_below": below, "sentence": self.sentence}
        return {"kind": self.kind, **least, **told}


def worst_parts(found: Counted) -> tuple[WorstPart, ...]:
    """The least covered class, group and set size of an evaluation, with all that are surely below what is promised.

    The empty set is no size to compare: it covers nobody, and its share is stated on its own.

    Examples
    --------
    >>> import confide
    >>> released = confide.calibrate(np.linspace(0, 1, 2000), alpha=0.1, epsilon=1.0, score="lac")
    >>> p = np.tile([0.99, 0.01], (200, 1))
    >>> worst, *_ = worst_parts(confide.evaluate_sets(released, p, ["cat"] * 100 + ["dog"] * 100, ["cat", "dog"]))
    >>> worst.part.name, worst.sentence
    ('dog', '1 of 2 classes is surely covered less than 0.9: dog. The promise is an average over all classes; ...')
    """
    own: Part = "end" if found.by == "side" else "group"
    kinds: tuple[tuple[Part, tuple[Subgroup, ...]], ...] = (
        ("class", found.classes),
        (own, found.groups),
        ("group", found.subgroups),
        ("set size", tuple(part for part in found.sizes if part.name != "0")),
    )
    return tuple(_worst(kind, parts, found.promised) for kind, parts in kinds if parts)


def surely_below(parts: Sequence[Subgroup], promised: float) -> tuple[Subgroup, ...]:
    """The parts that are covered less than promised, each for itself or all alike, the least covered first.

    Decided by Clopper-Pearson intervals that hold for all parts at once with probability 95 %.
    """
    if not parts:
        return ()
    n, hits = np.array([part.n for part in parts]), np.array([part.covered for part in parts])
    _, high = exact_interval(hits, n, 1 - (1 - CONFIDENCE) / len(parts))
    short = [part for part, top in zip(parts, high.tolist(), strict=True) if top < _promised(part, promised)]
    return tuple(sorted(short, key=_share))


def _worst(kind: Part, parts: tuple[Subgroup, ...], promised: float) -> WorstPart:
    least, below = min(parts, key=_share), surely_below(parts, promised)
    return WorstPart(kind, least, below, len(parts), min(_promised(one, promised) for one in below or (least,)))


def _promised(part: Subgroup, promised: float) -> float:
    return promised if part.promised is None else part.promised


def _share(part: Subgroup) -> float:
    return part.covered / part.n
