"""Loops that would take numpy several passes, as machine code if Numba is installed (`pip install "confide[speed]"`).

They serve the scores that rank classes, APS, RAPS and SAPS, whose sets take numpy several times as long. Every loop has
an equivalent in numpy, with the same results in every bit; tests compare the two.
"""

import sys
from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from typing import Any, NamedTuple, ParamSpec, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

# In loops that Numba compiles, indices are unsigned, because it would wrap negative ones. Numbers are converted by
# np.float64, because its float() keeps single precision.

_FEW_ENTRIES = np.uint64(12)
"""The number of entries that are sorted by insertion."""

_LEAST_GUESS = 2.0**-100
"""A 160th of it is a normal number of single precision."""


def at_or_above(
    p: NDArray[Any],
    y: NDArray[np.int64],
    magic: float,
    mass: NDArray[np.int64],
    rank: NDArray[np.int64],
    equal: NDArray[np.int64],
) -> None:
    """For row i: the sum and the number of the entries that are at least p[i, y[i]], and how many of them equal it.

    Sums count units of the last place of `magic`, to whose multiples entries are rounded. They are whole numbers, which
    machine code may add in any order. Entries lie in [0, 1], and a row's sum is below `magic`.
    """
    none = np.int64(0)
    zero = np.float64(magic).view(np.int64)
    for i in range(len(p)):
        row = p[i]
        class_probability = row[np.uint64(y[i])]
        m, r, e = none, np.int32(0), np.int32(0)
        for j in range(len(row)):
            v = row[j]
            units = np.float64(np.float64(v) + magic).view(np.int64) - zero
            m += units if v >= class_probability else none
            r += np.int32(1) if v >= class_probability else np.int32(0)
            e += np.int32(1) if v == class_probability else np.int32(0)
        mass[i], rank[i], equal[i] = m, r, e


class Scratch(NamedTuple):
    """Work arrays of `ranked_sets`: for entries and for two ends, with their bits; for cells of a histogram."""

    entries: NDArray[Any]
    codes: NDArray[Any]
    ends: NDArray[Any]
    end_codes: NDArray[Any]
    cell_mass: NDArray[np.int64]
    cell_count: NDArray[np.int64]


def ranked_sets(
    p: NDArray[Any],
    limits: NDArray[np.float64],
    shares: NDArray[np.float64],
    magic: float,
    mass_unit: float,
    penalties: NDArray[np.float64],
    scratch: Scratch,
    mask: NDArray[np.bool_],
) -> bool:
    """Set `mask` to mass_unit * mass + penalties[rank] <= limit; returns whether all entries lie in [0, 1].

    Rank and mass are the number and the sum of the entries of the row that are at least as large, as in `at_or_above`;
    for equal entries, a share of the mass. Only the largest excluded entry is searched for, and rows are not sorted. A
    histogram over the bits of the most probable entries, which have the same order, gives its cell, and the few entries
    of this cell are sorted. The set of the most probable entries is guessed from the previous row.

    `penalties`, of shape (K + 1,), do not decrease.
    """
    entries, codes, ends, end_codes, cell_mass, cell_count = scratch
    k = p.shape[1]
    zero = np.float64(magic).view(np.int64)
    none, one = np.uint64(0), np.uint64(1)
    guess = 1.0 / k
    for i in range(len(p)):
        # Every entry lies in [0, 1].
        row, limit = p[i], limits[i]
        in_unit: Any = True
        for j in range(k):
            in_unit &= (row[j] >= 0) & (row[j] <= 1)
        if not in_unit:
            return False

        # The largest excluded entry is searched for in bands [low, high), from the most probable entries on.
        above = count = equal = np.int64(0)
        ends[0], ends[1] = 2.0, guess / 2.5
        for band in range(3):
            # The entries of the band.
            high, low = ends[0], ends[1]
            left = none
            if band == 0:
                for j in range(k):
                    v = row[j]
                    entries[left] = v
                    left += np.uint64(v >= low)
            else:
                for j in range(k):
                    v = row[j]
                    entries[left] = abs(v)  # the code of -0.0 is negative
                    left += np.uint64((v >= low) & (v < high))

            # A histogram over their bits narrows them to one cell, until few are left.
            while left > _FEW_ENTRIES:
                least = most = codes[0]
                for j in range(left):
                    code = codes[j]
                    least = code if code < least else least
                    most = code if code > most else most
                reach, shift = np.int64(most) - np.int64(least), np.int64(0)
                while reach >> shift >= len(cell_mass):
                    shift += np.int64(1)
                cells = (reach >> shift) + np.int64(1)
                for c in range(cells):
                    cell_mass[c] = 0
                    cell_count[c] = 0
                for j in range(left):
                    cell = np.uint64((np.int64(codes[j]) - least) >> shift)
                    cell_mass[cell] += np.float64(np.float64(entries[j]) + magic).view(np.int64) - zero
                    cell_count[cell] += 1

                # From the largest cell down, the first with an excluded entry; the entries above it are inside.
                size, left = left, none
                begin = cells
                while begin > 0:
                    begin -= np.int64(1)
                    m, r = above + cell_mass[np.uint64(begin)], count + cell_count[np.uint64(begin)]
                    if r > count and mass_unit * np.float64(m) + penalties[r] > limit:
                        end_codes[0] = least + (begin << shift)
                        end_codes[1] = least + ((begin + 1) << shift)
                        first, last = ends[0], ends[1]
                        if cells == 1:  # all are equal
                            equal = np.int64(size)
                            break
                        for j in range(size):
                            v = entries[j]
                            entries[left] = v
                            left += np.uint64((v >= first) & (v < last))
                        break
                    above, count = m, r

            # The few that are left, in descending order: the first excluded group of equal entries.
            for j in range(one, left):
                v = entries[j]
                place = np.uint64(j)
                while place > none and entries[place - one] < v:
                    entries[place] = entries[place - one]
                    place -= one
                entries[place] = v
            place = none
            while place < left:
                v = entries[place]
                units = np.float64(np.float64(v) + magic).view(np.int64) - zero
                m, r = above, count
                while place < left and entries[place] == v:
                    m += units
                    r += 1
                    place += one
                if mass_unit * np.float64(m) + penalties[r] > limit:
                    ends[0], equal = v, r - count
                    break
                above, count = m, r

            # If none is excluded, the next band.
            if equal > 0:
                break
            ends[0], ends[1] = low, low / 64 if band == 0 else -1.0

        # The mask: all entries above the excluded group, and the group itself if its share of the mass is inside.
        cut = ends[0]
        if equal == 0:
            for j in range(k):
                mask[i, j] = True
            continue
        guess = max(np.float64(cut), _LEAST_GUESS)
        group = np.float64(equal) * ((np.float64(cut) + magic) - magic)
        if (mass_unit * np.float64(above) + shares[i] * group) + penalties[count + equal] > limit:
            for j in range(k):
                mask[i, j] = row[j] > cut
        else:
            for j in range(k):
                mask[i, j] = row[j] >= cut
    return True


# The loops as machine code. Loading Numba takes half a second, by which numpy is slower after about 2**28 entries. So
# it is loaded once the calls of a process have had as many together.

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

_WORTH_LOADING = 2**28

# The entries of all calls so far; threads may lose some of them, which only loads Numba later.
_entries_so_far = 0


def worth_compiling(entries: int) -> bool:
    """Whether machine code is available for a call on this many entries, which count towards loading Numba.

    A caller that works in batches passes the entries of each batch, not their running total.

    Examples
    --------
    >>> worth_compiling(10) == ("numba" in sys.modules)
    True
    """
    global _entries_so_far
    _entries_so_far += entries
    return ("numba" in sys.modules or _entries_so_far >= _WORTH_LOADING) and _loads()


@lru_cache(maxsize=1)
def _loads() -> bool:
    try:
        import_module("numba")
    except ImportError:  # not installed, or incompatible with this numpy
        return False
    return True


@lru_cache(maxsize=32)
def machine_code(loop: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """A loop of this module, compiled once per type of arguments and stored on disk.

    It runs without the interpreter's lock, so that threads run in parallel.
    """
    njit = import_module("numba").njit
    options = {"nogil": True, "error_model": "numpy"}
    try:
        return cast("Callable[_Arguments, _Result]", njit(cache=True, **options)(loop))
    except RuntimeError:  # no folder for the cache
        return cast("Callable[_Arguments, _Result]", njit(**options)(loop))
