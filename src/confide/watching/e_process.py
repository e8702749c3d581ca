"""Bets against "every record is covered with probability at least p0", on noisy counts (docs/theory-after-release.md).

The total wealth of the bets does not grow on average while coverage is at least p0. By Ville's inequality the
probability that it ever reaches 1/error is at most `error`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.noisy_counts import log_mgf

# Each bet is optimal at the planned batch size if coverage lies this far below p0
DROPS = (0.01, 0.02, 0.03, 0.05, 0.08, 0.13)

# As `DROPS`, for shares of set sizes
SIZE_DROPS = (0.02, 0.05, 0.1, 0.2)

_FINEST, _SAFE, _MOST = 401, 0.999, 30.0


@dataclass(frozen=True, eq=False)
class Bets:
    """Factors of the bets on noisy counts: float64 arrays of shape (tests, bets).

    The noisy counts of a batch are x = covered + A and y = missed + B, where A is the sum of a independent noises of
    scale 1/epsilon, and B of b. A bet p1 < p0 multiplies the wealth placed on it by

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
    reach = _SAFE * min(epsilon * per_person, _MOST)
    bounded = np.maximum(p0 * np.exp(-reach), p0 - (1 - p0) * np.expm1(reach))
    farthest = np.maximum(np.maximum(2 * feared - p0, p0 / 100), bounded)
    p1 = farthest + (p0 - farthest) * np.linspace(0, 1, _FINEST)[:-1]

    # Records of one person may be fully dependent. With s and u divided by their number, the factor of a person is a
    # geometric mean of the factors of single records, so its expectation is at most 1 (Hölder).
    s, u = np.log(p0 / p1) / per_person, np.log1p((p0 - p1) / (1 - p0)) / per_person
    price = count[:, 0] * log_mgf(s, epsilon) + count[:, 1] * log_mgf(u, epsilon)

    # The bet that grows most at the feared coverage
    growth = batch * (-s * feared + u * (1 - feared)) - price
    best = np.argmax(growth, axis=-1)[..., None]
    return Bets(*(np.take_along_axis(values, best, axis=-1)[..., 0] for values in (s, u, price)))


def log_e_values(bet: Bets, x: ArrayLike, y: ArrayLike) -> NDArray[np.float64]:
    """Logarithm of the factor of one batch, shape (tests, bets); x and y have shape (tests,)."""
    covered, missed = (np.asarray(counts, np.float64)[:, None] for counts in (x, y))
    log_e: NDArray[np.float64] = missed * bet.missed - covered * bet.covered - bet.price
    return log_e


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
    after: NDArray[np.float64] = np.logaddexp(log_wealth, np.log(entering)) + log_e
    return after


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
    log_wealth, evidence = np.full(bet.price.shape, -np.inf), list[NDArray[np.float64]]()
    for look, (x_counts, y_counts) in enumerate(zip(np.asarray(x), np.asarray(y), strict=True), start=1):
        log_wealth = advance(log_wealth, log_e_values(bet, x_counts, y_counts), entering_wealth(look, looks))
        evidence.append(log_evidence(log_wealth, cash(look, looks)))
    return np.stack(evidence) if evidence else np.zeros((0, len(bet.price)))
