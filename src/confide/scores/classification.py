"""Classification scores, from the probabilities that a model gives to the classes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import as_labels, as_probabilities


def lac_score(
    probabilities: ArrayLike, labels: ArrayLike, classes: Sequence[object] | None = None
) -> NDArray[np.float64]:
    """LAC (also called THR or hinge): one minus the probability of the true class.

    Sadinle, Lei and Wasserman, "Least ambiguous set-valued classifiers with bounded error levels", JASA 2019.

    Parameters
    ----------
    probabilities
        Shape (n, K), values in [0, 1], any float dtype; rows need not sum to one.
    labels
        Shape (n,): integers in [0, K), or class names if `classes` is given.
    classes
        The K class names, in the order of the columns.

    Returns
    -------
    numpy.ndarray
        float64, shape (n,), values in [0, 1].

    Raises
    ------
    InputError, InputTypeError
        If probabilities leave [0, 1], labels are not among the classes, or lengths differ.

    Examples
    --------
    >>> lac_score([[0.75, 0.25], [0.5, 0.5]], [0, 1])
    array([0.25, 0.5 ])
    """
    p = as_probabilities("probabilities", probabilities)
    y = as_labels("labels", labels, p.shape[0], p.shape[1], classes)
    score: NDArray[np.float64] = 1.0 - p[np.arange(len(p)), y].astype(np.float64)
    return score


def lac_mask(probabilities: NDArray[Any], threshold: float) -> NDArray[np.bool_]:
    """Whether 1 - p <= threshold for every entry, exactly as `lac_score` computes it, shape (n, K).

    The comparison is made on the probabilities as they are, with the smallest p that qualifies in their own dtype.
    """
    if not 0 <= threshold < 1:
        return np.full(probabilities.shape, threshold >= 1, dtype=np.bool_)
    if probabilities.dtype.kind != "f":
        probabilities = probabilities.astype(np.float64)
    return probabilities >= smallest_probability(threshold, probabilities.dtype)


def smallest_probability(threshold: float, dtype: np.dtype[np.floating]) -> np.floating:
    """The smallest p in [0, 1] of this float dtype with 1 - p <= threshold in float64, for 0 <= threshold < 1.

    Non-negative floats are ordered like their bit patterns, so it is found by bisection on integers.

    Examples
    --------
    >>> float(smallest_probability(0.75, np.dtype(np.float32)))
    0.25
    """
    bits = np.dtype(f"u{dtype.itemsize}")
    one = np.ones(1, dtype=dtype)
    low, high = -1, int(one.view(bits)[0])  # p at `high` qualifies: 1 - 1 = 0
    while high - low > 1:
        middle = (low + high) // 2
        p = np.array([middle], dtype=bits).view(dtype)[0]
        low, high = (low, middle) if 1.0 - float(p) <= threshold else (middle, high)
    found: np.floating = np.array([high], dtype=bits).view(dtype)[0]
    return found
