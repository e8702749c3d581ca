"""Loops of `confide.arrays.loops` as machine code, if Numba is installed (`pip install "confide[speed]"`).

The results without it are the same in every bit. It serves the scores that rank classes, APS, RAPS and SAPS, whose sets
take numpy several times as long. Loading it takes half a second, by which numpy is slower after about 2**28 entries. So
it is loaded once the calls of a process have had as many together.
"""

import sys
from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from typing import ParamSpec, TypeVar, cast

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
    """A loop of `confide.arrays.loops`, compiled once per type of arguments and kept on disk.

    It runs without the interpreter's lock, so that threads run in parallel.
    """
    njit = import_module("numba").njit
    options = {"nogil": True, "error_model": "numpy"}
    try:
        return cast("Callable[_Arguments, _Result]", njit(cache=True, **options)(loop))
    except RuntimeError:  # no folder for the cache
        return cast("Callable[_Arguments, _Result]", njit(**options)(loop))
