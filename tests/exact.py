"""Small cases enumerated exactly: all histograms, all neighbours, and output laws independent of the library's."""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import logsumexp

from confide.mechanisms.slopes import Slopes

Histogram = tuple[int, ...]


@lru_cache
def histograms(n: int, m: int) -> list[Histogram]:
    """Every way to put n scores into m bins."""
    cuts = itertools.combinations_with_replacement(range(n + 1), m - 1)
    return [tuple(int(v) for v in np.diff([0, *cut, n])) for cut in cuts]


def replaced(h: Histogram) -> Iterator[Histogram]:
    """Every histogram that differs in one record's value."""
    for a, b in itertools.permutations(range(len(h)), 2):
        if h[a]:
            g = list(h)
            g[a] -= 1
            g[b] += 1
            yield tuple(g)


def added(h: Histogram) -> Iterator[Histogram]:
    """Every histogram with one record more."""
    for b in range(len(h)):
        yield tuple(v + (i == b) for i, v in enumerate(h))


@dataclass(frozen=True)
class Stepped(Slopes):
    """A slope mechanism whose heights are any integers that never fall, stated one by one."""

    steps: tuple[int, ...] = ()

    def log_prior_weights(self, m: int) -> np.ndarray:
        """The heights as they were stated."""
        assert m == len(self.steps)
        return np.array(self.steps, dtype=np.int64)


def stepped(mechanism: Slopes, log_odds: Iterable[float]) -> Stepped:
    """A mechanism whose candidates are ahead of the first by these log-odds, rounded down to integer heights."""
    return Stepped(**vars(mechanism), steps=tuple(int(ahead * mechanism.scale) for ahead in log_odds))


def law(utilities: np.ndarray, scale: float) -> np.ndarray:
    """The exact law of the exponential mechanism."""
    w = np.exp((utilities - utilities.max()) / scale)
    return w / w.sum()


def mechanism_law(mechanism, h: Sequence[int]) -> np.ndarray:
    """The exact output law of a mechanism that selects by utilities, from the library's own utilities."""
    return law(mechanism.utilities(np.array(h, dtype=np.int64)), mechanism.scale)


def assert_drawn_from(mechanism, counts: Sequence[int], output_law: np.ndarray, runs: int) -> None:
    """The mechanism that users run draws from its exact law: chi-square at level 1e-6, and nothing impossible."""
    h = np.array(counts, dtype=np.int64)
    draws = np.bincount([mechanism.choose(h) for _ in range(runs)], minlength=len(h))
    possible = output_law > 0
    assert draws[~possible].sum() == 0
    assert stats.chisquare(draws[possible], runs * output_law[possible]).pvalue > 1e-6


def worst_log_ratio(
    output_law: Callable[[Histogram], np.ndarray],
    starts: list[Histogram],
    neighbours: Callable[[Histogram], Iterator[Histogram]],
) -> float:
    """The largest |log P(j | h) / P(j | h')| over all histograms, neighbours and outputs."""
    laws: dict[Histogram, np.ndarray] = {}

    def logs(h: Histogram) -> np.ndarray:
        if h not in laws:
            laws[h] = np.log(output_law(h))
        return laws[h]

    return max(float(np.abs(logs(h) - logs(g)).max()) for h in starts for g in neighbours(h))


def renyi(p: np.ndarray, q: np.ndarray, order: float) -> float:
    """The Renyi divergence of two laws on the same candidates."""
    p, q = p[p > 0], q[p > 0]
    return float(logsumexp(order * np.log(p) + (1 - order) * np.log(q))) / (order - 1)


def divergence(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    """The smallest delta at which p is (epsilon, delta)-close to q."""
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


def leave_one_out(output_law: Callable[[Histogram], np.ndarray], h: Histogram) -> float:
    """Exact coverage of N points in bins h: each point in turn is the new one, the others calibrate."""
    covered = 0.0
    for b, count in enumerate(h):
        if count:
            rest = tuple(v - (i == b) for i, v in enumerate(h))
            covered += count * output_law(rest)[b:].sum()
    return covered / sum(h)


def worst_coverage(mechanism, n: int, m: int) -> float:
    """The smallest coverage from n records, over all multisets of n + 1 points in m bins."""
    output_law = lru_cache(maxsize=None)(lambda rest: mechanism_law(mechanism, rest))
    return min(leave_one_out(output_law, h) for h in histograms(n + 1, m))


def zcdp(eta):
    """The zCDP loss of a range within 1e-60, by its other form: x - 1 - ln x with x = eta/(e^eta - 1)."""
    exact = Context(prec=120)
    length = exact.divide(Decimal(Fraction(eta).numerator), Decimal(Fraction(eta).denominator))
    x = exact.divide(length, exact.subtract(exact.exp(length), Decimal(1)))
    return Fraction(exact.subtract(exact.subtract(x, Decimal(1)), exact.ln(x)))


def walk_maximum(noise, steps):
    """The law of max(0, S_1, ..., S_steps) for a symmetric law of the steps: the rank deficit of the first rule.

    `noise` is P(X = -half), ..., P(X = half). By reversal the maximum has the law of (X + M)_+ with M that of one step
    fewer.
    """
    half, law = len(noise) // 2, np.ones(1)
    for _ in range(steps):
        joint = np.convolve(law, noise)
        law = joint[half:].copy()
        law[0] += joint[:half].sum()
        law = law[: max(1, int(np.searchsorted(-np.cumsum(law[::-1])[::-1], -1e-16)))]
    return law


def last_rule_laws(noise: Sequence[float], m: int) -> Callable[[Histogram, int], np.ndarray]:
    """The law of the candidate that the last rule chooses, by histogram and limit, over all vectors of noise.

    `noise` is P(X = -half), ..., P(X = half) in a bin. The noise of the first bin has no effect.
    """
    half = len(noise) // 2
    vectors = np.array(list(itertools.product(range(-half, half + 1), repeat=m - 1)))
    weights = np.array(noise)[vectors + half].prod(axis=1)

    @cache
    def of(h: Histogram, beyond: int) -> np.ndarray:
        further = np.cumsum((np.array(h[1:]) + vectors)[:, ::-1], axis=1)  # beyond candidate m-1, m-2, ..., 1
        failed = np.pad(further > beyond, ((0, 0), (0, 1)), constant_values=True)
        return np.bincount(m - 1 - failed.argmax(axis=1), weights, minlength=m)

    return of


def over_noisy_numbers(value: Callable[[int], Any], n: int, scale: float, reach: int) -> Any:
    """The mean of a coverage or law over n + Z for discrete Laplace noise Z of this scale; 0 beyond `reach`."""
    z = np.arange(-reach, reach + 1)
    p = np.exp(-np.abs(z) / scale) * math.tanh(1 / (2 * scale))
    return sum(chance * value(n + int(noise)) for chance, noise in zip(p, z, strict=True))


def climbed(x, slope, rivals, competitor=1.0, gap=1e-4):
    """The value of the sharp certificate's program (docs/theory.md), by iteration, and an upper bound by duality."""
    w = np.exp(-slope * np.maximum(np.arange(int(30 / slope) + 5) + x - 1, 0))
    points = np.where(np.arange(len(w)) == 0, competitor, 1.0)
    spread = np.full(len(w), rivals / len(w))
    while True:
        ahead = np.cumsum((spread * w)[::-1])[::-1]
        gradient = w * np.cumsum(points / (1 + ahead) ** 2)
        slack = rivals * gradient.max() - gradient @ spread
        if slack <= gap:
            value = 1 - competitor + float(points @ (ahead / (1 + ahead)))
            return value, value + float(slack)
        spread = spread * gradient * (rivals / (gradient @ spread))
