"""The baseline without privacy: exact ranks, exact in ties, and loudly marked."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import confide
from confide.mechanisms.split_conformal import SplitConformal, split_conformal_for


@pytest.mark.parametrize("alpha", [0.1, 1 - 0.9, 0.3, "0.07", Fraction(1, 3)])
def test_rank_is_exact(alpha):
    """ceil((n+1)(1-alpha)) in integers."""
    exact = confide.support.rationals.exact_level("alpha", alpha)
    for n in range(1, 400):
        rank = -((n + 1) * (exact.numerator - exact.denominator) // exact.denominator)
        mechanism = split_conformal_for(1 - exact, n)
        assert mechanism == (SplitConformal(rank) if rank <= n else None)


def test_floats_would_be_one_rank_too_high():
    assert math.ceil((9 + 1) * (1 - 0.7)) == 4
    assert split_conformal_for(Fraction(3, 10), 9).rank == 3


def test_coverage_is_exact_for_every_order_and_every_tie():
    """Leave-one-out over all multisets: never below k/(n+1), and equal to it without ties."""
    n, alpha = 5, Fraction(1, 3)
    rank = split_conformal_for(1 - alpha, n).rank
    for points in itertools.combinations_with_replacement(range(4), n + 1):
        covered = 0
        for i in range(n + 1):
            rest = np.array(points[:i] + points[i + 1 :], dtype=float)
            covered += points[i] <= SplitConformal(rank).threshold(rest)
        assert covered >= rank
    points = np.arange(n + 1.0)
    assert sum(p <= SplitConformal(rank).threshold(np.delete(points, i)) for i, p in enumerate(points)) == rank


def test_release_is_marked_not_private():
    scores = np.random.default_rng(0).random(500)
    released = confide.calibrate(scores, 0.1, mechanism="none")
    assert released.threshold == np.sort(scores)[450]
    assert released.coverage == pytest.approx(451 / 501)
    assert math.isinf(released.epsilon)
    assert math.isinf(released.privacy.loss("add_remove"))
    assert "NOT PRIVATE" in str(released)
    assert "NOT PRIVATE" in str(confide.Calibration.from_json(released.to_json()))
    assert released.conditional_coverage(0.05) < 0.9 < released.coverage_at_most() < 0.902


def test_it_is_never_chosen_by_accident():
    with pytest.raises(confide.InputError, match="epsilon or rho must be given"):
        confide.calibrate([0.5, 0.6], 0.1)
    with pytest.raises(confide.InputError, match="epsilon must be left out"):
        confide.calibrate([0.5, 0.6], 0.1, 1.0, mechanism="none")


def test_too_few_records():
    with pytest.warns(confide.CoverageWarning):
        released = confide.calibrate([0.1, 0.2, 0.3], 0.1, mechanism="none")
    assert math.isinf(released.threshold)
    assert confide.Calibration.from_json(released.to_json()) == released


def test_on_counts_it_is_the_first_candidate_that_reaches_the_rank():
    scores, candidates = np.random.default_rng(0).random(500), confide.Candidates.unit(101)
    histogram = confide.ScoreHistogram.from_scores(scores, candidates)
    released = confide.calibrate_histogram(histogram, 0.1, mechanism="none")
    exact = confide.calibrate(scores, 0.1, mechanism="none").threshold
    assert 0 <= released.threshold - exact < 0.01
    assert released.threshold in candidates.edges
