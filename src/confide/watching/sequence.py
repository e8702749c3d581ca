"""What the looks say about coverage itself, at every one of them: a confidence sequence on a grid.

For each p0 of the grid there is one e-process against "every record is covered with probability at least p0", and, with
covered and missed records exchanged, one against "at most p0". What either of them ever rejects at half the error is
out, so with probability 1 - error these hold at all looks together: some record so far had a coverage below `high`, and
some had one above `low`. If coverage stays what it is, it lies between them.
"""

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from confide.watching.e_process import Bets, advance, bets, cash, log_e_values, log_evidence, stake

STEP = 0.005
_GRID = np.arange(1, round(1 / STEP)) * STEP


def confidence_sequence(
    covered: Sequence[int],
    missed: Sequence[int],
    batch: float,
    epsilon: float,
    *,
    looks: int = 52,
    error: float = 0.05,
    noises: int = 1,
    per_person: int = 1,
) -> list[tuple[float, float]]:
    """Low and high after each look.

    Parameters
    ----------
    covered, missed
        Noisy counts of each look, each with `noises` noises of the scale 1/epsilon.
    batch, looks
        The planned records of a look, and how many looks are planned.
    error
        The chance that one of the statements is wrong, ever.
    per_person
        The most records of one person in a look.

    Examples
    --------
    >>> course = confidence_sequence([90, 181, 268], [10, 19, 32], 100, 1.0)
    >>> course[0] != course[-1], all(low < 0.9 < high for low, high in course)
    (True, True)
    """
    bet = _bets(batch, epsilon, noises, per_person)
    below = _rejected(covered, missed, bet, looks, error / 2)
    above = _rejected(missed, covered, bet, looks, error / 2)
    # The coverage lies up to one step above the largest value that is not out.
    return [(max(0.0, 1 - _end(down)), min(1.0, _end(up))) for up, down in zip(below, above, strict=True)]


def _rejected(x: Sequence[int], y: Sequence[int], bet: Bets, looks: int, error: float) -> list[NDArray[np.bool_]]:
    """Which values of the grid are out after each look."""
    alarm, log_stakes = math.log(1 / error), np.full(bet.price.shape, -np.inf)
    out, found = np.zeros(len(_GRID), np.bool_), []
    for look, (one, other) in enumerate(zip(x, y, strict=True), start=1):
        log_e = log_e_values(bet, np.full(len(_GRID), one), np.full(len(_GRID), other))
        log_stakes = advance(log_stakes, log_e, stake(look, looks))
        out = out | (log_evidence(log_stakes, cash(look, looks)) >= alarm)
        found.append(out)
    return found


@lru_cache(maxsize=16)
def _bets(batch: float, epsilon: float, noises: int, per_person: int) -> Bets:
    return bets(_GRID, batch, epsilon, noises=(noises, noises), per_person=per_person)


def _end(out: NDArray[np.bool_]) -> float:
    """One step above the largest value that is not out."""
    inside = np.flatnonzero(~out)
    return round(float(_GRID[inside[-1]]) + STEP, 6) if len(inside) else STEP
