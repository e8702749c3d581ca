"""Private Prediction Sets, version 1 (arXiv 2102.06202v1), by number: a histogram with Laplace noise.

n scores, m bins with the edges 0 = e_0 < ... < e_m = 1, loss epsilon when one record is replaced, coverage 1 - alpha,
and gamma in (0, 1), the share of alpha that is reserved for the noise. `mechanism="pps-laplace"` is the mechanism.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.mechanisms import laplace_level, noise_closed_form, walk_quantiles, walk_stays_below
from confide.papers.checked import at_least_zero, without_nan
from confide.papers.private_prediction_sets import beta_of_quantile
from confide.support import Level, exact_level, positive_integer, positive_number, require

# `beta_of_quantile`: Lemma 4 is Lemma 2 of versions 2 and 3; its proof prints ceil(n alpha) for ceil(n q)
__all__ = [
    "GAMMAS", "adjusted_level", "are_neighbours", "balanced_bins", "bernstein_tail", "beta_of_quantile", "calibrate",
    "coverage_lower_bound", "coverage_upper_bound", "coverage_upper_bound_by_rank", "cutoff", "exceedance",
    "excess_rate", "laplace_moment", "levy_bound", "moment_bound", "optimal_bins", "private_distribution",
    "simplified_upper_bound", "simplified_zeta", "simulated_zeta", "subexponential_parameters", "sum_tail", "zeta",
]  # fmt: skip

GAMMAS = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1)
"""Coarsely spaced values from 1e-4 to 0.1, as in App. C.1."""


def are_neighbours(counts: ArrayLike, other: ArrayLike) -> bool:
    """Definition 1 (version 1): whether two data sets, given by counts, differ in at most one replaced record.

    Examples
    --------
    >>> are_neighbours([3, 1, 0], [2, 1, 1]), are_neighbours([3, 1, 0], [3, 1, 1])
    (True, False)
    """
    change = np.asarray(other) - np.asarray(counts)
    return bool(change.sum() == 0 and np.abs(change).sum() <= 2)


def private_distribution(noisy_counts: ArrayLike, n: int) -> NDArray[np.float64]:
    """Algorithm 2 (version 1): F~(e_0), ..., F~(e_m) from counts with noise of scale 2/epsilon.

    F~(s) = 1 - (1/n) sum_j noisy_j 1{s < e_j}. It is constant between edges and 1 at e_m. It need not increase, and
    need not be 0 at e_0.

    Parameters
    ----------
    noisy_counts
        Shape (..., m).
    n
        The public number of records.

    Returns
    -------
    Shape (..., m+1).

    Examples
    --------
    >>> private_distribution([3.5, -0.5, 1.5], 4)
    array([-0.125,  0.75 ,  0.625,  1.   ])
    """
    noisy = without_nan("noisy_counts", noisy_counts)
    beyond = np.cumsum(noisy[..., ::-1], axis=-1)[..., ::-1] / n
    return np.concatenate([1 - beyond, np.ones((*noisy.shape[:-1], 1))], axis=-1)


def cutoff(distribution: ArrayLike, level: float, edges: Sequence[float]) -> float:
    """(4): the first edge at which F~ reaches the level; +inf if the level is above 1.

    The paper takes the infimum over all z, where F~ is constant below e_1. If F~(e_0) reaches the level, which noise
    can cause, that is not an edge; over [0, 1] it is 0. `mechanism="pps-laplace"` answers at least e_1.

    Examples
    --------
    >>> cutoff(private_distribution([3.5, -0.5, 1.5], 4), 0.7, [0, 0.5, 0.75, 1])
    0.5
    """
    reached = without_nan("distribution", distribution) >= level
    return float(edges[int(np.argmax(reached))]) if reached.any() else math.inf


def calibrate(noisy_counts: ArrayLike, n: int, level: float) -> float:
    """Algorithm 3 (version 1): the calibrated cutoff over m even bins, from noisy counts and the level of (4).

    Examples
    --------
    >>> calibrate([3.5, -0.5, 1.5, 0.5], 5, 0.55)
    0.25
    """
    distribution = private_distribution(noisy_counts, n)
    m = len(distribution) - 1
    return cutoff(distribution, level, [j / m for j in range(m + 1)])


def exceedance(n: int, m: int, epsilon: float, t: float) -> float:
    """(3): P(max_(k<=m) abs(sum_(j<=k) noise_j)/n >= t) for noise of scale 2/epsilon, exactly.

    Examples
    --------
    >>> round(exceedance(5000, 36, 1.0, 0.01), 4)
    0.0056
    """
    return float(1 - walk_stays_below(m, np.array([at_least_zero("t", t) * n * epsilon / 2]))[0])


def zeta(n: int, m: int, epsilon: float, nu: float) -> float:
    """Theorem 2 (version 1), (3): the smallest t with `exceedance` at most nu, exactly; nu = gamma alpha.

    Examples
    --------
    >>> round(zeta(5000, 36, 1.0, 0.01), 5)
    0.00934
    """
    walk = float(walk_quantiles(m, (nu,), noise_closed_form(m, nu, 1.0))[0])
    return 2 * walk / (n * epsilon)


def simulated_zeta(
    n: int, m: int, epsilon: float, nu: float, rng: np.random.Generator, walks: int = 50_000, unsure: float = 1e-6
) -> float:
    """Algorithm 3 (version 1): an upper bound of zeta by simulation; +inf if there are too few walks.

    The r-th smallest of the simulated maxima lies below the (1 - nu + unsure) quantile only if at least r maxima do, so
    r is the smallest with P(Bin(walks, 1 - nu + unsure) >= r) <= unsure. Then Theorem 2 holds at nu including all
    errors. The paper assumes a simulation so long that its error is negligible; `zeta` has no such error.

    Examples
    --------
    >>> found = simulated_zeta(5000, 36, 1.0, 0.01, np.random.default_rng(0), walks=4_000)
    >>> zeta(5000, 36, 1.0, 0.01) < found < 1.2 * zeta(5000, 36, 1.0, 0.01)
    True
    """
    from scipy.stats import binom

    # The order statistic whose error the probability `unsure` bounds.
    if nu <= unsure:
        return math.inf
    rank = int(binom.isf(unsure, walks, 1 - nu + unsure)) + 1
    if rank > walks:
        return math.inf

    # Walks in blocks of bounded memory.
    maxima = np.empty(walks)
    block = max(1, 4_000_000 // m)
    for start in range(0, walks, block):
        steps = rng.laplace(size=(min(block, walks - start), m))
        maxima[start : start + block] = np.abs(np.cumsum(steps, axis=1, out=steps), out=steps).max(axis=1)
    return 2 * float(np.partition(maxima, rank - 1)[rank - 1]) / (n * epsilon)


def adjusted_level(n: int, alpha: Level, gamma: float, noise: float) -> float:
    """Theorem 2 (version 1), (4): the level for F~, (n+1)(1-alpha)/(n(1-gamma alpha)) + zeta.

    Examples
    --------
    >>> round(adjusted_level(5000, 0.1, 0.01, zeta(5000, 36, 1.0, 0.001)), 5)
    0.91291
    """
    bound = np.array(at_least_zero("noise", noise))
    return float(laplace_level(n, exact_level("alpha", alpha), np.array(gamma), bound))


def coverage_lower_bound(n: int, alpha: Level, gamma: float) -> float:
    """Theorem 2 (version 1), the end of its proof (B.1): (1-gamma alpha) j/(n+1), which is at least 1 - alpha.

    j = ceil((n+1)(1-alpha)/(1-gamma alpha)) is the rank after zeta is subtracted from the level.

    Examples
    --------
    >>> round(coverage_lower_bound(5000, 0.1, 0.01), 5)
    0.90012
    """
    share = 1 - Fraction(gamma) * exact_level("alpha", alpha)
    rank = math.ceil((n + 1) * (1 - exact_level("alpha", alpha)) / share)
    return float(share * rank / (n + 1))


def simplified_zeta(n: int, m: int, epsilon: float, alpha: Level, gamma: float) -> float:
    """Corollary 1 (version 1), (6): 4 sqrt(2 m log(4/(gamma alpha)))/(n epsilon), which is at least zeta(gamma alpha).

    Raises
    ------
    InputError
        Unless alpha > 4 exp(-m), and gamma is in [4 exp(-m)/alpha, 1).

    Examples
    --------
    >>> round(simplified_zeta(5000, 36, 1.0, 0.1, 0.01), 5)
    0.01955
    """
    a = float(exact_level("alpha", alpha))
    least = 4 * math.exp(-m)
    require("alpha", a > least, f"must be above 4 exp(-m) = {least:.3g} for m = {m} bins", got=f"{a:g}")
    must = f"must be at least 4 exp(-m)/alpha = {least / a:.3g} and below 1"
    require("gamma", least / a <= gamma < 1, must, got=f"{gamma:g}")
    return noise_closed_form(m, gamma * a, 2 / epsilon) / n


def coverage_upper_bound(n: int, alpha: Level, gamma: float, noise: float, p_max: float) -> float:
    """Theorem 3 (version 1): 1 - alpha + gamma alpha + (1 - gamma alpha)(1/(n+1) + p_max + 2 zeta).

    Parameters
    ----------
    noise
        zeta(gamma alpha), as in the level.
    p_max
        The largest probability that a score falls into one bin.

    Examples
    --------
    >>> round(coverage_upper_bound(5000, 0.1, 0.01, zeta(5000, 36, 1.0, 0.001), 1 / 36), 4)
    0.9526
    """
    a = float(exact_level("alpha", alpha))
    return 1 - a + gamma * a + (1 - gamma * a) * (1 / (n + 1) + p_max + 2 * noise)


def coverage_upper_bound_by_rank(n: int, alpha: Level, gamma: float, noise: float, p_max: float) -> float:
    """(12) and (13), before (14) rounds up: gamma alpha + (1 - gamma alpha)(ceil(n (level + zeta))/(n+1) + p_max).

    It never exceeds `coverage_upper_bound`, and is clipped to 1.

    Examples
    --------
    >>> round(coverage_upper_bound_by_rank(5000, 0.1, 0.01, zeta(5000, 36, 1.0, 0.001), 1 / 36), 4)
    0.9524
    """
    fails = gamma * float(exact_level("alpha", alpha))
    rank = math.ceil(n * (adjusted_level(n, alpha, gamma, noise) + noise))
    return fails + (1 - fails) * min(1.0, rank / (n + 1) + p_max)


def balanced_bins(n: int, epsilon: float, factor: float = 1.0) -> int:
    """Corollary 2 (version 1): m proportional to (n epsilon)^(2/3); the sentence after it prints an exponent of -2/3.

    Examples
    --------
    >>> balanced_bins(5000, 1.0)
    292
    """
    return max(1, round(factor * math.cbrt(n * epsilon) ** 2))


def simplified_upper_bound(n: int, alpha: Level, epsilon: float, density: float = 1.0, factor: float = 1.0) -> float:
    """Corollary 2 (version 1): Theorem 3 with m of the order (n epsilon)^(2/3), gamma = 1/m, bounded density.

    Examples
    --------
    >>> round(simplified_upper_bound(5000, 0.1, 1.0), 4)
    0.9762
    """
    m = balanced_bins(n, epsilon, factor)
    noise = zeta(n, m, epsilon, float(exact_level("alpha", alpha)) / m)
    return coverage_upper_bound(n, alpha, 1 / m, noise, density / m)


def excess_rate(n: int, alpha: Level, epsilon: float) -> float:
    """Corollary 2 (version 1): sqrt(log(n epsilon/alpha)) / (n epsilon)^(2/3), the order of the largest excess.

    Examples
    --------
    >>> round(excess_rate(5000, 0.1, 1.0), 4)
    0.0112
    """
    ratio = positive_integer("n", n) * positive_number("epsilon", epsilon) / float(exact_level("alpha", alpha))
    require("n", ratio >= 1, "must be at least alpha/epsilon, where the logarithm is not negative", got=str(n))
    return math.sqrt(math.log(ratio)) / math.cbrt(n * epsilon) ** 2


def sum_tail(m: int, t: float) -> float:
    """P(abs(S_m) >= t) for the sum of m Laplace variables of scale 1: the right-hand side of Lemma 1 (version 1).

    S_m is the difference of two Gamma(m) variables: P(S_m >= t) = sum_k C(m-1+k, k) 2^-(m+k) P(Gamma(m-k) >= t).

    Examples
    --------
    >>> sum_tail(1, 2.0) == math.exp(-2.0)
    True
    """
    from scipy.special import gammaincc, gammaln

    t = at_least_zero("t", t)
    k = np.arange(positive_integer("m", m))
    weights = np.exp(gammaln(m + k) - gammaln(m) - gammaln(k + 1) - (m + k) * math.log(2))
    return float(2 * weights @ gammaincc(m - k, t))


def levy_bound(m: int, t: float) -> float:
    """Lemma 1 (version 1), Levy's inequality: P(max_(k<=m) abs(S_k) >= t) <= 2 P(abs(S_m) >= t), for Laplace steps.

    The paper prints Z_n, an undefined variable, for Z_m.

    Examples
    --------
    >>> exceedance(1, 36, 2.0, 20.0) < levy_bound(36, 20.0) < 1.4 * exceedance(1, 36, 2.0, 20.0)
    True
    """
    return 2 * sum_tail(m, t)


def subexponential_parameters(b: float) -> tuple[float, float]:
    """Lemma 2 (version 1): a Laplace variable of scale b is (2b, sqrt(2) b)-subexponential.

    Examples
    --------
    >>> subexponential_parameters(1.0)
    (2.0, 1.4142135623730951)
    """
    return 2 * positive_number("b", b), math.sqrt(2) * b


def laplace_moment(b: float, rate: float) -> float:
    """Lemma 2 (version 1): E[exp(rate X)] = 1/(1 - b^2 rate^2) for a Laplace variable X of scale b, abs(rate) < 1/b.

    Examples
    --------
    >>> laplace_moment(1.0, 0.5) <= moment_bound(2.0, 0.5)
    True
    """
    must = "must lie between -1/b and 1/b, where the moment is finite"
    require("rate", abs(rate) * positive_number("b", b) < 1, must, got=f"{rate:g} with b = {b:g}")
    return 1 / ((1 - b * rate) * (1 + b * rate))


def moment_bound(nu: float, rate: float) -> float:
    """Lemmas 2 and 3 (version 1): exp(nu^2 rate^2 / 2), a bound of a (nu, b)-subexponential moment, abs(rate) < 1/b.

    Examples
    --------
    >>> round(moment_bound(2.0, 0.5), 4)
    1.6487
    """
    require("rate", math.isfinite(rate), "must be a finite number", got=f"{rate:g}")
    return float(np.exp(np.float64(positive_number("nu", nu) * rate) ** 2 / 2))


def bernstein_tail(t: float, nu: float, b: float) -> float:
    """Lemma 3 (version 1), Bernstein's inequality: P(abs(X) >= t) for a (nu, b)-subexponential X of mean 0.

    2 exp(-t^2/(2 nu^2)) up to t = nu^2/b, and 2 exp(-t/(2b)) beyond.

    Examples
    --------
    >>> bernstein_tail(1.0, 2.0, 1.4) == 2 * math.exp(-1 / 8)
    True
    """
    t = at_least_zero("t", t)
    nu = positive_number("nu", nu)
    b = positive_number("b", b)
    return 2 * math.exp(-t * t / (2 * nu * nu) if t <= nu * nu / b else -t / (2 * b))


def optimal_bins(
    n: int, epsilon: float, alpha: Level, rng: np.random.Generator, bins: Sequence[int] | None = None
) -> tuple[int, float]:
    """Algorithm 5 (version 1): m* and gamma, by one run of Algorithm 3 on n simulated uniform scores for each m.

    m* is the m with the smallest output, and gamma the best of a grid for each m. Without `bins` the function tries 20
    values around (n epsilon)^(2/3). Because there is one noisy output for each m, m* is random. To compare means
    instead, use `confide.mechanisms.pps_laplace.optimal_bins` with `aligned=True`.

    Examples
    --------
    >>> m, gamma = optimal_bins(5000, 1.0, 0.1, np.random.default_rng(0), bins=[20, 36, 65, 300])
    >>> m in (36, 65), gamma in GAMMAS
    (True, True)
    """
    # The numbers of bins to try, on the same simulated scores.
    order = (n * epsilon) ** (2 / 3)
    numbers = np.unique(np.geomspace(order / 10, 4 * order, 20).astype(int)).tolist() if bins is None else bins
    a = float(exact_level("alpha", alpha))
    scores = np.sort(rng.random(n))

    # One noisy output for each; the smallest one counts.
    best = (math.inf, 0, 0.0)
    for m in (m for m in numbers if m >= 1):
        level, gamma = min((adjusted_level(n, alpha, g, zeta(n, m, epsilon, g * a)), g) for g in GAMMAS)
        counts = np.diff(np.searchsorted(scores, np.arange(m + 1) / m, side="right"))
        output = calibrate(counts + rng.laplace(scale=2 / epsilon, size=m), n, level)
        best = min(best, (output, m, gamma))
    _, best_m, best_gamma = best
    return best_m, best_gamma
