"""Membership inference: certain without privacy, bounded with it; on thresholds and on prediction sets."""

import math
import warnings
from functools import partial

import numpy as np
import pytest
from scipy.stats import binomtest

import confide
from examples.membership import QUERIES, play, private, split_conformal


@pytest.mark.parametrize("queries", [None, QUERIES], ids=["threshold", "prediction sets"])
def test_split_conformal_identifies_person(queries):
    assert play(split_conformal, 200, np.random.default_rng(5), queries) == 1.0
    assert split_conformal(np.arange(1.0, 6)) == math.inf


@pytest.mark.slow
@pytest.mark.parametrize("queries", [None, QUERIES], ids=["threshold", "prediction sets"])
def test_privacy_bounds_every_attacker(queries):
    """The share of right guesses is significantly above the bound with a probability of at most one in a million."""
    rounds, bound = 400, 1 / (1 + math.exp(-1.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", confide.CoverageWarning)
        right = round(rounds * play(partial(private, epsilon=1.0), rounds, np.random.default_rng(5), queries))
    assert binomtest(right, rounds, bound, alternative="greater").pvalue > 1e-6
