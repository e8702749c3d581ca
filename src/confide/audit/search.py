"""Where a black box gives itself away: neighbouring data sets, and an event that tells them apart.

All pairs are tried briefly, the better half for longer, and so on. What was drawn under a data set is kept, so that a
chain of neighbours costs hardly more than its members. The search only guides the attack, which runs everything afresh.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from confide.audit.events import Event, best_event
from confide.audit.neighbors import Pair, around, chains, spread_pairs, steepest, two_end_pairs, two_ends
from confide.audit.subject import Draw, Scores, Subject

SIZES = (20, 100, 500)
"""Numbers of records that are tried besides the small data sets, where the subject allows it."""

RAISED = -math.inf
"""The outcome of a run that ended in an error: an error tells as much as a threshold."""

_FINALISTS, _FEWEST = 12, 6


@dataclass(frozen=True)
class Target:
    """Neighbours, and an event that is likelier under the first of them."""

    first: Scores
    second: Scores
    event: Event
    about: str


class Seen:
    """What was drawn under each data set, and more on demand."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self._outcomes: dict[bytes, list[float]] = {}

    def of(self, scores: Scores, runs: int) -> NDArray[np.float64]:
        """The first `runs` outcomes under a data set, in the order in which they were drawn."""
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
    """The pair and event for an attack with `runs` runs per data set, found in 3 to 4 x `runs` runs.

    However few they are, every data set is run six times. A mechanism that fails on ordinary data raises its own error.
    """
    subject.draw(two_ends(subject.atoms, subject.records, subject.records // 2))
    seen = Seen(subject.draw)
    pairs = list(_pairs(subject, seen, min(100, max(2 * _FEWEST, runs // 500))))
    effort = max(_FEWEST, runs // (2 * len(pairs)))
    while len(pairs) > _FINALISTS:
        promises = [_best(seen, pair, effort, runs)[0] for pair in pairs]
        kept = np.argsort(promises)[::-1][: max(_FINALISTS, len(pairs) // 2)]
        pairs = [pairs[i] for i in kept]
        effort *= 2
    finals = [_best(seen, pair, max(effort, runs // _FINALISTS), runs) for pair in pairs]
    return max(finals, key=lambda final: final[0])[1]


def _best(seen: Seen, pair: Pair, effort: int, runs: int) -> tuple[float, Target]:
    one, two = seen.of(pair.first, effort), seen.of(pair.second, effort)
    forth, back = best_event(one, two, runs), best_event(two, one, runs)
    if forth[0] >= back[0]:
        return forth[0], Target(pair.first, pair.second, forth[1], pair.about)
    return back[0], Target(pair.second, pair.first, back[1], pair.about)


def _pairs(subject: Subject, seen: Seen, brief: int) -> Iterator[Pair]:
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
