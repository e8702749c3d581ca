"""Checks of numeric arguments of the functions of the papers; errors name the argument."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import as_numeric
from confide.errors import InputError
from confide.support import positive_integer, require


def as_counts(name: str, counts: ArrayLike) -> NDArray[np.int64]:
    """Check nonnegative integers, shape (m,) with m at least 1."""
    numbers = _filled(name, counts)
    if numbers.ndim != 1 or not np.all((numbers >= 0) & (numbers < 2**62) & (numbers % 1 == 0)):
        raise InputError(name, "must be nonnegative integers in a one-dimensional array")
    return numbers.astype(np.int64)


def as_shares(name: str, shares: ArrayLike) -> NDArray[np.float64]:
    """Check numbers in [0, 1], of any shape that is not empty."""
    numbers = _filled(name, shares)
    require(name, np.all((numbers >= 0) & (numbers <= 1)), "must lie in [0, 1]")
    return numbers


def at_least_zero(name: str, value: float) -> float:
    """Check a number of at least 0; +inf is allowed."""
    require(name, value >= 0, "must be at least 0", got=f"{value:g}")
    return float(value)


def without_nan(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Check numbers, none of which is NaN."""
    numbers = np.asarray(as_numeric(name, values), dtype=np.float64)
    if missing := int(np.count_nonzero(np.isnan(numbers))):
        raise InputError(name, "must be numbers", got=f"{missing} NaN")
    return numbers


def check_ranks(l: int, k: int, m: int, n: int) -> None:
    """Raise `InputError` for a pair (l, k) outside of [1, n] x [1, m]."""
    for name, value, most in (("l", l, n), ("k", k, m)):
        require(name, positive_integer(name, value) <= most, f"must be an integer from 1 to {most}", got=str(value))


def _filled(name: str, values: Any) -> NDArray[np.float64]:
    numbers = without_nan(name, values)
    require(name, numbers.size, "must have at least one entry", got="none")
    return numbers
