"""Tests of the looks of a watch, and a confidence sequence for coverage over all looks.

The tests state that parts are covered, or that set sizes are as in a reference batch. A drift of set sizes does not
show coverage: sets can keep their sizes and lose coverage, or change their sizes and keep coverage.

For each p0 of a grid there is an e-process against "every record is covered with probability at least p0". Another one,
with covered and missed records exchanged, is against "at most p0". The sequence excludes every value that one of them
has rejected at half the error. So with probability 1 - error two statements hold at all looks together: some record so
far had a coverage below `high`, and some record had one above `low`. Constant coverage lies between them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from confide.noisy_counts import coverage_interval
from confide.watching.e_process import (
    DROPS,
    SIZE_DROPS,
    Bets,
    advance,
    bets,
    cash,
    entering_wealth,
    log_e_values,
    log_evidence,
)
from confide.watching.settings import Reference

_LEAST = 0.02
"""Smaller shares are not tested, because they cannot fall noticeably."""


@dataclass(frozen=True, eq=False)
class ShareTests:
    """Tests of lower bounds on shares, each of which uses some of the counts of a look.

    Parameters
    ----------
    names
        Names of the tests.
    least
        Lower bounds to test, float64, shape (tests,).
    members, others
        Counts of records with the property, and of records without it; boolean, shape (tests, counts).
    drops
        Drops for which the bets are optimal.
    """

    names: tuple[str, ...]
    least: NDArray[np.float64]
    members: NDArray[np.bool_]
    others: NDArray[np.bool_]
    drops: tuple[float, ...]

    @property
    def noises(self) -> NDArray[np.int64]:
        """Number of noises in the records with and without the property, shape (tests, 2)."""
        return np.stack([self.members.sum(axis=1), self.others.sum(axis=1)], axis=1)

    def sums(self, counts: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Records with and without the property, int64, shape (tests,)."""
        found = np.asarray(counts, np.int64)
        return self.members @ found, self.others @ found


def coverage_tests(least: Sequence[float], names: Sequence[str]) -> ShareTests:
    """Tests that each part has at least this coverage; a look has a covered and a missed count for each part.

    Examples
    --------
    >>> coverage_tests([0.88, 0.86], ["a", "b"]).sums([9, 1, 7, 3])
    (array([9, 7]), array([1, 3]))
    """
    one = np.eye(len(names), dtype=np.bool_)
    covered, missed = (np.kron(one, np.array([pair], np.bool_)) for pair in ([1, 0], [0, 1]))
    return ShareTests(tuple(names), np.asarray(least, np.float64), covered, missed, DROPS)


def size_tests(reference: Reference, bins: Sequence[int], error: float) -> ShareTests:
    """Tests that sets up to each size, and sets above it, are as frequent as in a reference.

    The reference gives a lower bound for each share; all bounds hold together except with half of the error. If they
    hold and sizes have not changed, each test has an e-process, and so has their average. The other half of the error
    is for its alarm.

    Parameters
    ----------
    reference
        Noisy number of records in each bin.
    bins
        Smallest size of each bin.
    error
        Probability of a false alarm in total.

    Examples
    --------
    >>> tests = size_tests(Reference((1400, 400, 140, 60), 1.0), [0, 1, 2, 3], 0.05)
    >>> tests.names[:2], [bool(0.65 < share < 0.7) for share in tests.least[:2]]
    (('sets of 0', 'sets of 1 and more'), [True, False])
    """
    cuts, counts = len(bins) - 1, np.asarray(reference.counts, np.int64)
    up_to = np.tri(cuts, len(bins), dtype=np.bool_)
    noises = reference.noises * np.stack([up_to.sum(axis=1), (~up_to).sum(axis=1)], axis=1)
    low, high = np.zeros(cuts), np.ones(cuts)
    for cut in range(cuts):
        below, above = counts[up_to[cut]].sum(), counts[~up_to[cut]].sum()
        ends = coverage_interval(
            [below], [above], reference.epsilon, error=error / (2 * cuts), guess=0.5, noises=tuple(noises[cut].tolist())
        )
        low[cut], high[cut] = float(ends[0][0]), float(ends[1][0])
    names, least, members = [], [], []
    for cut in range(cuts):
        top, bottom = bins[cut + 1] - 1, bins[cut + 1]
        names += [f"sets of {top}" if top == 0 else f"sets of at most {top}", f"sets of {bottom} and more"]
        least += [low[cut], 1 - high[cut]]
        members += [up_to[cut], ~up_to[cut]]
    kept = [place for place, share in enumerate(least) if share >= _LEAST]
    chosen = np.array(members, np.bool_)[kept].reshape(len(kept), len(bins))
    return ShareTests(tuple(names[place] for place in kept), np.array(least)[kept], chosen, ~chosen, SIZE_DROPS)


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
    """Lower and upper end of the confidence sequence after each look.

    Parameters
    ----------
    covered, missed
        Noisy counts of each look; each contains `noises` noises of scale 1/epsilon.
    batch, looks
        Planned number of records in a look, and planned number of looks.
    error
        Probability that any of the statements is wrong.
    per_person
        Maximum number of records of one person in a look.

    Examples
    --------
    >>> course = confidence_sequence([90, 181, 268], [10, 19, 32], 100, 1.0)
    >>> course[0] != course[-1], all(low < 0.9 < high for low, high in course)
    (True, True)
    """
    bet = _bets(batch, epsilon, noises, per_person)
    below = _rejected(covered, missed, bet, looks, error / 2)
    above = _rejected(missed, covered, bet, looks, error / 2)
    # Coverage lies at most one step above the largest value that is not rejected.
    return [(max(0.0, 1 - _end(down)), min(1.0, _end(up))) for up, down in zip(below, above, strict=True)]


def _rejected(x: Sequence[int], y: Sequence[int], bet: Bets, looks: int, error: float) -> list[NDArray[np.bool_]]:
    """Values of the grid that are rejected after each look."""
    alarm, log_wealth = math.log(1 / error), np.full(bet.price.shape, -np.inf)
    out, rejected = np.zeros(len(_GRID), np.bool_), []
    for look, (x_count, y_count) in enumerate(zip(x, y, strict=True), start=1):
        log_e = log_e_values(bet, np.full(len(_GRID), x_count), np.full(len(_GRID), y_count))
        log_wealth = advance(log_wealth, log_e, entering_wealth(look, looks))
        out = out | (log_evidence(log_wealth, cash(look, looks)) >= alarm)
        rejected.append(out)
    return rejected


@lru_cache(maxsize=16)
def _bets(batch: float, epsilon: float, noises: int, per_person: int) -> Bets:
    return bets(_GRID, batch, epsilon, noises=(noises, noises), per_person=per_person)


def _end(out: NDArray[np.bool_]) -> float:
    """One step above the largest value that is not rejected."""
    inside = np.flatnonzero(~out)
    return round(float(_GRID[inside[-1]]) + STEP, 6) if len(inside) else STEP
