"""The papers' candidates, uniform bins with right edges 1/m, ..., 1, and their numbers: Algorithm 5 of version 3."""

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from benchmarks.small import small
from confide.mechanisms import pps
from experiments.laws import law

ALPHA = Fraction(1, 10)
OPTIONS = small(50, 2)
TEXT = (1e2, 1e6)
"""The range of Algorithm 5 in the text."""
CODE = (1e4, 1e6)
"""The range in the authors' code."""
SETS = small(9, 1)
"""Simulated sets of uniform scores over which m* is the median."""


def edges(m: int) -> NDArray[np.float64]:
    """Right edges of the papers' m bins, shape (m,): j/m, the last one 1.

    They are `Candidates.published(m)` with 1 for +inf, and without its limit on m, which Figure 4 exceeds.
    """
    return np.arange(1, m + 1) / m


def indices(scores: NDArray[np.float64], m: int) -> NDArray[np.int64]:
    """The bin of each score: the first edge that is not below it."""
    return np.minimum(np.searchsorted(edges(m), scores, side="left"), m - 1)


def options(range_: tuple[float, float]) -> list[int]:
    """The numbers of bins that Algorithm 5 tries."""
    return [int(m) for m in np.geomspace(*range_, OPTIONS)]


@lru_cache(maxsize=512)
def algorithm_5(n: int, epsilon: float, range_: tuple[float, float] = TEXT, sets: int = SETS) -> int:
    """m*: the number of bins whose threshold is smallest on n simulated uniform scores, averaged over the noise.

    The text simulates one set of scores, so m* is a random number: between 100 and 450 at n = 1000, epsilon = 10.
    Here it is the median over `sets` sets. (The authors' code takes the smallest of single noisy thresholds.)
    """
    return int(np.median([_one_search(n, epsilon, range_, np.random.default_rng(seed)) for seed in range(sets)]))


def _one_search(n: int, epsilon: float, range_: tuple[float, float], rng: np.random.Generator) -> int:
    scores, best, least = rng.random(n), 0, math.inf
    for m in options(range_):
        counts = np.bincount(indices(scores, m), minlength=m)
        mean = float(law(pps.pps_for(n, ALPHA, epsilon, m), counts, rng) @ edges(m))
        best, least = (m, mean) if mean < least else (best, least)
    return best


def level(n: int, epsilon: float, m: int) -> tuple[float, float]:
    """The adjusted level q~ of equation (3), at most 1, and the gamma* of equation (10)."""
    gamma = pps.optimal_gamma(n, ALPHA, epsilon, m)
    return min(1.0, pps.adjusted_level(n, ALPHA, epsilon, m, gamma)), gamma


def bins_of(n: int, epsilon: float, published: float) -> int | None:
    """The number of bins, of those that the authors' code tries, with which equation (3) is nearest to a level.

    None if the level is 1: it is capped, and any number may have given it.
    """
    if published >= 1:
        return None
    return min(options(CODE), key=lambda m: abs(level(n, epsilon, m)[0] - published))
