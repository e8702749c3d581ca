"""The coverage M(l, k) of the k-th smallest of m replies, each the l-th smallest score of its silo, and its inverse.

M is from Humbert, Le Bars, Bellet and Arlot, "One-shot federated conformal prediction", ICML 2023. Here it is an
integral over one variable (docs/theory-federated.md, Theorem F1). `confide.papers.fedcp_qq` has the published method.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.federated.certificates import (
    DOUBT,
    coverage_fraction,
    gauss_legendre,
    is_simple,
)
from confide.support import bisect

_NODES = 64
_NEGLIGIBLE = 1e-17
_RATES = 7
_MANY = 100


@dataclass(frozen=True)
class RankChoice:
    """The choice of order statistics: l_j for every silo, k, and the exact coverage for continuous scores."""

    ranks: tuple[int, ...]
    k: int
    coverage: float


def qq_coverage(l: ArrayLike, k: ArrayLike, m: int, n: int) -> NDArray[np.float64]:
    """M(l, k): coverage of the k-th smallest of m replies, each the l-th smallest of n continuous scores.

    M(l, k) = 1 - int_0^1 P(Bin(m, I_t(l, n-l+1)) >= k) dt. It is a lower bound if scores have ties. l need not be an
    integer.

    Parameters
    ----------
    l
        Ranks within a silo, in [1, n]; broadcast with `k`.
    k
        Ranks among the replies, in [1, m].
    m, n
        Number of silos, number of scores in each.

    Returns
    -------
    numpy.ndarray
        float64 of the broadcast shape.

    Examples
    --------
    >>> round(float(qq_coverage(2, 3, m=4, n=5)), 6)
    0.379015
    """
    from scipy.special import betainc, betainccinv, betaincinv

    # The interval on which the probability differs from 0 and 1
    l, k = np.broadcast_arrays(np.asarray(l, dtype=np.float64), np.asarray(k, dtype=np.float64))
    low = betaincinv(l, n - l + 1, betaincinv(k, m - k + 1, _NEGLIGIBLE))
    high = betainccinv(l, n - l + 1, betaincinv(m - k + 1, k, _NEGLIGIBLE))
    x, w = gauss_legendre(_NODES)
    t = low[..., None] + (high - low)[..., None] * x
    inner = betainc(l[..., None], (n - l + 1)[..., None], t)
    missed = betainc(k[..., None], (m - k + 1)[..., None], inner) @ w
    result: NDArray[np.float64] = high - (high - low) * missed
    return result


def least_above(m: int, n: int, wanted: float, most_k: int | None = None) -> RankChoice | None:
    """The pair of least M(l, k) >= wanted, and among equal ones that of least l; `wanted` may be any number.

    Examples
    --------
    >>> least_above(3, 3, 0.9)
    RankChoice(ranks=(3, 3, 3), k=3, coverage=0.9)
    """
    l, k = smallest_k_of_ranks(m, n, wanted)
    if not l.size:
        return None
    coverage = settled(qq_coverage(l, k, m, n), l, k, m, n, wanted)
    coverage[k > (m if most_k is None else most_k)] = np.inf
    return least_of(l, k, coverage, m)


def least_of(
    l: NDArray[np.float64], k: NDArray[np.float64], coverage: NDArray[np.float64], m: int
) -> RankChoice | None:
    """The pair of least coverage; None if none is finite."""
    best = int(np.argmin(coverage))
    if not np.isfinite(coverage[best]):
        return None
    return RankChoice((int(l[best]),) * m, int(k[best]), float(coverage[best]))


def settled(coverage: ArrayLike, l: ArrayLike, k: ArrayLike, m: int, n: int, wanted: float) -> NDArray[np.float64]:
    """Values of M(l, k), of which those within 1e-12 of `wanted` are replaced by exact ones where possible.

    Quadrature cannot distinguish 9/10 from slightly less, and a level that is met exactly must count as met.
    """
    coverage = np.array(coverage, dtype=np.float64)
    if not np.any(np.abs(coverage - wanted) < DOUBT):
        return coverage
    l, k = np.broadcast_to(l, coverage.shape), np.broadcast_to(k, coverage.shape)
    for at in np.argwhere(np.abs(coverage - wanted) < DOUBT):
        place = tuple(at)
        whole = int(l[place]), int(k[place])
        if is_simple([n] * m) and whole == (l[place], k[place]):
            coverage[place] = float(coverage_fraction([n] * m, [whole[0]] * m, whole[1]))
    return coverage


def smallest_k_of_ranks(m: int, n: int, wanted: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The ranks l that may be best, and for each the smallest k with M(l, k) >= wanted.

    M increases in both. Below the first l no k is enough, and above the first l with k = 1 all are worse.
    """

    def enough(l: int, k: int) -> bool:
        return bool(settled(qq_coverage(l, k, m, n), l, k, m, n, wanted) >= wanted)

    first = bisect(lambda l: enough(l, m), 0, n + 1)
    last = min(bisect(lambda l: enough(l, 1), first - 1, n + 1), n)
    l = np.arange(first, last + 1, dtype=np.float64)
    return l, _marginal_k(l, m, n, wanted) if l.size else l


def _marginal_k(l: NDArray[np.float64], m: int, n: int, wanted: float) -> NDArray[np.float64]:
    """For every l the smallest k with M(l, k) >= wanted, or m."""
    from scipy.special import betainc

    def enough(k: NDArray[np.float64]) -> NDArray[np.bool_]:
        return settled(qq_coverage(l, k, m, n), l, k, m, n, wanted) >= wanted

    # Around k = m G(level) the coverage crosses the level; gallop from there, then bisect
    guess = np.floor(m * betainc(l, n - l + 1, wanted))
    low, high = np.clip(guess - 2, 0, m - 1), np.clip(guess + 3, 1, m)
    step = 4.0
    while True:
        too_high = (low > 0) & enough(np.maximum(low, 1))
        too_low = (high < m) & ~enough(high)
        if not (too_high.any() or too_low.any()):
            break
        low, high = (
            np.where(too_high, np.maximum(low - step, 0), np.where(too_low, high, low)),
            np.where(too_low, np.minimum(high + step, m), np.where(too_high, low, high)),
        )
        step *= 2
    while ((high - low) > 1).any():
        middle = np.floor((low + high) / 2)
        reached = enough(np.maximum(middle, 1))
        open_ = high - low > 1
        low, high = np.where(open_ & ~reached, middle, low), np.where(open_ & reached, middle, high)
    smallest: NDArray[np.float64] = high
    return smallest
