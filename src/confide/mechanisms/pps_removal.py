"""`pps` for a secret number of records: Private Prediction Sets under the papers' own relation, one record removed.

With m, alpha, epsilon and gamma public, the adjusted level (3) is q(n) = T(n)/n with a line of two public numbers,

    T(n) = c (n+1) + L,   c = (1-alpha)/(1-gamma alpha),   L = (2/epsilon) log(m/(gamma alpha)),

so nobody has to know n to state it: it is evaluated on the counts, inside the one step that sees them. Candidate j is
drawn with probability proportional to exp(-(epsilon/2) max(r A_j, n - B_j)), r = (1-q)/q = n/T(n) - 1, and 0 where T(n)
exceeds n, which is the level cut to 1.

Privacy (docs/theory.md, Theorem 7). For c >= 1/2, that is alpha <= 1/2, removing a record lowers every one of these
maxima by between 0 and 1: the loss is epsilon/2, where the papers claim epsilon. c and L are rounded up once, to
multiples of 2**-24, r A_j down to one; neither changes that statement.

gamma is that of (10) for a public guess of n. Theorem 7 also covers gamma*(n) of the secret n, but a line of two
rationals can be written down, checked and evaluated without rounding.

Coverage. 1 - alpha for every n with T(n) <= n. Below, the random-rank lemma at target n, least for the smallest n.
"""

import math
from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from confide.guarantee import RankLaw, marginal_coverage, mean_overshoot, rank_law
from confide.mechanisms.interface import Mechanism
from confide.mechanisms.pps import GRID, optimal_gamma
from confide.selection import scale_for, select
from confide.support import ceil_to, float_above

_INT64_ROOM = 2**62


@dataclass(frozen=True)
class PpsOfSecretSize(Mechanism):
    """The published exponential mechanism for a secret number of records, stated completely; n is in none of it.

    Parameters
    ----------
    rate, offset
        c and L: the adjusted level of n records is (rate (n+1) + offset)/n, at most 1.
    gamma
        The share of alpha that the published proof sets aside for the noise.
    scale
        Noise scale, in units of 2**-24 rank.

    Examples
    --------
    >>> mechanism = pps_of_secret_size(Fraction(1, 10), 1.0, 1000, 1000)
    >>> mechanism.claimed, mechanism.add_remove, round(float(mechanism.level(1000)), 4), mechanism.reached_from
    (1.0, 0.5, 0.9289, 275)
    """

    name: ClassVar[Literal["pps"]] = "pps"
    bounded_range: ClassVar[bool] = True

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
        """The proven loss when one record is added or removed, epsilon/2 (Theorem 7); infinite for a rate below 1/2."""
        return float_above(GRID / Fraction(self.scale)) if self._proved else math.inf

    @property
    def replace_one(self) -> float:
        """The proven loss when one record is replaced: epsilon/(2 q), where q is never below the rate."""
        if not self._proved:
            return math.inf
        return float_above((GRID + math.ceil(GRID * (1 / self.rate - 1))) / Fraction(self.scale))

    @property
    def slope_left(self) -> float:
        """Log-odds lost per rank short of the target, epsilon/2."""
        return GRID / self.scale

    @property
    def reached_from(self) -> int:
        """The smallest number of records whose adjusted level is not above 1."""
        return max(1, math.ceil((self.rate + self.offset) / (1 - self.rate)))

    @property
    def _proved(self) -> bool:
        return self.rate >= Fraction(1, 2) and self.offset >= 0

    def target(self, n: int) -> Fraction:
        """The target rank q n for n records, cut to n."""
        return min(self.rate * (n + 1) + self.offset, Fraction(n))

    def level(self, n: int) -> Fraction:
        """The adjusted level for n records, cut to 1."""
        return self.target(n) / n if n else Fraction(1)

    def utilities(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Integer utilities of all candidates, shape (m,), from the counts per bin, shape (m,).

        Where 64 bits might not hold them they are saturated, relative to the largest, as those of `Slopes`.
        """
        n = int(counts.sum())
        odds = n / self.target(n) - 1 if n else Fraction(0)  # r = (1-q)/q
        fits = GRID * n <= _INT64_ROOM
        reached = np.cumsum(counts, dtype=np.int64)
        below = (reached - counts).astype(object)
        missed = GRID * (n - reached).astype(np.int64 if fits else object)
        passed = below * (GRID * odds.numerator) // odds.denominator
        utility: NDArray[Any] = -np.maximum(passed.astype(np.int64) if fits else passed, missed)
        if not fits:
            utility = np.maximum(utility - utility.max(), -_INT64_ROOM)
        return utility.astype(np.int64, copy=False)

    def choose(self, counts: NDArray[np.int64]) -> int:
        """Draw the index of one candidate with OpenDP's exponential mechanism."""
        return select(self.utilities(counts), self.scale, "exponential")

    def certified(self, level: Fraction, m: int, n: int | None, n_min: int | None) -> Fraction:
        """The published claim, `level`, where it holds for every n >= n_min; else what the random-rank lemma gives.

        With target ranks among the records, E[R] >= T(n) - ln(m)/slope, so coverage is at least the rate if the offset
        is no smaller than that price. For fewer records the target is n, and the lemma's coverage grows with n.
        """
        least = n if n_min is None else n_min
        assert least is not None
        first = max(least, self.reached_from)
        price = Fraction(math.log(m) / self.slope_left * (1 + 1e-12))
        uncapped = max(self.rate + min(self.offset - price, Fraction(0)) / (first + 1), Fraction(0))
        if least >= self.reached_from:
            return min(level, uncapped)
        lemma = marginal_coverage(least, float(least), self.slope_left, m - 1.0, "exponential")
        return min(level, uncapped, Fraction(lemma))

    def certified_from(self, level: Fraction, m: int) -> int:
        """The smallest n_min for which the level is certified, if it is for any.

        Examples
        --------
        >>> pps_of_secret_size(Fraction(1, 10), 1.0, 1000, 1000).certified_from(Fraction(9, 10), 1000)
        143
        """
        few = range(1, self.reached_from)
        return 1 + bisect_left(few, level, key=lambda n_min: self.certified(level, m, None, n_min))

    def rank_law(self, n: int, m: int) -> RankLaw:
        """The law of the random rank (docs/theory.md, Theorem 2) for n records."""
        return rank_law(float(self.target(n)), self.slope_left, m - 1.0, "exponential")

    def coverage_at_most(self, n: int, m: int) -> float:
        """Upper bound for continuous scores, up to the mass of one bin, as that of a public n."""
        odds = float(n / self.target(n) - 1)
        if odds <= 0:
            return 1.0
        # what rounding down may give away is less than one unit of the utilities
        beyond = mean_overshoot(odds * self.slope_left, m - 1.0, "exponential") + 1 / (GRID * odds)
        return min(1.0, (float(self.target(n)) + beyond + 1) / (n + 1))


def pps_of_secret_size(alpha: Fraction, epsilon: float, m: int, n_typical: int) -> PpsOfSecretSize:
    """The mechanism for a secret n: the line T(n), with the gamma that suits n_typical, a public guess of n."""
    gamma = optimal_gamma(n_typical, alpha, epsilon, m)
    rate = min(ceil_to((1 - alpha) / (1 - Fraction(gamma) * alpha), GRID), 1 - Fraction(1, GRID))
    offset = ceil_to(2 / epsilon * math.log(m / (gamma * float(alpha))), GRID)
    return PpsOfSecretSize(rate, offset, gamma, scale_for(2 * GRID, epsilon))
