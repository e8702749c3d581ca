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
    "class": "The promise is an average over all classes; calibrate by class for one to each class.",
    "group": "The promise is an average over all groups; calibrate by group for one to each group.",
    "set size": "The promise is an average over all set sizes, and none can be made to each; another score, such as "
    "aps, may even them out.",
}
"""What helps, where coverage over all is what was promised."""
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
    broken
        Whether coverage over all falls short of the promise: then no advice about parts helps.
    """

    kind: Part
    part: Subgroup
    below: tuple[Subgroup, ...]
    parts: int
    promised: float
    broken: bool = False

    @property
    def sentence(self) -> str:
        """Which parts are covered less than promised beyond chance, and what helps; empty if none are."""
        if not self.below:
            return ""
        called = "size " if self.kind == "set size" else ""
        named = [f"{called}{one.name}" for one in self.below[:MOST_NAMED]]
        names = ", ".join(named) + (", ..." if self.below[MOST_NAMED:] else "")
        some = f"{len(self.below)} of {self.parts} {_PLURAL[self.kind]}"
        remedy = _REMEDY.get(self.kind, "")
        if self.broken:
            remedy = ""
        elif self.part.promised is not None:
            remedy = (
                "Each of them has a promise of its own, on average over calibrations: this calibration fell short of "
                "it, or these records differ from those that calibrated."
            )
        are = "is" if len(self.below) == 1 else "are"
        chance = f"beyond chance ({100 * CONFIDENCE:g} %, all {_PLURAL[self.kind]} at once)"
        return f"{some} {are} covered less than {coverage_text(self.promised)} {chance}: {names}. {remedy}".rstrip()

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
    ('dog', '1 of 2 classes is covered less than 0.9 beyond chance (95 %, all classes at once): dog.')
    """
    own: Part = "end" if found.by == "side" else "group"
    kinds: tuple[tuple[Part, tuple[Subgroup, ...]], ...] = (
        ("class", found.classes),
        (own, found.groups),
        ("group", found.subgroups),
        ("set size", tuple(part for part in found.sizes if part.name != "0")),
    )
    return tuple(_worst(kind, parts, found) for kind, parts in kinds if parts)


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


def _worst(kind: Part, parts: tuple[Subgroup, ...], found: Counted) -> WorstPart:
    least, below = min(parts, key=_share), surely_below(parts, found.promised)
    promised = min(_promised(one, found.promised) for one in below or (least,))
    return WorstPart(kind, least, below, len(parts), promised, found.shortfall is not None)


def _promised(part: Subgroup, promised: float) -> float:
    return promised if part.promised is None else part.promised


def _share(part: Subgroup) -> float:
    return part.covered / part.n
