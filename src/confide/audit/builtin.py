"""The library's own mechanisms as subjects, in the very code that `calibrate` runs."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.audit.laws import exact_law
from confide.audit.subject import Claims, Scores, Subject
from confide.candidates import Candidates
from confide.mechanisms.certify import certify
from confide.mechanisms.noisy_histogram import NoisyHistogram, noisy_histogram_for
from confide.mechanisms.opendp_quantile import opendp_quantile_for, quantile_scores
from confide.mechanisms.pps import PrivatePredictionSets, pps_for
from confide.mechanisms.pps_laplace import LaplaceHistogram, pps_laplace_for
from confide.mechanisms.privacy import NEIGHBORS, Neighbors
from confide.mechanisms.slopes import Slopes
from confide.planning.plan import make_plan
from confide.planning.request import Request, check_request
from confide.selection.selector import SELECTORS, Selector

EDGES = (0.25, 0.5, 0.75)
ATOMS = (0.2, 0.4, 0.6, 0.8)
RECORDS = 7
LARGE = 200


def library_subjects() -> Iterator[Subject]:
    """Every mechanism of the library that claims a loss, under every relation it supports."""
    for neighbors in NEIGHBORS:
        for selector in SELECTORS:
            yield slopes_subject(neighbors, selector)
    yield pps_subject()
    for neighbors in NEIGHBORS:
        yield noisy_histogram_subject(neighbors)
    yield pps_laplace_subject()
    for neighbors in NEIGHBORS:
        yield opendp_quantile_subject(neighbors)


def pps_subject(epsilon: float = 1.0) -> Subject:
    """The published exponential mechanism; its claim is the published epsilon, of which it spends about half."""
    small = PrivatePredictionSets(level=Fraction(3, 4), gamma=0.1, scale=2 * 3 / epsilon)
    large = pps_for(2000, Fraction(1, 10), epsilon, 100)
    return Subject(
        name="pps replace_one",
        claims=Claims(epsilon, "replace_one", 0.9),
        draw=partial(threshold, small, Candidates.of(EDGES)),
        law=partial(utility_law, small, Candidates.of(EDGES)),
        atoms=ATOMS,
        records=RECORDS,
        runnable=(2000, partial(threshold, large, Candidates.unit(100))),
    )


def noisy_histogram_subject(neighbors: Neighbors, epsilon: float = 1.0) -> Subject:
    """Discrete Laplace noise on the counts."""
    public = neighbors == "replace_one"
    scale = (2 if public else 1) / epsilon
    small = NoisyHistogram(Fraction(0) if public else Fraction(7, 10), Fraction(5 if public else 0), scale)
    large = noisy_histogram_for(Fraction(9, 10), epsilon, 50, 2000 if public else None, 1)
    assert large is not None
    return Subject(
        name=f"noisy-histogram {neighbors}",
        claims=Claims(epsilon, neighbors, 0.9),
        draw=partial(threshold, small, Candidates.of(EDGES)),
        law=None,
        atoms=ATOMS,
        records=RECORDS,
        noise_scale=scale,
        runnable=(2000, partial(threshold, large, Candidates.unit(50))),
    )


def pps_laplace_subject(epsilon: float = 1.0) -> Subject:
    """The published noisy histogram."""
    small = LaplaceHistogram(level=Fraction(3, 4), gamma=0.1, scale=2 / epsilon)
    large = pps_laplace_for(2000, Fraction(1, 10), epsilon, 20)
    assert large is not None
    return Subject(
        name="pps-laplace replace_one",
        claims=Claims(epsilon, "replace_one", 0.9),
        draw=partial(threshold, small, Candidates.of(EDGES)),
        law=None,
        atoms=ATOMS,
        records=RECORDS,
        noise_scale=2 / epsilon,
        runnable=(2000, partial(threshold, large, Candidates.unit(20))),
    )


def opendp_quantile_subject(neighbors: Neighbors, epsilon: float = 1.0) -> Subject:
    """OpenDP's quantile, which claims no coverage."""
    public = neighbors == "replace_one"
    mechanism = opendp_quantile_for(Fraction(3, 4), epsilon, RECORDS if public else None)

    def law(scores: Scores) -> dict[float, float]:
        candidates = Candidates.of(EDGES)
        utilities = quantile_scores(counts(scores, candidates), 0.75, mechanism.size)
        chances = exact_law(utilities, mechanism.scale, "permute_and_flip")
        return dict(zip(candidates.values.tolist(), chances.tolist(), strict=True))

    return Subject(
        name=f"opendp-quantile {neighbors}",
        claims=Claims(epsilon, neighbors, None),
        draw=partial(threshold, mechanism, Candidates.of(EDGES)),
        law=law,
        atoms=ATOMS,
        records=RECORDS,
    )


def slopes_subject(neighbors: Neighbors, selector: Selector, epsilon: float = 1.0) -> Subject:
    """The slope mechanism as it is planned for few records and four candidates, and for many and a hundred."""
    small = small_request(neighbors, selector, epsilon, "0.3", RECORDS, len(ATOMS), shift=0.5)
    mechanism = make_plan(small, RECORDS).mechanism
    assert mechanism is not None
    large = make_plan(small_request(neighbors, selector, epsilon, "0.1", LARGE, 100, shift=None), LARGE)
    assert large.mechanism is not None
    public = neighbors == "replace_one"
    n, n_min = (RECORDS, None) if public else (None, 1)
    small_claim = certify(mechanism, small.alpha, len(ATOMS), n, n_min, None).coverage
    return Subject(
        name=f"slopes {selector} {neighbors}",
        claims=Claims(epsilon, neighbors, 0.9),
        draw=partial(threshold, mechanism, Candidates.of(EDGES)),
        law=partial(utility_law, mechanism, Candidates.of(EDGES)),
        atoms=ATOMS,
        records=RECORDS,
        small_coverage=small_claim,
        runnable=(LARGE, partial(threshold, large.mechanism, Candidates.unit(100))),
    )


def threshold(mechanism: Any, candidates: Candidates, scores: Scores) -> float:
    """One run, from scores to the threshold."""
    return float(candidates.values[mechanism.choose(counts(scores, candidates))])


def utility_law(mechanism: Any, candidates: Candidates, scores: Scores) -> dict[float, float]:
    """The exact law of a mechanism that selects by integer utilities."""
    utilities = mechanism.utilities(counts(scores, candidates))
    law = exact_law(utilities, mechanism.scale, getattr(mechanism, "selector", "exponential"))
    return dict(zip(candidates.values.tolist(), law.tolist(), strict=True))


def counts(scores: Scores, candidates: Candidates) -> NDArray[np.int64]:
    """Counts per bin, without the checks of `ScoreHistogram`: many thousand calls are made."""
    return np.bincount(np.searchsorted(candidates.edges, scores), minlength=candidates.size).astype(np.int64)


def weakened(subject: Subject, factor: float) -> Subject:
    """A slope subject whose noise is cut by a factor while its claims stay: what an audit has to catch."""
    draw, law = subject.draw, subject.law
    assert isinstance(draw, partial)
    assert isinstance(law, partial)
    mechanism, candidates = draw.args
    assert isinstance(mechanism, Slopes)
    broken = replace(mechanism, scale=mechanism.scale / factor)
    return replace(
        subject,
        name=f"{subject.name}, noise cut by {factor:g}",
        draw=partial(threshold, broken, candidates),
        law=partial(utility_law, broken, candidates),
    )


def small_request(
    neighbors: Neighbors, selector: Selector, epsilon: float, alpha: str, n: int, m: int, shift: float | None
) -> Request:
    """A request with the defaults for all that is not said."""
    return check_request(
        alpha=Fraction(alpha),
        epsilon=epsilon,
        n=n,
        rho=None,
        neighbors=neighbors,
        candidates=m,
        n_min=1,
        n_typical=None,
        delta=None,
        records_per_person=1,
        selector=selector,
        slopes=None,
        shift=shift,
    )
