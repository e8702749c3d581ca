"""Rows in blocks that fit in cache, on a few threads: numpy releases the interpreter inside its loops."""

import os
from collections.abc import Callable, Iterator

ELEMENTS = 2**16
"""Entries per block: small enough for the cache and for a few percent of memory, large enough to amortise calls."""

_WORTH_THREADS = 2**20
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


def in_blocks(work: Callable[[slice], None], rows: int, columns: int, elements: int = ELEMENTS) -> None:
    """Call `work` once for every block of rows. Blocks are disjoint, so the result does not depend on the threads."""
    threads = min(_processors(), _MOST_THREADS)
    if rows * columns < _WORTH_THREADS or threads == 1:
        for block in blocks(0, rows, columns, elements):
            work(block)
        return
    from concurrent.futures import ThreadPoolExecutor

    def share(number: int) -> None:
        for block in blocks(rows * number // threads, rows * (number + 1) // threads, columns, elements):
            work(block)

    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(share, number) for number in range(threads)]:
            done.result()


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
