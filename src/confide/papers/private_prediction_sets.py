"""Private Prediction Sets, versions 2 and 3 (arXiv 2102.06202), by number; docs/methods.md lists the differences.

n records, miscoverage alpha, loss epsilon, m bins I_j = (e_(j-1), e_j] of [0, 1] with e_m = 1, and the share gamma of
alpha that is reserved for the noise: gamma* of (10) by default. Neighbours differ by a REMOVED record (Definition 1);
`confide.calibrate(..., mechanism="pps")` runs Algorithms 2 to 4.
"""

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide import mechanisms
from confide.papers.checked import as_counts
from confide.support import Level, exact_level, positive_integer, positive_number, require

OPTIONS = 50
"""Algorithm 5: approximate number of tried bin numbers, evenly spaced in the logarithm from 1e2 to 1e6."""


class _Parameters(NamedTuple):
    n: int
    alpha: Fraction
    epsilon: float
    m: int
    gamma: float

    @classmethod
    def of(cls, n: int, alpha: Level, epsilon: float, m: int, gamma: float | None) -> "_Parameters":
        """Check all of them; gamma* by default."""
        n, a, epsilon = _records_and_loss(n, alpha, epsilon)
        share = mechanisms.optimal_gamma(n, a, epsilon, 1) if gamma is None else _share(gamma)
        return cls(n, a, epsilon, positive_integer("m", m), share)

    @property
    def level(self) -> float:
        """q~ of (3)."""
        return mechanisms.adjusted_level(self.n, self.alpha, self.epsilon, self.m, self.gamma)

    @property
    def failure(self) -> float:
        """The probability gamma alpha with which the noise exceeds the bound of Lemma 1."""
        return self.gamma * float(self.alpha)

    @property
    def factor(self) -> float:
        """max(q~/(1-q~), 1), for q~ < 1."""
        return max(self.level / (1 - self.level), 1.0)

    @property
    def log_failure(self) -> float:
        """log(m/(gamma alpha))."""
        return math.log(self.m / self.failure)

    @property
    def largest_rank(self) -> float:
        """The upper bound of Lemma 1 at q~, in ranks: seldom do more scores lie below the threshold's bin."""
        return self.n * self.level + 2 * self.factor * self.log_failure / self.epsilon


def adjusted_level(n: int, alpha: Level, epsilon: float, m: int, gamma: float | None = None) -> float:
    """Equation (3): the adjusted level q~, before it is clipped to 1.

    (n+1)(1-alpha) / (n(1-gamma alpha)) + (2/(epsilon n)) log(m/(gamma alpha)).

    Examples
    --------
    >>> round(adjusted_level(1000, 0.1, 1.0, 145), 5)
    0.92508
    """
    return _Parameters.of(n, alpha, epsilon, m, gamma).level


def coverage_is_proved(n: int, alpha: Level, epsilon: float, m: int, gamma: float | None = None) -> bool:
    """Theorem 2: whether its proof gives coverage 1 - alpha, which is the case for 1/2 <= q~ <= 1.

    The printed theorem has three errors. It requires alpha in (1/2, 1), but the proof needs q~ >= 1/2, which follows
    from alpha <= 1/2. For larger alpha and smaller q~ the statement is false (`test_theorem_2_fails_below_one_half`).
    It clips the level to 1, but the proof does not apply above 1, where coverage can be far below 1 - alpha. And at
    level 1 the weights are 0 times infinity; `weights` takes their limit.

    Examples
    --------
    >>> coverage_is_proved(1000, 0.1, 1.0, 145), coverage_is_proved(50, 0.1, 0.1, 1000)
    (True, False)
    """
    return 0.5 <= adjusted_level(n, alpha, epsilon, m, gamma) <= 1


def gamma_roots(n: int, alpha: Level, epsilon: float) -> tuple[float, float]:
    """Equation (9): the roots of alpha^2 g^2 - (alpha(1-alpha) epsilon (n+1)/2 + 2 alpha) g + 1 = 0, the smaller first.

    At these values the derivative of (3) with respect to gamma is zero.

    Examples
    --------
    >>> [round(root, 4) for root in gamma_roots(1000, 0.1, 1.0)]
    [0.0221, 4524.4779]
    """
    return mechanisms.gamma_roots(*_records_and_loss(n, alpha, epsilon))


def optimal_gamma(n: int, alpha: Level, epsilon: float) -> float:
    """Remark 1 and equation (10): gamma*, the root of (9) in (0, 1) or 1e-12, whichever minimises (3).

    Remark 1 states that it depends on n, m and alpha. By (9) it depends on n, epsilon and alpha, and not on m. The
    value 1e-12 is used only if no root lies in (0, 1); then (3) exceeds 1 for every gamma.

    Examples
    --------
    >>> round(optimal_gamma(1000, 0.1, 1.0), 4)
    0.0221
    """
    return mechanisms.optimal_gamma(*_records_and_loss(n, alpha, epsilon), 1)


def weights(counts: ArrayLike, q: float) -> NDArray[np.float64]:
    """Algorithm 2: the weights w_j = max(#{[s_i] < e_j}/q, #{[s_i] > e_j}/(1-q)) of all bins, shape (m,).

    At q = 1 the second term is 0/0 in the last bins that contain every score, where it is 0, and else infinite.

    Parameters
    ----------
    counts
        Scores per bin, shape (m,).
    q
        The level, in (0, 1].

    Examples
    --------
    >>> weights([2, 1, 1], 0.5)
    array([4., 4., 6.])
    """
    below, above = _sides(counts)
    with np.errstate(divide="ignore", invalid="ignore"):
        right = np.where(above > 0, above / (1 - _level(q)), 0.0)
    return np.maximum(below / q, right)


def quantile_law(counts: ArrayLike, q: float, epsilon: float) -> NDArray[np.float64]:
    """Algorithm 2: the exact law of the private quantile, P(e_j) ~ exp(-epsilon min(q, 1-q) w_j / 2); shape (m,).

    At q = 1, where the printed exponent is 0 times infinity, its limit is used: epsilon #{[s_i] > e_j} / 2.

    Examples
    --------
    >>> quantile_law([2, 1, 1], 0.5, 1.0).round(4)
    array([0.3837, 0.3837, 0.2327])
    """
    # min(q, 1-q) w_j, without a division by 1 - q = 0.
    below, above = _sides(counts)
    smaller = min(_level(q), 1 - q)
    q = float(q)
    cost = np.maximum(smaller / q * below, (1.0 if smaller == 1 - q else smaller / (1 - q)) * above)
    weight = np.exp(-positive_number("epsilon", epsilon) * (cost - cost.min()) / 2)
    return np.asarray(weight / weight.sum())


def least_share_at_or_below(n: int, q: float, epsilon: float, m: int, delta: float) -> float:
    """Lemma 1, first half: with probability 1 - delta, at least this share of the scores is at or below the quantile.

    q - 2 max((1-q)/q, 1) log(m/delta) / (n epsilon).

    Examples
    --------
    >>> round(least_share_at_or_below(1000, 0.9, 1.0, 100, 0.05), 4)
    0.8848
    """
    return q - 2 * max((1 - q) / _level(q), 1.0) * _log_failure(m, delta) / _scaled_loss(n, epsilon)


def largest_share_below(n: int, q: float, epsilon: float, m: int, delta: float) -> float:
    """Lemma 1, second half: with probability 1 - delta, at most this share of the scores is below the quantile.

    q + 2 max(q/(1-q), 1) log(m/delta) / (n epsilon); infinite at q = 1.

    Examples
    --------
    >>> round(largest_share_below(1000, 0.9, 1.0, 100, 0.05), 4)
    1.0368
    """
    log = _log_failure(m, delta)
    unit = _scaled_loss(n, epsilon)
    return math.inf if _level(q) == 1 else q + 2 * max(q / (1 - q), 1.0) * log / unit


def weight_excess(q: float, epsilon: float, m: int, delta: float) -> float:
    """Equation (4): with probability 1 - delta the drawn weight exceeds the smallest one by less than this.

    2 max(1/q, 1/(1-q)) log(m/delta) / epsilon; infinite at q = 1. The smallest weight is at most n.

    Examples
    --------
    >>> round(weight_excess(0.9, 1.0, 100, 0.05), 2)
    152.02
    """
    log = _log_failure(m, delta)
    loss = positive_number("epsilon", epsilon)
    return math.inf if _level(q) == 1 else 2 * max(1 / q, 1 / (1 - q)) * log / loss


def beta_of_quantile(n: int, q: Level) -> tuple[int, int]:
    """Lemma 2: Z + p_max dominates F(F^-1(q)) dominates Z, with Z ~ Beta(a, b) of these a = ceil(nq), b = n - a + 1.

    The proof's last line has ceil(n alpha) for ceil(nq). The mean of Z is a/(n+1).

    Examples
    --------
    >>> beta_of_quantile(100, 0.9)
    (90, 11)
    """
    rank = math.ceil(positive_integer("n", n) * exact_level("q", q))
    return rank, n - rank + 1


def lower_bound_rank(n: int, alpha: Level, gamma: float) -> int:
    """Equation (5): j* = ceil(n (q~ - (2/(epsilon n)) log(m/(gamma alpha)))), a rank that is seldom missed.

    It equals ceil((n+1)(1-alpha)/(1-gamma alpha)) for every epsilon and m. So j*/(n+1), the mean of Lemma 2, is at
    least (1-alpha)/(1-gamma alpha), as (5) requires.

    Examples
    --------
    >>> lower_bound_rank(1000, 0.1, 0.02)
    903
    """
    a = exact_level("alpha", alpha)
    return math.ceil((positive_integer("n", n) + 1) * (1 - a) / (1 - Fraction(_share(gamma)) * a))


class UpperBound(NamedTuple):
    """The steps from Lemma 1 to Theorem 3; all except the first are bounds on coverage. See `upper_bound_steps`."""

    rank: int
    """j* = ceil(n (q~ + 2 max(q~/(1-q~), 1) log(m/(gamma alpha)) / (epsilon n))), a rank that is seldom exceeded."""
    quantile: float
    """(7) The expected share of new scores up to that rank: j*/(n+1) + p_max."""
    printed_quantile: float
    """(8) The printed upper bound on j*/(n+1), which omits the ceiling and may be smaller by 1/(n+1)."""
    coverage: float
    """(6) gamma alpha + (1 - gamma alpha) ((7) + p_max), with the ceiling."""


def upper_bound_steps(
    n: int, alpha: Level, epsilon: float, m: int, p_max: float, gamma: float | None = None
) -> UpperBound:
    """Equations (6) to (8): the components of Theorem 3, for q~ below 1.

    Examples
    --------
    >>> steps = upper_bound_steps(5000, 0.1, 8.0, 4291, 1 / 4291)
    >>> steps.rank, round(steps.quantile, 4), round(steps.printed_quantile, 4), round(steps.coverage, 4)
    (4548, 0.9097, 0.9092, 0.9099)
    """
    parameters = _Parameters.of(n, alpha, epsilon, m, gamma)
    p_max = positive_number("p_max", p_max)
    must = "must give an adjusted level below 1 for an upper bound"
    require("n", parameters.level < 1, must, got=f"{parameters.level:.4g}", remedy="Take more records")
    failure = parameters.failure
    rank = math.ceil(parameters.largest_rank)
    quantile = rank / (n + 1) + p_max
    return UpperBound(
        rank,
        quantile,
        printed_quantile=(1 - float(parameters.alpha)) / (1 - failure) + _printed_noise(parameters),
        coverage=failure + (1 - failure) * (quantile + p_max),
    )


def _printed_noise(parameters: _Parameters) -> float:
    noise_rank = 2 * (1 + parameters.factor) * parameters.log_failure
    return noise_rank / ((parameters.n + 1) * parameters.epsilon)


def published_upper_bound(
    n: int, alpha: Level, epsilon: float, m: int, p_max: float, gamma: float | None = None
) -> float:
    """Theorem 3 as printed: an upper bound on coverage, which is vacuous above 1.

    1 - (1-gamma) alpha + (1 - gamma alpha) (2 p_max + 2 (1 + r) log(m/(gamma alpha)) / ((n+1) epsilon)) with
    r = max(q~/(1-q~), 1).

    Its proof omits a ceiling in (8). The statement follows from `rigorous_upper_bound` if p_max >= 1/(n+1), because the
    second p_max, of which the proof needs only one, is at least as large as the effect of the ceiling. With more bins
    than records it is not proved. It is vacuous near q~ = 1. `confide.Release.coverage_at_most` is smaller.

    Parameters
    ----------
    p_max
        The largest probability of a bin: 1/m for uniform scores and bins.

    Examples
    --------
    >>> round(published_upper_bound(5000, 0.1, 1.0, 308, 1 / 308), 4)
    0.9641
    """
    parameters = _Parameters.of(n, alpha, epsilon, m, gamma)
    p_max = positive_number("p_max", p_max)
    if parameters.level >= 1:
        return math.inf
    covered = 1 - (1 - parameters.gamma) * float(parameters.alpha)
    return covered + (1 - parameters.failure) * (2 * p_max + _printed_noise(parameters))


def rigorous_upper_bound(
    n: int, alpha: Level, epsilon: float, m: int, p_max: float, gamma: float | None = None
) -> float:
    """Theorem 3 with a complete proof: gamma alpha + (1 - gamma alpha) (k/(n+1) + p_max), k = floor(x) + 1, at most 1.

    x = n q~ + 2 max(q~/(1-q~), 1) log(m/(gamma alpha)) / epsilon. By Lemma 1 at most x scores lie below the threshold's
    bin, except with probability gamma alpha, for any scores. Then the bins left of it end below the k-th smallest
    score. A new score lies below that score with probability at most k/(n+1), with or without ties. The bound is at
    most 1/(n+1) above the printed bound, and one p_max below that.

    Examples
    --------
    >>> round(rigorous_upper_bound(5000, 0.1, 1.0, 308, 1 / 308), 4)
    0.9609
    """
    parameters = _Parameters.of(n, alpha, epsilon, m, gamma)
    p_max = positive_number("p_max", p_max)
    if parameters.level >= 1:
        return 1.0
    rank = math.floor(parameters.largest_rank + 1e-9) + 1  # rounding must not lower the bound
    return parameters.failure + (1 - parameters.failure) * min(1.0, rank / (n + 1) + p_max)


def suggested_bins(n: int, epsilon: float, per: float = 1.0) -> int:
    """Corollary 1: the rule m proportional to n epsilon, here ceil(per n epsilon) bins.

    Examples
    --------
    >>> suggested_bins(30_000, 5.0, 0.25)
    37500
    """
    per_loss = positive_number("per", per) * positive_integer("n", n)
    return max(2, math.ceil(per_loss * positive_number("epsilon", epsilon)))


def simplified_upper_bound(n: int, alpha: Level, epsilon: float, per: float = 1.0, density: float = 1.0) -> float:
    """Theorem 1 and Corollary 1: Theorem 3 at m = ceil(per n epsilon) uniform bins and gamma = 1/m.

    1 - alpha + O(log(n epsilon/alpha) / (n epsilon)) for scores on [0, 1] whose density is at most `density`. The
    preview, Theorem 1, states it without the logarithm.

    Examples
    --------
    >>> [round(simplified_upper_bound(n, 0.1, 1.0) - 0.9, 4) for n in (10_000, 100_000, 1_000_000)]
    [0.0435, 0.0051, 0.0006]
    """
    m = suggested_bins(n, epsilon, per)
    return published_upper_bound(n, alpha, epsilon, m, min(1.0, positive_number("density", density) / m), 1 / m)


def bins_and_gamma(
    n: int,
    alpha: Level,
    epsilon: float,
    rng: "np.random.Generator",
    options: int = OPTIONS,
    fewest: float = 1e2,
    most: float = 1e6,
) -> tuple[int, float]:
    """Algorithm 5: m*, the number of bins with the smallest OUTPUT of Algorithm 3 on n uniform scores, and gamma*.

    Algorithm 3 runs once for each m, on the same simulated scores, so m* is random. Repeat it, or use
    `confide.mechanisms.optimal_bins`, which compares the exact means of these outputs and which we recommend. The
    authors' code uses `fewest` = 1e4. The function uses no private data, so rng may have a seed.

    Examples
    --------
    >>> m, gamma = bins_and_gamma(1000, 0.1, 1.0, np.random.default_rng(0), options=9)
    >>> 100 <= m <= 1_000_000, gamma == optimal_gamma(1000, 0.1, 1.0)
    (True, True)
    """
    gamma = optimal_gamma(n, alpha, epsilon)
    numbers = np.geomspace(fewest, most, positive_integer("options", options))
    scores = rng.random(n)

    # One output for each number of bins, on the same simulated scores.
    outputs = {}
    for m in np.unique(numbers.astype(int)).tolist():
        bins = np.minimum((scores * m).astype(np.int64), m - 1)
        level = min(adjusted_level(n, alpha, epsilon, m, gamma), 1.0)
        law = quantile_law(np.bincount(bins, minlength=m), level, epsilon)
        outputs[m] = (int(np.searchsorted(np.cumsum(law), rng.random())) + 1) / m
    return min(outputs, key=lambda m: outputs[m]), gamma


def _records_and_loss(n: int, alpha: Level, epsilon: float) -> tuple[int, Fraction, float]:
    return positive_integer("n", n), exact_level("alpha", alpha), positive_number("epsilon", epsilon)


def _scaled_loss(n: int, epsilon: float) -> float:
    return positive_integer("n", n) * positive_number("epsilon", epsilon)


def _log_failure(m: int, delta: float) -> float:
    exact_level("delta", delta)
    return math.log(positive_integer("m", m) / delta)


def _share(gamma: float) -> float:
    require("gamma", 0 < gamma < 1, "must lie in (0, 1)", got=repr(gamma))
    return gamma


def _level(q: float) -> float:
    require("q", 0 < q <= 1, "must lie in (0, 1]", got=repr(q))
    return float(q)


def _sides(counts: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Number of scores left and right of each bin; shape (m,) each."""
    per_bin = as_counts("counts", counts)
    reached = np.cumsum(per_bin)
    return reached - per_bin, reached[-1] - reached
