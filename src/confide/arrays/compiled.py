"""Numba, where it is installed (`pip install "confide[speed]"`): the loops of `confide.arrays.loops` as machine code.

Results are the same without it, bit for bit. Loading it takes about a second, so a process does that for itself only
where 2**28 entries are to be counted; a program that makes many calls says `import numba` once.
"""

import sys
from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from typing import ParamSpec, TypeVar, cast

import numpy as np

_P = ParamSpec("_P")
_R = TypeVar("_R")

_WORTH_LOADING = 2**28

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
"""The types of numbers that loops are compiled for."""


def worth_compiling(entries: int) -> bool:
    """Whether there is machine code for a call on this many entries.

    Examples
    --------
    >>> worth_compiling(10) == ("numba" in sys.modules)
    True
    """
    return entries >= (0 if "numba" in sys.modules else _WORTH_LOADING) and _loads()


@lru_cache(maxsize=1)
def _loads() -> bool:
    try:
        import_module("numba")
    except ImportError:  # not installed, or not made for this numpy
        return False
    return True


@lru_cache(maxsize=32)
def machine_code(loop: Callable[_P, _R]) -> Callable[_P, _R]:
    """A loop of `confide.arrays.loops`, compiled once per type of arguments and kept on disk.

    It runs without the interpreter's lock, so that threads help.
    """
    njit = import_module("numba").njit
    options = {"nogil": True, "error_model": "numpy"}
    try:
        return cast("Callable[_P, _R]", njit(cache=True, **options)(loop))
    except RuntimeError:  # no folder in which to keep it
        return cast("Callable[_P, _R]", njit(**options)(loop))
