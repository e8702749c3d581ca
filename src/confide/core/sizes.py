"""The numbers of candidates among which a design chooses, of slopes and of a noisy histogram."""

from fractions import Fraction
from functools import lru_cache

import numpy as np

from confide.candidates import FINEST, Candidates, Spread
from confide.core.reference_laws import typical_law

# The lists among which a design chooses: their sizes divide the longest one, of which they are parts.
_SHORTEST, LONGEST, _RATIO = 8, FINEST // 4, 1.2


@lru_cache(maxsize=64)
def sizes_of(spread: Spread) -> tuple[int, ...]:
    """The sizes of the lists of a spread; the longest one resolves coverage of 90 % to less than a ten-thousandth."""
    # Residuals need twice as many candidates with a unit, and four times as many without one.
    of_residuals = 2 if spread.unit or spread.around else 4
    longest = spread.most or LONGEST * (of_residuals if spread.shape.has_unit else 1)
    sizes = [longest]
    for size in range(longest, _SHORTEST - 1, -1):
        if longest % size == 0 and _RATIO * size <= sizes[-1]:
            sizes.append(size)
    return tuple(reversed(sizes))


# Only n epsilon matters, so that many requests have scaled inputs in common.
@lru_cache(maxsize=1024)
def histogram_size(spread: Spread, n: int, levels: tuple[Fraction, ...], scale: float) -> int:
    """About the best number of bins of a noisy histogram, whose bins have noise of this scale in records.

    More bins cost less distance between candidates, and more spread: the noise of all bins beyond a threshold adds up.
    The size minimises the root mean square of both together, over typical scores and scores that crowd below all bins.
    """

    def price(size: int) -> float:
        below = typical_law(Candidates.quantiles(spread, size))
        places = np.searchsorted(below, [float(level) for level in levels])
        distances = n * np.diff(below, prepend=0.0)[places]  # a threshold lies anywhere between two candidates
        beyond = len(below) - places / 2
        return float(np.sqrt(distances**2 / 3 + 2 * scale**2 * beyond).sum())

    return min(sizes_of(spread), key=price)
