"""Bets against "every record is covered with probability at least p0", on noisy counts (docs/theory-after-release.md).

Of a batch these are x = covered + A and y = missed + B, with independent noises A and B of the scale 1/epsilon. A bet
p1 < p0 multiplies its stake by

    exp(-s x + u y) / (M(s)^a M(u)^b),   s = ln(p0/p1),   u = ln((1 - p1)/(1 - p0)),   M(z) = E exp(z noise),

where x has a noises and y has b. Its mean is 1 if p0 is the coverage and at most 1 if the coverage is larger, whatever
the size of the batch, which may be secret, random, or chosen after looking at earlier batches.

Records of one person may be all alike. With up to k of them in a batch s and u are divided by k: then a person's factor
is a geometric mean of what each record alone would give, and its expectation is at most 1 whatever joins them (Hölder).

A stake of `stake(t, looks)` enters at every look t, so that a drop is met by fresh stakes whenever it comes; they add
up to one over all looks there will ever be. What has not entered yet is cash. All together never loses or gains on
average while p0 is kept, so by Ville's inequality it ever reaches 1/error with probability at most `error`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.noisy_counts import log_mgf

DROPS = (0.01, 0.02, 0.03, 0.05, 0.08, 0.13)
"""Each bet is the best one, at the planned batch size, if coverage lies this far below p0."""

SIZE_DROPS = (0.02, 0.05, 0.1, 0.2)
"""The same for shares of set sizes."""

_FINEST, _SAFE, _MOST = 401, 0.999, 30.0


@dataclass(frozen=True, eq=False)
class Bets:
    """What each bet does with noisy counts: float64, all of shape (tests, bets).

    Parameters
    ----------
    covered, missed
        s and u, for each record.
    price
        The logarithm of what the noise is worth on average, M(s)^a M(u)^b.
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
    """The bets against coverage of at least `least`, one for each drop.

    Parameters
    ----------
    least
        p0 of each test, in (0, 1), shape (tests,).
    batch
        The planned number of records of a batch; another number costs power, never validity.
    epsilon
        Of one noise: its scale is 1/epsilon.
    drops
        How far below p0 coverage is feared to be. A drop to below p0/10 counts as one to p0/10.
    noises
        How many noises x and y hold, shape (2,) or (tests, 2).
    per_person
        The most records of one person in a batch.

    Examples
    --------
    >>> one = bets([0.88], batch=100, epsilon=1.0, drops=(0.05,))
    >>> float(np.exp(-one.covered[0, 0])).__round__(3), one.price.shape
    (0.949, (1, 1))
    """
    p0 = np.atleast_1d(np.asarray(least, np.float64))[:, None, None]
    count = np.broadcast_to(np.asarray(noises, np.float64), (len(p0), 2))[:, :, None, None]
    feared = np.maximum(p0 - np.asarray(drops)[:, None], p0 / 10)
    # Farther away the bet would be worth infinitely much on the noise alone (s or u at epsilon), or overshoot.
    reach = _SAFE * min(epsilon * per_person, _MOST)
    bounded = np.maximum(p0 * np.exp(-reach), p0 - (1 - p0) * np.expm1(reach))
    farthest = np.maximum(np.maximum(2 * feared - p0, p0 / 100), bounded)
    p1 = farthest + (p0 - farthest) * np.linspace(0, 1, _FINEST)[:-1]
    s, u = np.log(p0 / p1) / per_person, np.log1p((p0 - p1) / (1 - p0)) / per_person
    price = count[:, 0] * log_mgf(s, epsilon) + count[:, 1] * log_mgf(u, epsilon)
    growth = batch * (-s * feared + u * (1 - feared)) - price
    best = np.argmax(growth, axis=-1)[..., None]
    return Bets(*(np.take_along_axis(one, best, axis=-1)[..., 0] for one in (s, u, price)))


def log_e_values(bet: Bets, x: ArrayLike, y: ArrayLike) -> NDArray[np.float64]:
    """The logarithm of what one batch multiplies each stake by, shape (tests, bets); x and y have shape (tests,).

    Examples
    --------
    >>> one = bets([0.5], batch=100, epsilon=1.0, drops=(0.1,))
    >>> (log_e_values(one, [40], [60]) > 0).item(), (log_e_values(one, [50], [50]) > 0).item()
    (True, False)
    """
    seen, unseen = (np.asarray(one, np.float64)[:, None] for one in (x, y))
    found: NDArray[np.float64] = unseen * bet.missed - seen * bet.covered - bet.price
    return found


def stake(look: int, looks: int) -> float:
    """What enters at a look, counted from 1, where `looks` are planned.

    About 1/looks at first and ever less, as looks/((looks + t - 1)(looks + t)) after t of them: the sum over all looks
    there will ever be is one, so the watch may go on for as long as it likes, with fresh stakes at every look.

    Examples
    --------
    >>> round(sum(stake(look, 52) for look in range(1, 1041)), 6) == round(1 - cash(1040, 52), 6)
    True
    """
    return looks / ((looks + look - 1) * (looks + look))


def cash(look: int, looks: int) -> float:
    """What has not entered yet after a look.

    Examples
    --------
    >>> cash(0, 52), cash(52, 52)
    (1.0, 0.5)
    """
    return looks / (looks + look)


def advance(log_stakes: NDArray[np.float64], log_e: NDArray[np.float64], entering: float) -> NDArray[np.float64]:
    """The logarithms of all stakes after a look, at which `entering` entered; before the first look they are -inf."""
    after: NDArray[np.float64] = np.logaddexp(log_stakes, np.log(entering)) + log_e
    return after


def log_evidence(log_stakes: NDArray[np.float64], waiting: float) -> NDArray[np.float64]:
    """The logarithm of each test's e-process, shape (tests,): the mean of its bets, and the cash that waits.

    Examples
    --------
    >>> one, stakes = bets([0.88], 100, 1.0), np.full((1, 6), -np.inf)
    >>> float(log_evidence(stakes, cash(0, 52))[0])
    0.0
    >>> for look in range(1, 31):
    ...     stakes = advance(stakes, log_e_values(one, [80], [20]), stake(look, 52))
    >>> bool(log_evidence(stakes, cash(30, 52))[0] > np.log(20))
    True
    """
    together = np.logaddexp.reduce(log_stakes, axis=-1) - np.log(log_stakes.shape[-1])
    with np.errstate(divide="ignore"):  # no cash
        found: NDArray[np.float64] = np.logaddexp(together, np.log(waiting))
    return found
