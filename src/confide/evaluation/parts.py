"""Coverage of parts of the records, such as a class, a group or a set size, and tables of it for people."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.evaluation.partitions import OTHER
from confide.guarantee import coverage_text
from confide.sets import exact_interval
from confide.support import Described, Section, Table, require

CONFIDENCE = 0.95

TableKind: TypeAlias = Literal["class", "group", "size", "width", "end"]
"""Property that divides the records; for the two ends of intervals, each part contains all records."""


def interval_text(low: float, high: float) -> str:
    """An interval with three decimals, rounded outwards; whole numbers without decimals.

    Examples
    --------
    >>> interval_text(0.88345, 0.92311), interval_text(0.5, 1.0)
    ('0.883 to 0.924', '0.500 to 1')
    """
    ends = math.floor(Fraction(low) * 1000), math.ceil(Fraction(high) * 1000)
    return " to ".join(f"{end / 1000:.3f}" if end % 1000 else f"{end // 1000}" for end in ends)


@dataclass(frozen=True, repr=False)
class Part(Described):
    """Coverage of a part of the records, from exact or from noisy counts.

    Parameters
    ----------
    name
        Name of the class, group or end, or the set size; "" for all records.
    covered, missed
        Numbers of records, or noisy counts of them, which may be negative. For masks: sums of the shares of the true
        area that is covered and missed.
    value
        Share of covered records; None if nothing is counted.
    low, high
        Interval of the share.
    promised
        Promised coverage of this part, or of all records; None if nothing is promised.
    below
        Whether coverage of the part is below the promise by more than chance explains, for all parts of its kind at
        once.
    mean_size, mean_width
        Mean number of labels in the sets of the part, or mean width of its intervals; None if they were not measured.
    confidence
        Confidence of this interval by itself; None in a private evaluation, whose intervals all hold at once.
    """

    name: str
    covered: float
    missed: float
    value: float | None
    low: float
    high: float
    promised: float | None = None
    below: bool = False
    mean_size: float | None = None
    mean_width: float | None = None
    confidence: float | None = None

    def _brief(self) -> str:
        return f"{self.name!r}: {self.estimate}" if self.name else self.estimate

    @property
    def n(self) -> int:
        """Number of records, or the sum of the noisy counts."""
        return round(self.covered + self.missed)

    @property
    def value_text(self) -> str:
        """The share as text."""
        return "not known" if self.value is None else f"{self.value:.3f}"

    @property
    def interval_text(self) -> str:
        """The interval as text; one that includes noise is rounded outwards."""
        exact = self.confidence is not None
        return f"{self.low:.3f} to {self.high:.3f}" if exact else interval_text(self.low, self.high)

    @property
    def estimate(self) -> str:
        """Share, interval and number of records as text."""
        if self.confidence is None:
            return f"{self.value_text} (interval {self.interval_text})"
        return f"{self.value_text} ({100 * self.confidence:g} % interval {self.interval_text}, n={self.n})"

    @property
    def seeming(self) -> tuple[float, float]:
        """Sort key, the least covered first: the share; with noise, the upper end of the interval first."""
        share = 1.0 if self.value is None else self.value
        return (share, self.high) if self.confidence is not None else (self.high, share)

    def as_loss(self, bound: float) -> "Part":
        """The loss instead of the coverage: its value, interval and promised bound."""
        value = None if self.value is None else bound * (1 - self.value)
        promised = None if self.promised is None else bound * (1 - self.promised)
        low = bound * (1 - self.high)
        high = bound * (1 - self.low)
        return replace(self, value=value, low=low, high=high, promised=promised)


def below_at_once(hits: NDArray[Any], n: NDArray[Any], promised: ArrayLike, confidence: float) -> NDArray[np.bool_]:
    """Parts that are covered less than promised, by exact intervals that hold for all parts at once (Bonferroni)."""
    parts = max(int(np.count_nonzero(n)), 1)
    _, tops = exact_interval(hits, n, 1 - (1 - confidence) / parts)
    return np.asarray((n > 0) & (tops < np.asarray(promised)))


def marked(parts: tuple[Part, ...], confidence: float = CONFIDENCE) -> tuple[Part, ...]:
    """Mark parts without noise that are covered less than promised, all parts of a kind at once."""
    hits = np.array([row.covered for row in parts])
    n = np.array([row.n for row in parts])
    short = below_at_once(hits, n, [row.promised or 0.0 for row in parts], confidence)
    return tuple(replace(row, below=below) for row, below in zip(parts, short.tolist(), strict=True))


_MOST_NAMED = 10
"""Number of parts that a sentence names."""

_MOST_ROWS = 30
"""Number of rows of a table for people."""

_REMEDIES = {
    "class": "The promise is an average over all classes. Calibrate by class for a promise to each class.",
    "group": "The promise is an average over all groups. Calibrate by group for a promise to each group.",
    "size": "The promise is an average over all set sizes; a promise to each is not possible. Another score, such "
    "as aps, may reduce the differences.",
}
"""Advice, if only the coverage over all parts is promised."""
_REMEDY_OF_PROMISES = (
    "Each of them has its own promise, on average over calibrations. This calibration fell short of it, or these "
    "records differ from the calibration set."
)
"""Advice, if the coverage of each part is promised."""


@dataclass(frozen=True, repr=False)
class CoverageTable(Described):
    """Coverage of the parts of one kind: a sequence of `Part`, with its columns as arrays.

    Parameters
    ----------
    kind
        Property that divides the records.
    parts
        The parts, also those without records.
    own
        Whether each part has its own threshold and promise.
    advised
        Whether the sentence advises what to do about parts below the promise of all records.
    of
        Quantity of each part: its coverage, the share of all records that are in it, or its loss.
    """

    kind: TableKind
    parts: tuple[Part, ...]
    own: bool = False
    advised: bool = True
    of: Literal["coverage", "share", "loss"] = "coverage"

    def __getitem__(self, place: int) -> Part:
        return self.parts[place]

    def __len__(self) -> int:
        return len(self.parts)

    def __iter__(self) -> Iterator[Part]:
        return iter(self.parts)

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each part."""
        return tuple(row.name for row in self.parts)

    @property
    def n(self) -> NDArray[np.int64]:
        """Number of records of each part, int64."""
        return np.array([row.n for row in self.parts], np.int64)

    @property
    def hits(self) -> NDArray[np.int64]:
        """Number of covered records of each part, int64."""
        return np.array([row.covered for row in self.parts], np.int64)

    @property
    def coverage(self) -> NDArray[np.float64]:
        """Share of covered records of each part, NaN without records, float64."""
        return self._column("value")

    @property
    def low(self) -> NDArray[np.float64]:
        """Lower end of each interval, float64."""
        return self._column("low")

    @property
    def high(self) -> NDArray[np.float64]:
        """Upper end of each interval, float64."""
        return self._column("high")

    @property
    def size(self) -> NDArray[np.float64]:
        """Mean set size or interval width of each part, NaN if it is not known, float64."""
        widths = any(row.mean_width is not None for row in self.parts)
        return self._column("mean_width" if widths else "mean_size")

    def _column(self, name: str) -> NDArray[np.float64]:
        return np.array([getattr(row, name) for row in self.parts], np.float64)  # None becomes NaN

    @property
    def confidence(self) -> float | None:
        """Confidence of each interval alone; None if they hold at once with all others of a private evaluation."""
        return self.parts[0].confidence if self.parts else CONFIDENCE

    @property
    def _counted(self) -> list[Part]:
        return [row for row in self.parts if row.value is not None]

    @property
    def worst(self) -> Part:
        """The part with the smallest share of covered records; with noise, with the lowest upper end."""
        require("parts", self.parts, "must not be empty: a table without parts has no worst one")
        return min(self._counted, key=lambda row: row.seeming, default=self.parts[0])

    @property
    def below(self) -> tuple[Part, ...]:
        """Parts that are covered less than promised beyond chance, the least covered first.

        Without noise these are parts whose exact interval lies below the promise. The intervals hold for all parts at
        once with probability 95 % (Bonferroni), so that the selection of the worst part is accounted for.
        """
        return tuple(sorted((row for row in self.parts if row.below), key=lambda row: row.seeming))

    def surely_below(self, level: float) -> NDArray[np.bool_]:
        """Whether each part surely has coverage below a level: boolean, by intervals that hold for all parts at once.

        Examples
        --------
        >>> from confide.evaluation.count_tables import PartCounts
        >>> hits, n = np.array([20, 0]), np.array([20, 20])
        >>> table = CoverageTable("class", PartCounts(["cat", "dog"], hits, n - hits).parts(0.05))
        >>> table.surely_below(0.9)
        array([False,  True])
        """
        return below_at_once(self.hits, self.n, level, self.confidence or CONFIDENCE)

    @property
    def division(self) -> str:
        """The property that divides the records, such as `class` or `set size`."""
        return "set size" if self.kind == "size" else self.kind

    @property
    def sentence(self) -> str:
        """Parts that are covered less than promised beyond chance, with advice; empty without such parts."""
        if not self.below:
            return ""

        # The names of the parts, the least covered first.
        plural = f"{self.division}es" if self.kind == "class" else f"{self.division}s"
        prefix = "size " if self.kind == "size" else ""
        names = ", ".join(f"{prefix}{row.name}" for row in self.below[:_MOST_NAMED])
        names += ", ..." if self.below[_MOST_NAMED:] else ""

        # How many they are, and by which interval.
        listed = [row for row in self.parts if row.name != OTHER or row.below]
        count = f"{len(self.below)} of {len(listed)} {plural}"
        are = "is" if len(self.below) == 1 else "are"
        promised = coverage_text(min(row.promised or 0.0 for row in self.below))
        chance = "noise included"
        if self.confidence is not None:
            chance = f"{100 * self.confidence:g} %, all {plural} at once"

        # What to do.
        remedy = ""
        if self.advised:
            remedy = _REMEDY_OF_PROMISES if self.own else _REMEDIES.get(self.kind, "")
        return f"{count} {are} covered less than {promised} beyond chance ({chance}): {names}. {remedy}".rstrip()

    def as_loss(self, bound: float) -> "CoverageTable":
        """The losses of the parts instead of their coverage."""
        return replace(self, parts=tuple(row.as_loss(bound) for row in self.parts), of="loss")

    def as_table(self, most: int = _MOST_ROWS) -> Table:
        """Rows of the parts that have records; of very many the least covered ones."""
        listed = self._counted if self.confidence is not None else list(self.parts)
        shown = sorted(listed, key=lambda row: row.seeming)[:most] if len(listed) > most else listed
        cells = [self._cells(row) for row in shown] or [{self.division: ""}]
        caption = f"{self.of} by {self.division}".capitalize()
        return Table(tuple(cells[0]), tuple(tuple(row.values()) for row in cells), caption, len(listed))

    def _cells(self, row: Part) -> dict[str, str]:
        # Counts.
        cells = {self.division: row.name}
        noisy = ", with noise" if self.confidence is None else ""
        if self.of == "share":
            cells[f"records{noisy}"] = f"{row.covered:,}"
        elif noisy:
            cells |= {f"covered{noisy}": f"{row.covered:,}", f"missed{noisy}": f"{row.missed:,}"}
        else:
            cells["n"] = f"{row.n}"

        # What follows from them, and the promise.
        cells |= {self.of: row.value_text, "interval": row.interval_text}
        if row.mean_size is not None:
            cells["size"] = f"{row.mean_size:.2f}"
        if row.mean_width is not None:
            cells["width"] = f"{row.mean_width:.4g}"
        if self.own and row.promised is not None:
            cells["promised"] = f"{row.promised:.6g}" if self.of == "loss" else coverage_text(row.promised)
        if self.below:
            head = "above, beyond chance" if self.of == "loss" else "below, beyond chance"
            cells[head] = "yes" if row.below else "no"
        return cells

    def _section(self) -> Section:
        intervals = "noise included" if self.confidence is None else f"exact {100 * self.confidence:g} % intervals"
        return Section(f"{self.of.capitalize()}, {intervals}", tables=(self.as_table(),))

    def _brief(self) -> str:
        if not self._counted:
            return f"{len(self)} parts, no records"
        worst = f"worst {self.worst.name!r} {self.worst.value:.3f}"
        return f"{len(self._counted)} parts, n={sum(row.n for row in self._counted)}, {worst}"


class Measured(Described, ABC):
    """Coverage by kind of part, which an evaluation and each of its findings have."""

    @property
    @abstractmethod
    def tables(self) -> tuple[CoverageTable, ...]:
        """Coverage by part, one table for each kind of parts."""

    def table(self, kind: TableKind) -> CoverageTable:
        """Coverage of the parts of one kind; without parts if it was not counted."""
        return next((table for table in self.tables if table.kind == kind), CoverageTable(kind, ()))

    @property
    def classes(self) -> CoverageTable:
        """Coverage by true class."""
        return self.table("class")

    @property
    def groups(self) -> CoverageTable:
        """Coverage by group, with or without thresholds of their own."""
        return self.table("group")

    @property
    def sizes(self) -> CoverageTable:
        """Coverage by set size, from 1 on."""
        return self.table("size")

    @property
    def widths(self) -> CoverageTable:
        """Coverage by interval width."""
        return self.table("width")

    @property
    def ends(self) -> CoverageTable:
        """Coverage of the two ends of intervals, if each has its own threshold."""
        return self.table("end")
