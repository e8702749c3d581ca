"""Scores that compare the probabilities in a row: APS, RAPS, SAPS, top-k and margin, from blocks of rows.

Calibration evaluates `RankRule.score` at the true class, and prediction searches the first rank beyond the threshold.
Both evaluate the same expression on the same numbers, so the sets are exact, bit for bit.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from confide.arrays import loops, machine_code, worth_compiling
from confide.support import require


@dataclass(frozen=True)
class RankRule:
    """The function f(rank, mass) of a score: its family and parameters; RAPS is APS with a penalty.

    The rank of a class is the number of classes that are at least as likely, and mass is the sum of their
    probabilities. Ties are never broken: classes of equal probability have one rank, the last of them, and one score. f
    increases with the rank, so a set {y : score <= threshold} is {y : p_y > e} for one probability e per row, the
    largest one that is excluded.
    """

    family: Literal["aps", "saps", "top_k"]
    penalty: float = 0.0
    k_reg: float = 0.0

    @property
    def adds_up(self) -> bool:
        """Whether the score adds probabilities up, with a random share of the last; the others follow ranks."""
        return self.family == "aps"

    def score(self, mass: Any, rank: Any, largest: Any, u: Any, xp: Any = np) -> NDArray[np.float64]:
        """f, for arrays of `xp` that broadcast. For APS, `mass` contains the random share; u is used by SAPS alone."""
        scores: NDArray[np.float64] = mass
        if self.family == "top_k":
            scores = rank + xp.zeros_like(mass)
        elif self.family == "saps":
            beyond = ((rank - 2.0) + u) * self.penalty
            scores = xp.where(rank == 1, u * largest, largest + beyond)
        elif self.penalty:
            scores = mass + xp.clip(rank - self.k_reg, 0.0, None) * self.penalty
        return scores


def magic(classes: int) -> float:
    """(p + magic) - magic rounds p in [0, 1] so that sums of up to `classes` of them are exact in float64.

    Examples
    --------
    >>> magic(1000), (0.1 + magic(1000)) - magic(1000)
    (1024.0, 0.09999999999990905)
    """
    return float(2 ** int(classes).bit_length())


def rounded(p: NDArray[Any], classes: int) -> NDArray[np.float64]:
    """Probabilities as float64 multiples of 2^(b-52), K < 2^b, so that no sum depends on its order.

    Every partial sum is an exact float64; the error is below 1e-12 for a thousand classes.
    """
    q = p.astype(np.float64)
    q += magic(classes)
    q -= magic(classes)
    return q


def true_class_scores(
    p: NDArray[Any], y: NDArray[np.int64], u: NDArray[np.float64], rule: RankRule, *, compiled: bool = False
) -> NDArray[np.float64]:
    """The score of class y[i] in row i: p of shape (n, K) in [0, 1], y of shape (n,), u of shape (n,), or ones.

    With `compiled`, machine code counts the classes, in one pass over contiguous float32 or float64 rows.
    """
    # The classes that are at least as likely, which are few: their number, or in one pass their positions
    n, k = p.shape
    class_probability = p[np.arange(n), y]
    if compiled:
        mass_units, rank, equal = np.empty((3, n), np.int64)
        machine_code(loops.at_or_above)(p, y, magic(k), mass_units, rank, equal)
    else:
        places = np.flatnonzero(p >= class_probability[:, None])
        row_starts = np.searchsorted(places, np.arange(n + 1) * k)
        rank = np.diff(row_starts)
    if not rule.adds_up:
        return rule.score(np.zeros(n), rank, _largest(p, rule), u)

    # The sum of their probabilities, with a random share of those that are equal
    if compiled:
        mass: NDArray[Any] = mass_units * _unit(k)
    else:
        likely = p.ravel()[places]
        mass = np.add.reduceat(rounded(likely, k), row_starts[:-1])
        equal = np.add.reduceat(likely == np.repeat(class_probability, rank), row_starts[:-1], dtype=np.int64)
    group = equal * rounded(class_probability, k)
    return rule.score((mass - group) + u * group, rank, class_probability, u)


def all_class_scores(p: NDArray[Any], u: NDArray[np.float64], rule: RankRule) -> NDArray[np.float64]:
    """The scores of every class in every row, shape (n, K): equal, bit for bit, to `true_class_scores` of each."""
    # Sort; a new group of equal probabilities begins where they differ.
    n, k = p.shape
    order = np.argsort(p, axis=1)[:, ::-1]
    top = np.take_along_axis(p, order, axis=1)
    new = np.ones((n, k + 1), dtype=np.bool_)
    new[:, 1:-1] = top[:, 1:] != top[:, :-1]

    # The first and the last place of each class's group.
    places = np.arange(k)
    first = np.maximum.accumulate(np.where(new[:, :-1], places, 0), axis=1)
    last = np.minimum.accumulate(np.where(new[:, 1:], places, k)[:, ::-1], axis=1)[:, ::-1]

    # The mass down to the end of the group, with a random share of the group.
    q = rounded(top, k)
    mass = np.take_along_axis(np.cumsum(q, axis=1), last, axis=1)
    if rule.adds_up:
        group = (last - first + 1) * q
        mass = (mass - group) + u[:, None] * group

    # Back to the order of the columns.
    ranked = rule.score(mass, last + 1, top[:, :1].astype(np.float64), u[:, None])
    out = np.empty((n, k))
    np.put_along_axis(out, order, ranked, axis=1)
    return out


# The number of ranks that are evaluated first, and the factor by which it increases for rows that need more.
_FIRST_RANKS = 64
_MORE_RANKS = 6


def largest_excluded(
    p: NDArray[Any], u: NDArray[np.float64], threshold: NDArray[np.float64], rule: RankRule
) -> NDArray[Any]:
    """The largest excluded probability per row, or -1 if there is none: the set of row i is {p > result[i]}."""
    out = np.full(len(p), -1, dtype=p.dtype)
    if np.all(threshold == np.inf):
        return out

    # Few ranks are enough for most rows; those that need more are evaluated again.
    rows = np.arange(len(p))
    reach = 0
    while rows.size and reach < p.shape[1]:
        reach = min(max(_FIRST_RANKS, _MORE_RANKS * reach), p.shape[1])
        block = p if len(rows) == len(p) else p[rows]
        crossed, value = _first_beyond(block, u[rows], threshold[rows], rule, reach)
        out[rows[crossed]] = value[crossed]
        rows = rows[~crossed]
    return out


def _first_beyond(
    p: NDArray[Any], u: NDArray[np.float64], threshold: NDArray[np.float64], rule: RankRule, reach: int
) -> tuple[NDArray[np.bool_], NDArray[Any]]:
    """Whether the `reach` likeliest classes go beyond the threshold, and the first probability that does."""
    # The likeliest classes, in order.
    n, k = p.shape
    top = np.partition(p, k - reach, axis=1)[:, k - reach :] if reach < k else p.copy()
    top.sort(axis=1)
    top = top[:, ::-1]

    # Their scores, as if no probabilities were equal.
    mass = np.cumsum(rounded(top, k), axis=1) if rule.adds_up else np.zeros(top.shape)
    beyond = rule.score(mass, np.arange(1, reach + 1), top[:, :1].astype(np.float64), u[:, None]) > threshold[:, None]
    crossed = beyond[:, -1]
    first = beyond.argmax(axis=1)
    value = top[np.arange(n), first]

    # The whole group of the first one beyond may fit by its random share: then the next smaller number is excluded.
    if rule.adds_up and not np.all(u == 1):
        above = np.count_nonzero(top > value[:, None], axis=1)
        equal = np.count_nonzero(p == value[:, None], axis=1)
        mass_above = np.where(above > 0, mass[np.arange(n), above - 1], 0.0)
        group = equal * rounded(value, k)
        fits = rule.score(mass_above + u * group, above + equal, value, u) <= threshold
        value = np.where(fits, np.nextafter(value, p.dtype.type(-1)), value)
    return crossed, value


def margins(p: NDArray[Any]) -> NDArray[np.float64]:
    """The margin scores of all classes, shape (n, K), in float64: the likeliest other class minus the class itself."""
    require("probabilities", p.shape[1] >= 2, "must have at least two classes for the margin score", got="1")
    top = np.partition(p, p.shape[1] - 2, axis=1)[:, -2:].astype(np.float64)
    second = top[:, :1]
    first = top[:, 1:]
    margin: NDArray[np.float64] = np.where(p == first, second, first) - p
    return margin


# APS, RAPS and SAPS without sorting rows, by machine code if Numba is installed. Scores and sets are the same, bit for
# bit, because probabilities are rounded in the same way.

# Entries per block: calls of machine code would dominate smaller ones.
COMPILED_ELEMENTS = 2**18

# Sorting takes less than a millisecond for fewer entries, and loading the loops some tenths of a second.
_WORTH_SELECTING = 2**16

# Cells of a histogram over the bits of probabilities.
_CELLS = 64


def worth_selecting(entries: int) -> bool:
    """Whether there is machine code for a call on this many entries."""
    return entries >= _WORTH_SELECTING and worth_compiling(entries)


def compiled_sets(
    p: NDArray[Any], u: NDArray[np.float64], threshold: NDArray[np.float64], rule: RankRule, mask: NDArray[np.bool_]
) -> bool:
    """`mask` becomes score <= threshold for contiguous float32 or float64 rows; returns whether they lie in [0, 1]."""
    # APS compares masses, with a penalty for each rank; the others compare ranks alone.
    k = p.shape[1]
    ranks = np.arange(k + 1.0)
    if rule.adds_up:
        mass_unit = _unit(k)
        limits = threshold
        shares = u
        penalties = np.maximum(ranks - rule.k_reg, 0.0) * rule.penalty if rule.penalty else np.zeros(k + 1)
    else:
        mass_unit = 0.0
        limits = _last_rank(p, u, threshold, rule)
        shares = np.zeros(len(p))
        penalties = ranks

    limits = np.ascontiguousarray(limits)
    shares = np.ascontiguousarray(shares)
    scratch = _scratch(k, p.dtype)
    return bool(machine_code(loops.ranked_sets)(p, limits, shares, magic(k), mass_unit, penalties, scratch, mask))


def _scratch(k: int, dtype: np.dtype[Any]) -> loops.Scratch:
    """Room for the loops, which allocate nothing, for rows of k entries."""
    entries = np.empty(k, dtype)
    ends = np.empty(2, dtype)
    bits = np.dtype(f"i{dtype.itemsize}")
    cells = np.empty((2, _CELLS), np.int64)
    return loops.Scratch(entries, entries.view(bits), ends, ends.view(bits), cells)


def _last_rank(
    p: NDArray[Any], u: NDArray[np.float64], threshold: NDArray[np.float64], rule: RankRule
) -> NDArray[np.float64]:
    """The last rank, from 0 to K, whose score is not beyond the threshold, for scores that follow ranks alone."""
    largest = _largest(p, rule)
    mass = np.zeros(len(p))
    low = np.zeros(len(p), np.int64)
    high = np.full(len(p), p.shape[1] + 1)
    for _ in range(int(p.shape[1]).bit_length()):
        middle = (low + high) // 2
        within = rule.score(mass, middle, largest, u) <= threshold
        low = np.where(within, middle, low)
        high = np.where(within, high, middle)
    return low.astype(np.float64)


def _largest(p: NDArray[Any], rule: RankRule) -> NDArray[np.float64]:
    return p.max(axis=1).astype(np.float64) if rule.family == "saps" else np.zeros(len(p))


def _unit(classes: int) -> float:
    return magic(classes) * 2.0**-52
