"""Sets and intervals contain exactly the labels whose score, as calibrated, is at most the threshold."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import confide
from confide.errors import InputError, InputTypeError
from tests.calibrations import calibration_at
from tests.module_fixtures import any_row_sums, with_and_without_numba  # noqa: F401 - fixtures
from tests.refused import refused


@pytest.mark.parametrize("score", ["lac", "aps"])
@pytest.mark.parametrize(("empty", "warned"), [(10, False), (11, True), (1000, True)])
def test_more_than_one_empty_set_of_a_hundred_is_told(empty, warned, score):
    p = np.full((1000, 2), 0.5)
    p[empty:] = [0.8, 0.2]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        shares = (np.arange(1000) < empty).astype(float) if score == "aps" else None
        sets = confide.predict_set(p, calibration_at(0.4, score=score), u=shares)
    assert (sets.sizes == 0).sum() == empty
    notes = [str(one.message) for one in caught]
    assert len(notes) == warned
    assert all(f"{empty:,} of 1,000 sets are empty" in text for text in notes)
    assert all(("the randomised score, such as 'aps'" in text) == (score == "lac") for text in notes)


def test_a_negative_threshold_gives_empty_sets():
    """Candidates for unknown scores reach below 0; no probability has a negative score."""
    p = np.array([[1.0, 0.0], [0.5, 0.5]])
    assert not confide.predict_set(p, calibration_at(-0.5, score=None), score="lac").mask.any()
    lower, upper = confide.predict_interval([1.0], calibration_at(-0.5, score=None), score="absolute_residual")
    assert lower[0] > upper[0]


# --- the sets themselves


@pytest.mark.parametrize("labels", [[0], [0, 1, 2], [1, 3], [0, -1]])
def test_membership_checks_its_labels(labels):
    sets = confide.predict_set(np.full((2, 3), 0.5), calibration_at(0.5))
    with refused(InputError, "labels"):
        sets.contains(labels)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(f=st.floats(-1e6, 1e6), threshold=st.floats(0, 1e6))
def test_intervals_are_no_wider_than_rounding_requires(f, threshold):
    (lower,), (upper,) = confide.predict_interval([f], calibration_at(threshold, score="absolute_residual"))
    slack = 4 * np.spacing(max(abs(f), threshold, abs(lower), abs(upper)))
    assert 0 <= (f - threshold) - lower <= slack
    assert 0 <= upper - (f + threshold) <= slack


@pytest.mark.filterwarnings("ignore::confide.CoverageWarning")
def test_infinite_and_huge_thresholds():
    for threshold in (np.inf, np.finfo(float).max):
        lower, upper = confide.predict_interval(
            [0.0, 1e308, -1e308], calibration_at(threshold, score="absolute_residual")
        )
        assert lower.tolist() == [-np.inf] * 3
        assert upper.tolist() == [np.inf] * 3


PREDICT = {confide.predict_set: [[0.5]], confide.predict_interval: [0.5]}


@pytest.mark.parametrize("predict", PREDICT)
def test_a_calibration_of_this_score_is_required(predict):
    other = "absolute_residual" if predict is confide.predict_set else "lac"
    for made_for in (other, None):
        with refused(InputError, "calibration"):
            predict(PREDICT[predict], calibration_at(0.5, score=made_for))
    for calibration in (None, 0.5, "text", {"threshold": 0.5}, confide.Release):
        with refused(InputTypeError, "calibration"):
            predict(PREDICT[predict], calibration)


def test_a_calibration_without_a_score_name_uses_the_given_one():
    unnamed = calibration_at(0.5, score=None)
    assert confide.predict_set([[0.5]], unnamed, score="lac").mask.tolist() == [[True]]
    assert confide.predict_interval([0.5], unnamed, score="absolute_residual")[0][0] <= 0
