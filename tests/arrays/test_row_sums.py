"""Rows of probabilities that sum to one: rounding is accepted, everything else is detected."""

import numpy as np
import pytest

import confide
from confide.array_api import rows_unlike_one
from confide.arrays.probabilities import far_from_one
from tests.builders import slow
from tests.refused import numbers, refused

torch = pytest.importorskip("torch")

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
    """Entries of two decimals lose at most 0.005 each, and those that are not 0 gain as much; everything else 0.01."""
    decimals = np.array([[0.3, 0.3, 0.38], [0.3, 0.3, 0.37], [0.34, 0.34, 0.34], [0.35, 0.34, 0.34]])
    assert far_from_one(decimals).tolist() == [False, True, False, True]
    total = np.array([0.9888, 0.9909, 1.0091, 1.0112])
    assert far_from_one(np.tile(total[:, None] / 3, 3)).tolist() == [True, False, False, True]
    assert far_from_one(np.array([[1.01, 0, 0], [1.02, 0, 0]])).tolist() == [False, True]


def _softmax(k, dtype, scale=1.0):
    """The softmax of K logits, in a precision of its own."""
    z = np.exp(RNG.normal(size=(5, k)).astype(dtype))
    return (z / z.sum(axis=1, keepdims=True, dtype=dtype) * dtype(scale)).astype(dtype)


PROBABILITIES = {  # kind of entries: rows, whether they are far from one
    "halves of 200 classes": (RNG.dirichlet(np.ones(200), 5) / 2, True),
    "0.3 of 1,000 classes": (RNG.dirichlet(np.ones(1000), 5) * 0.3, True),
    "zeros of 3 classes": (np.zeros((5, 3)), True),
    "zeros of 1,000 classes": (np.zeros((5, 1000)), True),
    "zeros of 100,000 classes": (np.zeros((5, 100_000), np.float32), True),
    "half precision, 4,096 classes, twice": (_softmax(4096, np.float32, 2).astype(np.float16), True),
    "half precision, 4,096 classes, 0.86": (_softmax(4096, np.float32, 0.86).astype(np.float16), True),
    "half precision, 4,096 classes": (_softmax(4096, np.float32).astype(np.float16), False),
    "float32, 100,000 classes": (_softmax(100_000, np.float32), False),
    "half precision, 100,000 classes": (_softmax(100_000, np.float32).astype(np.float16), False),
    **{
        f"{decimals} decimals, {k} classes": (np.round(RNG.dirichlet(np.ones(k), 5), decimals), False)
        for decimals, k in ((2, 3), (2, 100), (3, 500), (4, 2000), (6, 100_000))
    },
    "2 decimals, 20 classes, 0.8": (np.round(RNG.dirichlet(np.ones(20), 5) * 0.75, 2), True),
    "4 decimals, 200 classes, 0.9": (np.round(RNG.dirichlet(np.ones(200), 5) * 0.9, 4), True),
}


@pytest.mark.parametrize("case", PROBABILITIES)
def test_the_tolerance_follows_the_precision_of_the_entries(case):
    p, far = PROBABILITIES[case]
    assert far_from_one(p).tolist() == [far] * 5
    assert np.asarray(rows_unlike_one(torch.tensor(p))).tolist() == [far] * 5


FUNCTIONS = {
    "lac": lambda p, y: confide.lac_score(p, y),
    "margin": lambda p, y: confide.margin_score(p, y),
    "all": lambda p, y: confide.all_scores(p, "aps_deterministic"),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_errors_have_count_position_and_remedy(name):
    p = np.full((2000, 3), 1 / 3)
    p[[7, 11]] = 0.9
    with refused(confide.errors.InputError, "probabilities") as caught:
        FUNCTIONS[name](p, np.zeros(2000, np.int64))
    assert numbers(caught) == [2, 1000, 7]  # rows, checked rows, first
