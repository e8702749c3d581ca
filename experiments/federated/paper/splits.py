"""One random split 40/40/20: a regressor is trained, calibration and test records are scored, the scores are kept."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.small import small
from experiments.cache import RESULTS
from experiments.federated.paper.data_sets import BY_NAME
from experiments.federated.paper.regressors import REGRESSORS

SPLITS = small(20, 2)
SHARES = (0.4, 0.4, 0.2)
MOST = 1000
"""Calibration records that are kept: no setting of the paper has more than m n = 1000."""


@dataclass(frozen=True)
class Split:
    """What a split leaves: calibration scores in random order, test scores and lengths of their intervals at threshold 0.

    Lengths and scores are in units of the mean absolute target of the training records, as the authors' are.
    """

    calibration: np.ndarray
    test: np.ndarray
    lengths: np.ndarray


def cut(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Training, calibration and test rows: 40, 40 and 20 of a hundred, at random."""
    order = np.random.default_rng([2302, 6322, seed]).permutation(rows)
    test = round(SHARES[2] * rows)
    train = (rows - test) // 2
    return order[:train], order[train : rows - test], order[rows - test :]


def scored(x: np.ndarray, y: np.ndarray, regressor: str, seed: int) -> Split:
    """Train, and score: max(low - Y, Y - high), which for the ridge regression is the absolute residual."""
    train, calibration, test = cut(len(y), seed)
    center, spread = x[train].mean(axis=0), x[train].std(axis=0)
    x, y = (x - center) / np.where(spread > 0, spread, 1), y / np.abs(y[train]).mean()
    calibration = calibration[:MOST]
    new = np.concatenate([calibration, test])
    low, high = REGRESSORS[regressor](x[train], y[train], x[new], seed)
    scores = np.maximum(low - y[new], y[new] - high)
    n = len(calibration)
    return Split(scores[:n], scores[n:], (high - low)[n:])


def place(data: str, regressor: str, seed: int) -> Path:
    """Where the scores of a split are kept."""
    return RESULTS / "federated" / "paper" / data / f"{regressor}_{seed}.npz"


def make(data: str, regressor: str, seed: int) -> None:
    """Score a split and keep it, unless it is there."""
    path = place(data, regressor, seed)
    if not path.exists():
        made = scored(*_arrays(data), regressor, seed)
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part.npz")
        np.savez_compressed(part, **vars(made))
        part.replace(path)


@cache
def _arrays(data: str) -> tuple[np.ndarray, np.ndarray]:
    return BY_NAME[data].arrays()


def read(data: str, regressor: str, seed: int) -> Split:
    """A split that is there."""
    with np.load(place(data, regressor, seed)) as found:
        return Split(found["calibration"], found["test"], found["lengths"])


def made(data: str, regressor: str) -> Iterator[tuple[int, Split]]:
    """All splits of a data set that are there, with their numbers."""
    for seed in range(SPLITS):
        if place(data, regressor, seed).exists():
            yield seed, read(data, regressor, seed)
