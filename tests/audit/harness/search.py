"""Attacks: search for the most revealing neighbours and event, and a lower bound on the true epsilon from fresh runs.

If an event has probability at least p under one data set and at most q under its neighbour, epsilon >= log(p/q). Both
are bounded by Clopper-Pearson intervals at half the level each, from runs that were not used to choose the event. The
lower bound exceeds the true epsilon with probability at most the level.

Without a law the search tries all pairs briefly, the better half for longer, and so on. Draws under a data set are
stored, so a chain of neighbours costs hardly more than its members. The search only chooses the attack, which runs
everything again.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from confide.mechanisms import Neighbors
from tests.audit.harness.exact import Worst
from tests.audit.harness.subject import Draw, Finding, Scores, Subject, two_ends

SIZES = (20, 100, 500)
"""Numbers of records that are tried after the small data sets, if the subject allows them."""

RAISED = -math.inf
"""Outcome of a run that raised an error; an error can reveal as much as a threshold."""

_FINALISTS, _FEWEST = 12, 6

CHAIN = (*range(131), *(n + step for n in (200, 256, 500, 512, 1000) for step in (-1, 0, 1)))
"""Numbers of records at which one more is tried; pairs are not made across gaps."""

_NEAR = (-4, -2, -1, 0, 1, 2, 4)
_GOLDEN = 0.6180339887498949


class Pair(NamedTuple):
    """Two neighbouring data sets with a description."""

    first: Scores
    second: Scores
    about: str


def two_end_pairs(atoms: tuple[float, ...], n: int, split: list[int], neighbors: Neighbors) -> Iterator[Pair]:
    """Pairs in which one record can matter: it changes sides, or is added, in data at the two ends, split as given.

    Variants have one more record next to an end. A threshold mechanism loses most if one candidate gains the penalty
    that another one loses.
    """
    m, gone = len(atoms), int(neighbors == "replace_one")
    low, high, known = 0, m - 1, set()
    for share in split:
        for next_to, source, target in (
            (None, low, high),
            (None, high, low),
            (None, low, m // 2),
            (low + 1, low, high),
            (high - 1, high, low),
        ):
            data = [0] * m
            data[low], data[high] = n - share, share
            if next_to is not None:
                data[low if data[low] else high] -= 1
                data[next_to] += 1
            changed = list(data)
            changed[source] -= gone
            changed[target] += 1
            pair = tuple(data), tuple(changed)
            if min(changed) >= 0 and changed != data and pair not in known:
                known.add(pair)
                first, second = (np.repeat(np.array(atoms), counts) for counts in pair)
                yield Pair(first, second, f"{n} records at the ends, {share} of them high")


def spread_pairs(n: int, neighbors: Neighbors) -> Iterator[Pair]:
    """Pairs of distinct records, over the range or near an end; one record moves out, in, or onto another."""
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
    """Pairs with one more record, for many numbers of records: scattered over the range, or all at one end."""
    scattered = np.modf(_GOLDEN * np.arange(1, CHAIN[-1] + 2))[0]
    for base, about in ((scattered, "scattered"), (np.full_like(scattered, atoms[0]), "all low"),
                        (np.full_like(scattered, atoms[-1]), "all high")):  # fmt: skip
        for n, more in pairwise(CHAIN):
            if more == n + 1:
                yield Pair(base[:n], base[:more], f"{n} records {about}")


def steepest(law: Callable[[int], NDArray[np.float64]], n: int) -> int:
    """Position in 0..n at which a law, given by draws, changes most; the widest difference is halved repeatedly."""
    known = {k: law(k) for k in (0, n)}
    for _ in range(n.bit_length() + 3):
        wide = [(a, b) for a, b in pairwise(sorted(known)) if b - a > 1]
        if not wide:
            break
        a, b = max(wide, key=lambda step: (_distance(known[step[0]], known[step[1]]), step[1] - step[0]))
        known[(a + b) // 2] = law((a + b) // 2)
    return max(pairwise(sorted(known)), key=lambda step: _distance(known[step[0]], known[step[1]]))[0]


def around(center: int, n: int) -> list[int]:
    """Splits of n records near one split."""
    return sorted({center + step for step in _NEAR if 0 <= center + step <= n} | {0, n})


def _distance(one: NDArray[np.float64], two: NDArray[np.float64]) -> float:
    """Largest difference between two empirical distribution functions."""
    points = np.concatenate([one, two])
    below = [np.searchsorted(np.sort(draws), points, side="right") / len(draws) for draws in (one, two)]
    return float(np.abs(below[0] - below[1]).max())


Draws = NDArray[np.float64]
_CUTS, _VALUES, _SIGMAS = 16, 64, 4.5


@dataclass(frozen=True)
class Event:
    """A set of thresholds: single values, and all t with low < t <= high for some intervals (low, high)."""

    values: frozenset[float] = frozenset()
    intervals: tuple[tuple[float, float], ...] = ()

    def __contains__(self, threshold: float) -> bool:
        return threshold in self.values or any(low < threshold <= high for low, high in self.intervals)


def best_event(p: Draws, q: Draws, runs: int) -> tuple[float, Event]:
    """Event that is more likely under p and has the largest score for an attack with `runs` runs, with its score.

    The score is the log-ratio of the frequencies, less one standard error of these draws, less 4.5 of the attack's.

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
    """Events with their counts under p and q: frequent values, tails, and cells that are more likely under p."""
    values, where = np.unique(np.concatenate([p, q]), return_inverse=True)
    counts = np.array([np.bincount(part, minlength=len(values)) for part in (where[: len(p)], where[len(p) :])])
    if len(values) > _VALUES:  # thresholds between cuts are not distinguished
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


@dataclass(frozen=True)
class Target:
    """Neighbours, and an event that is more likely under the first of them."""

    first: Scores
    second: Scores
    event: Event
    about: str


class DrawCache:
    """Stored draws under each data set; further draws are made on demand."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self._outcomes: dict[bytes, list[float]] = {}

    def of(self, scores: Scores, runs: int) -> NDArray[np.float64]:
        """Return the first `runs` outcomes under a data set, in the order of their draws."""
        outcomes = self._outcomes.setdefault(scores.tobytes(), [])
        while len(outcomes) < runs:
            outcomes.append(outcome(self._draw, scores))
        return np.array(outcomes[:runs])


def outcome(draw: Draw, scores: Scores) -> float:
    """One run: the threshold, or `RAISED`."""
    try:
        return draw(scores.copy())
    except Exception:
        return RAISED


def search(subject: Subject, runs: int) -> Target:
    """Find the pair and event for an attack with `runs` runs per data set, in 3 to 4 x `runs` runs.

    Every data set is run at least six times. If a mechanism fails on ordinary data, its own error is raised.
    """
    subject.draw(two_ends(subject.atoms, subject.records, subject.records // 2))
    seen = DrawCache(subject.draw)
    pairs = list(_pairs(subject, seen, min(100, max(2 * _FEWEST, runs // 500))))
    effort = max(_FEWEST, runs // (2 * len(pairs)))
    while len(pairs) > _FINALISTS:
        promises = [_best(seen, pair, effort, runs)[0] for pair in pairs]
        kept = np.argsort(promises)[::-1][: max(_FINALISTS, len(pairs) // 2)]
        pairs = [pairs[i] for i in kept]
        effort *= 2
    finals = [_best(seen, pair, max(effort, runs // _FINALISTS), runs) for pair in pairs]
    return max(finals, key=lambda final: final[0])[1]


def _best(seen: DrawCache, pair: Pair, effort: int, runs: int) -> tuple[float, Target]:
    first, second = seen.of(pair.first, effort), seen.of(pair.second, effort)
    forth, back = best_event(first, second, runs), best_event(second, first, runs)
    if forth[0] >= back[0]:
        return forth[0], Target(pair.first, pair.second, forth[1], pair.about)
    return back[0], Target(pair.second, pair.first, back[1], pair.about)


def _pairs(subject: Subject, seen: DrawCache, brief: int) -> Iterator[Pair]:
    atoms, n, relation = subject.atoms, subject.records, subject.claims.neighbors
    split = sorted({0, 1, n, *np.linspace(1, n - 1, min(n - 1, 12)).astype(int).tolist()})
    yield from two_end_pairs(atoms, n, split, relation)
    yield from spread_pairs(n, relation)
    if not subject.any_size:
        return

    def outcomes(size: int, high: int) -> NDArray[np.float64]:
        return seen.of(two_ends(atoms, size, high), brief)

    for size in SIZES:
        center = steepest(partial(outcomes, size), size)
        yield from two_end_pairs(atoms, size, around(center, size), relation)
        yield from spread_pairs(size, relation)
    if relation == "add_remove":
        yield from chains(atoms)


def lower_bound(hits: int, misses: int, runs: int, level: float) -> float:
    """Lower bound on log(p/q) from `hits` of `runs` under one data set and `misses` of `runs` under the other.

    Examples
    --------
    >>> round(lower_bound(5000, 1000, 10000, 1e-4), 2)
    1.46
    """
    from scipy.stats import beta

    if hits == 0:
        return -math.inf
    p = float(beta.ppf(level / 2, hits, runs - hits + 1))
    q = float(beta.ppf(1 - level / 2, misses + 1, runs - misses)) if misses < runs else 1.0
    return math.log(p / q)


def check_attack(subject: Subject, worst: Worst, runs: int, level: float) -> Finding:
    """Attack the most revealing pair and event of the enumeration."""
    first, second = subject.scores(worst.first), subject.scores(worst.second)
    return _attack(subject, "attack", Target(first, second, Event(worst.event), "chosen by enumeration"), runs, level)


def check_search(subject: Subject, runs: int, level: float) -> Finding:
    """Search neighbours of many sizes and shapes, and attack the most revealing pair and event."""
    return _attack(subject, "search", search(subject, runs), runs, level)


def _attack(subject: Subject, check: str, target: Target, runs: int, level: float) -> Finding:
    claim = subject.claims.epsilon
    assert claim is not None
    hits = sum(outcome(subject.draw, target.first) in target.event for _ in range(runs))
    misses = sum(outcome(subject.draw, target.second) in target.event for _ in range(runs))
    bound = lower_bound(hits, misses, runs, level)
    detail = f"epsilon is at least this with probability {1 - level:.6g}: 2 x {runs} runs on {target.about}"
    return Finding(subject.name, check, claim, bound, bound <= claim, detail)
