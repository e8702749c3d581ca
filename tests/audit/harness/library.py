"""The library's own mechanisms as subjects, with the same code that `calibrate` runs."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.candidates import Candidates
from confide.core import plan
from confide.core.mean_price import flat_for
from confide.core.terms import Terms
from confide.mechanisms import (
    NEIGHBORS,
    LaplaceHistogram,
    Neighbors,
    NoisyHistogram,
    PpsOfSecretSize,
    PrivatePredictionSets,
    certify,
    noisy_histogram_for,
    opendp_quantile_for,
    pps_for,
    pps_laplace_for,
    pps_of_secret_size,
    sized_histogram_for,
    slopes_for,
)
from confide.support import ceil_to
from tests import designs, exact
from tests.audit.harness.subject import Claims, Law, Scores, Subject
from tests.draws import SECURE
from tests.mechanisms.opendp_scores import quantile_scores

EDGES = (0.25, 0.5, 0.75)
ATOMS = (0.2, 0.4, 0.6, 0.8)
RECORDS = 7
LARGE = 200
EPSILON = 1.0


def library_subjects() -> Iterator[Subject]:
    """All mechanisms of the library that claim an epsilon, with every adjacency that they support."""
    yield from map(slopes_subject, NEIGHBORS)
    yield from map(_pps, NEIGHBORS)
    yield from map(_noisy_histogram, NEIGHBORS)
    yield _pps_laplace()
    yield from map(_opendp_quantile, NEIGHBORS)


def slopes_subject(neighbors: Neighbors) -> Subject:
    """The slope mechanism as planned for few records and four candidates, and for many records and 100 candidates."""
    m, level, public = len(ATOMS), Fraction(7, 10), neighbors == "replace_one"
    # With these slopes and this rise, few records nearly reach the claimed loss. A secret number has a noisy one.
    rate, offset = (Fraction(0), level * (RECORDS + 1)) if public else (Fraction(1, 2), Fraction(RECORDS + 1, 5))
    unit, slopes = (16, (7, 3)) if public else (10, (5, 5))
    plain = slopes_for(rate, ceil_to(offset + Fraction(1, 2), unit), *slopes, neighbors, EPSILON)
    small = replace(plain, flat=flat_for(m, 2.0), rise=math.floor(2 * plain.scale))
    coverage = certify(small, 1 - level, m, RECORDS, None, None).coverage if public else None
    law, large = partial(utility_law, small, Candidates.of(EDGES)), designs.terms("0.1", 100, EPSILON)
    made = plan("0.1", EPSILON, LARGE, neighbors=neighbors, candidates=100).mechanism if public else _Sized(large)
    return _subject("slopes", neighbors, small, law, (LARGE, made, 100), small_coverage=coverage)


@dataclass(frozen=True)
class _Sized:
    """A noisy number of records, drawn first, and the design for it."""

    terms: Terms

    def choose(self, counts: NDArray[np.int64]) -> int:
        """Draw the number, and then a candidate."""
        counted = SECURE.noisy_number(int(counts.sum()), self.terms.size_scale)
        mechanism = _design_of(self.terms, counted)
        return len(counts) - 1 if mechanism is None else mechanism.choose(counts)


@cache
def _design_of(terms: Terms, counted: int) -> Any:
    return designs.design_of(terms, counted).mechanism


def _pps(neighbors: Neighbors) -> Subject:
    """The published exponential mechanism, with the published epsilon as its claim; it spends about half of that."""
    small: PpsOfSecretSize | PrivatePredictionSets
    large: PpsOfSecretSize | PrivatePredictionSets
    if neighbors == "replace_one":
        small = PrivatePredictionSets(level=Fraction(3, 4), gamma=0.1, scale=2 * 3 / EPSILON)
        large = pps_for(2000, Fraction(1, 10), EPSILON, 100)
    else:
        scale = pps_of_secret_size(Fraction(1, 2), EPSILON, 4, RECORDS).scale
        small = PpsOfSecretSize(rate=Fraction(1, 2), offset=Fraction(3, 2), gamma=0.1, scale=scale)
        large = pps_of_secret_size(Fraction(1, 10), EPSILON, 100, 2000)
    law = partial(utility_law, small, Candidates.of(EDGES))
    return _subject("pps", neighbors, small, law, (2000, large, 100))


def _noisy_histogram(neighbors: Neighbors) -> Subject:
    """Discrete Laplace noise on the counts."""
    public = neighbors == "replace_one"
    scale = (2 if public else 1) / EPSILON
    small = NoisyHistogram(1, scale)
    level = Fraction(9, 10)
    large = noisy_histogram_for(level, EPSILON, 2000) if public else sized_histogram_for(level, EPSILON, 2000, 20.0)
    return _subject("noisy-histogram", neighbors, small, None, (2000, large, 50), noise_scale=scale)


def _pps_laplace() -> Subject:
    """The published noisy histogram."""
    small = LaplaceHistogram(level=Fraction(3, 4), gamma=0.1, scale=2 / EPSILON)
    large = pps_laplace_for(2000, Fraction(1, 10), EPSILON, 20)
    return _subject("pps-laplace", "replace_one", small, None, (2000, large, 20), noise_scale=small.scale)


def _opendp_quantile(neighbors: Neighbors) -> Subject:
    """OpenDP's quantile, which does not claim coverage."""
    mechanism = opendp_quantile_for(Fraction(3, 4), EPSILON, RECORDS if neighbors == "replace_one" else None)

    def law(scores: Scores) -> dict[float, float]:
        candidates = Candidates.of(EDGES)
        utilities = quantile_scores(counts(scores, candidates), 0.75, mechanism.size)
        chances = exact.law(utilities, mechanism.scale)
        return dict(zip(candidates.values.tolist(), chances.tolist(), strict=True))

    return _subject("opendp-quantile", neighbors, mechanism, law, None)


def _subject(
    name: str,
    neighbors: Neighbors,
    small: Any,
    law: Law | None,
    large: tuple[int, Any, int] | None,
    *,
    noise_scale: float | None = None,
    small_coverage: float | None = None,
) -> Subject:
    """Subject with a small instance that selects among EDGES and +inf; `large`: records, mechanism and candidates."""
    claims = Claims(EPSILON, neighbors, None if large is None else 0.9)
    draw, any_size = partial(threshold, small, Candidates.of(EDGES)), neighbors == "add_remove"
    subject = Subject(
        f"{name} {neighbors}", claims, draw, law, ATOMS, RECORDS, small_coverage, noise_scale, any_size=any_size
    )
    if large is None:
        return subject
    n, mechanism, m = large
    assert mechanism is not None
    return replace(subject, coverage_sizes=(n,), large=partial(threshold, mechanism, Candidates.unit(m)))


def threshold(mechanism: Any, candidates: Candidates, scores: Scores) -> float:
    """One run of a mechanism, from scores to the threshold."""
    return float(candidates.values[mechanism.choose(counts(scores, candidates))])


def utility_law(mechanism: Any, candidates: Candidates, scores: Scores) -> dict[float, float]:
    """Exact law of a mechanism that selects by integer utilities."""
    utilities = mechanism.utilities(counts(scores, candidates))
    law = exact.law(utilities, mechanism.scale)
    return dict(zip(candidates.values.tolist(), law.tolist(), strict=True))


def counts(scores: Scores, candidates: Candidates) -> NDArray[np.int64]:
    """Counts per bin, without the checks of `ScoreHistogram`, because many thousand calls are made."""
    return np.bincount(np.searchsorted(candidates.edges, scores), minlength=candidates.size).astype(np.int64)
