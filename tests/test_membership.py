"""Membership inference: certain without privacy, bounded with it; on thresholds and on prediction sets."""

import math
import warnings
from functools import partial

import numpy as np
import pytest
from scipy.stats import binomtest

import confide
from examples.membership import QUERIES, WORLDS, play, private, split_conformal

SEEN = pytest.mark.parametrize("queries", [None, QUERIES], ids=["threshold", "prediction sets"])


@SEEN
def test_split_conformal_identifies_person(queries):
    assert play(split_conformal, 200, np.random.default_rng(5), queries) == 1.0
    assert split_conformal(np.arange(1.0, 6)) == math.inf


@pytest.mark.slow
@SEEN
def test_privacy_bounds_every_attacker(queries):
    """The share of right guesses is significantly above the bound with a probability of at most one in a million."""
    rounds, bound = 400, 1 / (1 + math.exp(-1.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", confide.CoverageWarning)
        right = round(rounds * play(partial(private, epsilon=1.0), rounds, np.random.default_rng(5), queries))
    assert binomtest(right, rounds, bound, alternative="greater").pvalue > 1e-6


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::confide.CoverageWarning")
def test_candidates_that_end_at_the_largest_score_identify_a_person():
    """No finite threshold is possible with the person's record and without it."""
    thresholds = [set(), set()]
    for world, scores in enumerate((WORLDS[0], np.append(WORLDS[0][:-1], 1.0))):
        fitted = confide.Candidates.of(np.linspace(0, scores.max(), 6)[1:])
        for _ in range(20):
            released = confide.calibrate(scores, 0.1, 20.0, neighbors="replace_one", candidates=fitted)
            thresholds[world].add(released.threshold)
    assert all(possible - {math.inf} for possible in thresholds)
    assert thresholds[0] & thresholds[1] <= {math.inf}
