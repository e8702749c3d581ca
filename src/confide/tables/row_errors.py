"""Rows that break requirements: how many, which is the first, and in which columns; never their values."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError

# So many columns are named in an error. Of more columns with unusable rows, the requirement states the kind.
MOST_NAMED = 3

_SKIP = "Records with missing values are left out by skip_incomplete; results are then about complete records alone"


@dataclass(frozen=True)
class Rows:
    """How messages count rows, in the way that other programs count those of the same source."""

    first: int = 0  # the number of the first row
    in_words: str = "rows count from 0"


@dataclass(frozen=True)
class ColumnError:
    """The error of one column in a batch, including records in which another column is reported first."""

    reason: int  # the broken requirement, counted from 1
    requirement: str  # the same, in words about this column
    wrong: NDArray[np.bool_]  # the records, shape (n,)
    missing: bool = False  # whether some of these records lack a value
    hints: Mapping[str, int] = field(default_factory=dict)  # records that a correction would make usable, by correction


@dataclass(frozen=True, order=True)
class _RowCount:
    """A number of rows, and the first of them if rows have an order."""

    number: int = 0
    first: int | None = None

    @classmethod
    def of(cls, wrong: NDArray[np.bool_], start: int | None) -> "_RowCount":
        """The rows that `wrong` marks in a batch, which begins at row `start` of an order."""
        places = np.flatnonzero(wrong)
        return cls(len(places), None if start is None or not len(places) else start + int(places[0]))

    def __add__(self, other: "_RowCount") -> "_RowCount":
        firsts = [row for row in (self.first, other.first) if row is not None]
        return _RowCount(self.number + other.number, min(firsts, default=None))

    def in_words(self, rows: Rows) -> str:
        words = "1 does not" if self.number == 1 else f"{self.number} do not"
        if self.first is None:
            return words
        return f"{words}, {'row' if self.number == 1 else 'the first is row'} {self.first + rows.first}"


@dataclass
class _Broken:
    reported: _RowCount = _RowCount()  # rows that break no earlier requirement
    columns: dict[str, _RowCount] = field(default_factory=dict)  # by the requirement in words about a column
    hints: dict[str, int] = field(default_factory=Counter)  # rows that a correction would make usable, by correction

    def merge(self, other: "_Broken") -> None:
        self.reported += other.reported
        for words, count in other.columns.items():
            self.columns[words] = self.columns.get(words, _RowCount()) + count
        self.hints = Counter(self.hints) + Counter(other.hints)

    def sentences(self, requirement: str, rows: Rows) -> list[str]:
        """How many rows break it, in which columns, and how many would not after a correction."""
        columns = self.columns
        if not 0 < len(columns) <= MOST_NAMED:
            columns = {requirement: self.reported if self.reported.number else max(columns.values())}
        return [
            *(f"{words} in every row; {count.in_words(rows)}" for words, count in sorted(columns.items())),
            *(f"{number} would {hint}" for hint, number in sorted(self.hints.items())),
        ]


@dataclass
class RowErrors:
    """Count the rows that break requirements while a table is read, in any order of its batches."""

    by_reason: dict[int, _Broken] = field(default_factory=dict)
    missing: bool = False  # whether some of these rows lack a value

    def note(self, reasons: NDArray[np.integer], start: int | None, column_errors: Sequence[ColumnError] = ()) -> None:
        """Record the first reason of each record of a batch (0 for none), which begins at row `start` of an order."""
        for reason in np.unique(reasons[reasons != 0]).tolist():
            self._broken(reason).reported += _RowCount.of(reasons == reason, start)
        for error in column_errors:
            self.missing |= error.missing
            if error.wrong.any():
                of_column = {error.requirement: _RowCount.of(error.wrong, start)}
                self._broken(error.reason).merge(_Broken(columns=of_column, hints=dict(error.hints)))

    def add(self, reason: int, number: int) -> None:
        """Record a number of rows with one reason."""
        if number:
            self._broken(reason).reported += _RowCount(number)

    def merge(self, other: "RowErrors") -> None:
        """Add the errors that another object has recorded."""
        for reason, broken in other.by_reason.items():
            self._broken(reason).merge(broken)
        self.missing |= other.missing

    def _broken(self, reason: int) -> _Broken:
        return self.by_reason.setdefault(reason, _Broken())

    def counts(self) -> dict[int, int]:
        """Rows per reason."""
        return {reason: broken.reported.number for reason, broken in self.by_reason.items() if broken.reported.number}

    def __bool__(self) -> bool:
        return bool(self.counts())

    def refuse(self, requirements: Sequence[str], rows: Rows = Rows(), *, skips: bool = False) -> None:
        """Raise if there are errors; `skips` states that records with missing values can be left out."""
        if not self:
            return
        sentences: list[str] = []
        for reason, broken in sorted(self.by_reason.items()):
            sentences += broken.sentences(requirements[reason - 1], rows)
        ordered = any(broken.reported.first is not None for broken in self.by_reason.values())
        must = "; ".join(sentences) + (f" ({rows.in_words})" if ordered else "")
        raise InputError("table", must, remedy=_SKIP if skips and self.missing else "")
