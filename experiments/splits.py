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

    All methods use the same splits. Without privacy the candidates are 10,000 logit-spaced ones, so that they do not
    matter.
    """
    rng, out = np.random.default_rng(2024), {}
    calibration = [rng.permutation(len(data.labels))[:n] for _ in range(splits)]
    binned: dict[int, Binned] = {}
    for method in (NONE, *methods):
        size = 10_000 if method is NONE else method.bins(n, ALPHA, epsilon, m) if own_bins else m
        if size not in binned:
            binned[size] = data.binned(confide.Candidates.unit(size, "logit"))
        mechanism, scores, noise = method.mechanism(n, ALPHA, epsilon, size), binned[size], np.random.default_rng(n)
        shown = []
        for records in calibration:
            chosen = draw(mechanism, scores.counts(records), noise)
            shown.append(scores.validate(records, chosen))
        coverage, sizes = np.array(shown).T
        out[method.label] = {
            "bins": size,
            "coverage": np.round(coverage, 5).tolist(),
            "size": np.round(sizes, 4).tolist(),
        }
    return out
