"""Coverage of a part of the records: a class, a group, a set size, one end of intervals. Private and not private.

`exact_parts` makes parts from exact counts, with exact intervals. `confide.evaluation.intervals` uses noisy counts.
This module also finds the parts that are covered less than promised beyond chance, and the least covered part.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.guarantee import coverage_text
from confide.sets import CoverageEstimate, exact_interval
from confide.support import Described, Section

CONFIDENCE = 0.95
SIDES = ("lower end", "upper end")
MOST_NAMED = 10

Division: TypeAlias = Literal["group", "class", "side"]
"""Kind of the parts that have their own thresholds."""

Measure: TypeAlias = Literal["members", "mean_width"]
"""Measure of a part in addition to coverage: labels in its sets, or the mean width of its intervals."""


@dataclass(frozen=True, repr=False)
class Part(Described):
    """Coverage of a part of the records, from exact or from noisy counts.

    Parameters
    ----------
    name
        Name of the class, group or end, or the set size; "" for all records.
    covered, missed
        Numbers of records, or noisy counts of them, which may be negative.
    value
        Share of covered records; None if nothing is counted.
    low, high
        Interval of the share: exact at confidence 95 %, or simultaneous with all others of a private evaluation.
    promised
        Promised coverage of this part; None if the promise is an average over all parts.
    members
        Total number of labels in the sets of the part; None without sets.
    mean_width
        Mean width of the intervals of the part; None without intervals.
    """

    name: str
    covered: int
    missed: int
    value: float | None
    low: float
    high: float
    promised: float | None = None
    members: int | None = None
    mean_width: float | None = None

    def _section(self) -> Section:
        return Section("Part", self._brief())

    def _brief(self) -> str:
        named = f"{self.name!r}: " if self.name else ""
        return f"{named}{interval_text(self.value, self.low, self.high)}, n={self.n}"

    @property
    def n(self) -> int:
        """Number of records, or the sum of the noisy counts."""
        return self.covered + self.missed

    @property
    def coverage(self) -> CoverageEstimate:
        """Share of covered records with its exact interval; only for an evaluation that is not private."""
        return CoverageEstimate(self.covered / self.n, self.low, self.high, CONFIDENCE, self.n)

    @property
    def mean_size(self) -> float | None:
        """Mean number of labels in a set; None without sets."""
        return None if self.members is None else self.members / self.n

    @property
    def promise(self) -> float:
        """Promised coverage of this part; 0 without a promise of its own."""
        return 0.0 if self.promised is None else self.promised

    @property
    def below(self) -> bool:
        """Whether the interval lies below the promise of this part."""
        return self.promised is not None and self.high < self.promised


def exact_parts(
    names: Sequence[object],
    rows: Sequence[tuple[int, int, float]],
    promised: Sequence[float | None] = (),
    measure: Measure | None = None,
) -> tuple[Part, ...]:
    """Parts that occur, from the records, covered records and sum of sizes or widths of each.

    Examples
    --------
    >>> [part.value for part in exact_parts(["cat", "dog"], [(4, 3, 5.0), (0, 0, 0.0)], measure="members")]
    [0.75]
    """
    n, covered = np.array([[row[0], row[1]] for row in rows], np.int64).reshape(-1, 2).T
    low, high = (ends.tolist() for ends in exact_interval(covered, n, CONFIDENCE))
    sets, intervals = measure == "members", measure == "mean_width"
    return tuple(
        Part(
            str(name),
            hits,
            records - hits,
            hits / records,
            low[i],
            high[i],
            own,
            int(total) if sets else None,
            mean_of(total, records) if intervals else None,
        )
        for i, (name, (records, hits, total), own) in enumerate(
            zip(names, rows, promised or [None] * len(rows), strict=True)
        )
        if records
    )


def mean_of(total: float, n: int) -> float:
    """Mean of n widths from their sum, which may be infinite."""
    return total / n if math.isfinite(total) else math.inf


PartName: TypeAlias = Literal["class", "group", "end", "set size"]
"""Kind of a part of the records."""

_PLURAL = {"class": "classes", "group": "groups", "end": "ends", "set size": "set sizes"}
_REMEDY = {
    "class": "The promise is an average over all classes. Calibrate by class for a promise to each class.",
    "group": "The promise is an average over all groups. Calibrate by group for a promise to each group.",
    "set size": "The promise is an average over all set sizes; a promise to each is not possible. Another score, such "
    "as aps, may reduce the differences.",
}
"""Advice, if only the coverage over all parts is promised."""


@dataclass(frozen=True)
class WorstPart:
    """Least covered of all parts of one kind, and the parts that are covered less than promised beyond chance.

    Parameters
    ----------
    kind
        Kind of the parts.
    part
        Part with the smallest share of covered records.
    below
        Parts whose exact interval lies below the promise, the least covered first. The intervals hold for all parts at
        once with probability 95 % (Bonferroni), so that the selection of the worst part is accounted for.
    parts
        Number of parts.
    promised
        Smallest promised coverage of a part in `below`, or that of the least covered part.
    broken
        Whether coverage over all records falls short of the promise. Then advice about parts does not help.
    """

    kind: PartName
    part: Part
    below: tuple[Part, ...]
    parts: int
    promised: float
    broken: bool = False

    @property
    def sentence(self) -> str:
        """Parts that are covered less than promised beyond chance, with advice; empty without such parts."""
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
                "Each of them has its own promise, on average over calibrations. This calibration fell short of it, or "
                "these records differ from the calibration set."
            )
        are = "is" if len(self.below) == 1 else "are"
        chance = f"beyond chance ({100 * CONFIDENCE:g} %, all {_PLURAL[self.kind]} at once)"
        return f"{some} {are} covered less than {coverage_text(self.promised)} {chance}: {names}. {remedy}".rstrip()

    def fields(self) -> dict[str, Any]:
        """JSON values of the finding."""
        one = self.part
        least = {"name": one.name, "n": one.n, "coverage": one.value, "low": one.low, "high": one.high}
        below = [part.name for part in self.below]
        stated = {"promised": self.promised, "parts": self.parts, "surely_below": below, "sentence": self.sentence}
        return {"kind": self.kind, **least, **stated}


def worst_part(kind: PartName, parts: tuple[Part, ...], promised: float, *, broken: bool) -> WorstPart:
    """Least covered part, and the parts below the promise, which is an average or one for each part."""
    least, below = min(parts, key=_share), surely_below(parts, promised)
    return WorstPart(
        kind, least, below, len(parts), min(promise_to(one, promised) for one in below or (least,)), broken
    )


def surely_below(parts: Sequence[Part], promised: float) -> tuple[Part, ...]:
    """Parts that are covered less than promised, by their own or the common promise, the least covered first.

    The test uses Clopper-Pearson intervals that hold for all parts at once with probability 95 %.
    """
    if not parts:
        return ()
    n, hits = np.array([part.n for part in parts]), np.array([part.covered for part in parts])
    short = below_at_once(hits, n, [promise_to(part, promised) for part in parts], CONFIDENCE)
    return tuple(sorted((part for part, own in zip(parts, short, strict=True) if own), key=_share))


def below_at_once(
    hits: NDArray[np.int64], n: NDArray[np.int64], promised: ArrayLike, confidence: float
) -> NDArray[np.bool_]:
    """Parts that are covered less than promised, by exact intervals that hold for all parts at once."""
    parts = max(int(np.count_nonzero(n)), 1)
    _, tops = exact_interval(hits, n, 1 - (1 - confidence) / parts)
    return np.asarray((n > 0) & (tops < np.asarray(promised)))


def promise_to(part: Part, promised: float) -> float:
    """Promised coverage of a part: its own promise, or the promise for all records."""
    return promised if part.promised is None else part.promised


def _share(part: Part) -> float:
    return part.covered / part.n


def interval_text(value: float | None, low: float, high: float) -> str:
    """Format an estimate with its interval, rounded outwards.

    Examples
    --------
    >>> interval_text(0.9051, 0.88345, 0.92311), interval_text(None, 0.0, 1.0)
    ('0.905 (interval 0.883 to 0.924)', 'not known (interval 0 to 1)')
    """
    least, most = format_interval_ends(low, high)
    return f"{'not known' if value is None else f'{value:.3f}'} (interval {least} to {most})"


def format_interval_ends(low: float, high: float) -> tuple[str, str]:
    """Format the ends of an interval with three decimals, rounded outwards; whole numbers without decimals.

    Examples
    --------
    >>> format_interval_ends(0.88345, 0.92311), format_interval_ends(0.5, 1.0)
    (('0.883', '0.924'), ('0.500', '1'))
    """
    least, most = Fraction(low) * 1000, Fraction(high) * 1000
    return _thousandths(math.floor(least)), _thousandths(math.ceil(most))


def _thousandths(count: int) -> str:
    return f"{count / 1000:.3f}" if count % 1000 else f"{count // 1000}"
