"""Means of set sizes and interval widths: from their sum, or from the noisy shares of bins."""

import math
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from confide.evaluation.partitions import Partition
from confide.evaluation.parts import Part

Bounds: TypeAlias = tuple[float, float]


class BinnedMean(NamedTuple):
    """Estimate of the mean of a binned number, None without records, and bounds of the mean."""

    value: float | None
    bounds: Bounds


def mean_of(total: float, n: float) -> float | None:
    """Mean of n sizes or widths from their sum, which may be infinite; None without records."""
    if not n:
        return None
    return total / n if math.isfinite(total) else math.inf


def mean_of_shares(partition: Partition, shares: Sequence[Part]) -> BinnedMean:
    """Mean of a binned number, and its bounds: extremes over all shares in their intervals that add up to 1."""
    # Smallest and largest number in each bin.
    assert partition.most is not None
    least = np.array(partition.edges)
    most = np.array([*(edge - 1 for edge in partition.edges[1:]), float(partition.most)])

    # The two optima of a linear program over the intervals of the shares; without any shares that fit, an interval
    # misses, and the bounds are trivial.
    low = np.array([share.low for share in shares])
    high = np.array([share.high for share in shares])
    bounds = float(least[0]), float(most[-1])
    if math.fsum(low) <= 1 <= math.fsum(high):
        # The largest mean is minus the smallest mean of the negated numbers, which increase in the opposite order.
        bounds = _smallest_mean(least, low, high), -_smallest_mean(-most[::-1], low[::-1], high[::-1])

    # The estimate takes the middle of each bin.
    estimates = np.array([share.value or 0.0 for share in shares])
    total = math.fsum(estimates)
    if total <= 0:
        return BinnedMean(None, bounds)
    return BinnedMean(float(np.clip(_weighed(estimates, (least + most) / 2) / total, *bounds)), bounds)


def _smallest_mean(values: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64]) -> float:
    """Smallest mean of increasing values whose shares lie in [low, high] and add up to 1."""
    # Every share has its lower end; what is missing from 1 goes to the smallest values that have room.
    room = np.diff(np.minimum(np.cumsum(high - low), 1 - math.fsum(low)), prepend=0.0)
    return _weighed(values, low + room)


def _weighed(values: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    """Sum of products, correctly rounded, so that files contain the same digits on every machine."""
    return math.fsum(values * weights)
