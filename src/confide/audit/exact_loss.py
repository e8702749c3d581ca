"""Exact laws: the loss on every small case, and the sampler against its law.

Exact laws of the selectors, computed in another way than the library computes them.

Permute-and-flip draws j with probability w_j int_0^1 prod_(i != j) (1 - s w_i) ds, w = exp((u - max u)/scale). The
integrand is a polynomial in s, which Gauss-Legendre quadrature of enough nodes integrates without error.

(1) The loss on small cases: every data set, every neighbour, every output, without any randomness.

(2) The sampler against the exact law, by Pearson's chi-square.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.audit.finding import Finding
from confide.audit.subject import Data, Law, Subject
from confide.selection import SELECTORS, Selector, noisy_counts, select

Floats = NDArray[np.float64]


def exact_law(utilities: NDArray[Any], scale: float, selector: Selector) -> Floats:
    """The law of a selector over a few candidates.

    Examples
    --------
    >>> exact_law(np.array([0, -1]), 1.0, "exponential").round(3)
    array([0.731, 0.269])
    """
    weights: Floats = np.exp((utilities - utilities.max()) / scale)
    if selector == "exponential":
        return np.asarray(weights / weights.sum())
    s, ds = _nodes(len(weights) // 2 + 1)
    factors = 1 - s[:, None] * weights
    ones = np.ones((len(s), 1))
    before = np.cumprod(np.hstack([ones, factors[:, :-1]]), axis=1)
    after = np.cumprod(np.hstack([ones, factors[:, :0:-1]]), axis=1)[:, ::-1]
    return np.asarray(weights * (ds @ (before * after)))


@lru_cache(maxsize=64)
def _nodes(count: int) -> tuple[Floats, Floats]:
    x, w = np.polynomial.legendre.leggauss(count)
    return (x + 1) / 2, w / 2


ROUNDING = 1e-9
"""Log-ratios of laws that were computed in floats."""


@dataclass(frozen=True)
class Worst:
    """Neighbours, and an event (thresholds) that gives the first away: loss is log(P(event|first)/P(event|second))."""

    loss: float
    first: Data
    second: Data
    event: frozenset[float]


class Laws:
    """The laws of all small data sets of a subject, each computed once."""

    def __init__(self, subject: Subject, law: Law) -> None:
        self._subject, self._law = subject, law
        self._known: dict[Data, Mapping[float, float]] = {}

    def of(self, data: Data) -> Mapping[float, float]:
        """The law under one data set."""
        if data not in self._known:
            self._known[data] = self._law(self._subject.scores(data))
        return self._known[data]

    def pairs(self) -> Iterator[tuple[Data, Data]]:
        """Every ordered pair of neighbours."""
        for one, other in self._subject.pairs():
            yield one, other
            yield other, one


def worst_pair(laws: Laws) -> Worst:
    """The pair and the single output with the largest loss."""
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


def telling_pair(laws: Laws, runs: int, sigmas: float = 4.5) -> Worst:
    """The pair and event that an attack with `runs` runs per data set tells apart best.

    Of each pair, the outputs are taken in the order of their likelihood ratio; the event with the largest log-ratio
    less `sigmas` of its standard errors wins.
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
            seen = max(miss, 1 / runs)
            value = math.log(hit / seen) - sigmas * math.sqrt((1 / hit + 1 / seen) / runs)
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
    """The exact loss of Laplace noise on counts, from which the threshold is computed: L1 distance over scale.

    The ratio of the noise's (discrete or continuous) densities at distance d is exp(d/scale) somewhere, per count.
    """
    claim, scale = subject.claims.epsilon, subject.noise_scale
    assert claim is not None
    assert scale is not None
    far = max(sum(abs(a - b) for a, b in zip(one, two, strict=True)) for one, two in subject.pairs())
    relation = subject.claims.neighbors.replace("_", " ")
    detail = f"largest L1 distance of all neighbouring counts ({relation}) over the scale of their noise"
    return Finding(subject.name, "exact loss", claim, far / scale, far / scale <= claim + ROUNDING, detail)


LEAST_EXPECTED = 10.0

MAGNITUDES: tuple[tuple[tuple[int, ...], float], ...] = (
    ((0, 0, 0, -1), 1.0),
    ((-30, -20, -10, 0, -5, -15, -45), 10.0),
    ((-7, -1, 0, -2), 1 / 3),
    ((-(10**6), -(10**6) - 7, -(10**6) - 20), 11.7),
    ((-(10**15), -(10**15) - 3 * 10**14, -(10**15) - 5 * 10**14), 4.1e14),
    ((2**61, 2**61 - 1, -(2**61)), 1.0),
)
"""Utilities and scales from 1 to the end of 64 bits, for OpenDP's sampler by itself."""

NOISE_SCALES = (0.3, 1.0, 7.3, 1e3, 1e6, 1e12)


def chi_square(draws: Sequence[float], law: Mapping[float, float]) -> float:
    """The p-value of draws under a law; rare outcomes are pooled, and an impossible one gives 0.

    Examples
    --------
    >>> round(chi_square([0.0] * 52 + [1.0] * 48, {0.0: 0.5, 1.0: 0.5}), 3)
    0.689
    >>> chi_square([2.0], {0.0: 0.5, 1.0: 0.5})
    0.0
    """
    from scipy.stats import chi2

    counts = Counter(draws)
    if any(law.get(outcome, 0.0) <= 0 for outcome in counts):
        return 0.0
    outcomes = [outcome for outcome, chance in law.items() if chance > 0]
    expected = np.array([law[outcome] * len(draws) for outcome in outcomes])
    observed = np.array([float(counts[outcome]) for outcome in outcomes])
    rare = expected < LEAST_EXPECTED
    if rare.any():
        pooled = expected[rare].sum()
        expected, observed = np.append(expected[~rare], pooled), np.append(observed[~rare], observed[rare].sum())
        if pooled < LEAST_EXPECTED and len(expected) > 1:  # still too rare: merge with the smallest of the others
            smallest = int(np.argmin(expected[:-1]))
            expected[smallest], observed[smallest] = expected[smallest] + pooled, observed[smallest] + observed[-1]
            expected, observed = expected[:-1], observed[:-1]
    if len(expected) < 2:
        return 1.0
    return float(chi2.sf(np.sum((observed - expected) ** 2 / expected), len(expected) - 1))


def check_sampler(subject: Subject, runs: int, level: float) -> Finding:
    """Run the subject on three data sets and compare with its law."""
    assert subject.law is not None
    data = [subject.scores(data) for data in subject.datasets(subject.records)]
    chosen = (data[0], data[len(data) // 2], data[-2])
    found = [chi_square([subject.draw(scores) for _ in range(runs)], subject.law(scores)) for scores in chosen]
    return _finding(subject.name, found, level, f" of 3 x {runs} runs")


def check_magnitudes(runs: int, level: float) -> list[Finding]:
    """OpenDP's two selectors and its discrete Laplace noise by themselves, across magnitudes; three findings."""
    findings = []
    for selector in SELECTORS:
        found = []
        for utilities, scale in MAGNITUDES:
            u = np.array(utilities, dtype=np.int64)
            gaps = (u.astype(object) - max(utilities)).astype(np.float64)  # exact: 64-bit differences may overflow
            law = exact_law(gaps, scale, selector)
            draws = [float(select(u, scale, selector)) for _ in range(runs)]
            found.append(chi_square(draws, {float(i): float(p) for i, p in enumerate(law)}))
        how = f", {len(MAGNITUDES)} magnitudes x {runs} runs of OpenDP's sampler"
        findings.append(_finding(f"opendp {selector}", found, level, how))
    runs *= 4
    zeros = np.zeros(runs, dtype=np.int64)
    found = [chi_square(*_in_cells(noisy_counts(zeros, scale), scale)) for scale in NOISE_SCALES]
    how = f", {len(NOISE_SCALES)} scales x {runs} draws of OpenDP's discrete Laplace"
    return [*findings, _finding("opendp discrete laplace", found, level, how)]


def magnitude_runs(runs: int) -> int:
    """How often `check_magnitudes` runs OpenDP's selectors."""
    return len(SELECTORS) * len(MAGNITUDES) * runs


def _finding(name: str, found: Sequence[float], level: float, how: str) -> Finding:
    """The smallest p-value counts, as many times as there are."""
    p = min(1.0, len(found) * min(found))
    return Finding(name, "sampler", level, p, p >= level, f"chi-square p-value{how}, least allowed")


def _in_cells(draws: NDArray[np.int64], scale: float) -> tuple[list[float], dict[float, float]]:
    """Draws in about forty cells of equal width around 0, the outer two open, with the cells' exact probabilities."""
    width = max(1, round(scale / 5))
    edges = width * np.arange(-20, 20)  # a cell holds edge < z <= next edge

    def up_to(z: NDArray[np.int64]) -> NDArray[np.float64]:  # P(noise <= z), with P(z) = (1-a)/(1+a) a^|z|
        log_a = -1 / scale
        half = 1 / (1 + math.exp(log_a))
        left = np.exp(log_a * np.maximum(-z, 0)) * half
        right = 1 - np.exp(log_a * (np.maximum(z, 0) + 1)) * half
        return np.where(z < 0, left, right)

    chances = np.diff(np.concatenate([[0.0], up_to(edges), [1.0]]))
    cells = np.searchsorted(edges, draws, side="left")
    return cells.astype(float).tolist(), {float(i): float(p) for i, p in enumerate(chances)}
