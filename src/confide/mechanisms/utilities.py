"""Utilities of candidates as integers of 64 bits."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

# The adjusted levels of both published methods are multiples of 1/GRID.
GRID = 2**24

# Utilities and noisy counts up to this fit into 64 bits, and so does the difference of two of them.
INT64_ROOM = 2**62


def saturated(utilities: NDArray[Any]) -> NDArray[np.int64]:
    """Utilities as int64; Python's integers, which might exceed 64 bits, relative to the largest, saturated at -2^62.

    This has no privacy cost. Relative to their largest utilities, neighbours differ by amounts in an interval around 0
    as long as the range distance, and saturation moves every difference towards 0.
    """
    if utilities.dtype == object:
        utilities = np.maximum(utilities - utilities.max(), -INT64_ROOM)
    return utilities.astype(np.int64, copy=False)
