"""Real data, every applicable score: coverage and thresholds by exact tests, sizes next to those without privacy."""

from itertools import product
from typing import NamedTuple

import numpy as np
import pytest

import confide
from tests.builders import slow
from tests.data import shared_data
from tests.exact_tests import assert_covers, assert_threshold_below
from tests.scores.test_pitfalls import DETERMINISTIC, RANDOMISED, quantile

IMAGES = ["cifar100_resnet14.npz", "bloodmnist_resnet14.npz", "dermamnist_resnet14.npz"]
RESIDUALS = ["absolute_residual", "normalised_residual", "gamma", "cqr"]
TABLES = {"CASP.csv": "RMSD", "bike_train.csv": "count", "Concrete_Data.csv": None}


class Outcome(NamedTuple):
    """One random split and one release: mean set sizes or widths, with privacy and without."""

    released: confide.Calibration
    scores: np.ndarray
    covered: np.ndarray
    private: float
    plain: float


def image_table(name):
    data = np.load(shared_data(name))
    logits = np.concatenate([data["val_logits"], data["test_logits"]]).astype(np.float64)
    labels = np.concatenate([data["val_labels"], data["test_labels"]]).ravel().astype(np.int64)
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True), labels


def sets_of(name, score, epsilon=1.0):
    """Sets for one random half after calibrating on the other."""
    p, y = image_table(name)
    rng = np.random.default_rng(0)
    order = rng.permutation(len(y))
    half, rest = order[: len(y) // 2], order[len(y) // 2 :]
    u = rng.random(len(y)) if confide.scores.score_kind(score).randomised else None
    shares = (None, None) if u is None else (u[half], u[rest])
    scores = confide.class_score(p[half], y[half], score, u=shares[0])
    released = confide.calibrate(scores, 0.1, epsilon, score=score)
    sets = confide.predict_set(p[rest], released, u=shares[1])
    plain = confide.all_scores(p[rest], score, u=shares[1]) <= quantile(scores, 0.9)
    return Outcome(released, scores, sets.contains(y[rest]), sets.sizes.mean(), plain.sum(axis=1).mean())


def regression_table(name, target):
    """Features and target; a public half trains, the rest calibrates and tests."""
    import pandas as pd

    frame = pd.read_csv(shared_data(name)).select_dtypes("number")
    column = frame.columns[-1] if target is None else target
    drop = [column] + [c for c in ("casual", "registered") if c in frame]
    return frame.drop(columns=drop).to_numpy(float), frame[column].to_numpy(float)


def intervals_of(name, target, score, epsilon=1.0):
    """Intervals for a random third after training on one and calibrating on another."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    X, y = regression_table(name, target)
    rng = np.random.default_rng(1)
    order = rng.permutation(len(y))[:6000]
    X, y = X[order], y[order]
    train, half, rest = np.array_split(np.arange(len(y)), 3)
    make = {"max_iter": 60, "random_state": 0}
    difficulty = {}
    if score == "cqr":
        ends = [
            HistGradientBoostingRegressor(loss="quantile", quantile=q, **make).fit(X[train], y[train])
            for q in (0.05, 0.95)
        ]
        center = np.column_stack([end.predict(X) for end in ends])
    else:
        model = HistGradientBoostingRegressor(**make).fit(X[train], y[train])
        center = model.predict(X)
        if score == "gamma":
            center = np.maximum(center, y[train].mean() / 20)
        if score == "normalised_residual":
            residuals = np.abs(y[train] - center[train])
            spread = HistGradientBoostingRegressor(max_iter=20, random_state=0).fit(X[train], residuals)
            difficulty = {"difficulty": np.maximum(spread.predict(X), residuals.mean() / 5)}

    def part(rows):
        return {key: value[rows] for key, value in difficulty.items()}

    scores = confide.interval_score(center[half], y[half], score, **part(half))
    released = confide.calibrate(scores, 0.1, epsilon, score=score)
    lower, upper = confide.predict_interval(center[rest], released, **part(rest))
    low, high = confide.scores.regression.interval_ends(center[rest], score, quantile(scores, 0.9), **part(rest))
    covered = (lower <= y[rest]) & (y[rest] <= upper)
    return Outcome(released, scores, covered, np.mean(upper - lower), np.mean(high - low))


def check(outcome):
    """A split at random makes calibration and test records exchangeable, whatever the data."""
    assert_covers(outcome.released, len(outcome.scores), outcome.covered)
    assert_threshold_below(outcome.released, outcome.scores)


SCORES = DETERMINISTIC + RANDOMISED
SPLITS = [(name, score) for name in IMAGES for score in SCORES]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "score"), [SPLITS[0], SPLITS[-1], *slow(SPLITS[1:-1])])
def test_images(name, score):
    check(sets_of(name, score))


@pytest.mark.parametrize(
    ("name", "score"),
    [
        *(("bike_train.csv", score) for score in RESIDUALS[:3]),
        *slow([("bike_train.csv", RESIDUALS[3]), *product(["CASP.csv", "Concrete_Data.csv"], RESIDUALS)]),
    ],
)
def test_tables(name, score):
    """With epsilon = 1, the noise on 343 records of Concrete could reach any of their scores."""
    check(intervals_of(name, TABLES[name], score, epsilon=4.0 if name == "Concrete_Data.csv" else 1.0))
