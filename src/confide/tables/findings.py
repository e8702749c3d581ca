"""Records that cannot be used: how many, why, and where the first of them is. Never what they hold."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError


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

    def note(self, findings: NDArray[np.integer], start: int | None) -> None:
        """Record what is wrong in a batch, 0 for nothing, that begins at row `start` if rows have an order."""
        for finding in np.unique(findings[findings != 0]).tolist():
            places = np.flatnonzero(findings == finding)
            self.add(finding, len(places), None if start is None else start + int(places[0]))

    def add(self, finding: int, number: int, first: int | None = None) -> None:
        """Record a number of rows with one finding."""
        count, before = self._found.get(finding, (0, first))
        some = [row for row in (before, first) if row is not None]
        if number:
            self._found[finding] = (count + number, min(some) if some else None)

    def merge(self, other: "Findings") -> None:
        """Record what another has found."""
        for finding, (number, first) in other._found.items():
            self.add(finding, number, first)

    def counts(self) -> dict[int, int]:
        """Rows per finding."""
        return {finding: number for finding, (number, _) in self._found.items()}

    def __bool__(self) -> bool:
        return bool(self._found)

    def refuse(self, requirements: Sequence[str]) -> None:
        """Raise if anything was found, with the requirements that are broken in their order."""
        if not self._found:
            return
        parts = []
        for finding, (count, first) in sorted(self._found.items()):
            which = "1 does not" if count == 1 else f"{count} do not"
            if first is not None:
                which += f", row {first}" if count == 1 else f", the first is row {first}"
            parts.append(f"{requirements[finding - 1]} in every row; {which}")
        where = " (rows count from 0)" if any(first is not None for _, first in self._found.values()) else ""
        raise InputError("; ".join(parts) + where)
