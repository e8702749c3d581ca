"""All methods on the same scores: thresholds, coverage and lengths of intervals."""

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache

import numpy as np

from confide import Candidates, federated
from confide.errors import InputError
from confide.federated import best_published, qq_coverage
from confide.federated.protocols.fedcp2_qq import published_quantile
from confide.papers.fedcp_qq import average_threshold, best_qq, centralised_threshold
from experiments.federated.draws import chosen, place_drawn
from experiments.federated.paper.splits import Split

ALPHA, BINS = Fraction(1, 10), 100
PLAIN = ("FedCP-QQ", "centralised", "FedCP-Avg")
NEXT_RANK = "FedCP-Avg, one rank higher"
"""The rule that agrees with the authors' table for large n: the average of the silos' scores of rank l + 1."""
OURS = ("private-qq, epsilon 10", "secure-sum, epsilon 1")
"""Added to the paper's three methods without privacy."""
PRIVATE = tuple(f"{method}, epsilon {e}" for method in ("FedCP²-QQ", "private-qq", "secure-sum") for e in (10, 5, 1))
"""Figure 18: the paper's private method, then ours."""
Draw = Callable[[np.ndarray, np.ndarray, np.random.Generator], float]
"""Scores of shape (m, n) and bin edges to a threshold."""


def thresholds(silos: np.ndarray, methods: tuple[str, ...], rng: np.random.Generator) -> dict[str, float]:
    """The threshold of every method for scores of shape (m, n).

    Private methods have the paper's bins: 100 of equal width on (0, S_max], S_max the largest score.
    """
    edges = silos.max() * np.arange(1, BINS + 1) / BINS
    return {name: method(name, *silos.shape)(silos, edges, rng) for name in methods}


@lru_cache(maxsize=256)
def method(name: str, m: int, n: int) -> Draw:
    """A method by name, for m silos of n."""
    if name == "centralised":
        return lambda silos, edges, rng: centralised_threshold(list(silos), ALPHA)
    if name == "FedCP-Avg":
        return lambda silos, edges, rng: average_threshold(list(silos), ALPHA)
    if name == NEXT_RANK:
        l = min(n, math.ceil((1 - ALPHA) * (n + 1)) + 1)
        return lambda silos, edges, rng: float(np.sort(silos, axis=1)[:, l - 1].mean())
    if name == "FedCP-QQ":
        choice = best_qq(m, n, 1 - ALPHA)
        return (
            _never
            if choice is None
            else lambda silos, edges, rng: quantile_of_quantiles(silos, choice.ranks[0], choice.k)
        )
    title, epsilon = name.split(", epsilon ")
    return published(m, n, float(epsilon)) if title == "FedCP²-QQ" else ours(title, m, n, float(epsilon))


def quantile_of_quantiles(silos: np.ndarray, l: int, k: int) -> float:
    """Definition 3.1: the k-th smallest of the silos' l-th smallest scores."""
    return float(np.sort(np.sort(silos, axis=1)[:, l - 1])[k - 1])


def _never(silos: np.ndarray, edges: np.ndarray, rng: np.random.Generator) -> float:
    return math.inf


def published(m: int, n: int, epsilon: float) -> Draw:
    """Algorithm 3, FedCP²-QQ; +inf if no gamma keeps the rank within n."""
    choice = best_published(m, n, ALPHA, epsilon, BINS)
    if choice is None:
        return _never
    mechanism = published_quantile(n, choice.rank, epsilon)

    def draw(silos: np.ndarray, edges: np.ndarray, rng: np.random.Generator) -> float:
        replies = sorted(chosen(mechanism, counts, rng) for counts in binned(silos, edges))
        return float(edges[replies[choice.k - 1]])

    return draw


def ours(title: str, m: int, n: int, epsilon: float) -> Draw:
    """The library's own plan for IID silos, as the paper assumes; +inf if none is possible."""
    silos = [key.public(n) for key in _keys(m)]
    options = {"candidates": Candidates.unit(BINS), "score": "lac", "method": title, "population": "common"}
    try:
        plan = federated.plan(silos, ALPHA, epsilon, **options)
    except InputError:
        return _never
    k = plan.certify()[0]

    def draw(silos: np.ndarray, edges: np.ndarray, rng: np.random.Generator) -> float:
        at = place_drawn(plan, k, binned(silos, edges), rng)
        return math.inf if at is None else float(edges[at])

    return draw


@lru_cache
def _keys(m: int) -> list[federated.SiloKeys]:
    return [federated.SiloKeys.generate(f"silo {i}") for i in range(m)]


def binned(silos: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Counts by silo of the bins (e_(b-1), e_b], the first of which includes all lower scores; shape (m, B)."""
    cells = np.searchsorted(edges[:-1], silos, side="left") + len(edges) * np.arange(len(silos))[:, None]
    return np.bincount(cells.ravel(), minlength=len(silos) * len(edges)).reshape(len(silos), len(edges))


def measured(split: Split, m: int, n: int, methods: tuple[str, ...], seed: int) -> dict[str, tuple[float, float]]:
    """Coverage and mean length on the test records, NaN if the threshold is +inf; the first m n scores calibrate."""
    found = thresholds(split.calibration[: m * n].reshape(m, n), methods, np.random.default_rng([seed, m, n]))
    return {name: (float(np.mean(split.test <= t)), length(split.lengths, t)) for name, t in found.items()}


def length(lengths: np.ndarray, threshold: float) -> float:
    """The mean length of intervals with these lengths at threshold 0."""
    return float(np.maximum(lengths + 2 * threshold, 0).mean()) if math.isfinite(threshold) else math.nan


def exact_coverage(m: int, n: int) -> Mapping[str, float]:
    """Coverage of the paper's three methods on continuous scores; of FedCP-Avg only for uniform scores.

    FedCP-QQ: M(l*, k*) by Theorem 3.2. Centralised: ceil((1-alpha)(mn+1))/(mn+1). FedCP-Avg: l/(n+1).
    """
    choice, total = best_qq(m, n, 1 - ALPHA), m * n + 1
    qq = math.nan if choice is None else float(qq_coverage(choice.ranks[0], choice.k, m, n))
    pooled, own = math.ceil((1 - ALPHA) * total) / total, math.ceil((1 - ALPHA) * (n + 1)) / (n + 1)
    return {"FedCP-QQ": qq, "centralised": pooled, "FedCP-Avg": own}


def on_uniform_scores(m: int, n: int, methods: tuple[str, ...], draws: int) -> dict[str, float]:
    """The mean coverage on scores that are uniform on (0, 1), simulated."""
    rng = np.random.default_rng([m, n])
    found = [thresholds(rng.random((m, n)), methods, rng) for _ in range(draws)]
    return {name: float(np.mean([min(one[name], 1.0) for one in found])) for name in methods}
