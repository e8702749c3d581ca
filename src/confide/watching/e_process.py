"""Tests of a monitor by bets on noisy counts, and a confidence sequence for coverage (docs/theory-after-release.md).

A bet is against "every record is covered with probability at least p0". The total wealth of the bets does not grow on
average while coverage is at least p0. By Ville's inequality the probability that it ever reaches 1/error is at most
`error`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.noisy_counts import coverage_interval, log_mgf
from confide.watching.settings import Reference, Settings

# Each bet is optimal at the planned batch size if coverage lies this far below p0
DROPS = (0.01, 0.02, 0.03, 0.05, 0.08, 0.13)

# As `DROPS`, for shares of set sizes
SIZE_DROPS = (0.02, 0.05, 0.1, 0.2)

# Bets are chosen among this many numbers between p0 and the farthest bet
_CHOICES = 401

# The mean factor of the noise is infinite if a bet has s or u at epsilon, so bets stay below this part of it
_BELOW_EPSILON = 0.999

# Bets with a larger s or u gain nothing, and their factors would overflow
_MOST_REACH = 30.0


@dataclass(frozen=True, eq=False)
class Bets:
    """Factors of the bets on noisy counts: float64 arrays of shape (tests, bets).

    The noisy counts of a batch are x = covered + A and y = missed + B, where A is the sum of a independent noises of
    scale 1/epsilon, and B the sum of b such noises. A bet p1 < p0 multiplies the wealth placed on it by

        exp(-s x + u y) / (M(s)^a M(u)^b),   s = ln(p0/p1),   u = ln((1 - p1)/(1 - p0)),   M(z) = E exp(z noise).

    The mean of this factor is 1 if p0 is the coverage, and at most 1 if the coverage is larger. The batch size may be
    secret, random, or chosen after earlier batches.

    Parameters
    ----------
    covered, missed
        s and u, per record.
    price
        Logarithm of the mean factor of the noise, M(s)^a M(u)^b.
    """

    covered: NDArray[np.float64]
    missed: NDArray[np.float64]
    price: NDArray[np.float64]


def bets(
    least: ArrayLike,
    batch: float,
    epsilon: float,
    *,
    drops: tuple[float, ...] = DROPS,
    noises: ArrayLike = (1, 1),
    per_person: int = 1,
) -> Bets:
    """Choose bets against coverage of at least `least`, one for each drop.

    Parameters
    ----------
    least
        p0 of each test, in (0, 1), shape (tests,).
    batch
        Planned number of records in a batch; another number reduces power but never validity.
    epsilon
        Parameter of one noise, whose scale is 1/epsilon.
    drops
        Drops below p0 for which the bets are optimal. A drop to below p0/10 counts as one to p0/10.
    noises
        Number of noises in x and y, shape (2,) or (tests, 2).
    per_person
        Maximum number of records of one person in a batch.

    Examples
    --------
    >>> bet = bets([0.88], batch=100, epsilon=1.0, drops=(0.05,))
    >>> float(np.exp(-bet.covered[0, 0])).__round__(3), bet.price.shape
    (0.949, (1, 1))
    """
    # The coverage that each bet fears
    p0 = np.atleast_1d(np.asarray(least, np.float64))[:, None, None]
    count = np.broadcast_to(np.asarray(noises, np.float64), (len(p0), 2))[:, :, None, None]
    feared = np.maximum(p0 - np.asarray(drops)[:, None], p0 / 10)

    # A bet farther away has an infinite mean on the noise alone (s or u at epsilon), or overshoots
    reach = _BELOW_EPSILON * min(epsilon * per_person, _MOST_REACH)
    bounded = np.maximum(p0 * np.exp(-reach), p0 - (1 - p0) * np.expm1(reach))
    farthest = np.maximum(np.maximum(2 * feared - p0, p0 / 100), bounded)
    p1 = farthest + (p0 - farthest) * np.linspace(0, 1, _CHOICES)[:-1]

    # Records of one person may be fully dependent. With s and u divided by their number, the factor of a person is a
    # geometric mean of the factors of single records, so its expectation is at most 1 (Hölder).
    s = np.log(p0 / p1) / per_person
    u = np.log1p((p0 - p1) / (1 - p0)) / per_person
    price = count[:, 0] * log_mgf(s, epsilon) + count[:, 1] * log_mgf(u, epsilon)

    # The bet that grows most at the feared coverage
    growth = batch * (-s * feared + u * (1 - feared)) - price
    best = np.argmax(growth, axis=-1)[..., None]
    return Bets(*(np.take_along_axis(values, best, axis=-1)[..., 0] for values in (s, u, price)))


def log_e_values(bet: Bets, x: ArrayLike, y: ArrayLike) -> NDArray[np.float64]:
    """Logarithm of the factor of one batch, shape (tests, bets); x and y have shape (tests,)."""
    covered, missed = (np.asarray(counts, np.float64)[:, None] for counts in (x, y))
    return missed * bet.missed - covered * bet.covered - bet.price


def entering_wealth(look: int, looks: int) -> float:
    """Fraction of the initial wealth that enters at a look, counted from 1, when `looks` looks are planned.

    The fraction is looks/((looks + t - 1)(looks + t)) at look t: about 1/looks at first, and decreasing. The fractions
    sum to one over infinitely many looks, so a watch may continue without end and has fresh wealth at every look.
    """
    return looks / ((looks + look - 1) * (looks + look))


def cash(look: int, looks: int) -> float:
    """Fraction of the initial wealth that has not entered after a look."""
    return looks / (looks + look)


def advance(log_wealth: NDArray[np.float64], log_e: NDArray[np.float64], entering: float) -> NDArray[np.float64]:
    """Logarithm of the wealth of all bets after a look at which `entering` entered; -inf before the first look."""
    return np.logaddexp(log_wealth, np.log(entering)) + log_e


def log_evidence(log_wealth: NDArray[np.float64], waiting: float) -> NDArray[np.float64]:
    """Logarithm of each test's e-process, shape (tests,): the mean over its bets plus the cash."""
    together = np.logaddexp.reduce(log_wealth, axis=-1) - np.log(log_wealth.shape[-1])
    # Without cash its logarithm is -inf
    with np.errstate(divide="ignore"):
        log_total: NDArray[np.float64] = np.logaddexp(together, np.log(waiting))
    return log_total


def course(bet: Bets, x: ArrayLike, y: ArrayLike, looks: int) -> NDArray[np.float64]:
    """Logarithm of each test's e-process after each look, shape (taken looks, tests).

    `x` and `y` are noisy counts of the taken looks, shape (taken looks, tests), or (taken looks, 1) for all tests.

    Examples
    --------
    >>> course(bets([0.88], 100, 1.0), [[80]] * 30, [[20]] * 30, 52)[[0, -1]] > np.log(20)
    array([[False],
           [ True]])
    """
    log_wealth = np.full(bet.price.shape, -np.inf)
    evidence = list[NDArray[np.float64]]()
    for look, (x_counts, y_counts) in enumerate(zip(np.asarray(x), np.asarray(y), strict=True), start=1):
        log_wealth = advance(log_wealth, log_e_values(bet, x_counts, y_counts), entering_wealth(look, looks))
        evidence.append(log_evidence(log_wealth, cash(look, looks)))
    return np.stack(evidence) if evidence else np.zeros((0, len(bet.price)))


# Smaller shares are not tested
_LEAST_SHARE = 0.02


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
        size = settings.part_batch
        people = settings.records_per_person
        bet = bets(self.least, size, settings.noise_epsilon, drops=self.drops, noises=noises, per_person=people)
        exact = np.asarray(counts, np.int64)
        return course(bet, exact @ self.members.T, exact @ self.others.T, settings.looks)


def coverage_tests(least: Sequence[float], names: Sequence[str]) -> ShareTests:
    """Tests that each group has at least this coverage; a look has a covered and a missed count for each in turn."""
    each = np.eye(len(names), dtype=np.bool_)
    covered, missed = (np.kron(each, np.array([pair], np.bool_)) for pair in ([1, 0], [0, 1]))
    return ShareTests(tuple(names), np.asarray(least, np.float64), covered, missed, DROPS)


def size_tests(reference: Reference, bins: Sequence[int], error: float) -> ShareTests:
    """Tests whether sets up to each size, and sets above each size, are as frequent as in a reference.

    A drift of set sizes does not show coverage: sets can keep their sizes and lose coverage, or the other way round.
    The reference gives a lower bound for each share; all bounds hold together except with half of the error. If they
    hold and sizes have not changed, each test has an e-process, and so has their average. The other half of the error
    is for its alarm.

    Examples
    --------
    >>> tests = size_tests(Reference((1400, 400, 140, 60), 1.0), [0, 1, 2, 3], 0.05)
    >>> tests.names[:2], [bool(0.65 < share < 0.7) for share in tests.least[:2]]
    (('sets of 0', 'sets of 1 and more'), [True, False])
    """
    cuts = np.tri(len(bins) - 1, len(bins), dtype=np.bool_)
    names = list[str]()
    least = list[float]()
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
    tested = np.flatnonzero(np.array(least) >= _LEAST_SHARE)
    chosen = members[tested]
    return ShareTests(tuple(names[at] for at in tested), np.array(least)[tested], chosen, ~chosen, SIZE_DROPS)


# The values of coverage that a confidence sequence tests
_STEP = 0.005
_GRID = np.arange(1, round(1 / _STEP)) * _STEP


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
    one, with covered and missed records exchanged, is against "at most p0". The sequence excludes every value of p0
    that one of the two e-processes has rejected at half the error. So with probability 1 - error two statements hold at
    all looks together: some record so far had a coverage below `high`, and some record had one above `low`. Constant
    coverage lies between.

    Examples
    --------
    >>> ends = confidence_sequence([90, 181, 268], [10, 19, 32], 100, 1.0)
    >>> ends[0] != ends[-1], all(low < 0.9 < high for low, high in ends)
    (True, True)
    """
    bet = _bets_of_grid(batch, epsilon, noises, per_person)
    x = np.asarray(covered).reshape(-1, 1)
    y = np.asarray(missed).reshape(-1, 1)
    alarm = math.log(2 / error)
    covered_ends, missed_ends = (_ends(course(bet, *counts, looks) >= alarm) for counts in ((x, y), (y, x)))
    return [(max(0.0, 1 - missed), min(1.0, high)) for high, missed in zip(covered_ends, missed_ends, strict=True)]


@lru_cache(maxsize=16)
def _bets_of_grid(batch: float, epsilon: float, noises: int, per_person: int) -> Bets:
    return bets(_GRID, batch, epsilon, noises=(noises, noises), per_person=per_person)


def _ends(rejected: NDArray[np.bool_]) -> list[float]:
    """One step above the largest value of the grid that was not rejected at any look so far: coverage is below it."""
    excluded = np.logical_or.accumulate(rejected, axis=0)
    return [round(largest + _STEP, 6) for largest in np.where(excluded, 0.0, _GRID).max(axis=1).tolist()]
