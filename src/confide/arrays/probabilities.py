"""Probabilities and logits: what rows sum to, and the softmax."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError

# Rows of probabilities that do not sum to one: logits, percentages, some of the classes, or answers to K questions.

LOOKED_AT = 1000
"""Rows that are looked at, so that it costs nothing; whoever has another sum has it in every row."""

_ENTRIES = 2**20
ROUNDED, _FLOATS = 0.005, 0.01

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
    some = p[: rows_looked_at(p.shape[1], rows)]
    with np.errstate(invalid="ignore", over="ignore"):
        total = some.sum(axis=1, dtype=np.float64)
        least, most = sums_of_rounded(p.shape[1], np.count_nonzero(some >= ROUNDED, axis=1))
        far: NDArray[np.bool_] = (total < least) | (total > most)
    return far


def rows_looked_at(k: int, rows: int = LOOKED_AT) -> int:
    """How many rows of k entries are looked at: fewer of very many entries.

    Examples
    --------
    >>> rows_looked_at(10), rows_looked_at(2**20)
    (1000, 1)
    """
    return min(rows, max(1, _ENTRIES // max(k, 1)))


def sums_of_rounded(k: int, large: Any) -> tuple[float, Any]:
    """Between what k probabilities sum to after rounding, where `large` of them are not below `ROUNDED`.

    Examples
    --------
    >>> [round(end, 3) for end in sums_of_rounded(3, 2)]
    [0.975, 1.02]
    """
    return 1 - (_FLOATS + ROUNDED * k), 1 + (_FLOATS + ROUNDED * large)


def refuse_other_sums(name: str, p: NDArray[Any]) -> None:
    """Refuse probabilities whose first rows do not sum to one, not even nearly.

    Examples
    --------
    >>> refuse_other_sums("probabilities", np.array([[0.5, 0.5], [0.33, 0.67]]))
    """
    wrong = np.flatnonzero(far := far_from_one(p))
    if wrong.size:
        raise other_sums(name, wrong.size, int(wrong[0]), len(far))


def other_sums(name: str, count: int, first: int, rows: int) -> InputError:
    """What is said of probabilities of which `count` of so many rows do not sum to one."""
    return InputError(
        f"{name} must {SUM_TO_ONE} in every row; found {count} of the first {rows} rows that do not, the first at row "
        f"{first}; {SUM_REMEDY}"
    )


# Logits to probabilities, in double precision.

_ROWS_LOOKED_AT, _NEAR_ONE = 100, 0.005
_ROWS, _PAIRS = 3, 30
"""How many rows look like probabilities by chance once in a million times, or never: of several numbers, and of one."""


def softmax(logits: NDArray[Any]) -> NDArray[np.float64]:
    """The softmax of finite rows, shape (n, K), however large: each row is computed for itself, wherever it stands.

    Examples
    --------
    >>> softmax(np.array([[1000.0, 1000.0, -1000.0]]))
    array([[0.5, 0.5, 0. ]])
    """
    z = np.array(logits, dtype=np.float64, order="C")
    z -= z.max(axis=1, keepdims=True)
    np.exp(z, out=z)
    z /= z.sum(axis=1, keepdims=True)
    return z


def look_like_probabilities(rows: NDArray[Any]) -> NDArray[np.bool_]:
    """Which of the first rows to refuse as logits: all, if all are probabilities; shape (n, K), K = 1 for one of two.

    Examples
    --------
    >>> look_like_probabilities(np.array([[0.5, 0.5], [0.1, 0.9], [1.0, 0.0]]))
    array([ True,  True,  True])
    >>> look_like_probabilities(np.array([[0.5, 0.5], [0.1, 0.9], [3.0, -2.0]]))
    array([False, False, False])
    """
    found, first = np.zeros(len(rows), dtype=np.bool_), rows[:_ROWS_LOOKED_AT]
    one = rows.shape[1] == 1
    if len(first) < (_PAIRS if one else _ROWS):
        return found
    with np.errstate(invalid="ignore", over="ignore"):
        total = first.sum(axis=1, dtype=np.float64)
        near = (first <= 1).all(axis=1) if one else np.abs(total - 1) < _NEAR_ONE
        found[: len(first)] = bool(((first >= 0).all(axis=1) & near).all())
    return found
