"""Sets and scores of `confide.scores.ranked` without sorting rows, by machine code if Numba is installed.

Numbers and sets are the same, bit for bit, because probabilities are rounded in the same way.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.arrays import loops, machine_code, worth_compiling
from confide.scores.ranked import RankRule, magic, rounded

ELEMENTS = 2**18
"""Entries per block: calls of machine code would dominate smaller ones."""

_WORTH_SELECTING = 2**16
"""Sorting takes less than a millisecond for fewer entries, and loading the loops some tenths of a second."""

_CELLS = 64
"""Cells of a histogram over the bits of probabilities."""


def worth_selecting(entries: int) -> bool:
    """Whether there is machine code for a call on this many entries."""
    return entries >= _WORTH_SELECTING and worth_compiling(entries)


def true_class_scores(
    p: NDArray[Any], y: NDArray[np.int64], u: NDArray[np.float64], rule: RankRule
) -> NDArray[np.float64]:
    """`ranked.true_class_scores` in one pass over contiguous float32 or float64 rows."""
    # Masses are counted in units of rounded probabilities.
    k = p.shape[1]
    mass, rank, equal = np.empty((3, len(p)), np.int64)
    machine_code(loops.at_or_above)(p, y, magic(k), mass, rank, equal)
    if rule.family != "aps":
        return rule.score(np.zeros(len(p)), rank, _largest(p, rule), u)

    # A random share of the classes that are equally likely.
    class_probability = p[np.arange(len(p)), y]
    total: NDArray[Any] = mass * _unit(k)
    if not np.all(u == 1):
        group = equal * rounded(class_probability, k)
        total = (total - group) + u * group
    return rule.score(total, rank, class_probability, u)


def sets(
    p: NDArray[Any], u: NDArray[np.float64], threshold: NDArray[np.float64], rule: RankRule, mask: NDArray[np.bool_]
) -> bool:
    """`mask` becomes score <= threshold for contiguous float32 or float64 rows; returns whether they lie in [0, 1]."""
    # APS compares masses, with a penalty for each rank; the others compare ranks alone.
    k = p.shape[1]
    ranks = np.arange(k + 1.0)
    if rule.family == "aps":
        worth, limits, shares = _unit(k), threshold, u
        toll = np.maximum(ranks - rule.k_reg, 0.0) * rule.penalty if rule.penalty else np.zeros(k + 1)
    else:
        worth, limits, shares, toll = 0.0, _last_rank(p, u, threshold, rule), np.zeros(len(p)), ranks

    # Room for the loops, which allocate nothing.
    room, ends, codes = np.empty(k, p.dtype), np.empty(2, p.dtype), np.dtype(f"i{p.dtype.itemsize}")
    limits, shares = np.ascontiguousarray(limits), np.ascontiguousarray(shares)
    cells, counts = np.empty((2, _CELLS), np.int64)
    scratch = loops.Scratch(room, room.view(codes), ends, ends.view(codes), cells, counts)
    return bool(machine_code(loops.ranked_sets)(p, limits, shares, magic(k), worth, toll, scratch, mask))


def _last_rank(
    p: NDArray[Any], u: NDArray[np.float64], threshold: NDArray[np.float64], rule: RankRule
) -> NDArray[np.float64]:
    """The last rank, from 0 to K, whose score is not beyond the threshold, for scores that follow ranks alone."""
    largest, mass = _largest(p, rule), np.zeros(len(p))
    low, high = np.zeros(len(p), np.int64), np.full(len(p), p.shape[1] + 1)
    for _ in range(int(p.shape[1]).bit_length()):
        middle = (low + high) // 2
        within = rule.score(mass, middle, largest, u) <= threshold
        low, high = np.where(within, middle, low), np.where(within, high, middle)
    return low.astype(np.float64)


def _largest(p: NDArray[Any], rule: RankRule) -> NDArray[np.float64]:
    return p.max(axis=1).astype(np.float64) if rule.family == "saps" else np.zeros(len(p))


def _unit(classes: int) -> float:
    return magic(classes) * 2.0**-52
