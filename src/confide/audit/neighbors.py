"""Neighbouring data sets on which mechanisms tend to give a record away."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from confide.audit.subject import Scores
from confide.mechanisms import Neighbors

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
