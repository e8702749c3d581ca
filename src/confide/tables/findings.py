"""Records that cannot be used: how many, why, and where the first of them is. Never what they hold."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError

_NAMED = 3
"""So many columns are named one by one; of more, the first stands for all."""

_SKIP = "; records with missing values are left out by skip_incomplete"


@dataclass(frozen=True)
class Rows:
    """How rows are counted in messages, as whoever opens the source elsewhere counts them.

    Parameters
    ----------
    first
        The number of the first.
    in_words
        How they are counted.
    """

    first: int = 0
    in_words: str = "rows count from 0"


@dataclass(frozen=True)
class Fault:
    """What is wrong with one column in a batch, also in records in which another column comes first.

    Parameters
    ----------
    finding
        The requirement that is broken, counted from 1.
    requirement
        The same, in words about this column.
    wrong
        The records, boolean, shape (n,).
    missing
        Whether some of them lack a value.
    hints
        How many of them would be right if something were done about them, by what that is.
    """

    finding: int
    requirement: str
    wrong: NDArray[np.bool_]
    missing: bool = False
    hints: Mapping[str, int] = field(default_factory=dict)


class Findings:
    """Counts the records that break requirements while a table passes by, in whatever order its batches come.

    Examples
    --------
    >>> findings = Findings()
    >>> findings.note(np.array([0, 1], np.int8), start=100)
    >>> findings.refuse(["column 'score' must hold a number"])
    Traceback (most recent call last):
    confide.errors.InputError: column 'score' must hold a number in every row; 1 does not, row 101 (rows count from 0)
    """

    def __init__(self) -> None:
        self._found: dict[int, tuple[int, int | None]] = {}
        self._named: dict[tuple[int, str], tuple[int, int | None]] = {}
        self._hints: dict[tuple[int, str], int] = {}
        self.missing = False

    def note(self, findings: NDArray[np.integer], start: int | None, faults: Sequence[Fault] = ()) -> None:
        """Record what is wrong in a batch, 0 for nothing, that begins at row `start` if rows have an order.

        `findings` has the first finding of each record; `faults` name all columns of which more can be said, if there
        is anything wrong with them.
        """
        for finding in np.unique(findings[findings != 0]).tolist():
            self.add(finding, *_counted(findings == finding, start))
        for fault in faults:
            _add(self._named, (fault.finding, fault.requirement), *_counted(fault.wrong, start))
            self.missing |= fault.missing
            for hint, number in fault.hints.items():
                self._hints[fault.finding, hint] = self._hints.get((fault.finding, hint), 0) + number

    def add(self, finding: int, number: int, first: int | None = None) -> None:
        """Record a number of rows with one finding."""
        _add(self._found, finding, number, first)

    def merge(self, other: "Findings") -> None:
        """Record what another has found."""
        for finding, (number, first) in other._found.items():
            self.add(finding, number, first)
        for named, (number, first) in other._named.items():
            _add(self._named, named, number, first)
        for hint, number in other._hints.items():
            self._hints[hint] = self._hints.get(hint, 0) + number
        self.missing |= other.missing

    def counts(self) -> dict[int, int]:
        """Rows per finding."""
        return {finding: number for finding, (number, _) in self._found.items()}

    def __bool__(self) -> bool:
        return bool(self._found)

    def refuse(self, requirements: Sequence[str], rows: Rows = Rows(), *, skips: bool = False) -> None:
        """Raise if anything was found, with the requirements that are broken in their order.

        `skips` says that records with missing values can be left out.
        """
        if not self._found:
            return
        parts = []
        for finding in sorted({*self._found, *(finding for finding, _ in self._named)}):
            named = {words: found for (one, words), found in self._named.items() if one == finding}
            if not 0 < len(named) <= _NAMED:
                named = {requirements[finding - 1]: self._found.get(finding) or max(named.values())}
            parts += [
                f"{words} in every row; {_which(count, first, rows)}" for words, (count, first) in sorted(named.items())
            ]
            parts += [f"{number} would {hint}" for (one, hint), number in self._hints.items() if one == finding]
        where = f" ({rows.in_words})" if any(first is not None for _, first in self._found.values()) else ""
        raise InputError("; ".join(parts) + where + (_SKIP if skips and self.missing else ""))


def _add(counts: dict[Any, tuple[int, int | None]], key: Any, number: int, first: int | None) -> None:
    count, before = counts.get(key, (0, first))
    some = [row for row in (before, first) if row is not None]
    if number:
        counts[key] = (count + number, min(some) if some else None)


def _counted(wrong: NDArray[np.bool_], start: int | None) -> tuple[int, int | None]:
    """How many rows are wrong, and the first of them."""
    places = np.flatnonzero(wrong)
    return len(places), None if start is None or not len(places) else start + int(places[0])


def _which(count: int, first: int | None, rows: Rows) -> str:
    words = "1 does not" if count == 1 else f"{count} do not"
    if first is None:
        return words
    return f"{words}, row {first + rows.first}" if count == 1 else f"{words}, the first is row {first + rows.first}"
