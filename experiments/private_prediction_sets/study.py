"""Random splits with the papers' uniform bins, and the law on uniform scores with the noise averaged exactly."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.laws import draw, law
from experiments.private_prediction_sets.bins import ALPHA, edges, indices
from experiments.private_prediction_sets.tail_scores import TailScores

MOST_SIZES = 10
"""Largest set size whose share is stored."""


def splits(data: TailScores, mechanism: Any, m: int, n: int, repeats: int, test: int | None = None) -> dict[str, Any]:
    """Coverage and mean set size of every split into n records that calibrate and `test` (or all) others.

    `mechanism` is "none" for no privacy: then the threshold is the conformal quantile of the scores themselves, and m
    does not matter; None answers the last candidate for all data. All mechanisms see the same splits.
    """
    order, noise = np.random.default_rng(2024), np.random.default_rng(n)
    binned = None if mechanism == "none" else indices(data.truth, m)
    rank, grid = math.ceil((1 - ALPHA) * (n + 1)) - 1, edges(m)
    coverage, size, shares = [], [], np.zeros(MOST_SIZES + 1)
    for _ in range(repeats):
        permuted = order.permutation(len(data.truth))
        calibration, rest = permuted[:n], permuted[n : len(permuted) if test is None else n + test]
        if binned is None:
            threshold = float(np.partition(data.truth[calibration], rank)[rank])
        else:
            threshold = grid[draw(mechanism, np.bincount(binned[calibration], minlength=m), noise)]
        sets = data.sizes(threshold)[rest]
        coverage.append(round(float(np.mean(data.truth[rest] <= threshold)), 6))
        size.append(round(float(sets.mean()), 5))
        shares += np.bincount(np.minimum(sets, MOST_SIZES), minlength=MOST_SIZES + 1) / len(sets) / repeats
    return {"coverage": coverage, "size": size, "shares": shares.round(5).tolist()}


def uniform(mechanism: Any, grid: NDArray[np.float64], n: int, data_sets: int) -> dict[str, float]:
    """Mean coverage on uniform scores, where it is the threshold: exact over the noise, simulated over data sets.

    (Version 1's histograms have no closed law here; theirs is over 20 draws of the noise.) The threshold without privacy, whose mean is k/(n+1) exactly, is the control variate. `error` is the standard error.
    """
    rng, rank = np.random.default_rng(n), math.ceil((1 - ALPHA) * (n + 1))
    found = []
    for _ in range(data_sets):
        scores = np.sort(rng.random(n))
        counts = np.diff(np.searchsorted(scores, grid, side="right"), prepend=0)
        found.append((law(mechanism, counts, rng) @ grid, scores[rank - 1] - rank / (n + 1)))
    coverage, control = np.array(found).T
    means = coverage - control * (np.cov(coverage, control)[0, 1] / control.var(ddof=1))
    return {"coverage": float(means.mean()), "error": float(means.std(ddof=1) / math.sqrt(data_sets))}


def uniform_quantiles(mechanism: Any, m: int, n: int, repeats: int, test: int) -> list[float]:
    """Coverage over splits of uniform scores with `test` records to evaluate on, one noise draw each."""
    rng, grid = np.random.default_rng(n), edges(m)
    found = []
    for _ in range(repeats):
        counts = np.bincount(indices(rng.random(n), m), minlength=m)
        found.append(float(np.mean(rng.random(test) <= grid[draw(mechanism, counts, rng)])))
    return found
