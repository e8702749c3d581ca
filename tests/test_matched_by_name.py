"""If both sides have names, they are matched by name or raise an error, never by position; for every integration."""

import itertools

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import confide
from confide.errors import InputError
from confide.support import column_order
from confide.tables import (
    ClassColumns,
    LossColumns,
    TargetColumns,
    counting_query,
    evaluate_table,
    predict_table,
    score_histogram,
)
from confide.tables.open_table import as_open_table
from tests.refused import refused

NAMES = ("benign", "malignant", "unclear")
TURNED = ("malignant", "benign", "unclear")
OTHER = ("a", "b", "c")
RNG = np.random.default_rng(0)
P = RNG.dirichlet([4.0, 2.0, 1.0], 400)
Y = (P.cumsum(axis=1) > RNG.random((400, 1))).argmax(axis=1)
U = np.linspace(0, 0.99, 400)
TRUTH = P > 0.3
FRAME = pd.DataFrame(P, columns=NAMES)
LABELS = np.array(NAMES)[Y]
REPLACED = {"alpha": 0.3, "epsilon": 8.0, "neighbors": "replace_one"}
RELEASED = confide.calibrate(confide.lac_score(FRAME, LABELS), **REPLACED)
MISSED = confide.calibrate_false_negatives(FRAME, TRUTH, 0.3, 8.0, u=U)


def _sets(p, classes):
    return confide.predict_set(p, RELEASED, classes).labels()


FRONTS = {
    "aps_score": lambda p, classes: confide.aps_score(p, LABELS, randomised=False, classes=classes),
    "class_score": lambda p, classes: confide.class_score(p, LABELS, classes=classes),
    "lac_score": lambda p, classes: confide.lac_score(p, LABELS, classes),
    "margin_score": lambda p, classes: confide.margin_score(p, LABELS, classes),
    "raps_score": lambda p, classes: confide.raps_score(p, LABELS, 0.1, 1, randomised=False, classes=classes),
    "saps_score": lambda p, classes: confide.saps_score(p, LABELS, 0.1, randomised=False, classes=classes),
    "top_k_score": lambda p, classes: confide.top_k_score(p, LABELS, classes),
    "predict_set": lambda p, classes: list(map(sorted, _sets(p, classes))),
    "predict_labels": lambda p, classes: list(map(sorted, confide.predict_labels(p, MISSED, classes).labels())),
    "evaluate_sets": lambda p, classes: confide.evaluation.evaluate_sets(RELEASED, p, LABELS, classes).coverage,
    "evaluate": lambda p, classes: confide.evaluate(RELEASED, probabilities=p, labels=LABELS, classes=classes).coverage,
    "calibrate_false_negatives": lambda p, classes: sorted(
        confide.calibrate_false_negatives(p, TRUTH, 0.3, 8.0, u=U, classes=classes).classes
    ),
}


@pytest.mark.filterwarnings("ignore::confide.errors.CoverageWarning")
@pytest.mark.parametrize("front", FRONTS)
def test_columns_and_classes_are_matched_by_name(front):
    call = FRONTS[front]
    as_they_are = call(FRAME, NAMES)
    np.testing.assert_equal(call(FRAME, TURNED), as_they_are)
    np.testing.assert_equal(call(FRAME.add_prefix("p_"), NAMES), as_they_are)
    np.testing.assert_equal(call(P, NAMES), as_they_are)
    for frame, names in ((FRAME, OTHER), (FRAME.add_prefix("p_"), TURNED)):
        with refused(InputError, "classes"):
            call(frame, names)


def test_true_values_of_several_labels_are_matched_by_name():
    truth = pd.DataFrame(TRUTH, columns=NAMES)
    turned = truth[list(TURNED)]
    scores = [confide.core.false_negative_thresholds(FRAME, one, u=U) for one in (TRUTH, truth, turned)]
    np.testing.assert_array_equal(scores[1], scores[0])
    np.testing.assert_array_equal(scores[2], scores[0])
    sets = confide.predict_labels(FRAME, MISSED)
    rates = [confide.evaluation.false_negative_rate(sets, one) for one in (TRUTH, turned, turned.astype(int))]
    np.testing.assert_array_equal(rates[1], rates[0])
    np.testing.assert_array_equal(rates[2], rates[0])
    for other in (turned.add_prefix("t_"), truth.set_axis(OTHER, axis=1)):
        with refused(InputError, "truth"):
            confide.calibrate_false_negatives(FRAME, other, 0.3, 8.0)
        with refused(InputError, "truth"):
            confide.recalibrate(MISSED, FRAME, truth=other)
    with refused(InputError, "classes"):
        confide.recalibrate(MISSED, FRAME.set_axis(OTHER, axis=1), truth=TRUTH)


@pytest.mark.parametrize(
    ("classes", "columns", "order"),
    [
        (("no", "yes"), None, [0, 1]),
        (("no", "yes"), ("yes", "no"), [1, 0]),
        ((7, 3), ("3", "7"), [1, 0]),
        (("no", "yes"), ("0", "1"), [0, 1]),
        (("no", "yes"), ("1", "2"), [0, 1]),
        (("no", "yes"), ("x1", "x2"), [0, 1]),
        (("no", "yes"), ("p_no_raw", "p_yes_raw"), [0, 1]),
        ((1, 2), ("cat", "dog"), [0, 1]),
        (("1", "2"), ("cat", "dog"), [0, 1]),
        ((1, 2), ("0", "1"), [0, 1]),
        ((0, 1), ("1", "2"), None),
        ((0, "yes"), ("1", "2"), None),
        (("no", "yes"), ("2", "1"), None),
        (("no", "yes"), ("p_yes", "p_no"), None),
        (("no", "yes"), ("x2", "x1"), None),
        (("no", "yes"), ("x1", "y2"), None),
        (("no", "yes"), ("No", "Yes"), None),
        (("stage4", "stage3"), ("p3", "p4"), None),
        (("a", "b", "c"), ("a", "b", "d"), None),
        (("low", "high"), ("p_1", "p_3"), None),
    ],
)
def test_the_one_rule(classes, columns, order):
    if order is None:
        with refused(InputError, "classes"):
            column_order("classes", classes, columns)
    else:
        assert column_order("classes", classes, columns) == order


def test_the_rule_finds_what_stands_around_any_names():
    for names in itertools.permutations(("a", "ab", "abc", "b", "")):
        columns = [f"p{name}bc" for name in names]
        assert column_order("classes", names, columns) == list(range(5))
        with refused(InputError, "classes"):
            column_order("classes", names, columns[::-1])


TABLE = pa.table(
    {f"p_{name}": P[:, k] for k, name in enumerate(NAMES)}
    | {f"t_{name}": TRUTH[:, k].astype(int) for k, name in reversed(list(enumerate(NAMES)))}
    | {"dx": LABELS, "place": Y}
)


def test_stars_and_classes_are_matched_by_name(tmp_path):
    turned = ClassColumns("p_*", "dx", TURNED)
    counts = [score_histogram(TABLE, what).counts for what in (ClassColumns("p_*", "dx"), turned)]
    np.testing.assert_array_equal(*counts)
    found = [evaluate_table(TABLE, what, RELEASED) for what in (turned, ClassColumns("p_*", "dx", NAMES))]
    assert found[0].coverage == found[1].coverage
    assert set(found[0].classes) == set(found[1].classes)
    predict_table(TABLE, ClassColumns("p_*", classes=TURNED), RELEASED, tmp_path / "sets.parquet", keep=())
    written = pa.parquet.read_table(tmp_path / "sets.parquet")["prediction_set"].to_pylist()
    assert list(map(sorted, written)) == list(map(sorted, confide.predict_set(FRAME, RELEASED).labels()))
    with refused(InputError, "classes"):
        score_histogram(TABLE, ClassColumns("p_*", "place", TURNED, label_positions=True))


def test_stars_of_true_labels_and_probabilities_are_matched_by_name():
    with as_open_table(TABLE) as table:
        (reading,) = LossColumns(probabilities="p_*", truth="t_*").readers(table)
        assert [name[2:] for name in reading.truth.columns] == list(NAMES)
        assert reading.probabilities.columns == tuple(f"p_{name}" for name in NAMES)
        with refused(InputError, "truth"):
            LossColumns(probabilities="p_*", truth="p_*").readers(table)
        other = LossColumns(probabilities="p_*", truth=("t_benign", "dx", "place"))
        with refused(InputError, "column"):
            other.readers(table)


@pytest.mark.slow
def test_columns_named_one_by_one_stand_in_the_order_of_the_classes():
    turned = ("p_malignant", "p_benign", "p_unclear")
    with refused(InputError, "classes"):
        ClassColumns(turned, "dx", NAMES)
    with refused(InputError, "classes"):
        evaluate_table(TABLE, ClassColumns(turned, "place"), RELEASED)
    pair = pa.table({"p_yes": [0.2], "y": ["no"]})
    with refused(InputError, "classes"):
        score_histogram(pair, ClassColumns("p_yes", "y", ("yes", "no")))
    with refused(InputError, "classes"):
        counting_query("duckdb", "records", ClassColumns("p_yes", "y", ("yes", "no")), 0.1, 1.0)
    assert score_histogram(pair, ClassColumns("p_yes", "y", ("no", "yes"))).total == 1


# Rows

SHUFFLED = RNG.permutation(400)
N = pd.Series(RNG.normal(size=400))
GROUPS = pd.Series(np.where(Y == 0, "x", "y"))
LINE = confide.calibrate(np.abs(RNG.normal(size=400)), **REPLACED, score="absolute_residual")
SCALED = confide.calibrate(np.abs(RNG.normal(size=400)), **REPLACED, score="normalised_residual")
LABELLED = pd.Series(LABELS)
SETS = confide.predict_set(FRAME, RELEASED)
BY_GROUP = confide.calibrate(confide.lac_score(FRAME, LABELS), 0.3, 8.0, groups=GROUPS, names=["x", "y"])
WEIGHTS = {"benign": 1, "malignant": 2, "unclear": 1}
ONES = pd.Series(np.ones(400))
SERIES = pd.Series(np.asarray(confide.lac_score(FRAME, LABELS)))

ROWS = {
    "absolute_residual_score": lambda y: confide.absolute_residual_score(N, y(N)),
    "gamma_score": lambda y: confide.gamma_score(N.abs() + 1, y(N)),
    "cqr_score": lambda y: confide.cqr_score(pd.DataFrame({"low": N - 1, "high": N + 1}), y(N)),
    "interval_score": lambda y: confide.interval_score(N, y(N)),
    "normalised_residual_score": lambda y: confide.normalised_residual_score(N.to_numpy(), N, y(ONES)),
    "aps_score": lambda y: confide.aps_score(FRAME, y(LABELLED), u=U),
    "class_score": lambda y: confide.class_score(FRAME, y(LABELLED)),
    "lac_score": lambda y: confide.lac_score(FRAME, y(LABELLED)),
    "margin_score": lambda y: confide.margin_score(FRAME, y(LABELLED)),
    "raps_score": lambda y: confide.raps_score(FRAME, y(LABELLED), 0.1, 1, u=U),
    "saps_score": lambda y: confide.saps_score(FRAME, y(LABELLED), 0.1, u=U),
    "top_k_score": lambda y: confide.top_k_score(FRAME, y(LABELLED)),
    "all_scores": lambda y: confide.all_scores(FRAME, "aps", u=y(pd.Series(U))),
    "calibrate": lambda y: (
        confide.calibrate(SERIES, 0.3, 8.0, labels=y(LABELLED), class_weights=WEIGHTS),
        confide.calibrate(SERIES, 0.3, 8.0, groups=y(GROUPS), names=["x", "y"]),
    ),
    "calibrate_false_negatives": lambda y: confide.calibrate_false_negatives(
        FRAME, y(pd.DataFrame(TRUTH, columns=NAMES)), 0.3, 8.0
    ),
    "calibrate_losses": lambda y: confide.calibrate_losses(
        pd.DataFrame(np.zeros((400, 2))), confide.Candidates.unit(3), 0.3, 8.0, loss="none", u=y(pd.Series(U))
    ),
    "calibrate_sides": lambda y: confide.calibrate_sides(pd.DataFrame({"low": N - 1, "high": N + 1}), y(N), 0.3, 8.0),
    "class_coverage": lambda y: confide.evaluation.class_coverage(SETS, y(LABELLED)),
    "coverage": lambda y: confide.evaluation.coverage(SETS, y(LABELLED)),
    "size_coverage": lambda y: confide.evaluation.size_coverage(SETS, y(LABELLED)),
    "group_coverage": lambda y: confide.evaluation.group_coverage(SETS, LABELLED, y(GROUPS)),
    "false_negative_rate": lambda y: confide.evaluation.false_negative_rate(SETS, y(pd.DataFrame(TRUTH))),
    "evaluate": lambda y: confide.evaluate(RELEASED, scores=SERIES, groups=y(GROUPS)),
    "evaluate_intervals": lambda y: confide.evaluation.evaluate_intervals(LINE, N, y(N)),
    "evaluate_scores": lambda y: confide.evaluation.evaluate_scores(RELEASED, SERIES, groups=y(GROUPS)),
    "evaluate_sets": lambda y: confide.evaluation.evaluate_sets(RELEASED, FRAME, y(LABELLED)),
    "predict_interval": lambda y: confide.predict_interval(N, SCALED, difficulty=y(ONES)),
    "predict_set": lambda y: confide.predict_set(FRAME, BY_GROUP, groups=y(GROUPS)),
    "recalibrate": lambda y: confide.recalibrate(BY_GROUP, SERIES, groups=y(GROUPS)),
    "plot_coverage": lambda y: confide.plots.plot_coverage(SETS, y(LABELLED)),
}  # fmt: skip
ALIGNED = {
    "probabilities", "labels", "truth", "targets", "predictions", "quantiles", "groups", "weights", "difficulty", "u",
    "covered", "scores", "losses", "sets",
}  # fmt: skip


@pytest.mark.slow(unless=tuple(set(ROWS) - {"calibrate_sides"}))
@pytest.mark.filterwarnings("ignore::confide.errors.CoverageWarning")
@pytest.mark.parametrize("front", ROWS)
def test_rows_in_another_order_are_refused(front):
    call = ROWS[front]
    with pytest.raises(InputError) as caught:
        call(lambda held: held.iloc[SHUFFLED])
    assert caught.value.argument in ALIGNED
    assert "the same index labels in another order" in caught.value.got
    if front not in ("plot_coverage", "calibrate"):  # which take a second each
        call(lambda held: held)
        call(lambda held: held.iloc[SHUFFLED].to_numpy())
        call(lambda held: held.set_axis(RNG.permutation(4000)[:400] + 1, axis=0))  # the others only count


def test_indexes_of_other_labels_are_refused_and_not_quoted():
    left, right = N.set_axis([f"patient {i}" for i in range(400)]), N.set_axis([f"person {i}" for i in range(400)])
    with refused(InputError, "targets") as caught:
        confide.absolute_residual_score(left, right)
    assert "patient" not in str(caught.value)
    assert len(confide.absolute_residual_score(left, left.copy())) == 400


def test_sets_and_intervals_keep_the_index():
    named = FRAME.set_axis([f"patient {i}" for i in range(400)])
    sets = confide.predict_set(named, RELEASED)
    assert list(sets[[3, 1]].to_frame().index) == ["patient 3", "patient 1"]
    assert list(sets.to_pandas().index) == list(sets.to_frame(named).index) == list(named.index)
    with refused(InputError, "like"):
        sets.to_frame(named[::-1])
    intervals = confide.predict_interval(N.set_axis(named.index), LINE)
    assert list(intervals[:2].to_frame().index) == ["patient 0", "patient 1"]
    with refused(InputError, "targets"):
        intervals.contains(N.set_axis(named.index)[::-1])


def test_two_names_for_one_column_are_refused():
    for prediction, target, argument in (
        ("f", "f", "target"),
        (("f", "g"), "g", "target"),
        (("f", "f"), "t", "prediction"),
        (("upper", "lower"), "t", "prediction"),
        (("y_q95", "y_q05"), "t", "prediction"),
    ):
        with refused(InputError, argument):
            TargetColumns(prediction, target)
    assert TargetColumns(("f2", "f1"), "t").predictions == ("f2", "f1")


NUMBERED = {  # names of two columns, of class 1 and class 0; and of labels
    "whole floats": ([1.0, 0.0], [1, 0]),
    "numpy floats": (np.array([1.0, 0.0]), [1.0, 0.0]),
    "booleans": ([True, False], [1, 0]),
    "a categorical index": (pd.CategoricalIndex(["yes", "no"]), ["yes", "no"]),
    "texts and numbers": (["1", 0], [1, 0]),
}


@pytest.mark.parametrize("kind", NUMBERED)
def test_columns_named_by_other_types_are_matched_by_name(kind):
    columns, (one, zero) = NUMBERED[kind]
    frame = pd.DataFrame([[0.75, 0.25], [0.25, 0.75], [0.5, 0.5]], columns=columns)
    assert confide.lac_score(frame, [one, zero, one]).tolist() == [0.25, 0.25, 0.5]
    if kind != "booleans":
        assert confide.lac_score(frame, [one, zero, one], classes=[zero, one]).tolist() == [0.25, 0.25, 0.5]
