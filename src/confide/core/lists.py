"""The lists of candidates over which designs are made and records are counted."""

from fractions import Fraction
from functools import lru_cache

import numpy as np

from confide.candidates import FINEST, Candidates, Spread
from confide.core.reference_laws import typical_law
from confide.core.terms import NUMBERED, Terms
from confide.core.tuning import LONGEST, sizes_of
from confide.support import scale_for

# The number of candidates of a published method.
_OF_PUBLISHED = 1000


def longest_list(terms: Terms) -> Candidates:
    """Candidates of which every design of these terms has some; a published method has 1000, if they are not listed."""
    spread = terms.known_spread
    if isinstance(spread, Candidates):
        return spread
    if terms.mechanism == "none":  # nothing is drawn, so the finest list costs nothing
        return Candidates.quantiles(spread, spread.most or FINEST)
    return Candidates.quantiles(spread, sizes_of(spread)[-1] if terms.mechanism in NUMBERED else _OF_PUBLISHED)


def compared_list(terms: Terms) -> Candidates:
    """Candidates that are among those of every source: counts over them recognise the records of a request."""
    spread = terms.known_spread
    return spread if isinstance(spread, Candidates) else Candidates.quantiles(spread, LONGEST)


def published_list(terms: Terms, n: int) -> Candidates:
    """The list of a published method for n records."""
    spread = terms.known_spread
    if isinstance(spread, Candidates) or terms.mechanism != "noisy-histogram":
        return longest_list(terms)
    # About the best number of bins for n records.
    scale = scale_for(2 if terms.public_n else 1, terms.per_record)
    return Candidates.quantiles(spread, histogram_size(spread, n, terms.served, scale))


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
