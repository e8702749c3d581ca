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

# The number of entries that are sorted by insertion.
_FEW_ENTRIES = np.uint64(12)

# The first band of entries ends at the guess over this, the second one at a share of it. The least guess over both is a
# normal number of single precision.
_BELOW_GUESS = 2.5
_SECOND_BAND = 64
_LEAST_GUESS = 2.0**-100


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
        row_mass = none
        row_rank = np.int32(0)
        row_equal = np.int32(0)
        for j in range(len(row)):
            entry = row[j]
            units = np.float64(np.float64(entry) + magic).view(np.int64) - zero
            row_mass += units if entry >= class_probability else none
            row_rank += np.int32(1) if entry >= class_probability else np.int32(0)
            row_equal += np.int32(1) if entry == class_probability else np.int32(0)
        mass[i] = row_mass
        rank[i] = row_rank
        equal[i] = row_equal


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
    none = np.uint64(0)
    one = np.uint64(1)
    guess = 1.0 / k
    for i in range(len(p)):
        # Every entry lies in [0, 1].
        row = p[i]
        limit = limits[i]
        in_unit: Any = True
        for j in range(k):
            in_unit &= (row[j] >= 0) & (row[j] <= 1)
        if not in_unit:
            return False

        # The largest excluded entry is searched for in bands [low, high), from the most probable entries on.
        above = count = equal = np.int64(0)
        ends[0] = 2.0
        ends[1] = guess / _BELOW_GUESS
        for band in range(3):
            # The entries of the band.
            high = ends[0]
            low = ends[1]
            left = none
            if band == 0:
                for j in range(k):
                    entry = row[j]
                    entries[left] = entry
                    left += np.uint64(entry >= low)
            else:
                for j in range(k):
                    entry = row[j]
                    entries[left] = abs(entry)  # the code of -0.0 is negative
                    left += np.uint64((entry >= low) & (entry < high))

            # A histogram over their bits narrows them to one cell, until few are left.
            while left > _FEW_ENTRIES:
                least = most = codes[0]
                for j in range(left):
                    code = codes[j]
                    least = code if code < least else least
                    most = code if code > most else most
                reach = np.int64(most) - np.int64(least)
                shift = np.int64(0)
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
                size = left
                left = none
                begin = cells
                while begin > 0:
                    begin -= np.int64(1)
                    mass = above + cell_mass[np.uint64(begin)]
                    rank = count + cell_count[np.uint64(begin)]
                    if rank > count and mass_unit * np.float64(mass) + penalties[rank] > limit:
                        end_codes[0] = least + (begin << shift)
                        end_codes[1] = least + ((begin + 1) << shift)
                        first = ends[0]
                        last = ends[1]
                        if cells == 1:  # all are equal
                            equal = np.int64(size)
                            break
                        for j in range(size):
                            entry = entries[j]
                            entries[left] = entry
                            left += np.uint64((entry >= first) & (entry < last))
                        break
                    above = mass
                    count = rank

            # The few that are left, in descending order: the first excluded group of equal entries.
            for j in range(one, left):
                entry = entries[j]
                place = np.uint64(j)
                while place > none and entries[place - one] < entry:
                    entries[place] = entries[place - one]
                    place -= one
                entries[place] = entry
            place = none
            while place < left:
                entry = entries[place]
                units = np.float64(np.float64(entry) + magic).view(np.int64) - zero
                mass = above
                rank = count
                while place < left and entries[place] == entry:
                    mass += units
                    rank += 1
                    place += one
                if mass_unit * np.float64(mass) + penalties[rank] > limit:
                    ends[0] = entry
                    equal = rank - count
                    break
                above = mass
                count = rank

            # If none is excluded, the next band.
            if equal > 0:
                break
            ends[0] = low
            ends[1] = low / _SECOND_BAND if band == 0 else -1.0

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
