"""(3) An attack: run the mechanism on neighbours and bound the true epsilon from below.

If an event has probability at least p under one data set and at most q under its neighbour, epsilon >= log(p/q). Both
are bounded by Clopper-Pearson intervals at half the level each, from runs that did not choose the event. The lower
bound exceeds the true epsilon with probability at most the level.
"""

import math

from confide.audit.exact_loss import Worst
from confide.audit.finding import Finding
from confide.audit.search import Target, outcome, search
from confide.audit.subject import Event, Subject


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


def check_attack(subject: Subject, worst: Worst, runs: int, level: float) -> Finding:
    """Attack the pair and event that the enumeration found most telling."""
    first, second = subject.scores(worst.first), subject.scores(worst.second)
    return _attack(subject, "attack", Target(first, second, Event(worst.event), "chosen by enumeration"), runs, level)


def check_search(subject: Subject, runs: int, level: float) -> Finding:
    """Search neighbours of many sizes and shapes, and attack the pair and event that look most telling."""
    return _attack(subject, "search", search(subject, runs), runs, level)


def _attack(subject: Subject, check: str, target: Target, runs: int, level: float) -> Finding:
    claim = subject.claims.epsilon
    assert claim is not None
    hits = sum(outcome(subject.draw, target.first) in target.event for _ in range(runs))
    misses = sum(outcome(subject.draw, target.second) in target.event for _ in range(runs))
    bound = lower_bound(hits, misses, runs, level)
    detail = f"epsilon is at least this with probability {1 - level:.6g}: 2 x {runs} runs on {target.about}"
    return Finding(subject.name, check, claim, bound, bound <= claim, detail)
