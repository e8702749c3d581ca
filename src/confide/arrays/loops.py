"""Loops for which numpy needs several passes, in the part of Python that Numba compiles (`confide.arrays.compiled`).

Every loop has a twin in numpy, with the same results bit for bit; tests compare the two. Indices are unsigned, because
Numba would wrap negative ones, and numbers are widened by np.float64, because Numba's float() keeps single precision.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

FEW = np.uint64(4)
"""Edges that are compared one after the other; the rest of a cell is halved."""


def count(
    scores: NDArray[Any],
    low: float,
    high: float,
    origin: float,
    scale: float,
    starts: NDArray[np.int32],
    edges: NDArray[np.float64],
    cells: NDArray[np.int32],
    counts: NDArray[np.int64],
) -> tuple[int, int]:
    """Add scores in [low, high] to the counts of bins (edges[j-1], edges[j]]; the last edge is +inf.

    `starts[cell]` is how many edges lie in lower cells, hence below every score of this one, and `starts[cell + 1]` how
    many are not above all of them; see `confide.counting.cells`. As many scores as `cells` has room for are looked at
    together. Where one of them is not valid none of them counts, and counting ends.

    Returns how many scores were counted, and how many of these were far from the first edge of their cell.
    """
    far = 0
    last = np.float64(len(starts) - 2)
    for first in range(0, len(scores), len(cells)):
        some = scores[first : first + len(cells)]
        fine: Any = True
        for i in range(len(some)):
            fine &= (some[i] >= low) & (some[i] <= high)
            place: Any = (np.float64(some[i]) - origin) * scale
            place = place if place > 0.0 else 0.0
            cells[i] = np.int32(place if place < last else last)
        if not fine:
            return first, far
        for i in range(len(some)):
            score = np.float64(some[i])
            cell = np.uint64(cells[i])
            j = begin = np.uint64(starts[cell])
            while score > edges[j]:
                j += np.uint64(1)
                if j > begin + FEW:
                    far += 1
                    end = np.uint64(starts[cell + np.uint64(1)])
                    while j < end:
                        middle = (j + end) // np.uint64(2)
                        if score > edges[middle]:
                            j = middle + np.uint64(1)
                        else:
                            end = middle
            counts[j] += 1
    return len(scores), far


def gather(probabilities: NDArray[Any], labels: NDArray[np.int64], out: NDArray[np.float64]) -> bool:
    """`out` becomes 1 - the probability of each row's label; returns whether all of these lie in [0, 1]."""
    fine: Any = True
    for i in range(len(labels)):
        own = probabilities[i, np.uint64(labels[i])]
        out[i] = 1.0 - np.float64(own)
        fine &= (own >= 0) & (own <= 1)
    return bool(fine)


def at_least(numbers: NDArray[Any], cut: Any, mask: NDArray[np.bool_]) -> bool:
    """`mask` becomes numbers >= cut; returns whether all numbers lie in [0, 1]."""
    fine: Any = True
    for i in range(len(numbers)):
        mask[i] = numbers[i] >= cut
        fine &= (numbers[i] >= 0) & (numbers[i] <= 1)
    return bool(fine)


def residuals(predictions: NDArray[Any], targets: NDArray[Any], out: NDArray[np.float64]) -> bool:
    """`out` becomes |target - prediction| in float64; returns whether all of both are finite."""
    fine: Any = True
    for i in range(len(out)):
        prediction, target = np.float64(predictions[i]), np.float64(targets[i])
        out[i] = abs(target - prediction)
        fine &= (abs(prediction) < np.inf) & (abs(target) < np.inf)
    return bool(fine)


def ends(predictions: NDArray[Any], reach: float, lower: NDArray[np.float64], upper: NDArray[np.float64]) -> bool:
    """`lower` and `upper` become prediction -+ reach in float64; returns whether all predictions are finite."""
    fine: Any = True
    for i in range(len(lower)):
        prediction = np.float64(predictions[i])
        lower[i] = prediction - reach
        upper[i] = prediction + reach
        fine &= abs(prediction) < np.inf
    return bool(fine)
