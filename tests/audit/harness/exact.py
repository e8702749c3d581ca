"""Exact checks of small cases: laws, the privacy loss, and coverage, without any randomness."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from tests.audit.harness.subject import Data, Finding, Law, Subject

ROUNDING = 1e-9
"""Tolerance for log-ratios of laws that were computed in floats."""


@dataclass(frozen=True)
class Worst:
    """Neighbours and an event (thresholds) with the loss log(P(event|first)/P(event|second))."""

    loss: float
    first: Data
    second: Data
    event: frozenset[float]


class Laws:
    """Laws of all small data sets of a subject, each computed once."""

    def __init__(self, subject: Subject, law: Law) -> None:
        self._subject, self._law = subject, law
        self._known: dict[Data, Mapping[float, float]] = {}

    def of(self, data: Data) -> Mapping[float, float]:
        """Law for one data set."""
        if data not in self._known:
            self._known[data] = self._law(self._subject.scores(data))
        return self._known[data]

    def pairs(self) -> Iterator[tuple[Data, Data]]:
        """Every ordered pair of neighbours."""
        for first, second in self._subject.pairs():
            yield first, second
            yield second, first


def worst_pair(laws: Laws) -> Worst:
    """Pair and single output with the largest loss."""
    worst: Worst | None = None
    for first, second in laws.pairs():
        p, q = laws.of(first), laws.of(second)
        for threshold, chance in p.items():
            if chance > 0:
                other = q.get(threshold, 0.0)
                loss = math.log(chance / other) if other > 0 else math.inf
                if worst is None or loss > worst.loss:
                    worst = Worst(loss, first, second, frozenset({threshold}))
    assert worst is not None
    return worst


def most_revealing_pair(laws: Laws, runs: int, sigmas: float = 4.5) -> Worst:
    """Pair and event that an attack with `runs` runs per data set distinguishes best.

    The outputs of each pair are ordered by their likelihood ratio. The result is the event with the largest log-ratio
    less `sigmas` of its standard errors.
    """
    best, highest = None, -math.inf
    for first, second in laws.pairs():
        p, q = laws.of(first), laws.of(second)
        order = sorted(p, key=lambda t: (-p[t] / q[t] if q.get(t, 0.0) > 0 else -math.inf, t))
        hit = miss = 0.0
        for count, threshold in enumerate(order, 1):
            hit, miss = hit + p[threshold], miss + q.get(threshold, 0.0)
            if hit <= 0:
                continue
            miss_rate = max(miss, 1 / runs)
            value = math.log(hit / miss_rate) - sigmas * math.sqrt((1 / hit + 1 / miss_rate) / runs)
            if value > highest:
                loss = math.log(hit / miss) if miss > 0 else math.inf
                best, highest = Worst(loss, first, second, frozenset(order[:count])), value
    assert best is not None
    return best


def check_exact_loss(subject: Subject, worst: Worst) -> Finding:
    """Compare the largest loss with the claim."""
    claim = subject.claims.epsilon
    assert claim is not None
    relation = subject.claims.neighbors.replace("_", " ")
    size = f"up to {subject.records}" if subject.claims.neighbors == "add_remove" else f"{subject.records}"
    detail = f"all neighbours ({relation}) of {size} records with {len(subject.atoms)} scores, all outputs"
    return Finding(subject.name, "exact loss", claim, worst.loss, worst.loss <= claim + ROUNDING, detail)


def check_noise_loss(subject: Subject) -> Finding:
    """Exact loss of Laplace noise on counts, from which the threshold is computed: L1 distance over scale.

    The ratio of the noise densities (discrete or continuous) at distance d reaches exp(d/scale), for each count.
    """
    claim, scale = subject.claims.epsilon, subject.noise_scale
    assert claim is not None
    assert scale is not None
    far = max(sum(abs(a - b) for a, b in zip(one, two, strict=True)) for one, two in subject.pairs())
    relation = subject.claims.neighbors.replace("_", " ")
    detail = f"largest L1 distance of all neighbouring counts ({relation}) over the scale of their noise"
    return Finding(subject.name, "exact loss", claim, far / scale, far / scale <= claim + ROUNDING, detail)


def check_exact_coverage(subject: Subject) -> Finding:
    """Smallest coverage over all multisets of exchangeable points; each point in turn is the new one."""
    claim, law = subject.small_coverage, subject.law
    assert claim is not None
    assert law is not None

    @cache
    def covers(data: Data) -> list[float]:
        thresholds = law(subject.scores(data)).items()
        return [sum(p for t, p in thresholds if t >= atom) for atom in subject.atoms]

    public = subject.claims.neighbors == "replace_one"
    worst = 1.0
    for n in range(subject.records if public else 1, subject.records + 1):
        for points in subject.datasets(n + 1):
            covered = sum(
                count * covers(tuple(c - (i == atom) for i, c in enumerate(points)))[atom]
                for atom, count in enumerate(points)
                if count
            )
            worst = min(worst, covered / (n + 1))
    detail = f"smallest over all sets of up to {subject.records + 1} points with {len(subject.atoms)} values"
    return Finding(subject.name, "exact coverage", claim, worst, worst >= claim - ROUNDING, detail)
