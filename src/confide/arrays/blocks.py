"""Fast loops over rows: in blocks on a few threads, and as machine code."""

import os
import sys
from collections import deque
from collections.abc import Callable, Iterator
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, ParamSpec, TypeVar, cast

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor


# Rows in blocks that fit in cache, on a few threads. Numpy releases the interpreter inside its loops.

ELEMENTS = 2**16
"""Entries per block: small enough for the cache and for a few percent of memory, large enough to amortise calls."""

_WORTH_THREADS = 2**18
_MOST_THREADS = 8


def blocks(start: int, stop: int, columns: int, elements: int = ELEMENTS) -> Iterator[slice]:
    """Consecutive row slices of about `elements` entries each.

    Examples
    --------
    >>> list(blocks(0, 5, columns=10, elements=20))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    rows = max(1, elements // max(columns, 1))
    for first in range(start, stop, rows):
        yield slice(first, min(first + rows, stop))


def in_blocks(work: Callable[[slice], object], rows: int, columns: int = 1, elements: int = ELEMENTS) -> None:
    """Call `work` once for every block of rows. Blocks are disjoint, so the result does not depend on the threads.

    Threads take one block after the other, so that a busy processor delays the result by at most one block. An error in
    one of them stops the work and is raised here.
    """
    waiting = deque(blocks(0, rows, columns, elements))
    helpers = min(_processors(), _MOST_THREADS, len(waiting)) - 1 if rows * columns >= _WORTH_THREADS else 0

    def share() -> None:
        try:
            while (block := _next(waiting)) is not None:
                work(block)
        except BaseException:
            waiting.clear()
            raise

    others = [_threads().submit(share) for _ in range(helpers)]
    try:
        share()
    finally:
        begun = [other for other in others if not other.cancel()]  # threads that still wait are not needed
        for other in begun:
            other.exception()
    for other in begun:
        other.result()


@lru_cache(maxsize=1)
def _threads() -> "ThreadPoolExecutor":
    """The pool is kept, because starting a thread takes as long as counting a hundred thousand numbers."""
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(_MOST_THREADS - 1, "confide")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_threads.cache_clear)  # only the thread that forks lives on in the child


def _next(waiting: deque[slice]) -> slice | None:
    try:
        return waiting.popleft()
    except IndexError:  # all are taken
        return None


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


# Numba, if it is installed (`pip install "confide[speed]"`): the loops of `confide.arrays.loops` as machine code.
#
# The results without it are the same in every bit. It serves the scores that rank classes, APS, RAPS and SAPS, whose
# sets take numpy several times as long. Loading it takes half a second, by which numpy is slower after about 2**28
# entries. So it is loaded once the calls of a process have had as many together.

_P = ParamSpec("_P")
_R = TypeVar("_R")

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
def machine_code(loop: Callable[_P, _R]) -> Callable[_P, _R]:
    """A loop of `confide.arrays.loops`, compiled once per type of arguments and kept on disk.

    It runs without the interpreter's lock, so that threads run in parallel.
    """
    njit = import_module("numba").njit
    options = {"nogil": True, "error_model": "numpy"}
    try:
        return cast("Callable[_P, _R]", njit(cache=True, **options)(loop))
    except RuntimeError:  # no folder for the cache
        return cast("Callable[_P, _R]", njit(**options)(loop))
