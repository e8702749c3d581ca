"""Events that tell two laws apart, found from a few draws of each."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Draws = NDArray[np.float64]
_CUTS, _VALUES, _SIGMAS = 16, 64, 4.5


@dataclass(frozen=True)
class Event:
    """Thresholds: some by value, and all t with low < t <= high for some (low, high)."""

    values: frozenset[float] = frozenset()
    intervals: tuple[tuple[float, float], ...] = ()

    def __contains__(self, threshold: float) -> bool:
        return threshold in self.values or any(low < threshold <= high for low, high in self.intervals)


def best_event(p: Draws, q: Draws, runs: int) -> tuple[float, Event]:
    """The event likelier under p that promises most for an attack with `runs` runs, and what it promises.

    The promise is the log-ratio of its frequencies, less one standard error of these draws, less 4.5 of the attack's.

    Examples
    --------
    >>> promise, event = best_event(np.array([0.2] * 9 + [0.7]), np.array([0.7] * 9 + [0.2]), 1000)
    >>> 0.2 in event, 0.7 in event, promise > 0
    (True, False, True)
    """
    best = -math.inf, Event()
    for hits, misses, event in _events(p, q):
        a, b = (hits + 0.5) / (len(p) + 1), (misses + 0.5) / (len(q) + 1)
        odds = 1 / a + 1 / b - 2
        promise = math.log(a / b) - math.sqrt(odds / (len(p) + 1)) - _SIGMAS * math.sqrt(odds / runs)
        if promise > best[0]:
            best = promise, event
    return best


def _events(p: Draws, q: Draws) -> Iterator[tuple[float, float, Event]]:
    """Events with their counts under p and q: frequent values, tails, and cells that are likelier under p."""
    values, where = np.unique(np.concatenate([p, q]), return_inverse=True)
    counts = np.array([np.bincount(part, minlength=len(values)) for part in (where[: len(p)], where[len(p) :])])
    if len(values) > _VALUES:  # between cuts, thresholds are not told apart
        ends = np.unique(np.quantile(where, np.linspace(0, 1, _CUTS + 1)[1:], method="nearest"))
        cells = np.diff(np.cumsum(counts, axis=1)[:, ends], axis=1, prepend=0)
        highs = values[ends]
        lows = np.concatenate([[-math.inf], highs[:-1]])
        for i in np.argsort(-counts[0])[:5]:
            yield counts[0, i], counts[1, i], Event(frozenset({float(values[i])}))
        whole = [Event(intervals=((float(low), float(high)),)) for low, high in zip(lows, highs, strict=True)]
    else:
        cells = counts
        whole = [Event(frozenset({float(value)})) for value in values]
    for i in np.argsort(-cells[0])[:5]:
        yield cells[0, i], cells[1, i], whole[i]
    below = np.cumsum(cells, axis=1)
    for i in range(0, len(whole) - 1, max(1, len(whole) // _CUTS)):
        yield *below[:, i], _union(whole[: i + 1])
        yield *(below[:, -1] - below[:, i]), _union(whole[i + 1 :])
    for factor in (1, 2, 5):
        likelier = np.flatnonzero(cells[0] * len(q) > factor * cells[1] * len(p))
        yield *cells[:, likelier].sum(axis=1), _union([whole[i] for i in likelier])


def _union(events: list[Event]) -> Event:
    values = frozenset().union(*(event.values for event in events))
    return Event(values, tuple(interval for event in events for interval in event.intervals))
