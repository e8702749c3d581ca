"""Rows that do not sum to one: logits, percentages, some of the classes, or answers to K questions."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError

# The largest numbers of rows and of entries that are checked. A systematic error is in every row.
CHECKED_ROWS = 1000
_CHECKED_ENTRIES = 2**20

# The largest change of a sum by half precision.
_HALF_PRECISION = 0.01

# The largest change of a sum by each entry that a softmax in float32 or half precision loses.
_LOST_BY_ENTRY = 2.0**-24

# The largest change of a sum by rounding to decimals: beyond it numbers are no probabilities.
_MOST_ROUNDED = 0.4

# Decimals to which probabilities are rounded, and the relative error of entries in float32 or float64.
_DECIMALS = range(2, 7)
_ROUNDING_ERROR = 1e-6

SUM_TO_ONE = "sum to one"
SUM_REMEDY = (
    "apply softmax to a model's raw outputs and give every class; numbers that are not probabilities need a score of "
    "your own, with its own name"
)


def checked_rows(k: int, rows: int = CHECKED_ROWS) -> int:
    """The number of rows, of k entries each, whose sums are checked; it is smaller for large k.

    Examples
    --------
    >>> checked_rows(10), checked_rows(2**20)
    (1000, 1)
    """
    return min(rows, max(1, _CHECKED_ENTRIES // max(k, 1)))


def far_sums(xp: Any, p: Any) -> Any:
    """Whether each row has a sum that rounding cannot explain; `xp` has the functions of the array API standard.

    Half precision changes a sum by less than 0.01, and a softmax in float32 or half precision can lose 2^-24 in each
    entry. If all entries of a row have at most six decimals, rounding can also have lowered each by half a unit of the
    last decimal, and raised nonzero entries by as much; the sum changes by at most 0.4. So a row of zeros is never
    accepted.

    Examples
    --------
    >>> far_sums(np, np.array([[0.0, 0.0, 0.0], [0.3, 0.3, 0.38], [0.3, 0.3, 0.381]]))
    array([ True, False,  True])
    """
    # Rows that floating-point numbers do not explain.
    k = p.shape[1]
    gap = xp.sum(p, axis=1) - 1
    distance = xp.abs(gap)
    slack = _HALF_PRECISION + min(k * _LOST_BY_ENTRY, _MOST_ROUNDED)
    far = distance > slack
    if not bool(xp.any(far)):
        return far

    # Of these, the rows that no number of decimals explains: all entries can lose half a unit, nonzero ones gain it.
    relative_error = _relative_error(xp, p)
    for decimals in _DECIMALS:
        scaled = p * 10**decimals
        half_unit = 0.5 * 10.0**-decimals
        is_rounded = xp.all(xp.abs(scaled - xp.round(scaled)) <= relative_error * scaled, axis=1)
        nonzero = xp.sum(xp.where(p >= half_unit, xp.ones_like(p), xp.zeros_like(p)), axis=1)
        change = xp.where(gap < 0, xp.full_like(gap, k), nonzero) * half_unit
        is_near = (distance <= slack + change) & (distance <= slack + _MOST_ROUNDED)
        far = far & ~(is_rounded & is_near)
    return far


def _relative_error(xp: Any, p: Any) -> float:
    """An upper bound on the relative error of the entries: that of bfloat16 or float16 if they can be such numbers."""
    digits = 53 if p.dtype == xp.float64 else 24
    for bits in (8, 11):
        # Veltkamp's splitting: the difference is p, rounded to so many bits.
        scaled = p * (2.0 ** (digits - bits) + 1)
        if bool(xp.all(scaled - (scaled - p) == p)):
            return 2.0**-bits
    return _ROUNDING_ERROR


def far_from_one(p: NDArray[Any], rows: int = CHECKED_ROWS) -> NDArray[np.bool_]:
    """Whether the sum of each of the first `rows` rows is further from 1 than its precision explains (`far_sums`).

    Rows with NaN are checked elsewhere.

    Examples
    --------
    >>> far_from_one(np.array([[0.9, 0.9, 0.9], [0.33, 0.33, 0.33], [0.5, 0.25, 0.25]]))
    array([ True, False, False])
    """
    first = p[: checked_rows(p.shape[1], rows)].astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        far: NDArray[np.bool_] = far_sums(np, first)
    return far


def refuse_other_sums(name: str, p: NDArray[Any]) -> None:
    """Reject probabilities whose first rows do not sum to one, not even approximately.

    Examples
    --------
    >>> refuse_other_sums("probabilities", np.array([[0.5, 0.5], [0.33, 0.67]]))
    """
    is_far = far_from_one(p)
    far = np.flatnonzero(is_far)
    if far.size:
        raise other_sums(name, far.size, int(far[0]), len(is_far))


def other_sums(name: str, count: int, first: int, rows: int) -> InputError:
    """The error for probabilities if `count` of so many rows do not sum to one."""
    return InputError(
        name,
        f"must {SUM_TO_ONE} in every row",
        got=f"{count} of the first {rows} rows that do not, the first at row {first}",
        remedy=SUM_REMEDY,
    )
