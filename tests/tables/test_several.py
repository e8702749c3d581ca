"""Levels, sides, groups, classes and losses of every source, compared with the calls on arrays."""

import numpy as np
import pyarrow as pa
import pytest

import confide
from confide import Candidates
from confide.core import BOTH_SIDES
from confide.errors import InputError
from confide.tables import (
    ClassColumns,
    LossColumns,
    ScoreColumn,
    TargetColumns,
    calibrate_table,
    evaluate_table,
    score_histogram,
)
from tests.refused import Refused, bad_rows, refused

K, N = 4, 6000
RNG = np.random.default_rng(0)
P = RNG.dirichlet(np.ones(K), N)
Y = (RNG.random(N)[:, None] > P.cumsum(axis=1)[:, :-1]).sum(axis=1)
OWN = 1.0 - P[np.arange(N), Y]
WARD = RNG.choice(["north", "south"], N)
F = np.sort(RNG.normal(size=(N, 2)), axis=1)
TARGET = F.mean(axis=1) + RNG.normal(size=N)
W, SHIFT = 2.5 * (1 - OWN), {0: 0.5, 1: 1, 2: 2, 3: 1}
UNIT, LINE = Candidates.unit(60), Candidates.of(np.linspace(-3, 3, 61))
STEPS = Candidates.of([0.2, 0.4, 0.6, 0.8])
LOSSES = 5.0 * (STEPS.edges < OWN[:, None])
COLUMNS, TRUE, STEPPED = (tuple(f"{name}_{k}" for k in range(K)) for name in "ptl")
DATA = pa.table(
    {
        "i": np.arange(N),
        "y": Y,
        "ward": WARD,
        "s": OWN,
        "lo": F[:, 0],
        "hi": F[:, 1],
        "target": TARGET,
        "w": W,
        **{name: P[:, k] for k, name in enumerate(COLUMNS)},
        **{name: (k == Y).astype(np.int64) for k, name in enumerate(TRUE)},
        **{name: LOSSES[:, k] for k, name in enumerate(STEPPED)},
    }
)
SURE = {"epsilon": 2000.0, "candidates": UNIT}
"""So much epsilon, and so many records in each bin, that thresholds are quantiles."""


def by_arrays(scores, alpha=0.1, **options):
    return confide.calibrate(scores, alpha, score="lac", **SURE, **options)


SCORE, LABELLED = ScoreColumn("s", "lac"), {"probabilities": COLUMNS, "truth": TRUE}
RELEASES = {
    "levels": (SCORE, {"alpha": [0.1, "0.3"]}, lambda: by_arrays(OWN, [0.1, "0.3"])),
    "groups": (
        SCORE, {"by": "ward", "groups": ["north", "south"]},
        lambda: by_arrays(OWN, groups=WARD, names=["north", "south"]),
    ),
    "classes": (
        ClassColumns(COLUMNS, "y"), {"by_class": True}, lambda: by_arrays(OWN, groups=Y, names=range(K), by="class"),
    ),
    "false negatives": (  # not random, because the selected true label is the only one
        LossColumns(**LABELLED), {}, lambda: confide.calibrate_false_negatives(P, np.eye(K)[Y] == 1, 0.1, **SURE),
    ),
    "losses": (
        LossColumns(STEPPED, "cost", 5.0), {"alpha": 2.0, "candidates": STEPS},
        lambda: confide.calibrate_losses(LOSSES, STEPS, 2.0, 2000.0, loss="cost", bound=5.0),
    ),
    "sides": (
        TargetColumns(("lo", "hi"), "target", BOTH_SIDES), {"candidates": LINE},
        lambda: confide.calibrate_sides(F, TARGET, 0.1, **SURE | {"candidates": LINE}),
    ),
    "class weights": (
        ClassColumns(COLUMNS, "y"), {"class_weights": SHIFT}, lambda: by_arrays(OWN, labels=Y, class_weights=SHIFT),
    ),
    "class weights of scores": (
        SCORE, {"class_weights": SHIFT, "by": "y"}, lambda: by_arrays(OWN, labels=Y, class_weights=SHIFT),
    ),
    "weights": (
        SCORE, {"weights": "w", "weight_bound": 2.5}, lambda: by_arrays(OWN, weights=W, weight_bound=2.5),
    ),
    "APS": (
        ClassColumns(COLUMNS, "y", score="aps_deterministic"), {},
        lambda: confide.calibrate(confide.aps_score(P, Y, randomised=False), 0.1, score="aps_deterministic", **SURE),
    ),
}  # fmt: skip


@pytest.mark.slow(unless="duckdb_sql")
def test_releases_are_those_of_arrays(engine):
    table = engine.table(DATA)
    for case, (what, options, same) in RELEASES.items():
        ours, same = calibrate_table(table, what, **{"alpha": 0.1, **SURE, **options}), same()
        assert (ours.parts, ours.privacy, ours.by) == (same.parts, same.privacy, same.by), case
        assert ours.population == same.population, case
    with refused(InputError, "score"):
        score_histogram(table, TargetColumns(("lo", "hi"), "target", BOTH_SIDES), LINE)


@pytest.mark.slow(unless="duckdb_sql")
def test_critical_thresholds_are_drawn(engine):
    """The share of records above a candidate is the mean loss there, and another draw gives another share."""
    steps = Candidates.of([0.25, 0.5, 0.75])
    losses = 2.0 * np.sort(np.random.default_rng(3).random((N, 3)), axis=1)[:, ::-1]
    table = engine.table(pa.table({f"l_{j}": losses[:, j] for j in range(3)}))
    what = LossColumns(("l_0", "l_1", "l_2"), "cost", 2.0, candidates=steps)
    first, second = (score_histogram(table, what, steps).counts for _ in range(2))
    assert (first != second).any()
    for counts in (first, second):
        beyond = 1.0 - np.cumsum(counts)[:3] / N
        assert (np.abs(beyond - losses.mean(axis=0) / 2.0) < 5 * np.sqrt(0.25 / N)).all()


@pytest.mark.slow(unless="batches")
def test_several_true_labels_are_picked_evenly(engine):
    labels = P > 0.2
    names = {name: labels[:, k].astype(np.int64) for k, name in enumerate(TRUE)}
    table = engine.table(pa.table({**{name: P[:, k] for k, name in enumerate(COLUMNS)}, **names}))
    counts = score_histogram(table, LossColumns(probabilities=COLUMNS, truth=TRUE), Candidates.of([0.5, 0.7])).counts
    missed = [np.mean(np.sum(labels & (1 - t > P), axis=1) / np.maximum(labels.sum(axis=1), 1)) for t in (0.5, 0.7)]
    assert (np.abs(1.0 - np.cumsum(counts)[:2] / N - missed) < 5 * np.sqrt(0.25 / N)).all()


def test_unusable_losses_raise_an_error(engine):
    bad = pa.table({"a": [1.0, 0.5, 2.5, None], "b": [0.5, 0.75, 0.0, 0.0], "c": [0.0, 0.0, 0.0, 0.0]})
    steps = Candidates.of([1.0, 2.0, 3.0])
    what = LossColumns(("a", "b", "c"), "cost", 2.0, candidates=steps)
    with refused(InputError, "table") as caught:
        score_histogram(engine.table(bad), what, steps)
    assert [count for count, _ in bad_rows(caught)] == [3]


COUNTED = {"source": DATA, "what": ScoreColumn("s"), "candidates": UNIT}
REQUEST = {"source": DATA, "what": ScoreColumn("s", "lac"), "alpha": 0.1, "epsilon": 1.0}
INVALID = [
    *(
        Refused(score_histogram, COUNTED, {"what": what}, argument, kind=InputError)
        for what, argument in (
            (LossColumns("s"), "candidates"),
            (LossColumns(("s", "lo"), candidates=UNIT), "losses"),
            (LossColumns(probabilities=COLUMNS), "truth"),
            (LossColumns(probabilities=COLUMNS, truth=TRUE[:2]), "truth"),
            (TargetColumns("lo"), "target"),
            (TargetColumns("lo", "target", "cqr"), "prediction"),
            (TargetColumns(("lo", "hi"), "target", "absolute_residual"), "prediction"),
            (TargetColumns("lo", "target", "lac"), "score"),
            (ClassColumns(COLUMNS), "label"),
            (ClassColumns("p_*", "y", ("a", "b")), "classes"),
            (ScoreColumn("ward"), "column"),
        )
    ),
    *(
        Refused(calibrate_table, REQUEST, change, argument, kind=InputError)
        for change, argument in (
            ({"alpha": [0.1, 0.2], "by": "ward", "groups": ["north", "south"]}, "by"),
            ({"what": LossColumns(probabilities=COLUMNS, truth=TRUE), "alpha": [0.1, 0.2]}, "by"),
            ({"by": "ward"}, "by"),
            ({"groups": ["north"]}, "by"),
            ({"by_class": True}, "by_class"),
            ({"what": ClassColumns(COLUMNS, "y"), "by_class": True, "by": "ward"}, "by"),
            ({"n": N}, "n"),
        )
    ),
]


@pytest.mark.parametrize("row", INVALID, ids=str)
def test_arguments_that_do_not_fit_raise_an_error(row):
    row.check()


@pytest.mark.slow(unless="sqlite")
def test_rows_that_cannot_be_evaluated_raise_an_error(engine):
    bad = {"y": pa.array([0, None, -1, 1], pa.int64()), "s": [0.5, 1.5, None, 0.5]}
    table = engine.table(pa.table(bad | {name: [0.25] * 4 for name in COLUMNS}))
    for what in (ClassColumns(COLUMNS, "y", tuple(range(K))), ScoreColumn("s", "lac")):
        with refused(InputError, "table") as caught:
            evaluate_table(table, what, by_arrays(OWN))
        assert [count for count, _ in bad_rows(caught)] == [2]
