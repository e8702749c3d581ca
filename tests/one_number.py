"""One noisy number of records: walks, utilities and laws written out for enumeration (docs/theory-one-number.md)."""

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from confide.guarantee import SlopeNoise, moving_offset, moving_rate

Law = dict[int, Fraction]


def law_of(weights: dict[int, int]) -> Law:
    """The law with these weights, whose mean must be 0."""
    assert sum(x * w for x, w in weights.items()) == 0
    return {x: Fraction(w, sum(weights.values())) for x, w in weights.items()}


def residual_life(laws: Iterable[Law]) -> Fraction:
    """The largest E[X - g | X > g] of the laws, over the integers g >= 0."""
    lives = []
    for law in laws:
        for g in range(max(law)):
            beyond = {x: p for x, p in law.items() if x > g}
            lives.append(sum((x - g) * p for x, p in beyond.items()) / sum(beyond.values()))
    return max(lives)


@dataclass(frozen=True)
class Walks:
    """All walks W_1, ..., W_(m-1) of the noise of bins 2 to m, with whole weights that sum to `parts`."""

    walks: np.ndarray
    weights: np.ndarray
    parts: int

    @classmethod
    def of(cls, laws: Sequence[Law]) -> "Walks":
        """Every noise vector of bins 2 to m, one law for each."""
        common = math.lcm(*(p.denominator for law in laws for p in law.values()))
        noise = np.array(list(itertools.product(*laws)), dtype=np.int64)
        weights = [math.prod(int(p * common) for p in ps) for ps in itertools.product(*(law.values() for law in laws))]
        return cls(np.cumsum(noise[:, ::-1], axis=1)[:, ::-1], np.array(weights), common ** len(laws))

    def covered(self, points: Sequence[int], targets: np.ndarray, *, first: bool = False) -> np.ndarray:
        """The mean number of covered points, times `parts`, for each target: by the last rule, or by the first one."""
        total = np.full(len(targets), sum(points) * self.parts)
        for b in range(1, len(points)):
            if points[b]:
                beyond = np.cumsum(points)[:-1] - (np.arange(len(points) - 1) >= b) - self.walks
                reach = beyond[:, :b].max(axis=1) if first else beyond[:, b - 1 :].min(axis=1)
                total -= points[b] * (self.weights @ (reach[:, None] >= targets))
        return total


def mass_from(y, k):
    """P(Z >= k) for k >= 1, with P(Z = z) proportional to y^abs(z)."""
    return y**k / (1 + y)


def mean_from(y, k):
    """E[Z; Z >= k] for k >= 1."""
    return (k + y / (1 - y)) * mass_from(y, k)


def guarded(y, n_g: int) -> bool:
    """The guard in closed form (Lemma W4)."""
    return n_g >= y / (1 - y) and 2 * ((1 + y) / y ** (n_g - 1) - 1) >= n_g - 1 + y / (1 - y)


def guard(y, level, c) -> int:
    """The least n_g of Theorem W3b and Lemma W4."""
    return next(k for k in itertools.count(max(1, math.ceil(c / (1 - level) - 1))) if guarded(y, k))


@dataclass(frozen=True)
class Design:
    """Slopes of equal weights whose target moves half with n (Theorem H1); the package's offsets, less some ranks."""

    level: Fraction
    scale: float
    loss: float
    m: int
    less: Fraction = Fraction(0)

    @property
    def rate(self) -> Fraction:
        """How fast the target moves with n."""
        return moving_rate(self.level)

    @property
    def noise(self) -> SlopeNoise:
        """The largest slopes for this loss (Theorem P1b)."""
        return SlopeNoise(self.loss, self.loss * float(1 / (1 - self.rate) - 1), self.m - 1.0, step=1.0)

    def utilities(self, h: np.ndarray, target) -> np.ndarray:
        """The utilities of the candidates for histograms h (..., m) and targets (...)."""
        target, at_or_below = np.asarray(target)[..., None], np.cumsum(h, axis=-1)
        short = np.maximum(target - at_or_below, 0)
        short[..., -1] = 0
        return -np.maximum(self.noise.right * np.maximum(at_or_below - h - target, 0), self.noise.left * short)

    def law(self, h: np.ndarray, target) -> np.ndarray:
        """The law of the candidate, by the exponential mechanism."""
        weight = np.exp(self.utilities(h, target))
        return weight / weight.sum(axis=-1, keepdims=True)

    def slack(self, points: np.ndarray) -> np.ndarray:
        """N coverage - q N over the noisy number, for multisets (k, m) of equal size N."""
        size = int(points[0].sum())
        targets, p, never = targets_of(self, size - 1)
        total = np.full(len(points), never * size)
        for b in range(self.m):
            some = points[:, b] > 0
            rest = (points[some] - np.eye(self.m, dtype=int)[b])[:, None, :]
            total[some] += points[some, b] * (self.law(rest, targets)[..., b:].sum(axis=-1) @ p)
        return total - float(self.level) * size


@lru_cache(maxsize=64)
def targets_of(design: Design, n: int) -> tuple[np.ndarray, np.ndarray, float]:
    """The targets of n records, their probabilities, and that of +inf, over all noisy numbers but 1e-16."""
    z = np.arange(-math.ceil(37 * design.scale), math.ceil(37 * design.scale) + 1)
    p = np.exp(-np.abs(z) / design.scale) * math.tanh(1 / (2 * design.scale))
    unit = math.lcm(20, design.level.denominator, design.rate.denominator)
    offsets = [moving_offset(design.level, design.scale, n + int(k), design.noise, unit) for k in z]
    finite = np.array([offset is not None for offset in offsets])
    targets = [float(design.rate * (n + 1) + offset - design.less) for offset in offsets if offset is not None]
    return np.array(targets), p[finite], float(p[~finite].sum())
