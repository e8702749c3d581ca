"""Loops that would take numpy several passes, as machine code if Numba is installed (`pip install "confide[speed]"`).

They serve the scores that rank classes, APS, RAPS and SAPS, whose sets take numpy several times as long. Every loop has
an equivalent in numpy, with the same results in every bit; tests compare the two.
"""

import sys
from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from typing import Any, NamedTuple, ParamSpec, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

# In loops that Numba compiles, indices are unsigned, because it would wrap negative ones. Numbers are converted by
# np.float64, because its float() keeps single precision.

# The number of entries that are sorted by insertion
_FEW_ENTRIES = np.uint64(12)

# The entries of a row are searched in bands: down to the guess over the first number, and to that end over the second.
# The least guess over both is a normal number of single precision
_BANDS = 3
_BELOW_GUESS = 2.5
_SECOND_BAND = 64
_LEAST_GUESS = 2.0**-100

_NONE = np.uint64(0)
_ONE = np.uint64(1)

_Array: TypeAlias = NDArray[Any]


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
    """Work arrays of `ranked_sets`: entries and two ends, with their bits; the mass and number of entries by cell."""

    entries: NDArray[Any]
    codes: NDArray[Any]
    ends: NDArray[Any]
    end_codes: NDArray[Any]
    cells: NDArray[np.int64]


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
    entries, codes, ends, end_codes, cells = scratch
    guess = 1.0 / p.shape[1]
    for i in range(len(p)):
        row = p[i]
        limit = limits[i]
        if not _in_unit(row):
            return False

        # The largest excluded entry is searched for in bands [low, high), from the most probable entries on
        above = count = equal = np.int64(0)
        ends[0] = 2.0
        ends[1] = guess / _BELOW_GUESS
        for band in range(_BANDS):
            low = ends[1]
            left = _copy_band(row, ends[0], low, band, entries)

            # A histogram narrows them to one cell, until few are left
            while left > _FEW_ENTRIES:
                least, shift, used = _histogram(entries, codes, left, magic, cells)
                cell, above, count = _first_excluded_cell(cells, used, above, count, limit, mass_unit, penalties)
                if cell < 0:
                    left = _NONE
                    break
                end_codes[0] = least + (cell << shift)
                end_codes[1] = least + ((cell + 1) << shift)
                if used == 1:  # all are equal
                    equal = np.int64(left)
                    left = _NONE
                    break
                left = _keep(entries, left, ends[0], ends[1])

            # Few are left: the first excluded group of equal entries, in descending order
            if left > _NONE:
                _sort(entries, left)
                place, above, count, equal = _first_excluded_group(
                    entries, left, above, count, limit, magic, mass_unit, penalties
                )
                if equal > 0:
                    ends[0] = entries[place]

            # If none is excluded, the next band
            if equal > 0:
                break
            ends[0] = low
            ends[1] = low / _SECOND_BAND if band == 0 else -1.0

        # All entries above the excluded one are inside, and its group if its share of the mass is; -1 if there is none
        cut = ends[0]
        if equal > 0:
            guess = max(np.float64(cut), _LEAST_GUESS)
        group = np.float64(equal) * ((np.float64(cut) + magic) - magic)
        beyond = (mass_unit * np.float64(above) + shares[i] * group) + penalties[count + equal] > limit
        _mark(row, cut, beyond, mask[i])
    return True


# Parts of `ranked_sets`, which are compiled into it


def _in_unit(row: NDArray[Any]) -> Any:
    in_unit: Any = True
    for j in range(len(row)):
        in_unit &= (row[j] >= 0) & (row[j] <= 1)
    return in_unit


def _copy_band(row: _Array, high: Any, low: Any, band: int, entries: _Array) -> Any:
    """Copy the entries of a row in [low, high); returns their number. No entry of the first band is too high."""
    left = _NONE
    if band == 0:
        for j in range(len(row)):
            entry = row[j]
            entries[left] = entry
            left += np.uint64(entry >= low)
    else:
        for j in range(len(row)):
            entry = row[j]
            entries[left] = abs(entry)  # the code of -0.0 is negative
            left += np.uint64((entry >= low) & (entry < high))
    return left


def _keep(entries: NDArray[Any], left: Any, low: Any, high: Any) -> Any:
    """Keep the entries in [low, high); returns their number."""
    kept = _NONE
    for j in range(left):
        entry = entries[j]
        entries[kept] = entry
        kept += np.uint64((entry >= low) & (entry < high))
    return kept


def _histogram(entries: _Array, codes: _Array, left: Any, magic: float, cells: NDArray[np.int64]) -> Any:
    """The mass and number of entries by cell; returns the least code, the bits within a cell, and the cells in use."""
    zero = np.float64(magic).view(np.int64)
    least = most = codes[0]
    for j in range(left):
        code = codes[j]
        least = code if code < least else least
        most = code if code > most else most
    reach = np.int64(most) - np.int64(least)
    shift = np.int64(0)
    while reach >> shift >= cells.shape[1]:
        shift += np.int64(1)
    used = (reach >> shift) + np.int64(1)
    cells[:, :used] = 0
    for j in range(left):
        cell = np.uint64((np.int64(codes[j]) - least) >> shift)
        cells[0, cell] += np.float64(np.float64(entries[j]) + magic).view(np.int64) - zero
        cells[1, cell] += 1
    return least, shift, used


def _first_excluded_cell(
    cells: NDArray[np.int64], used: Any, above: Any, count: Any, limit: Any, mass_unit: float, penalties: _Array
) -> Any:
    """The largest cell with an excluded entry, or -1, and the mass and the number of the entries above it."""
    begin = used
    while begin > 0:
        begin -= np.int64(1)
        mass = above + cells[0, np.uint64(begin)]
        rank = count + cells[1, np.uint64(begin)]
        if rank > count and mass_unit * np.float64(mass) + penalties[rank] > limit:
            return begin, above, count
        above = mass
        count = rank
    return np.int64(-1), above, count


def _sort(entries: NDArray[Any], left: Any) -> None:
    """Sort few entries, in descending order."""
    for j in range(_ONE, left):
        entry = entries[j]
        place = np.uint64(j)
        while place > _NONE and entries[place - _ONE] < entry:
            entries[place] = entries[place - _ONE]
            place -= _ONE
        entries[place] = entry


def _first_excluded_group(
    entries: _Array, left: Any, above: Any, count: Any, limit: Any, magic: float, mass_unit: float, penalties: _Array
) -> Any:
    """The first excluded group of equal entries: its place, the mass and number of those above, and its size, or 0."""
    zero = np.float64(magic).view(np.int64)
    place = _NONE
    while place < left:
        begin = place
        entry = entries[place]
        units = np.float64(np.float64(entry) + magic).view(np.int64) - zero
        mass = above
        rank = count
        while place < left and entries[place] == entry:
            mass += units
            rank += 1
            place += _ONE
        if mass_unit * np.float64(mass) + penalties[rank] > limit:
            return begin, above, count, rank - count
        above = mass
        count = rank
    return place, above, count, np.int64(0)


def _mark(row: NDArray[Any], cut: Any, beyond: Any, mask: NDArray[np.bool_]) -> None:
    """Mark the entries above the cut, and those equal to it unless they are beyond the limit."""
    if beyond:
        for j in range(len(row)):
            mask[j] = row[j] > cut
    else:
        for j in range(len(row)):
            mask[j] = row[j] >= cut


_PARTS = (_in_unit, _copy_band, _keep, _histogram, _first_excluded_cell, _sort, _first_excluded_group, _mark)


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
    for part in _PARTS:
        import_module("numba.extending").register_jitable(part)
    options = {"nogil": True, "error_model": "numpy"}
    try:
        return cast("Callable[_Arguments, _Result]", njit(cache=True, **options)(loop))
    except RuntimeError:  # no folder for the cache
        return cast("Callable[_Arguments, _Result]", njit(**options)(loop))
