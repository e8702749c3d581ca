"""What is audited: a mechanism that can be run on scores, its claims, and its exact law if that is known.

Neighbouring data sets on which mechanisms tend to give a record away.

Events that tell two laws apart, found from a few draws of each.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from confide.mechanisms import Neighbors

Scores: TypeAlias = NDArray[np.float64]
Draw: TypeAlias = Callable[[Scores], float]
"""Runs the mechanism once: scores of shape (n,) to a threshold, possibly +inf."""

Law: TypeAlias = Callable[[Scores], Mapping[float, float]]
"""The exact law of the threshold: each value it can take, with its probability."""

Data: TypeAlias = tuple[int, ...]
"""A small data set: how many records have each of the subject's atoms as their score."""

COVERAGE_SIZES = (50, 499, 500)
"""Few records, where a rank more or less weighs most, and many, even and odd."""


@dataclass(frozen=True)
class Claims:
    """What a mechanism claims.

    Parameters
    ----------
    epsilon
        Pure differential-privacy loss of one record, or None if none is claimed.
    neighbors
        The relation it is claimed for.
    coverage
        Marginal coverage P(score <= threshold) for exchangeable scores, or None if none is claimed.
    """

    epsilon: float | None
    neighbors: Neighbors
    coverage: float | None


@dataclass(frozen=True)
class Subject:
    """A mechanism under audit.

    Parameters
    ----------
    name
        Shown in the report.
    claims
        What is checked.
    draw
        Runs it once.
    law
        Its exact law, or None if it can only be run.
    atoms
        Score values that small data sets are made of, increasing.
    records
        The number of records in small data sets (under `add_remove`, the largest).
    small_coverage
        Coverage claimed for small data sets of up to `records` records (exactly `records` if their number is public),
        or None.
    noise_scale
        If the threshold is a function of counts over the atoms with Laplace noise of this scale, and of nothing else
        private, that scale: the loss of the noisy counts is then known exactly. Else None.
    large
        A larger instance for coverage by simulation; None to use `draw`.
    coverage_sizes
        The numbers of records for coverage by simulation.
    any_size
        Whether `draw` may be attacked with other numbers of records than `records`.
    """

    name: str
    claims: Claims
    draw: Draw
    law: Law | None
    atoms: tuple[float, ...]
    records: int
    small_coverage: float | None = None
    noise_scale: float | None = None
    large: Draw | None = None
    coverage_sizes: tuple[int, ...] = COVERAGE_SIZES
    any_size: bool = True

    @property
    def searched(self) -> bool:
        """Whether neighbours are to be searched: unless enumeration sees them all."""
        return self.law is None or self.any_size

    def scores(self, data: Data) -> Scores:
        """A small data set as scores."""
        return np.repeat(np.array(self.atoms, dtype=np.float64), data)

    def datasets(self, n: int) -> Iterator[Data]:
        """Every data set of n records."""
        for cuts in itertools.combinations_with_replacement(range(n + 1), len(self.atoms) - 1):
            yield tuple(np.diff([0, *cuts, n]).tolist())

    def pairs(self) -> Iterator[tuple[Data, Data]]:
        """Every pair of neighbouring data sets of up to `records` records, each pair once."""
        if self.claims.neighbors == "add_remove":
            for n in range(1, self.records):
                for data in self.datasets(n):
                    for atom in range(len(data)):
                        yield data, _changed(data, {atom: 1})
        else:
            for data in self.datasets(self.records):
                for a, b in itertools.combinations(range(len(data)), 2):
                    if data[a]:
                        yield data, _changed(data, {a: -1, b: 1})


def _changed(data: Data, changes: Mapping[int, int]) -> Data:
    return tuple(count + changes.get(i, 0) for i, count in enumerate(data))


CHAIN = (*range(131), *(n + step for n in (200, 256, 500, 512, 1000) for step in (-1, 0, 1)))
"""Numbers of records at which one more is tried; with gaps, over which no pair is made."""

_NEAR = (-4, -2, -1, 0, 1, 2, 4)
_GOLDEN = 0.6180339887498949


class Pair(NamedTuple):
    """Two neighbouring data sets, and what they are."""

    first: Scores
    second: Scores
    about: str


def two_ends(atoms: tuple[float, ...], n: int, high: int) -> Scores:
    """Of n records, so many of them at the highest atom and the others at the lowest."""
    return np.repeat(np.array([atoms[0], atoms[-1]]), (n - high, high))


def two_end_pairs(atoms: tuple[float, ...], n: int, split: list[int], neighbors: Neighbors) -> Iterator[Pair]:
    """Pairs in which one record can matter: it changes sides, or appears, in data at the two ends, split as given.

    Also with one more record beside an end: a threshold mechanism loses most where one candidate gains the penalty
    that another sheds.
    """
    m, gone = len(atoms), int(neighbors == "replace_one")
    low, high, known = 0, m - 1, set()
    for share in split:
        for beside, source, target in (
            (None, low, high),
            (None, high, low),
            (None, low, m // 2),
            (low + 1, low, high),
            (high - 1, high, low),
        ):
            data = [0] * m
            data[low], data[high] = n - share, share
            if beside is not None:
                data[low if data[low] else high] -= 1
                data[beside] += 1
            changed = list(data)
            changed[source] -= gone
            changed[target] += 1
            pair = tuple(data), tuple(changed)
            if min(changed) >= 0 and changed != data and pair not in known:
                known.add(pair)
                first, second = (np.repeat(np.array(atoms), counts) for counts in pair)
                yield Pair(first, second, f"{n} records at the ends, {share} of them high")


def spread_pairs(n: int, neighbors: Neighbors) -> Iterator[Pair]:
    """Records that all differ, over the range or crowded at an end; one goes far out, in, or onto another."""
    wide = (np.arange(n) + 0.5) / n
    last, middle = n - 1, n // 2
    for data, about in ((wide, "spread"), (wide / 1000, "crowded near 0"), (1 - wide[::-1] / 1000, "crowded near 1")):
        if neighbors == "add_remove":
            for place in (0.0, 1.0, data[0], data[middle], data[last]):
                yield Pair(data, np.append(data, place), f"{n} records {about}")
            continue
        for record, place in (
            (0, 1.0),
            (0, data[middle]),
            (0, data[min(1, last)]),
            (middle, data[middle - 1]),
            (last, 0.0),
            (last, 1.0),
            (last, data[middle]),
            (last, data[last - 1]),
        ):
            changed = data.copy()
            changed[record] = place
            yield Pair(data, np.sort(changed), f"{n} records {about}")


def chains(atoms: tuple[float, ...]) -> Iterator[Pair]:
    """One more record, for many numbers of records: scattered over the range, or all at one end."""
    scattered = np.modf(_GOLDEN * np.arange(1, CHAIN[-1] + 2))[0]
    for base, about in ((scattered, "scattered"), (np.full_like(scattered, atoms[0]), "all low"),
                        (np.full_like(scattered, atoms[-1]), "all high")):  # fmt: skip
        for n, more in pairwise(CHAIN):
            if more == n + 1:
                yield Pair(base[:n], base[:more], f"{n} records {about}")


def steepest(law: Callable[[int], NDArray[np.float64]], n: int) -> int:
    """Where along 0..n a law, given by draws, changes most: the widest difference is halved, again and again."""
    known = {k: law(k) for k in (0, n)}
    for _ in range(n.bit_length() + 3):
        wide = [(a, b) for a, b in pairwise(sorted(known)) if b - a > 1]
        if not wide:
            break
        a, b = max(wide, key=lambda step: (_distance(known[step[0]], known[step[1]]), step[1] - step[0]))
        known[(a + b) // 2] = law((a + b) // 2)
    return max(pairwise(sorted(known)), key=lambda step: _distance(known[step[0]], known[step[1]]))[0]


def around(center: int, n: int) -> list[int]:
    """Splits of n records near one."""
    return sorted({center + step for step in _NEAR if 0 <= center + step <= n} | {0, n})


def _distance(one: NDArray[np.float64], two: NDArray[np.float64]) -> float:
    """The largest difference between two empirical distribution functions."""
    points = np.concatenate([one, two])
    below = [np.searchsorted(np.sort(draws), points, side="right") / len(draws) for draws in (one, two)]
    return float(np.abs(below[0] - below[1]).max())


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
