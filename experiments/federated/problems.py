"""Data to CQR scores: a model is trained on one part; studies draw from scores and interval widths of the rest."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.small import small
from experiments.federated import tables
from experiments.federated.models import MODELS

FILES = {"bio": ("CASP.csv", "RMSD"), "bike": ("bike_train.csv", "count"), "concrete": ("Concrete_Data.csv", None)}


PARTS_OF_TARGET = ("casual", "registered")
"""Columns of the bike data that add up to its target."""


@dataclass(frozen=True)
class Problem:
    """Scores of records that no model has seen, their widths at threshold 0, and public reference scores."""

    name: str
    scores: np.ndarray
    widths: np.ndarray
    reference: np.ndarray


def from_arrays(name: str, x, y, model: str, train: int, seed: int = 0) -> Problem:
    """Train on `train` rows, keep 300 more as a public reference, score the rest."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))
    x, y = np.asarray(x, dtype=np.float64)[order], np.asarray(y, dtype=np.float64)[order]
    center, spread = x[:train].mean(0), x[:train].std(0)
    x = (x - center) / np.where(spread > 0, spread, 1)
    low, high = MODELS[model](x[:train], y[:train], x[train:])
    scores = np.maximum(low - y[train:], y[train:] - high)
    public = min(300, len(scores) // 5)
    return Problem(f"{name}, {model}", scores[public:], (high - low)[public:], scores[:public])


@cache
def synthetic(model: str = "quantile forest", size: int = small(26000, 2000)) -> Problem:
    """One input, noise that grows with it and some outliers: y ~ Poisson(sin^2 x + 0.1) + 0.03 x noise, 1 % wild."""
    rng = np.random.default_rng(1)
    x = rng.uniform(1, 5, size)
    y = rng.poisson(np.sin(x) ** 2 + 0.1) + 0.03 * x * rng.normal(size=size)
    y = y + 25 * (rng.random(size) < 0.01) * rng.normal(size=size)
    return from_arrays("synthetic", x[:, None], y, model, 1000)


def from_csv(path: Path, target: str | None, model: str) -> Problem:
    """Any CSV: the target column (the last one by default) against all others; texts are encoded, not dropped.

    Rows without a target are left out; other missing numbers are the column's median.
    """
    table = tables.read(path)
    target = table.columns[-1] if target is None else target
    numbers = tables.as_numbers(tables.column(table, target, "the target"))
    if numbers is None:
        raise SystemExit(f"column {target!r} must hold numbers; it holds texts, and silos of classes need --silo")
    kept = numbers.notna().to_numpy()
    y, x = numbers[kept].to_numpy(np.float64), tables.features(table[kept], [target, *PARTS_OF_TARGET])
    train = min(2000, len(y) // 3)
    rows = np.random.default_rng(0).permutation(len(y))[:16000]
    return from_arrays(path.stem, x[rows], y[rows], model, train)
