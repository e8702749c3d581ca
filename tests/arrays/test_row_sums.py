"""Rows of probabilities that sum to one: rounding is accepted, everything else is detected."""

import numpy as np
import pytest

import confide
from confide.arrays.probabilities import CHECKED_ROWS, far_from_one
from tests.builders import slow
from tests.refused import numbers, refused

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("k", "dtype", "sharpness"),
    slow(
        [  # each value with each value of the others
            (k, dtype, [5.0, 0.3, 0.01][(i + j) % 3])
            for i, k in enumerate([2, 3, 10, 100, 1000, 20_000])
            for j, dtype in enumerate([np.float16, np.float32, np.float64])
        ],
        everyday=[(3, np.float16, 0.3), (1000, np.float32, 0.01)],
    ),
)
def test_probabilities_of_every_precision(k, dtype, sharpness):
    p = RNG.dirichlet(np.full(k, sharpness * 10 / k + 1e-3), 50)
    assert not far_from_one(p.astype(dtype)).any()
    assert not far_from_one(np.round(p, 2).astype(dtype)).any()
    assert not far_from_one(np.eye(k, dtype=np.int64)[:10]).any()


@pytest.mark.parametrize("k", [2, 3, 10, 100])
def test_rows_that_are_not_distributions(k):
    p = RNG.dirichlet(np.ones(k), 200)
    sigmoid = 1 / (1 + np.exp(-RNG.normal(size=(200, k))))
    for wrong in (np.full((200, k), 0.9), 100 * p, np.log(p), sigmoid + 0.3, 2.2 * p):
        assert far_from_one(wrong).mean() > 0.9
    assert far_from_one(RNG.dirichlet(np.ones(3), 200)[:, :2]).mean() > 0.8  # two of three classes


def test_the_bounds_are_those_of_rounding():
    """Three entries lose at most 0.005 each, and the remaining ones gain as much; half precision adds 0.01."""
    total = np.array([0.9749, 0.9751, 1.0249, 1.0251])
    assert far_from_one(np.tile(total[:, None] / 3, 3)).tolist() == [True, False, False, True]
    assert far_from_one(np.array([[1.0149, 0, 0], [1.0151, 0, 0]])).tolist() == [False, True]


def test_only_the_first_rows_are_checked():
    p = np.full((CHECKED_ROWS + 10, 2), 0.5)
    p[CHECKED_ROWS:] = 0.9
    assert len(far_from_one(p)) == CHECKED_ROWS
    assert not far_from_one(p).any()
    assert not far_from_one(np.array([[np.nan, 0.5]])).any()  # another check reports this


FUNCTIONS = {
    "lac": lambda p, y: confide.lac_score(p, y),
    "margin": lambda p, y: confide.margin_score(p, y),
    "all": lambda p, y: confide.all_scores(p, "aps_deterministic"),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_errors_have_count_position_and_remedy(name):
    p = np.full((2000, 3), 1 / 3)
    p[[7, 11]] = 0.9
    with refused(confide.InputError, "probabilities") as caught:
        FUNCTIONS[name](p, np.zeros(2000, np.int64))
    assert numbers(caught) == [2, 1000, 7]  # rows, checked rows, first


@pytest.mark.slow
def test_prediction_checks_row_sums():
    released = confide.calibrate(np.linspace(0, 1, 2000), 0.1, 1.0, score="lac")
    with refused(confide.InputError, "probabilities") as caught:
        confide.predict_set(np.full((5, 3), 0.9), released)
    assert numbers(caught) == [5, 5, 0]


def test_several_labels_need_not_sum_to_one():
    p = RNG.random((500, 4))
    released = confide.calibrate_false_negatives(p, RNG.random(p.shape) < p, 0.2, 2.0)
    assert confide.predict_labels(np.full((5, 4), 0.9), released).mask.shape == (5, 4)
