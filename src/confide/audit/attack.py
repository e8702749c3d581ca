"""(3) An attack: run the mechanism on neighbours and bound the true epsilon from below.

If an event has probability at least p under one data set and at most q under its neighbour, epsilon >= log(p/q). Both
are bounded by Clopper-Pearson intervals at half the level each, from runs that did not choose the event. The lower
bound exceeds the true epsilon with probability at most the level.
"""

import math
from collections import Counter
from collections.abc import Iterator

import numpy as np

from confide.audit.exact_loss import Worst
from confide.audit.finding import Finding
from confide.audit.subject import Data, Subject

_FINALISTS = 6


def lower_bound(hits: int, misses: int, runs: int, level: float) -> float:
    """A lower bound on log(p/q) from `hits` of `runs` under one data set and `misses` of `runs` under the other.

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


def check_attack(subject: Subject, worst: Worst | None, runs: int, level: float) -> Finding:
    """Attack the pair and event that the enumeration chose, or, without one, those that a pilot found best."""
    claim = subject.claims.epsilon
    assert claim is not None
    if worst is None:
        worst = _pilot(subject, runs)
        how = "pair and event chosen by a pilot"
    else:
        how = "pair and event chosen by the enumeration"
    first, second = subject.scores(worst.first), subject.scores(worst.second)
    hits = sum(subject.draw(first) in worst.event for _ in range(runs))
    misses = sum(subject.draw(second) in worst.event for _ in range(runs))
    bound = lower_bound(hits, misses, runs, level)
    detail = f"epsilon is at least this with probability {1 - level:.6g}: 2 x {runs} runs, {how}"
    return Finding(subject.name, "attack", claim, bound, bound <= claim, detail)


def _pilot(subject: Subject, runs: int) -> Worst:
    """All telling pairs briefly, the better half three times over for longer each time, and the best event of those."""
    pairs, effort = _telling_pairs(subject), max(100, runs // 100)
    while len(pairs) > _FINALISTS:
        tried = [(_best_event(subject, pair, effort, level=0.2).loss, pair) for pair in pairs]
        pairs = [pair for _, pair in sorted(tried, key=lambda one: -one[0])[: max(_FINALISTS, len(pairs) // 2)]]
        effort *= 2
    finals = [_best_event(subject, pair, max(200, runs // 6), level=0.005) for pair in pairs]
    return max(finals, key=lambda worst: worst.loss)


def _best_event(subject: Subject, pair: tuple[Data, Data], runs: int, level: float) -> Worst:
    """The event with the best lower bound on these runs; a guide for the attack, not a result.

    A small level keeps rare events from winning by luck; a large one gives telling pairs their chance in few runs.
    """
    one, two = (Counter(subject.draw(subject.scores(data)) for _ in range(runs)) for data in pair)
    best = Worst(-math.inf, *pair, frozenset())
    for a, b, p, q in ((*pair, one, two), (*pair[::-1], two, one)):
        for event in _events(p, q):
            loss = lower_bound(sum(p[t] for t in event), sum(q[t] for t in event), runs, level)
            if loss > best.loss:
                best = Worst(loss, a, b, event)
    return best


def _events(p: Counter[float], q: Counter[float]) -> Iterator[frozenset[float]]:
    """Each frequent outcome, everything likelier under p, and everything much likelier under p."""
    for outcome, _ in p.most_common(5):
        yield frozenset({outcome})
    for factor in (1, 2, 5):
        yield frozenset(t for t in p if p[t] > factor * q[t])


def _telling_pairs(subject: Subject) -> list[tuple[Data, Data]]:
    """Pairs in which one record can matter: it changes sides, or appears, in data at the two ends, split anywhere.

    Also with one more record beside an end: a threshold mechanism loses most where one candidate gains the penalty
    that another sheds.
    """
    m, n = len(subject.atoms), subject.records
    gone = int(subject.claims.neighbors == "replace_one")
    low, high, pairs = 0, m - 1, []
    for share in sorted({0, 1, n, *np.linspace(1, n - 1, min(n - 1, 12)).astype(int).tolist()}):
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
            if min(changed) >= 0 and changed != data:
                pairs.append((tuple(data), tuple(changed)))
    return list(dict.fromkeys(pairs))
