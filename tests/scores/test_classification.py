"""1 - p of the true class, computed in float64 for every dtype, and the mask that inverts it exactly."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import confide
from confide.scores.classification import set_mask, smallest_probability
from tests.any_row_sums import any_row_sums  # noqa: F401 - a fixture
from tests.with_and_without_numba import with_and_without_numba  # noqa: F401 - a fixture

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
