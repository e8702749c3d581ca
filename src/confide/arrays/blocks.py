"""Work on rows in blocks that fit in cache, on a few threads. Numpy releases the interpreter inside its loops."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

# Entries per block: small enough for the cache and for a few percent of memory, large enough to amortise calls
ELEMENTS = 2**16

# Entries from which on threads save more time than their start takes
_WORTH_THREADS = 2**18

# Of one call, so that several can share a large machine
_MOST_THREADS = 8

Batch = TypeVar("Batch")


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

    def take_blocks() -> None:
        try:
            while (block := _next(waiting)) is not None:
                work(block)
        except BaseException:
            waiting.clear()
            raise

    # Helping threads take blocks as well; those that have not begun when all are taken are cancelled
    tasks = [_threads().submit(take_blocks) for _ in range(helpers)]
    try:
        take_blocks()
    finally:
        begun = [task for task in tasks if not task.cancel()]
        # Wait for all, also after an error here, and then raise the first of theirs
        for task in begun:
            task.exception()
    for task in begun:
        task.result()


def all_valid(work: Callable[[slice], bool], rows: int, columns: int = 1, elements: int = ELEMENTS) -> bool:
    """Call `work` once for every block of rows, and return whether it found all of them valid."""
    valid: list[bool] = []
    in_blocks(lambda block: valid.append(work(block)), rows, columns, elements)
    return all(valid)


def first_and_all(batches: Iterable[Batch]) -> tuple[Batch | None, Iterator[Batch]]:
    """Return the first of batches that are read once (None if there is none), and an iterator over all of them."""
    rest = iter(batches)
    first = next(rest, None)
    return first, rest if first is None else chain([first], rest)


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
