"""`pps`: the exponential mechanism of Private Prediction Sets.

Angelopoulos, Bates, Zrnic and Jordan, "Private Prediction Sets", arXiv 2102.06202 versions 2 and 3 (HDSR 2022):
Algorithms 2 to 4 with the adjusted level (3), the optimal gamma (10), and a number of bins as in Algorithm 5. Every
statement by its number is in `confide.papers.private_prediction_sets`.

With B_j = #{scores <= e_j}, A_j = B_(j-1) and the adjusted level

    q = (n+1)(1-alpha) / (n(1-gamma alpha)) + 2/(epsilon n) log(m/(gamma alpha)),      at most 1,

candidate j is drawn with probability proportional to exp(-epsilon min(q, 1-q) w_j / 2), where
w_j = max(A_j/q, (n-B_j)/(1-q)). At q = 1 the exponent is the limit min(q, 1-q) w_j = n - B_j.

With q = a/D the exponent is exactly -max((D-a) A_j, a (n-B_j)) / scale with scale = 2 max(a, D-a)/epsilon: integers
divided by one float, which OpenDP's exponential mechanism samples exactly. q is rounded *up* to a multiple of 2**-24
(that is the only difference from the formula, at most 6e-8), the safe side.

Privacy. The paper claims epsilon, for one record REMOVED (Definition 1; version 1 replaces one). Here n enters the
level, so n is public and the relation is `replace_one`; for the paper's own, with n secret, see pps_removal.py.
Replacing one record moves every exponent within an interval of length D/scale, so the proven loss is
epsilon/(2 max(q, 1-q)), for example .556 epsilon at q = .9: the mechanism spends about half of what it is given.

Coverage. At least 1 - alpha while q <= 1. Once q is capped at 1 the published proof says nothing, and coverage can be
far below 1 - alpha (docs/methods.md); what is certified then is the random-rank lemma (docs/theory.md, Theorem 2).
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError
from confide.guarantee import RankLaw, marginal_coverage, mean_overshoot, rank_law
from confide.mechanisms.interface import Mechanism
from confide.selection import scale_for, select
from confide.support import ceil_to, float_above

GRID = 2**24
"""Adjusted levels are multiples of 1/GRID."""

_INT64_ROOM = 2**62


@dataclass(frozen=True)
class PrivatePredictionSets(Mechanism):
    """The published exponential mechanism, stated completely.

    Parameters
    ----------
    level
        The adjusted level q in (0, 1].
    gamma
        The share of alpha that the published proof sets aside for the noise.
    scale
        Noise scale, in units of level.denominator per rank.

    Examples
    --------
    >>> mechanism = pps_for(1000, Fraction(1, 10), 1.0, 1000)
    >>> round(float(mechanism.level), 4), mechanism.claimed, round(mechanism.replace_one, 4)
    (0.9289, 1.0, 0.5382)
    """

    name: ClassVar[Literal["pps"]] = "pps"
    bounded_range: ClassVar[bool] = True

    level: Fraction
    gamma: float
    scale: float

    @property
    def claimed(self) -> float:
        """The epsilon of the published statement."""
        return float_above(2 * max(self._a, self._b) / Fraction(self.scale))

    @property
    def replace_one(self) -> float:
        """The proven loss, epsilon/(2 max(q, 1-q)): the range of the exponents."""
        return float_above(self.level.denominator / Fraction(self.scale))

    @property
    def slope_left(self) -> float:
        """Log-odds lost per rank short of q n."""
        return self._a / self.scale

    @property
    def slope_right(self) -> float:
        """Log-odds lost per rank beyond q n."""
        return self._b / self.scale

    @property
    def _a(self) -> int:
        return self.level.numerator

    @property
    def _b(self) -> int:
        return self.level.denominator - self.level.numerator

    def utilities(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Integer utilities of all candidates, shape (m,), from the counts per bin, shape (m,)."""
        n = int(counts.sum())
        if self.level.denominator * n > _INT64_ROOM:
            raise InputError("counts hold more records than 64-bit utilities allow; use mechanism='slopes'")
        at_or_below = np.cumsum(counts, dtype=np.int64)
        utility: NDArray[np.int64] = -np.maximum(self._b * (at_or_below - counts), self._a * (n - at_or_below))
        return utility

    def choose(self, counts: NDArray[np.int64]) -> int:
        """Draw the index of one candidate with OpenDP's exponential mechanism."""
        return select(self.utilities(counts), self.scale, "exponential")

    def certified(self, level: Fraction, m: int, n: int | None, n_min: int | None) -> Fraction:
        """The published claim, `level`, where it holds; below it the coverage of the random-rank lemma."""
        assert n is not None
        lemma = marginal_coverage(n, float(self.level * n), self.slope_left, m - 1.0, "exponential")
        return min(level, Fraction(lemma))

    def rank_law(self, n: int, m: int) -> RankLaw:
        """The law of the random rank (docs/theory.md, Theorem 2) at target rank q n."""
        return rank_law(float(self.level * n), self.slope_left, m - 1.0, "exponential")

    def coverage_at_most(self, n: int, m: int) -> float:
        """Upper bound for continuous scores, up to the mass of one bin.

        Smaller than the paper's Theorem 3 (`confide.papers.private_prediction_sets.published_upper_bound`). Both come
        from P(A_J >= q n + d) <= m exp(-slope_right d); here that tail is integrated, P <= x/(1+x), where the paper
        cuts it at one deviation.
        """
        if self._b == 0:
            return 1.0
        return min(
            1.0, (float(self.level * n) + mean_overshoot(self.slope_right, m - 1.0, "exponential") + 1) / (n + 1)
        )


def pps_for(n: int, alpha: Fraction, epsilon: float, m: int, gamma: float | None = None) -> PrivatePredictionSets:
    """The mechanism for a public n: adjusted level (3), with the gamma that minimises it unless one is given.

    Examples
    --------
    >>> pps_for(50, Fraction(1, 10), 0.1, 1000).level  # capped: too few records
    Fraction(1, 1)
    """
    gamma = optimal_gamma(n, alpha, epsilon, m) if gamma is None else gamma
    level = min(ceil_to(adjusted_level(n, alpha, epsilon, m, gamma), GRID), Fraction(1))
    larger = max(level.numerator, level.denominator - level.numerator)
    return PrivatePredictionSets(level, gamma, scale_for(2 * larger, epsilon))


def adjusted_level(n: int, alpha: Fraction, epsilon: float, m: int, gamma: float) -> float:
    """The adjusted level, equation (3), before it is capped at 1.

    Examples
    --------
    >>> round(adjusted_level(1000, Fraction(1, 10), 1.0, 1000, optimal_gamma(1000, Fraction(1, 10), 1.0, 1000)), 4)
    0.9289
    """
    a = float(alpha)
    return (n + 1) * (1 - a) / (n * (1 - gamma * a)) + 2 / (epsilon * n) * math.log(m / (gamma * a))


def optimal_gamma(n: int, alpha: Fraction, epsilon: float, m: int) -> float:
    """The gamma that minimises the adjusted level, equation (10).

    A root in (0, 1) of `gamma_roots`, or 1e-12. m adds the same to every level, so the answer does not depend on it.

    Examples
    --------
    >>> round(optimal_gamma(1000, Fraction(1, 10), 1.0, 1000), 4)
    0.0221
    """
    options = [g for g in gamma_roots(n, alpha, epsilon) if 0 < g < 1] + [1e-12]
    return min(options, key=lambda g: adjusted_level(n, alpha, epsilon, m, g))


def gamma_roots(n: int, alpha: Fraction, epsilon: float) -> tuple[float, float]:
    """Where the derivative of the adjusted level by gamma is zero, equation (9), the smaller root first.

    Of alpha^2 g^2 - (alpha(1-alpha) epsilon (n+1)/2 + 2 alpha) g + 1 = 0.

    Examples
    --------
    >>> [round(root, 4) for root in gamma_roots(1000, Fraction(1, 10), 1.0)]
    [0.0221, 4524.4779]
    """
    a = float(alpha)
    half = a * (1 - a) * epsilon * (n + 1) / 4 + a
    root = half + math.sqrt(half**2 - a**2)
    return 1 / root, root / a**2  # their product is 1/alpha^2; this form keeps the digits of the small one


def optimal_bins(n: int, alpha: Fraction, epsilon: float, rng: "np.random.Generator", options: int = 50) -> int:
    """The number of bins that minimises the mean threshold on simulated uniform scores.

    As Algorithm 5, which compares one random threshold for each number of bins; here the mean is taken exactly over the
    mechanism's law, so that the answer varies with the scores only. These are public simulations by rng: no private
    data. `options` numbers of bins are tried, evenly spaced in the logarithm between 1e2 and 1e6; the edges are those
    of `Candidates.published`. Where n is secret, pass a public guess.

    Examples
    --------
    >>> 100 <= optimal_bins(1000, Fraction(1, 10), 1.0, np.random.default_rng(0), options=20) < 1000
    True
    """
    scores = np.sort(rng.random(n))
    best, best_mean = 0, math.inf
    for m in np.unique(np.geomspace(1e2, 1e6, options).astype(int)).tolist():
        edges = np.arange(1, m + 1) / m
        counts = np.diff(np.searchsorted(scores, edges, side="right"), prepend=0)
        mechanism = pps_for(n, alpha, epsilon, m)
        u = mechanism.utilities(counts)
        weights = np.exp((u - u.max()) / mechanism.scale)
        mean = float(weights @ edges / weights.sum())
        best, best_mean = (m, mean) if mean < best_mean else (best, best_mean)
    return best
