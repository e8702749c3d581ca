"""`pcoqs`, `pcoqs-published`: a quantile by noisy binary search, with zCDP and without a coverage guarantee.

Romanus and Molinari, "Differentially Private Conformal Prediction via Quantile Binary Search", arXiv 2507.12497, TMLR;
R package in SMAC-Group/pcoqs (commit 8845977). An interval is halved N times. Each step counts the scores up to the
middle with Gaussian noise of standard deviation sqrt(N/(2 rho)), and continues in the left half if the count is at
least ceil((1-alpha)(n+1)). The published program halves [0, 1] until it is 1e-10 wide, N = 34, and rounds the middle of
the last interval to two decimals (`confide.papers.pcoqs` has that program's law).

Here a mechanism uses only counts over public candidates, so the search is over the list of finite candidates:

`pcoqs`            ceil(log2(m - 1)) halvings, with noise for that number: fewer counts need less noise. It returns the
                   upper end of the last interval, a candidate; the program returns its middle. Ties at a candidate
                   are therefore covered; the unrounded program misses them.
`pcoqs-published`  over 0, 1/10000, ..., 1, with the noise of 34 halvings, the middle of the last interval rounded to
                   two decimals, as published.

Neither returns +inf: like the program, they return the last finite candidate if all noisy counts are below the target.

Privacy: replacing a record changes each count by at most one, a count with noise of standard deviation s is
1/(2 s^2)-zCDP, and N of them, chosen adaptively, are N/(2 s^2)-zCDP. There is **no pure
epsilon**: far from the target one record can change the odds of an answer by a factor that grows with n. The target
uses n, which is public. The noise is Gaussian on a lattice of 2**-20 records, sampled exactly by OpenDP.

The target has no margin for the noise, and no coverage is claimed: about half of all releases lie below the target rank
because of the noise alone.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from confide.candidates import Candidates
from confide.errors import InputError
from confide.mechanisms.interface import Mechanism
from confide.selection import noisy_integer
from confide.support import float_above

STEPS = 2**20
"""Noise is a multiple of 1/STEPS record."""

PUBLISHED_HALVINGS = 34
"""ceil(log2(1/1e-10)): number of halvings of [0, 1] in the published program."""

_FINE, _COARSE = 10_000, 100
"""Number of candidates of `pcoqs-published` in [0, 1], and how many of them are in a hundredth."""
_INT64_ROOM = 2**62


@dataclass(frozen=True)
class NoisySearch(Mechanism):
    """A noisy binary search over the finite candidates, stated completely.

    Parameters
    ----------
    rank
        The target ceil((1-alpha)(n+1)).
    halvings
        Number of noisy counts that the loss is stated for: at least the number that is drawn.
    scale
        Standard deviation of the Gaussian noise in each count, in records.

    Examples
    --------
    >>> found = pcoqs_for(1000, Fraction(9, 10), 0.5, 1001)
    >>> found.rank, found.halvings, round(found.scale, 3), round(found.zcdp, 9)
    (901, 10, 3.162, 0.5)
    """

    name: ClassVar[Literal["pcoqs", "pcoqs-published"]] = "pcoqs"
    replace_one: ClassVar[float] = math.inf

    rank: int
    halvings: int
    scale: float

    @property
    def zcdp(self) -> float:
        """Loss when one record is replaced, in zCDP; there is no pure epsilon."""
        return float_above(Fraction(self.halvings) / (2 * Fraction(self.scale) ** 2))

    def choose(self, counts: NDArray[np.int64]) -> int:
        """Draw one noisy count for each halving. The counts affect nothing else."""
        if STEPS * int(counts.sum()) > _INT64_ROOM:
            raise InputError("counts", "must fit into 64-bit arithmetic", remedy="Use mechanism='slopes'")
        below, noise = np.cumsum(counts), self.scale * STEPS
        left, right = -1, len(counts) - 2
        while right - left > 1:
            middle = (left + right) // 2
            reached = noisy_integer((int(below[middle]) - self.rank) * STEPS, noise) >= 0
            left, right = (left, middle) if reached else (middle, right)
        return self.answer(left, right)

    def law(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """The probability of every candidate, shape (m,), up to rounding.

        Examples
        --------
        >>> NoisySearch(rank=3, halvings=2, scale=1.0).law(np.array([1, 2, 1, 0, 0])).round(3)
        array([0.011, 0.489, 0.421, 0.079, 0.   ])
        """
        below, found = np.cumsum(counts), np.zeros(len(counts))
        open_ends = [(-1, len(counts) - 2, 1.0)]
        while open_ends:
            left, right, chance = open_ends.pop()
            if right - left > 1:
                middle = (left + right) // 2
                reached = lattice_tail(self.rank - int(below[middle]), self.scale)
                fails = lattice_tail(int(below[middle]) - self.rank, self.scale, beyond=True)
                open_ends += [(left, middle, chance * reached), (middle, right, chance * fails)]
            else:
                found[self.answer(left, right)] += chance
        return found

    def answer(self, left: int, right: int) -> int:
        """The candidate returned for the last interval: its upper end; +inf if there is no finite candidate."""
        return max(right, 0)

    def count_queries(self, m: int) -> int:
        """Largest number of counts that are drawn with m candidates."""
        return max(0, m - 2).bit_length()  # ceil(log2(m - 1))


@dataclass(frozen=True)
class PublishedNoisySearch(NoisySearch):
    """The search with the settings of the published program: bounds 0 and 1, the noise of 34 halvings, two decimals.

    Examples
    --------
    >>> found = published_pcoqs_for(1000, Fraction(9, 10), 0.5)
    >>> found.halvings, round(found.scale, 3), found.answer(44, 45), found.answer(51, 52)
    (34, 5.831, 0, 100)
    """

    name: ClassVar[Literal["pcoqs", "pcoqs-published"]] = "pcoqs-published"

    def answer(self, left: int, right: int) -> int:
        """The hundredth nearest to the middle of the last interval."""
        return _COARSE * ((right + _COARSE // 2 - 1) // _COARSE)


def pcoqs_for(n: int, level: Fraction, rho: float, m: int) -> NoisySearch:
    """The search over m candidates whose loss, when one record is replaced, is at most rho-zCDP."""
    halvings = max(1, NoisySearch(1, 1, 1.0).count_queries(m))
    return NoisySearch(math.ceil(level * (n + 1)), halvings, gaussian_scale(halvings, rho))


def published_pcoqs_for(n: int, level: Fraction, rho: float) -> PublishedNoisySearch:
    """The search as published, for `published_candidates`."""
    scale = gaussian_scale(PUBLISHED_HALVINGS, rho)
    return PublishedNoisySearch(math.ceil(level * (n + 1)), PUBLISHED_HALVINGS, scale)


def published_candidates() -> Candidates:
    """0, 1/10000, ..., 1 and +inf, over which `pcoqs-published` counts.

    Examples
    --------
    >>> published_candidates().size
    10002
    """
    return Candidates.of(np.arange(_FINE + 1) / _FINE)


def gaussian_scale(halvings: int, rho: float) -> float:
    """sqrt(N/(2 rho)), rounded up: N counts with this noise are rho-zCDP together.

    Examples
    --------
    >>> round(gaussian_scale(34, 0.5), 4)
    5.831
    """
    scale = math.sqrt(halvings / (2 * rho))
    while Fraction(halvings) > 2 * Fraction(rho) * Fraction(scale) ** 2:
        scale = math.nextafter(scale, math.inf)
    return scale


def lattice_tail(distance: int, scale: float, *, beyond: bool = False) -> float:
    """P(Z >= distance), or P(Z > distance), for Gaussian noise on the lattice, distance and scale in records.

    Examples
    --------
    >>> round(lattice_tail(0, 5.8) - lattice_tail(0, 5.8, beyond=True), 9)  # the probability of no noise
    6.6e-08
    """
    x, step = distance / scale, 1 / (scale * STEPS)
    density = math.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    # Euler-Maclaurin: half of the point itself, and the slope of the density there.
    half = -step / 2 if beyond else step / 2
    return max(0.0, math.erfc(x / math.sqrt(2)) / 2 + density * (half + x * step**2 / 12))
