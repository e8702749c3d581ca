"""How far an audit is, for whoever watches: what was announced is told to the last run, and never more than that."""

from collections.abc import Callable
from typing import TypeAlias

from confide.audit.subject import Draw, Scores

Advance: TypeAlias = Callable[[int], object]
"""Told how many runs were made since the last call; 0 where more are made than were announced."""

_STEP = 64


class Runs:
    """The runs of one subject, about as many as were announced.

    Examples
    --------
    >>> told = []
    >>> runs = Runs(announced=100, advance=told.append)
    >>> draw = runs.counted(lambda scores: 1.0)
    >>> thresholds = [draw(None) for _ in range(70)]
    >>> runs.end()
    >>> told
    [64, 36]
    """

    def __init__(self, announced: int, advance: Advance) -> None:
        self._left, self._untold, self._advance = announced, 0, advance

    def counted(self, draw: Draw) -> Draw:
        """The same mechanism, with runs that are counted."""

        def run(scores: Scores) -> float:
            self._untold += 1
            if self._untold == _STEP:
                self._untold = 0
                self._tell(min(_STEP, self._left))
            return draw(scores)

        return run

    def end(self) -> None:
        """Tell of what is left of the announced runs."""
        self._tell(self._left)

    def _tell(self, runs: int) -> None:
        self._left -= runs
        self._advance(runs)
