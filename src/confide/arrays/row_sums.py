"""Rows of probabilities that do not sum to one: logits, percentages, some of the classes, or answers to K questions."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError

LOOKED_AT = 1000
"""Rows that are looked at, so that it costs nothing; whoever has another sum has it in every row."""

_ENTRIES = 2**20
_ROUNDED, _FLOATS = 0.005, 0.01

SUM_TO_ONE = "sum to one"
SUM_REMEDY = (
    "apply softmax to a model's raw outputs and give every class; numbers that are no probabilities need a score of "
    "your own, with a name of its own"
)


def far_from_one(p: NDArray[Any], rows: int = LOOKED_AT) -> NDArray[np.bool_]:
    """Which of the first rows sum to something that no rounding of probabilities explains.

    Rounding to two decimals changes an entry by up to .005: every entry can have lost that, and those that are not zero
    can have gained it. Half precision changes a sum by less than .01. Rows with NaN are left to others.

    Parameters
    ----------
    p
        Shape (n, K).
    rows
        How many rows to look at.

    Returns
    -------
    numpy.ndarray
        bool, shape (min(n, rows),), or fewer for very many classes.

    Examples
    --------
    >>> far_from_one(np.array([[0.9, 0.9, 0.9], [0.33, 0.33, 0.33], [0.5, 0.25, 0.25]]))
    array([ True, False, False])
    """
    some = p[: min(rows, max(1, _ENTRIES // max(p.shape[1], 1)))]
    with np.errstate(invalid="ignore", over="ignore"):
        total = some.sum(axis=1, dtype=np.float64)
        lost = _FLOATS + _ROUNDED * p.shape[1]
        gained = _FLOATS + _ROUNDED * np.count_nonzero(some >= _ROUNDED, axis=1)
        far: NDArray[np.bool_] = (total < 1 - lost) | (total > 1 + gained)
    return far


def refuse_other_sums(name: str, p: NDArray[Any]) -> None:
    """Refuse probabilities whose first rows do not sum to one, not even nearly.

    Examples
    --------
    >>> refuse_other_sums("probabilities", np.array([[0.5, 0.5], [0.33, 0.67]]))
    """
    wrong = np.flatnonzero(far := far_from_one(p))
    if wrong.size:
        raise InputError(
            f"{name} must {SUM_TO_ONE} in every row; found {wrong.size} of the first {len(far)} rows that do not, the "
            f"first at row {wrong[0]}; {SUM_REMEDY}"
        )
