"""One noisy number of records: targets, utilities and laws written out for enumeration (docs/theory-one-number.md)."""

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from tests.sharp_program import climbed

Law = dict[int, Fraction]
CAP = Fraction(1, 3)
"""The offset tau is at most this share of (1 - q) n~."""


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
    """Slopes with a half-moving target from n_0 on: T = kappa (n+1) + (q - kappa)(n~ + 1) + tau."""

    level: Fraction
    kappa: Fraction
    number_loss: float
    loss: float
    m: int
    tau: float = 0.0
    n_0: int = 1

    @property
    def left(self) -> float:
        """The largest left slope."""
        return self.loss

    @property
    def right(self) -> float:
        """The largest right slope for this left one (Theorem P1b)."""
        return self.loss * float(min(1, 1 / max(self.kappa, 1 - self.kappa) - 1))

    @property
    def y(self) -> float:
        """The ratio of the noisy number's law."""
        return math.exp(-self.number_loss)

    @property
    def w(self) -> Fraction:
        """How fast the target moves with the noisy number."""
        return self.level - self.kappa

    def finite_up_to(self, n: int, extra: int = 0) -> Fraction:
        """Z*(n) of Lemma H2, beyond which T may exceed n; `extra` ranks are t, or points beyond the target."""
        return ((1 - self.level) * (1 - CAP) * n - self.level - extra) / (self.w + CAP * (1 - self.level))

    def utilities(self, h: np.ndarray, n, counted) -> np.ndarray:
        """The utilities of the candidates for histograms h (..., m), n records and a noisy number."""
        target = np.asarray(float(self.kappa) * (n + 1) + float(self.w) * (counted + 1) + self.tau)[..., None]
        at_or_below = np.cumsum(h, axis=-1)
        short = np.maximum(target - at_or_below, 0)
        short[..., -1] = 0
        return -np.maximum(self.right * np.maximum(at_or_below - h - target, 0), self.left * short)

    def law(self, h: np.ndarray, n, counted) -> np.ndarray:
        """The law of the candidate, by the exponential mechanism with equal weights."""
        utility = self.utilities(h, n, counted)
        weight = np.exp(utility - utility.max(axis=-1, keepdims=True))
        return weight / weight.sum(axis=-1, keepdims=True)

    def noise(self) -> tuple[np.ndarray, np.ndarray]:
        """Z and its probabilities, without 1e-16 of the mass."""
        z = np.arange(-math.ceil(40 / self.number_loss), math.ceil(40 / self.number_loss) + 1)
        return z, (1 - self.y) / (1 + self.y) * self.y ** np.abs(z)

    def slack(self, points: np.ndarray, below=None) -> np.ndarray:
        """N coverage - q N over the noisy number, for multisets (k, m) of equal size N.

        `below(points, n, z)` is the number of covered points where n + z < n_0; without it all are covered.
        """
        size = int(points[0].sum())
        z, p = self.noise()
        high = size - 1 + z >= self.n_0
        total = np.full(len(points), p[~high].sum() * size)
        if below is not None:
            total = np.array([below(one, size - 1, z[~high]) @ p[~high] for one in points.tolist()])
        for b in range(self.m):
            some = points[:, b] > 0
            rest = (points[some] - np.eye(self.m, dtype=int)[b])[:, None, :]
            covered = self.law(rest, size - 1, size - 1 + z[high])[..., b:].sum(axis=-1) @ p[high]
            total[some] += points[some, b] * covered
        return total - float(self.level) * size


def reserve(design: Design) -> tuple[int, float]:
    """A number b with a reserve sigma <= 0.05 ranks from `least_n_0` on, and sigma (Lemma H3)."""
    for b in itertools.count():
        sigma = float(design.w) * mean_from(design.y, b + 1) / (1 - 2 * mass_from(design.y, b + 1))
        if sigma <= 0.05:
            return b, sigma
    raise AssertionError


def least_n_0(design: Design, b: int, extra: int = 0) -> int:
    """The n_0 of Lemma H3 for that number."""
    rest = 1 - design.level
    return math.ceil((design.level + extra + b * max(0, design.w - (1 - 2 * CAP) * rest)) / (rest * (1 - CAP)))


def served(level: str, kappa: str, number_loss: float, loss: float, m: int) -> Design:
    """The design of Theorem H with equal weights: tau, and the least n_0 of the lemmas."""
    design = Design(Fraction(level), Fraction(kappa), number_loss, loss, m)
    rest, w = float(1 - design.level), float(design.w)
    b, sigma = reserve(design)
    losses = [climbed(k / 4, loss, m - 1.0, gap=0.02)[1] for k in range(5)]
    tau = max(lost + (k + 1) / 4 for k, lost in enumerate(losses[:4])) - 2 + sigma
    ranks = math.log(max(1, 1 / loss) * (m - 1) / (2 * rest)) / loss - (tau + 1 - losses[4])
    few = losses[4] / rest - 1 + ranks / w
    return replace(design, tau=tau, n_0=max(least_n_0(design, b), math.ceil(tau / (float(CAP) * rest)), math.ceil(few)))
