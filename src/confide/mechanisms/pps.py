"""`pps`: the exponential mechanism of Private Prediction Sets, for a public number of records and a secret one.

Angelopoulos, Bates, Zrnic and Jordan, "Private Prediction Sets", arXiv 2102.06202 versions 2 and 3 (HDSR 2022):
Algorithms 2 to 4 with the adjusted level (3), the optimal gamma (10), and a number of bins as in Algorithm 5. Its
statements are in `confide.papers.private_prediction_sets`, by number.
"""

import math
from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError
from confide.guarantee import RankLaw, RecordCount, marginal_coverage, mean_overshoot, rank_law
from confide.mechanisms.interface import ExponentialMechanism
from confide.mechanisms.utilities import GRID, INT64_ROOM, saturated
from confide.support import ceil_to, float_above, scale_for

# `pps` for a public number of records.
#
# With B_j = #{scores <= e_j}, A_j = B_(j-1) and the adjusted level
#
#     q = (n+1)(1-alpha) / (n(1-gamma alpha)) + 2/(epsilon n) log(m/(gamma alpha)),      at most 1,
#
# candidate j is drawn with probability proportional to exp(-epsilon min(q, 1-q) w_j / 2), where
# w_j = max(A_j/q, (n-B_j)/(1-q)). At q = 1 the exponent is the limit min(q, 1-q) w_j = n - B_j.
#
# With q = a/D the exponent is exactly -max((D-a) A_j, a (n-B_j)) / scale with scale = 2 max(a, D-a)/epsilon: integers
# divided by one float, which OpenDP's exponential mechanism samples exactly. q is rounded *up* to a multiple of 2**-24
# (the only difference from the formula, at most 6e-8), which is conservative.
#
# Privacy. The paper claims epsilon, for one record REMOVED (Definition 1; version 1 replaces one). Here n enters the
# level, so n is public and the adjacency is `replace_one`. Replacing one record moves every exponent within an interval
# of length D/scale, so the proven loss is epsilon/(2 max(q, 1-q)), for example 0.556 epsilon at q = 0.9.
#
# Coverage. At least 1 - alpha while q <= 1. If q is capped at 1, the published proof does not apply, and coverage can
# be far below 1 - alpha (docs/methods.md). Then the random-rank lemma gives the certificate (docs/theory.md, C1).


@dataclass(frozen=True)
class PrivatePredictionSets(ExponentialMechanism):
    """The published exponential mechanism, stated completely.

    Parameters
    ----------
    level
        The adjusted level q in (0, 1].
    gamma
        The share of alpha that the published proof reserves for the noise.
    scale
        Noise scale, in units of level.denominator per rank.
    """

    name: ClassVar[Literal["pps"]] = "pps"

    level: Fraction
    gamma: float
    scale: float

    @property
    def claimed(self) -> float:
        """The epsilon of the published statement."""
        return float_above(2 * max(self.level.numerator, self._units_above) / Fraction(self.scale))

    @property
    def replace_one(self) -> float:
        """The proven loss, epsilon/(2 max(q, 1-q)): the range of the exponents."""
        return float_above(self.level.denominator / Fraction(self.scale))

    @property
    def slope_left(self) -> float:
        """Log-odds lost per rank below q n."""
        return self.level.numerator / self.scale

    @property
    def slope_right(self) -> float:
        """Log-odds lost per rank above q n."""
        return self._units_above / self.scale

    @property
    def _units_above(self) -> int:
        """D - a for the level a/D, the units of a rank above q n; a is those of a rank below it."""
        return self.level.denominator - self.level.numerator

    def utilities(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Integer utilities of all candidates, shape (m,), from the counts per bin, shape (m,)."""
        n = int(counts.sum())
        if self.level.denominator * n > INT64_ROOM:
            raise InputError("counts", "must fit into 64-bit utilities", remedy="Use mechanism='slopes'")
        at_or_below = np.cumsum(counts, dtype=np.int64)
        below = self._units_above * (at_or_below - counts)
        above = self.level.numerator * (n - at_or_below)
        return np.asarray(-np.maximum(below, above))

    def certified(self, level: Fraction, m: int, records: RecordCount) -> Fraction:
        """The published claim, `level`, if it holds; otherwise the coverage of the random-rank lemma."""
        n = records.least
        lemma = marginal_coverage(n, float(self.level * n), self.slope_left, m - 1.0)
        return min(level, Fraction(lemma))

    def rank_law(self, n: int, m: int) -> RankLaw:
        """The law of the random rank (docs/theory.md, Theorem C1) at target rank q n."""
        return rank_law(float(self.level * n), self.slope_left, m - 1.0)

    def coverage_at_most(self, n: int, m: int) -> float:
        """Upper bound for continuous scores, up to the mass of one bin.

        It is smaller than the bound of the paper's Theorem 3. Both come from P(A_J >= q n + d) <= m exp(-slope_right
        d). Here that tail is integrated, with P <= x/(1+x); the paper cuts it at one deviation.
        """
        if self._units_above == 0:
            return 1.0
        return min(1.0, (float(self.level * n) + mean_overshoot(self.slope_right, m - 1.0) + 1) / (n + 1))


def pps_for(n: int, alpha: Fraction, epsilon: float, m: int) -> PrivatePredictionSets:
    """The mechanism for a public n: adjusted level (3), with the gamma that minimises it."""
    gamma = optimal_gamma(n, alpha, epsilon, m)
    level = min(ceil_to(adjusted_level(n, alpha, epsilon, m, gamma), GRID), Fraction(1))
    larger = max(level.numerator, level.denominator - level.numerator)
    return PrivatePredictionSets(level, gamma, scale_for(2 * larger, epsilon))


def adjusted_level(n: int, alpha: Fraction, epsilon: float, m: int, gamma: float) -> float:
    """The adjusted level, equation (3), before it is capped at 1."""
    a = float(alpha)
    return (n + 1) * (1 - a) / (n * (1 - gamma * a)) + 2 / (epsilon * n) * math.log(m / (gamma * a))


def optimal_gamma(n: int, alpha: Fraction, epsilon: float, m: int) -> float:
    """The gamma that minimises the adjusted level, equation (10): a root in (0, 1) of `gamma_roots`, or 1e-12.

    The number of bins m adds the same term to the level for every gamma, so the result does not depend on m.
    """
    gammas = [root for root in gamma_roots(n, alpha, epsilon) if 0 < root < 1] + [1e-12]
    return min(gammas, key=lambda gamma: adjusted_level(n, alpha, epsilon, m, gamma))


def gamma_roots(n: int, alpha: Fraction, epsilon: float) -> tuple[float, float]:
    """The zeros of the derivative of the adjusted level by gamma, equation (9), the smaller one first.

    They are the roots of alpha^2 g^2 - (alpha(1-alpha) epsilon (n+1)/2 + 2 alpha) g + 1 = 0.
    """
    a = float(alpha)
    half = a * (1 - a) * epsilon * (n + 1) / 4 + a
    larger = half + math.sqrt(half**2 - a**2)  # alpha^2 times the larger root
    return 1 / larger, larger / a**2  # the product of the roots is 1/alpha^2; this keeps the digits of the smaller one


def optimal_bins(n: int, alpha: Fraction, epsilon: float, rng: "np.random.Generator", options: int = 50) -> int:
    """The number of bins that minimises the mean threshold on simulated uniform scores; n may be a public guess.

    Algorithm 5 compares one random threshold for each number of bins. Here the mean is exact over the mechanism's law,
    so that the result varies with the simulated scores only. `options` numbers of bins are tried, evenly spaced in the
    logarithm between 1e2 and 1e6, with the edges of `Candidates.published`. The simulations use `rng` and no private
    data.
    """
    scores = np.sort(rng.random(n))

    def mean_threshold(m: int) -> float:
        edges = np.arange(1, m + 1) / m
        counts = np.diff(np.searchsorted(scores, edges, side="right"), prepend=0)
        mechanism = pps_for(n, alpha, epsilon, m)
        utilities = mechanism.utilities(counts)
        weights = np.exp((utilities - utilities.max()) / mechanism.scale)
        return float(weights @ edges / weights.sum())

    numbers: list[int] = np.unique(np.geomspace(1e2, 1e6, options).astype(int)).tolist()
    return min(numbers, key=mean_threshold)


# `pps` for a secret number of records: Private Prediction Sets under the papers' own relation, one record removed.
#
# With m, alpha, epsilon and gamma public, the adjusted level (3) is q(n) = T(n)/n with a line of two public numbers,
#
#     T(n) = c (n+1) + L,   c = (1-alpha)/(1-gamma alpha),   L = (2/epsilon) log(m/(gamma alpha)),
#
# so the statement does not contain n. The level is evaluated inside the one step that uses the counts. Candidate j is
# drawn with probability proportional to exp(-(epsilon/2) max(r A_j, n - B_j)), r = (1-q)/q = n/T(n) - 1, and 0 where
# T(n) exceeds n, which is the level capped at 1.
#
# Privacy (docs/theory.md, Theorem P4). For c >= 1/2, that is alpha <= 1/2, removing a record lowers every one of these
# maxima by between 0 and 1: the loss is epsilon/2, where the papers claim epsilon. c and L are rounded up once, to
# multiples of 2**-24, r A_j down to one; neither changes that statement.
#
# gamma is that of (10) for a public guess of n. Theorem P4 also covers gamma*(n) of the secret n, but a line of two
# rationals can be stated, checked and evaluated without rounding.
#
# Coverage. 1 - alpha for every n with T(n) <= n. For smaller n it follows from the random-rank lemma at target n, and
# is lowest for the smallest n.


@dataclass(frozen=True)
class PpsOfSecretSize(ExponentialMechanism):
    """The published exponential mechanism for a secret number of records. Its fields do not depend on n.

    Parameters
    ----------
    rate, offset
        c and L: the adjusted level of n records is (rate (n+1) + offset)/n, at most 1.
    gamma
        The share of alpha that the published proof reserves for the noise.
    scale
        Noise scale, in units of 2**-24 rank.
    """

    name: ClassVar[Literal["pps"]] = "pps"

    rate: Fraction
    offset: Fraction
    gamma: float
    scale: float

    @property
    def claimed(self) -> float:
        """The epsilon of the published statement."""
        return float_above(2 * GRID / Fraction(self.scale))

    @property
    def add_remove(self) -> float:
        """Proven loss when one record is added or removed, epsilon/2 (Theorem P4); infinite for a rate below 1/2."""
        return float_above(GRID / Fraction(self.scale)) if self._proved else math.inf

    @property
    def replace_one(self) -> float:
        """The proven loss when one record is replaced: epsilon/(2 q), where q is never below the rate."""
        if not self._proved:
            return math.inf
        return float_above((GRID + math.ceil(GRID * (1 / self.rate - 1))) / Fraction(self.scale))

    @property
    def slope_left(self) -> float:
        """Log-odds lost per rank below the target, epsilon/2."""
        return GRID / self.scale

    @property
    def reached_from(self) -> int:
        """The smallest number of records whose adjusted level is at most 1."""
        return max(1, math.ceil((self.rate + self.offset) / (1 - self.rate)))

    @property
    def _proved(self) -> bool:
        return self.rate >= Fraction(1, 2) and self.offset >= 0

    def target(self, n: int) -> Fraction:
        """The target rank q n for n records, capped at n."""
        return min(self.rate * (n + 1) + self.offset, Fraction(n))

    def level(self, n: int) -> Fraction:
        """The adjusted level for n records, capped at 1."""
        return self.target(n) / n if n else Fraction(1)

    def utilities(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Integer utilities of all candidates, shape (m,), from the counts per bin, shape (m,).

        If they might exceed 64 bits, they are computed with Python's integers, and saturated.
        """
        # r = (1-q)/q, and whether 64 bits are enough.
        n = int(counts.sum())
        odds = n / self.target(n) - 1 if n else Fraction(0)
        fits = GRID * n <= INT64_ROOM

        # max(r A_j, n - B_j) in units of 1/GRID; r A_j is rounded down.
        at_or_below = np.cumsum(counts, dtype=np.int64)
        above = GRID * (n - at_or_below).astype(np.int64 if fits else object)
        below = (at_or_below - counts).astype(object) * (GRID * odds.numerator) // odds.denominator
        return saturated(-np.maximum(below.astype(np.int64) if fits else below, above))

    def certified(self, level: Fraction, m: int, records: RecordCount) -> Fraction:
        """The published claim, `level`, if it holds for all numbers; else the coverage of the random-rank lemma.

        If T(n) <= n, E[R] >= T(n) - ln(m)/slope, so coverage is at least the rate if the offset is at least
        ln(m)/slope. For fewer records the target is n, and the lemma's coverage grows with n.
        """
        # Numbers of records whose target is not capped; the smallest one covers least.
        first = max(records.least, self.reached_from)
        noise_ranks = Fraction(math.log(m) / self.slope_left * (1 + 1e-12))  # rounding must not raise the coverage
        uncapped = max(self.rate + min(self.offset - noise_ranks, Fraction(0)) / (first + 1), Fraction(0))
        if records.least >= self.reached_from:
            return min(level, uncapped)

        # Numbers whose target is capped at n.
        lemma = marginal_coverage(records.least, float(records.least), self.slope_left, m - 1.0)
        return min(level, uncapped, Fraction(lemma))

    def certified_from(self, level: Fraction, m: int) -> int:
        """The smallest n_min for which the level is certified."""
        capped = range(1, self.reached_from)  # among these, coverage grows with n_min
        return 1 + bisect_left(capped, level, key=lambda n_min: self.certified(level, m, RecordCount(n_min, False)))

    def rank_law(self, n: int, m: int) -> RankLaw:
        """The law of the random rank (docs/theory.md, Theorem C1) for n records."""
        return rank_law(float(self.target(n)), self.slope_left, m - 1.0)

    def coverage_at_most(self, n: int, m: int) -> float:
        """Upper bound for continuous scores, up to the mass of one bin, as for a public n."""
        odds = float(n / self.target(n) - 1)
        if odds <= 0:
            return 1.0
        # Rounding down loses less than one unit of the utilities.
        beyond = mean_overshoot(odds * self.slope_left, m - 1.0) + 1 / (GRID * odds)
        return min(1.0, (float(self.target(n)) + beyond + 1) / (n + 1))


def pps_of_secret_size(alpha: Fraction, epsilon: float, m: int, guess: int) -> PpsOfSecretSize:
    """The mechanism for a secret n: the line T(n), with the optimal gamma for a public guess of n."""
    gamma = optimal_gamma(guess, alpha, epsilon, m)
    rate = min(ceil_to((1 - alpha) / (1 - Fraction(gamma) * alpha), GRID), 1 - Fraction(1, GRID))
    offset = ceil_to(2 / epsilon * math.log(m / (gamma * float(alpha))), GRID)
    return PpsOfSecretSize(rate, offset, gamma, scale_for(2 * GRID, epsilon))
