"""Random splits of a score set into calibration and validation: coverage and set size of every method on each."""

from fractions import Fraction
from typing import Any

import numpy as np

import confide
from experiments.laws import draw
from experiments.methods import NONE, Method
from experiments.scores import Binned, ScoreSet

ALPHA = Fraction(1, 10)


def study(
    data: ScoreSet, methods: tuple[Method, ...], n: int, epsilon: float, m: int, splits: int, *, own_bins: bool = True
) -> dict[str, Any]:
    """Coverage and mean set size on the records outside the calibration set, one noise draw per split.

    Without privacy the candidates are 10,000 logit-spaced ones, so that they do not matter.
    """
    out: dict[str, Any] = {}
    binned: dict[int, Binned] = {}
    for method in (NONE, *methods):
        rng = np.random.default_rng(2024)
        size = 10_000 if method is NONE else method.bins(n, ALPHA, epsilon, m) if own_bins else m
        if size not in binned:
            binned[size] = data.binned(confide.Candidates.unit(size, "logit"))
        mechanism = method.mechanism(n, ALPHA, epsilon, size)
        coverage, sizes = np.empty(splits), np.empty(splits)
        for i in range(splits):
            order = rng.permutation(len(data.labels))
            counts, covered, length = binned[size].split(order, n)
            chosen = draw(mechanism, counts, np.random.default_rng([i, n]))
            coverage[i], sizes[i] = covered[chosen], length[chosen]
        out[method.label] = {
            "bins": size,
            "coverage": np.round(coverage, 5).tolist(),
            "size": np.round(sizes, 4).tolist(),
        }
    return out


def means(results: dict[str, Any], labels: list[str]) -> list[str]:
    """`coverage / size` of each method, for a table row."""
    return [f"{np.mean(results[k]['coverage']):.4f} / {np.mean(results[k]['size']):.2f}" for k in labels]
