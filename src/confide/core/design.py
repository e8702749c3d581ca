"""The design of a threshold: everything public about it but the threshold itself.

Candidates, slopes and rise have the least mean price (tuning.py). Then comes the smallest target rank that a
certificate accepts (target_search.py). The published methods have parameters of their own.
"""

import math
import time
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from confide.candidates import FINEST, Candidates, Spread, listed
from confide.core.promise import promised
from confide.core.reference_laws import typical_law
from confide.core.target_search import TargetSearch
from confide.core.terms import NUMBERED, Terms
from confide.core.threshold import Threshold
from confide.core.tuning import Tuning, sizes_of, tune
from confide.guarantee import Guarantee
from confide.mechanisms import (
    Mechanism,
    NoisyHistogram,
    NoisySize,
    PrivacyStatement,
    PublishedHistogram,
    noisy_histogram_for,
    opendp_quantile_for,
    pps_for,
    pps_laplace_for,
    pps_of_secret_size,
    published_histogram_for,
    split_conformal_for,
)
from confide.support import DEBUG, log_event, scale_for

# The number of candidates of a published method.
_PUBLISHED_SIZE = 1000


def longest_list(terms: Terms) -> Candidates:
    """Candidates of which every design of these terms has some; a published method has 1000, if they are not listed."""
    spread = terms.known_spread
    if isinstance(spread, Candidates):
        return spread
    if terms.mechanism == "none":  # nothing is drawn, so the finest list costs nothing
        return listed(spread, spread.most or FINEST)
    return listed(spread, sizes_of(spread)[-1] if terms.mechanism in NUMBERED else _PUBLISHED_SIZE)


def published_list(terms: Terms, n: int) -> Candidates:
    """The list of a published method for n records."""
    spread = terms.known_spread
    if isinstance(spread, Candidates) or terms.mechanism != "noisy-histogram":
        return longest_list(terms)
    # About the best number of bins for n records.
    scale = scale_for(2 if terms.public_n else 1, terms.per_record)
    return listed(spread, histogram_size(spread, n, terms.served, scale))


@lru_cache(maxsize=1024)
def histogram_size(spread: Spread, n: int, levels: tuple[Fraction, ...], scale: float) -> int:
    """About the best number of bins of a noisy histogram; the noise in each bin has the given scale, in records.

    With more bins candidates are closer together, but more noise adds up: that of all bins beyond a threshold. The size
    minimises the root mean square of both errors together, for typical scores and for scores below all bins.
    """

    def price(size: int) -> float:
        below = typical_law(Candidates.quantiles(spread, size))
        places = np.searchsorted(below, [float(level) for level in levels])
        distances = n * np.diff(below, prepend=0.0)[places]  # a threshold lies anywhere between two candidates
        beyond = len(below) - places / 2
        return float(np.sqrt(distances**2 / 3 + 2 * scale**2 * beyond).sum())

    return min(sizes_of(spread), key=price)


@dataclass(frozen=True)
class Design:
    """What is public about a threshold before it is drawn; n is the public number of records, the noisy one or a guess.

    Without a mechanism the answer must be +inf without reading the data. The privacy loss includes that of `size`, a
    noisy number of records that is released first.
    """

    terms: Terms
    n: int
    candidates: Candidates
    mechanism: Mechanism | None
    guarantee: Guarantee
    privacy: PrivacyStatement
    size: NoisySize | None = None

    def threshold(self, value: float) -> Threshold:
        """A threshold of this design: all that is stated about it, for its maker and for every reader."""
        terms = self.terms
        return Threshold(
            threshold=value,
            alpha=terms.alpha,
            score=terms.score,
            guarantee=self.guarantee,
            privacy=self.privacy,
            mechanism=self.mechanism,
            candidates=self.candidates.size,
            recipe=self.candidates.recipe,
            size=self.size,
            largest=terms.largest,
        )

    def counted_threshold(self, noisy: tuple[int, ...]) -> Threshold:
        """The threshold that follows from noisy counts of its candidates: no step on private data."""
        value = math.inf
        if self.mechanism is not None:
            assert isinstance(self.mechanism, NoisyHistogram)
            value = float(self.candidates.values[self.mechanism.select(np.array(noisy))])
        return replace(self.threshold(value), noisy_counts=noisy)


@lru_cache(maxsize=1024)
def design(terms: Terms, n: int) -> Design:
    """The design for a number of records, where the target does not move with a noisy one."""
    if terms.mechanism == "slopes":
        return slopes_design(terms, n)
    return listed_design(terms, n, published_list(terms, n))


def sized_design(terms: Terms, size: NoisySize) -> Design:
    """The design for a noisy number of records."""
    n = size.design_for
    if terms.moves:
        return slopes_design(terms, n, size=size)
    if terms.mechanism == "slopes":
        return replace(design(terms, n), size=size)
    return listed_design(terms, n, published_list(terms, n), size)


def listed_design(terms: Terms, n: int, candidates: Candidates, size: NoisySize | None = None) -> Design:
    """The design of a published method over these candidates, for a public n, a guess of it, or a noisy number."""
    return _promised(terms, n, candidates, published_mechanism(terms, n, candidates.size, size), size)


def threshold_at(terms: Terms, counted: Threshold) -> Threshold:
    """The threshold of these terms that follows from the noisy counts of another threshold."""
    assert counted.noisy_counts is not None
    candidates = Candidates.from_recipe(counted.recipe)
    design = listed_design(terms, counted.n or terms.n_min, candidates, counted.size)
    return design.counted_threshold(counted.noisy_counts)


def design_at(terms: Terms, n: int) -> Design:
    """The design for n records: for the noisy number n if there is one, and otherwise for a round number near n."""
    if terms.size_scale is None:
        return design(terms, terms.records_of_design(n))
    return sized_design(terms, terms.noisy_size(n))


def slopes_design(terms: Terms, n: int, tuning: Tuning | None = None, size: NoisySize | None = None) -> Design:
    """The design with the best candidates, slopes and rise, or with these: the least certified target."""
    tuning = tune(terms.known_spread, terms.tuning_inputs(n)) if tuning is None else tuning
    begin = time.perf_counter()
    with np.errstate(under="ignore"):
        mechanism = TargetSearch(terms, n, tuning, size).result()
    log_event(
        "core",
        "plan searched",
        DEBUG,
        seconds=round(time.perf_counter() - begin, 3),
        alpha=1 - terms.level,
        epsilon=terms.per_record,
        neighbors=terms.neighbors,
        n=n if terms.public_n else "secret",
    )
    return _promised(terms, n, tuning.candidates, mechanism, size)


def unanswered_design(terms: Terms) -> Design:
    """A design without a mechanism, whose answer is +inf, over a list of one candidate."""
    return _promised(terms, terms.n_min, Candidates.unit(1), None)


def _promised(
    terms: Terms, n: int, candidates: Candidates, mechanism: Mechanism | None, size: NoisySize | None = None
) -> Design:
    return Design(terms, n, candidates, mechanism, *promised(terms, n, candidates.size, mechanism, size), size)


def published_mechanism(terms: Terms, n: int, m: int, size: NoisySize | None = None) -> Mechanism | None:
    """The mechanism of a published method over m candidates, for n records or a noisy number of them."""
    level, epsilon = terms.level, terms.per_record
    public = n if terms.public_n else None
    counted, size_scale = (n, None) if size is None else (size.counted, size.scale)
    # Noisy counts of all candidates first, then methods that draw one candidate.
    match terms.mechanism:
        case "noisy-histogram":
            return noisy_histogram_for(level, epsilon, counted, size_scale)
        case PublishedHistogram.name:
            assert terms.noise is not None
            return published_histogram_for(level, terms.noise, m, counted, size_scale)
        case "opendp-quantile":
            return opendp_quantile_for(level, epsilon, public)
        case "pps" if public is None:
            return pps_of_secret_size(terms.alpha, epsilon, m, max(n, terms.n_min))
        case "pps":
            return pps_for(n, terms.alpha, epsilon, m)
        case "pps-laplace":
            return pps_laplace_for(n, terms.alpha, epsilon, m)
        case _:
            return split_conformal_for(level, n)
