"""The smallest number that is enough."""

from collections.abc import Callable


def bisect(enough: Callable[[int], bool], low: int, high: int) -> int:
    """The smallest number above `low` that is enough; `high` must be enough, and so must every number above one.

    Examples
    --------
    >>> bisect(lambda n: n * n >= 50, 0, 50)
    8
    """
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
