"""A silo's private estimate of its own coverage: the noise that is drawn, from scores and from counts."""

import numpy as np
import pytest

from confide import Candidates, ScoreHistogram
from confide.errors import InputError
from confide.federated import coverage_in_silo
from confide.federated.noise_shares import noise_law
from tests.federated.test_secure_sum import chi_square

SCORES = np.linspace(0, 1, 401)[:-1]


@pytest.mark.everyday("False")
@pytest.mark.parametrize("counted", [False, True])
def test_the_noise_has_its_law(counted):
    """200 of 400 scores are at or below the threshold; what is reported beyond is discrete Laplace noise."""
    grid = Candidates.unit(11)
    threshold = float(grid.values[np.searchsorted(grid.values, 0.45)])
    covered = int((threshold >= SCORES).sum())
    given = ScoreHistogram.from_scores(SCORES, grid) if counted else SCORES
    reports = [coverage_in_silo("north", given, threshold, 0.5) for _ in range(3000)]
    draws = np.array([round(400 * report.estimate.value) - covered for report in reports])
    assert chi_square(draws, noise_law(2.0, 1.0)) > 1e-6


def test_counts_must_tell_the_threshold():
    grid = Candidates.unit(11)
    with pytest.raises(InputError, match="among the candidates"):
        coverage_in_silo("north", ScoreHistogram.from_scores(SCORES, grid), 0.4567, 1.0)
    with pytest.raises(InputError, match="must not be empty"):
        coverage_in_silo("north", ScoreHistogram.empty(grid), float(grid.values[0]), 1.0)
    whole = coverage_in_silo("north", ScoreHistogram.from_scores(SCORES, grid), float("inf"), 1.0)
    assert whole.estimate.high == 1.0
