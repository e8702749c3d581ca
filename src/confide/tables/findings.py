"""Bad rows of a whole file: how many, and where the first one is. Never what they hold."""

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError


class Findings:
    """Collects the rows that break a requirement while a file streams by.

    Examples
    --------
    >>> findings = Findings()
    >>> findings.note("column 'score' must hold a number", np.array([False, True]), start=100)
    True
    >>> findings.refuse()
    Traceback (most recent call last):
    confide.errors.InputError: column 'score' must hold a number in every row; 1 does not, row 101 (rows count from 0)
    """

    def __init__(self) -> None:
        self._found: dict[str, tuple[int, int]] = {}

    def note(self, requirement: str, wrong: NDArray[np.bool_], start: int) -> bool:
        """Record the rows of a batch that starts at row `start` and are wrong; say whether there are any."""
        number = int(np.count_nonzero(wrong))
        if number:
            count, first = self._found.get(requirement, (0, start + int(np.argmax(wrong))))
            self._found[requirement] = (count + number, first)
        return number > 0

    def __bool__(self) -> bool:
        return bool(self._found)

    def refuse(self) -> None:
        """Raise for the requirement that was broken first, if any was."""
        if not self._found:
            return
        requirement, (count, first) = min(self._found.items(), key=lambda item: item[1][1])
        which = f"1 does not, row {first}" if count == 1 else f"{count} do not, the first is row {first}"
        raise InputError(f"{requirement} in every row; {which} (rows count from 0)")
