"""Scores of probabilities and of predictions, in float64 for every dtype, and what inverts them."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import confide
from confide.scores.class_sets import set_mask, smallest_probability
from confide.scores.regression import interval_ends
from tests.module_fixtures import any_row_sums, with_and_without_numba  # noqa: F401 - fixtures
from tests.refused import numbers, refused

DTYPES = [np.float16, np.float32, np.float64]


@pytest.mark.parametrize("dtype", DTYPES)
def test_scores_pass_their_range_check(dtype):
    p = np.array([[0.0, 1.0, np.finfo(dtype).smallest_subnormal, np.nextafter(dtype(1), dtype(0)), -0.0]] * 5, dtype)
    confide.ScoreHistogram.from_scores(confide.lac_score(p, range(5)), confide.Candidates.unit(10), "lac")


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(threshold=st.floats(0, 1, exclude_max=True), dtype=st.sampled_from(DTYPES))
def test_smallest_probability_is_exact(threshold, dtype):
    smallest = smallest_probability(threshold, np.dtype(dtype))
    assert smallest.dtype == dtype
    assert 1.0 - float(smallest) <= threshold
    if smallest > 0:
        below = np.nextafter(smallest, dtype(0))
        assert 1.0 - float(below) > threshold


def test_rounding_of_one_minus_p_matters():
    """A tiny p has score exactly 1.0 in float64, so a threshold just below 1 excludes it."""
    just_below = float(np.nextafter(1, 0))
    for dtype in (np.float32, np.float64):
        p = np.array([[np.finfo(dtype).smallest_subnormal, 0.5]], dtype)
        assert set_mask(p, "lac", just_below).tolist() == [[False, True]]
        assert set_mask(p, "lac", 1.0).tolist() == [[True, True]]
    # In exact arithmetic 1 - 2**-54 is below 1; in float64 it is 1.
    assert 1 - Fraction(2) ** -54 < 1
    assert set_mask(np.array([[2.0**-54]]), "lac", just_below).tolist() == [[False]]
    assert set_mask(np.array([[2.0**-53]]), "lac", just_below).tolist() == [[True]]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["predictions", "targets"])
def test_values_that_are_not_finite(name, bad):
    values = np.full(9, 0.123456789)
    wrong = values.copy()
    wrong[[4, 6]] = bad
    arguments = {"predictions": values, "targets": values, name: wrong}
    with refused(confide.errors.InputError, name) as e:
        confide.absolute_residual_score(**arguments)
    assert numbers(e) == [2, 4]
    with refused(confide.errors.InputError, "predictions") as e:
        confide.interval_score([[0.0, 1.0], [0.0, bad]], [1.0, 1.0], "cqr")
    assert numbers(e) == [1, 1]


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32])
@pytest.mark.parametrize("score", ["absolute_residual", "gamma", "normalised_residual", "cqr", "cqr_low", "cqr_high"])
def test_blocks_and_threads_do_not_change_results(monkeypatch, score, dtype):
    """Whole arrays, computed by their formulas, next to blocks of a few rows on threads: bit for bit."""
    monkeypatch.setattr(confide.arrays.blocks, "_WORTH_THREADS", 1)
    rng = np.random.default_rng(0)
    n = 200_000
    center = (rng.integers(1, 1000, (n, 2)) * 1.25).astype(dtype)
    f = center if score.startswith("cqr") else center[:, 0]
    y, d = rng.normal(size=n) * 1000, rng.random(n).astype(np.float32) + np.float32(0.1)
    a, b = center.astype(np.float64).T
    residual = np.abs(y - a)
    expected = {
        "absolute_residual": residual,
        "gamma": residual / a,
        "normalised_residual": residual / d.astype(np.float64),
        "cqr": np.maximum(a - y, y - b),
        "cqr_low": a - y,
        "cqr_high": y - b,
    }[score]
    difficulty = d if score == "normalised_residual" else None
    assert np.array_equal(confide.interval_score(f, y, score, difficulty=difficulty), expected)
    lower, upper = interval_ends(f, score, 2.5, difficulty=difficulty)
    beyond = np.nextafter(2.5, np.inf)
    if score in ("gamma", "normalised_residual"):
        beyond = np.nextafter(beyond * (a if score == "gamma" else d), np.inf)
    assert np.array_equal(lower, np.full(n, -np.inf) if score == "cqr_high" else a - beyond)
    high = b if score.startswith("cqr") else a
    assert np.array_equal(upper, np.full(n, np.inf) if score == "cqr_low" else high + beyond)


def test_bad_values_are_counted_across_blocks():
    f, d = np.ones(300_000), np.ones(300_000)
    f[[7, 299_999]] = [np.inf, np.nan]
    with refused(confide.errors.InputError, "predictions") as e:
        confide.absolute_residual_score(f, d)
    assert numbers(e) == [2, 7]
    with refused(confide.errors.InputError, "predictions") as e:
        interval_ends(f, "absolute_residual", 1.0)
    assert numbers(e) == [2, 7]
    d[[200_000, 250_000]] = [0.0, -1.0]
    with refused(confide.errors.InputError, "difficulty") as e:
        confide.normalised_residual_score(np.ones(300_000), np.ones(300_000), d)
    assert numbers(e) == [2, 200_000]
    with refused(confide.errors.InputError, "predictions") as e:
        confide.gamma_score(d, np.ones(300_000))
    assert numbers(e) == [2, 200_000]
    huge = np.full(300_000, 1.7e308)  # finite, though their sum is not
    assert confide.absolute_residual_score(huge, huge).max() == 0


def test_lengths_differ_or_are_zero():
    with refused(confide.errors.InputError, "targets") as e:
        confide.absolute_residual_score([1, 2, 3], [1, 2])
    assert numbers(e) == [2, 3]
    assert confide.normalised_residual_score([], [], []).shape == (0,)


def test_a_residual_that_overflows_is_refused_when_counted():
    scores = confide.absolute_residual_score([-1.5e308], [1.5e308])
    assert scores.tolist() == [np.inf]
    with refused(confide.errors.InputError, "scores") as e:
        confide.calibrate(scores, alpha=0.1, epsilon=1.0, score="absolute_residual")
    assert numbers(e) == [0, 1, 0]
