"""A silo's private estimate of its own coverage: the distribution of the noise, from scores and from counts."""

import numpy as np
import pytest

from confide import Candidates, ScoreHistogram
from confide.errors import InputError
from confide.federated import coverage_in_silo, silo_report
from confide.noisy_counts import noise_law, one_count_interval
from confide.sets import coverage_from_counts
from tests.builders import slow
from tests.federated.test_secure_sum import chi_square
from tests.refused import refused

SCORES = np.linspace(0, 1, 401)[:-1]


@pytest.mark.slow
@pytest.mark.parametrize("counted", [False, *slow([True])])
def test_the_noise_has_its_law(counted, monkeypatch):
    """200 of 400 scores are at or below the threshold; the reported difference is discrete Laplace noise."""
    monkeypatch.setattr(silo_report, "one_count_interval", lambda *_, **__: (0.0, 1.0))  # not needed 3000 times
    grid = Candidates.unit(11)
    threshold = float(grid.values[np.searchsorted(grid.values, 0.45)])
    covered = int((threshold >= SCORES).sum())
    given = ScoreHistogram.from_scores(SCORES, grid) if counted else SCORES
    reports = [coverage_in_silo("north", given, threshold, 0.5) for _ in range(3000)]
    draws = np.array([round(400 * report.estimate.value) - covered for report in reports])
    assert chi_square(draws, noise_law(0.5)) > 1e-6


def test_the_interval_is_exact_and_hardly_wider_than_without_noise():
    """The interval is narrow because it covers noise and sampling together.

    An earlier version covered them separately, and was 1.35 times as wide as Clopper and Pearson's interval.
    """
    found = coverage_in_silo("north", np.linspace(0, 1, 1001)[:-1], 0.8995, 1.0).estimate
    assert (found.low, found.high) == one_count_interval(round(1000 * found.value), 1000, 1.0)
    plain = coverage_from_counts(round(1000 * found.value), 1000)
    assert found.high - found.low <= 1.06 * (plain.high - plain.low)
    for confidence in (0.5, 0.99):
        wide = coverage_in_silo("north", SCORES, 0.45, 0.5, confidence).estimate
        assert (wide.low, wide.high) == one_count_interval(round(400 * wide.value), 400, 0.5, error=1 - confidence)


def test_counts_must_tell_the_threshold():
    grid = Candidates.unit(11)
    with refused(InputError, "threshold"):
        coverage_in_silo("north", ScoreHistogram.from_scores(SCORES, grid), 0.4567, 1.0)
    with refused(InputError, "scores"):
        coverage_in_silo("north", ScoreHistogram.empty(grid), float(grid.values[0]), 1.0)
    whole = coverage_in_silo("north", ScoreHistogram.from_scores(SCORES, grid), float("inf"), 50.0)  # noise: e^-50
    assert whole.estimate.high == 1.0
