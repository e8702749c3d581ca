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
        worst = _pilot(subject, max(200, runs // 20))
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
    best: Worst | None = None
    for first, second in _telling_pairs(subject):
        one = Counter(subject.draw(subject.scores(first)) for _ in range(runs))
        two = Counter(subject.draw(subject.scores(second)) for _ in range(runs))
        for a, b, p, q in ((first, second, one, two), (second, first, two, one)):
            for event in _events(p, q):
                hits, misses = sum(p[t] for t in event), sum(q[t] for t in event)
                loss = lower_bound(hits, misses, runs, 0.1)
                if best is None or loss > best.loss:
                    best = Worst(loss, a, b, event)
    assert best is not None
    return best


def _events(p: Counter[float], q: Counter[float]) -> Iterator[frozenset[float]]:
    """Each frequent outcome, everything likelier under p, and everything much likelier under p."""
    for outcome, _ in p.most_common(5):
        yield frozenset({outcome})
    for factor in (1, 2, 5):
        yield frozenset(t for t in p if p[t] > factor * q[t])


def _telling_pairs(subject: Subject) -> Iterator[tuple[Data, Data]]:
    """Pairs in which one record matters: alone at an end, or next to a full atom, in small data sets of three sizes."""
    m, public = len(subject.atoms), subject.claims.neighbors == "replace_one"
    for n in sorted({subject.records, 3, 2}, reverse=True) if not public else (subject.records,):
        for full in range(m):
            data = [0] * m
            data[full] = n
            for atom in range(m):
                changed = list(data)
                changed[atom] += 1
                if public:
                    changed[full] -= 1
                if changed != data:
                    yield tuple(data), tuple(changed)
        spread = np.diff(np.linspace(0, n, m + 1).astype(int)).tolist()
        for atom in (0, m - 1):
            changed = list(spread)
            changed[atom] += 1
            if public:
                changed[m - 1 - atom] -= 1
            if min(changed) >= 0 and changed != spread:
                yield tuple(spread), tuple(changed)
