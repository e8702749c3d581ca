"""Constant time for a release: the sampler's running time depends on the data (docs/limits.md)."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from confide.support import positive_number


@contextmanager
def padded(seconds: float) -> Iterator[None]:
    """Give a block a constant running time: it ends `seconds` after it began, if it is done by then.

    Choose a positive constant, independent of the data, above the time of the slowest block. A block that takes longer
    ends later, which is visible. Sleeping hides the time only, not processor load or caches.

    Examples
    --------
    >>> begin = time.monotonic()
    >>> with padded(0.02):
    ...     release = "threshold"
    >>> time.monotonic() - begin >= 0.02
    True
    """
    end = time.monotonic() + positive_number("seconds", seconds)
    try:
        yield
    finally:
        while (left := end - time.monotonic()) > 0:
            time.sleep(left)
