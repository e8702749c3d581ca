"""Tests of the looks of a watch, and a confidence sequence for coverage over all looks.

The tests state that groups are covered, or that set sizes are as in a reference batch. A drift of set sizes does not
show coverage: sets can keep their sizes and lose coverage, or change their sizes and keep coverage.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.noisy_counts import coverage_interval
from confide.watching.e_process import DROPS, SIZE_DROPS, Bets, bets, course
from confide.watching.settings import Reference, Settings

# Smaller shares are not tested
_LEAST = 0.02


@dataclass(frozen=True, eq=False)
class ShareTests:
    """Tests of lower bounds `least` on shares, shape (tests,), with bets that are optimal at these drops.

    `members` and `others` choose the counts of records with a property, and without it: boolean, shape (tests, counts).
    """

    names: tuple[str, ...]
    least: NDArray[np.float64]
    members: NDArray[np.bool_]
    others: NDArray[np.bool_]
    drops: tuple[float, ...]

    def evidence(self, counts: ArrayLike, settings: Settings) -> NDArray[np.float64]:
        """Logarithm of the e-process of each test after each look, shape (looks, tests); counts (looks, counts)."""
        noises = np.stack([self.members.sum(axis=1), self.others.sum(axis=1)], axis=1)
        size, people = settings.part_batch, settings.records_per_person
        bet = bets(self.least, size, settings.noise_epsilon, drops=self.drops, noises=noises, per_person=people)
        exact = np.asarray(counts, np.int64)
        return course(bet, exact @ self.members.T, exact @ self.others.T, settings.looks)


def coverage_tests(least: Sequence[float], names: Sequence[str]) -> ShareTests:
    """Tests that each group has at least this coverage; a look has a covered and a missed count for each in turn."""
    each = np.eye(len(names), dtype=np.bool_)
    covered, missed = (np.kron(each, np.array([pair], np.bool_)) for pair in ([1, 0], [0, 1]))
    return ShareTests(tuple(names), np.asarray(least, np.float64), covered, missed, DROPS)


def size_tests(reference: Reference, bins: Sequence[int], error: float) -> ShareTests:
    """Tests that sets up to each size, and sets above it, are as frequent as in a reference.

    The reference gives a lower bound for each share; all bounds hold together except with half of the error. If they
    hold and sizes have not changed, each test has an e-process, and so has their average. The other half of the error
    is for its alarm.

    Examples
    --------
    >>> tests = size_tests(Reference((1400, 400, 140, 60), 1.0), [0, 1, 2, 3], 0.05)
    >>> tests.names[:2], [bool(0.65 < share < 0.7) for share in tests.least[:2]]
    (('sets of 0', 'sets of 1 and more'), [True, False])
    """
    cuts, names, least = np.tri(len(bins) - 1, len(bins), dtype=np.bool_), list[str](), list[float]()
    # For each size, the shares of sets below it and from it on, with simultaneous bounds by the reference
    for up_to, size in zip(cuts, bins[1:], strict=True):
        both = np.stack([up_to, ~up_to])
        below, above = both @ np.asarray(reference.counts, np.int64)
        noises = tuple((reference.noises * both.sum(axis=1)).tolist())
        chance = error / (2 * len(cuts))
        low, high = coverage_interval([below], [above], reference.epsilon, error=chance, guess=0.5, noises=noises)
        least += [float(low[0]), 1 - float(high[0])]
        names += ["sets of 0" if size == 1 else f"sets of at most {size - 1}", f"sets of {size} and more"]

    # Leave out shares that cannot fall noticeably
    members = np.stack([cuts, ~cuts], axis=1).reshape(-1, len(bins))
    tested = np.flatnonzero(np.array(least) >= _LEAST)
    chosen = members[tested]
    return ShareTests(tuple(names[at] for at in tested), np.array(least)[tested], chosen, ~chosen, SIZE_DROPS)


STEP = 0.005
_GRID = np.arange(1, round(1 / STEP)) * STEP


def confidence_sequence(
    covered: ArrayLike,
    missed: ArrayLike,
    batch: float,
    epsilon: float,
    *,
    looks: int = 52,
    error: float = 0.05,
    noises: int = 1,
    per_person: int = 1,
) -> list[tuple[float, float]]:
    """Lower and upper end of the confidence sequence after each look; each count has `noises` noises.

    For each p0 of a grid there is an e-process against "every record is covered with probability at least p0". Another
    one, with covered and missed records exchanged, is against "at most p0". The sequence excludes every value that one
    of them has rejected at half the error. So with probability 1 - error two statements hold at all looks together:
    some record so far had a coverage below `high`, and some record had one above `low`. Constant coverage lies between.

    Examples
    --------
    >>> ends = confidence_sequence([90, 181, 268], [10, 19, 32], 100, 1.0)
    >>> ends[0] != ends[-1], all(low < 0.9 < high for low, high in ends)
    (True, True)
    """
    bet = _bets(batch, epsilon, noises, per_person)
    x, y = (np.asarray(counts).reshape(-1, 1) for counts in (covered, missed))
    below, above = (_ends(course(bet, *pair, looks) >= math.log(2 / error)) for pair in ((x, y), (y, x)))
    return [(max(0.0, 1 - down), min(1.0, up)) for up, down in zip(below, above, strict=True)]


@lru_cache(maxsize=16)
def _bets(batch: float, epsilon: float, noises: int, per_person: int) -> Bets:
    return bets(_GRID, batch, epsilon, noises=(noises, noises), per_person=per_person)


def _ends(rejected: NDArray[np.bool_]) -> list[float]:
    """One step above the largest value of the grid that was not rejected at any look so far: coverage is below it."""
    out = np.logical_or.accumulate(rejected, axis=0)
    return [round(largest + STEP, 6) for largest in np.where(out, 0.0, _GRID).max(axis=1).tolist()]
