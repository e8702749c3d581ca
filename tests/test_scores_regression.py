"""|y - f(x)| in float64, of finite numbers only."""

import numpy as np
import pandas as pd
import pytest

import confide
from tests.private import assert_error_is_private


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int32, ">f4"])
def test_absolute_residual(dtype):
    f, y = np.array([1, 2, 3], dtype), np.array([4, 2, -1], dtype)
    scores = confide.absolute_residual_score(f, y)
    assert scores.dtype == np.float64
    assert scores.tolist() == [3.0, 0.0, 4.0]


def test_dtypes_mix_exactly():
    f, y = np.float32([0.1]), np.float64([0.1])
    assert confide.absolute_residual_score(f, y)[0] == abs(0.1 - float(np.float32(0.1))) > 0
    assert confide.absolute_residual_score(pd.Series([1.5], dtype="Float64"), [1]).tolist() == [0.5]
    unsigned = confide.absolute_residual_score(np.array([5], np.uint8), np.array([3], np.uint8))
    assert unsigned.tolist() == [2.0]  # in unsigned integers 3 - 5 would be 254


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["predictions", "targets"])
def test_values_that_are_not_finite(name, bad):
    values = np.full(9, 0.123456789)
    wrong = values.copy()
    wrong[[4, 6]] = bad
    arguments = {"predictions": values, "targets": values, name: wrong}
    with pytest.raises(
        confide.InputError, match=rf"^{name} must be finite; found 2 NaN or infinite, .* position 4$"
    ) as e:
        confide.absolute_residual_score(**arguments)
    assert_error_is_private(e.value)


def test_lengths_differ():
    with pytest.raises(confide.InputError, match=r"^targets must have as many entries as predictions; found 2 for 3$"):
        confide.absolute_residual_score([1, 2, 3], [1, 2])


def test_wrong_shapes_and_types():
    with pytest.raises(confide.InputError, match=r"^targets must be one-dimensional"):
        confide.absolute_residual_score([1, 2], [[1], [2]])
    with pytest.raises(confide.InputError, match=r"^predictions must not be empty"):
        confide.absolute_residual_score([], [])
    with pytest.raises(confide.InputTypeError, match=r"^predictions must hold real numbers"):
        confide.absolute_residual_score(["1"], [1])


def test_a_residual_that_overflows_is_refused_when_counted():
    scores = confide.absolute_residual_score([-1.5e308], [1.5e308])
    assert scores.tolist() == [np.inf]
    with pytest.raises(
        confide.InputError, match=r"^scores must be numbers of at least 0 and finite; found 0 NaN and 1"
    ):
        confide.calibrate(scores, alpha=0.1, epsilon=1.0, score="absolute_residual")
