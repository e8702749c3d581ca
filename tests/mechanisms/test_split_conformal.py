"""The baseline without privacy: exact ranks, exact with ties, and clearly marked as not private."""

import itertools
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import confide
from confide.mechanisms.interface import SplitConformal, split_conformal_for
from confide.papers import fedcp_qq
from confide.support import exact_level
from tests.refused import refused

HUNDREDTHS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 15, 18, 20, 21, 23, 25, 28, 30, 33, 35, 40, 45, 50, 55, 70, 90)
SIZES = (*range(1, 21), 24, 29, 39, 49, 59, 79, 99, 100, 124, 149, 199)
"""868 cells: all small sizes, and those at which (n+1)(1-alpha) is a whole number, where floats give wrong ranks."""


def integer_rank(hundredths, n):
    """ceil((n+1)(1-alpha)) in integers alone; None means +inf."""
    rank = -(-(n + 1) * (100 - hundredths) // 100)
    return rank if rank <= n else None


def forms(hundredths):
    """One level in every common form, also as an inexact sum of floats."""
    text = f"0.{hundredths:02d}"
    exact = Fraction(hundredths, 100), f"{hundredths}/100", Decimal(text), text, f"{hundredths}e-2"
    return *exact, float(text), np.float64(text), 1 - (100 - hundredths) / 100


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::confide.CoverageWarning")
def test_ranks_are_those_of_exact_integers_on_the_whole_grid():
    """The threshold of the scores 1, ..., n, if they are candidates, is its own rank."""
    floats_wrong, whole = 0, confide.Candidates.of(np.arange(1.0, 200.0))
    for place, (hundredths, n) in enumerate(itertools.product(HUNDREDTHS, SIZES)):
        rank, written = integer_rank(hundredths, n), forms(hundredths)
        for alpha in written:
            mechanism = split_conformal_for(1 - exact_level("alpha", alpha), n)
            assert mechanism == (None if rank is None else SplitConformal(rank)), (alpha, n)
        scores = np.arange(n, 0.0, -1.0)
        released = confide.calibrate(scores, written[place % len(written)], mechanism="none", candidates=whole)
        assert released.threshold == (math.inf if rank is None else rank), (hundredths, n)
        assert released.guarantee.coverage == (1 if rank is None else pytest.approx(rank / (n + 1), abs=1e-15))
        floats_wrong += math.ceil((n + 1) * (1 - hundredths / 100)) != (rank or n + 1)
    assert place + 1 == 868
    assert floats_wrong == 13  # the grid contains cells that show the difference


@pytest.mark.slow
def test_silos_use_the_same_ranks():
    for hundredths, n in itertools.product(HUNDREDTHS, SIZES):
        alpha, rank = f"0.{hundredths:02d}", integer_rank(hundredths, n)
        pooled = fedcp_qq.centralised_threshold([np.arange(1.0, n + 1)], alpha)
        assert pooled == (math.inf if rank is None else rank)
        (own,) = fedcp_qq.published_ranks([n], 1 - Fraction(alpha))
        assert (own if own <= n else None) == rank


def test_coverage_is_exact_for_every_order_and_every_tie():
    """Leave-one-out over all multisets: never below k/(n+1), and equal to it without ties."""
    n, alpha = 5, Fraction(1, 3)
    mechanism = split_conformal_for(1 - alpha, n)
    rank = mechanism.rank
    for points in itertools.combinations_with_replacement(range(4), n + 1):
        covered = 0
        for i in range(n + 1):
            rest = points[:i] + points[i + 1 :]
            covered += points[i] <= mechanism.choose(np.bincount(rest, minlength=5))
        assert covered >= rank
    points = np.arange(n + 1)
    assert sum(p <= mechanism.choose(np.bincount(np.delete(points, p), minlength=n + 2)) for p in points) == rank


@pytest.mark.parametrize("score", [None, "lac", "absolute_residual"])
def test_the_threshold_is_the_least_candidate_that_reaches_the_quantile(score):
    scores = np.random.default_rng(0).random(500)
    released = confide.calibrate(scores, 0.1, mechanism="none", score=score)
    edges, exact = confide.Candidates.from_recipe(released.recipe).edges, np.sort(scores)[450]
    assert released.threshold == edges[edges >= exact][0]
    assert released.threshold - exact < 0.001


def test_release_is_marked_not_private():
    released = confide.calibrate(np.random.default_rng(0).random(500), 0.1, mechanism="none")
    assert released.coverage == pytest.approx(451 / 501)
    assert math.isinf(released.epsilon)
    assert math.isinf(released.privacy.loss("add_remove"))
    assert "NOT PRIVATE" in str(released)
    assert "NOT PRIVATE" in str(confide.Release.from_json(released.to_json()))
    assert released.conditional_coverage(0.05) < 0.9 < released.coverage_at_most() < 0.902


def test_it_is_never_a_default():
    with refused(confide.errors.InputError, "epsilon"):
        confide.calibrate([0.5, 0.6], 0.1)
    with refused(confide.errors.InputError, "epsilon"):
        confide.calibrate([0.5, 0.6], 0.1, 1.0, mechanism="none")
