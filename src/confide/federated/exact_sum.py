"""The coverage of a quantile of quantiles as a rational number: the published sum, by how many scores lie below.

Humbert, Le Bars, Bellet and Arlot, "One-shot federated conformal prediction", ICML 2023, (5) and Appendix A.1: the sum
over i_1, ..., i_m has one denominator for all terms of one total r = i_1 + ... + i_m, so the products of binomial
coefficients are coefficients of a product of polynomials, and these are multiplied as whole numbers.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import comb, factorial

import numpy as np
from numpy.typing import ArrayLike, NDArray

DOUBT = 1e-12
"""A coverage so near to a level may lie on either side of it: quadrature is less exact."""

_MOST = 300


def coverage_fraction(sizes: Sequence[int], ranks: Sequence[int], k: int) -> Fraction:
    """Coverage of the k-th smallest of m replies, reply j the l_j-th smallest of n_j continuous scores, exactly.

    One silo, or one record each, is split conformal prediction. Otherwise the time grows with the squares of m and of
    the number of records: for a few hundred records.

    Parameters
    ----------
    sizes
        n_j.
    ranks
        l_j in 1..n_j + 1, which stands for +inf.
    k
        Which reply becomes the threshold, in 1..m.

    Examples
    --------
    >>> coverage_fraction([5, 5, 5, 5], [2, 2, 2, 2], 3)
    Fraction(52519, 138567)
    >>> coverage_fraction([999], [900], 1), coverage_fraction([3, 3, 3], [3, 3, 3], 3)
    (Fraction(9, 10), Fraction(9, 10))
    """
    total = sum(sizes)
    if len(sizes) == 1:
        return Fraction(ranks[0], total + 1)
    if total == len(sizes) == sum(ranks):
        return Fraction(k, total + 1)
    bits = total + 1  # a coefficient is at most C(total, r) < 2^total: the polynomials are whole numbers in base 2^bits
    ways = [1]  # by how many replies lie below t
    for n, l in zip(sizes, ranks, strict=True):
        below, above = (sum(comb(n, i) << bits * i for i in span) for span in (range(l, n + 1), range(l)))
        ways = [
            (ways[j] * above if j < len(ways) else 0) + (ways[j - 1] * below if j else 0) for j in range(len(ways) + 1)
        ]
    missed, mask, weighted = sum(ways[k:]), (1 << bits) - 1, 0
    for r in range(total + 1):
        weighted += (missed >> bits * r & mask) * factorial(r) * factorial(total - r)
    return 1 - Fraction(weighted, factorial(total) * (total + 1))


def is_simple(sizes: Sequence[int]) -> bool:
    """Whether `coverage_fraction` takes little time: one silo, or one record each, or up to 300 records in all."""
    return len(sizes) == 1 or sum(sizes) in (len(sizes), *range(_MOST + 1))


def settled(coverage: ArrayLike, l: ArrayLike, k: ArrayLike, m: int, n: int, wanted: float) -> NDArray[np.float64]:
    """Computed values of M(l, k), those within 1e-12 of what is wanted replaced by exact ones where that is simple.

    A quadrature cannot tell 9/10 from a little less; a level that is met exactly must count as met.

    Examples
    --------
    >>> settled([0.9 - 1e-15, 0.8], [27, 24], 1, 1, 29, 0.9)
    array([0.9, 0.8])
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
