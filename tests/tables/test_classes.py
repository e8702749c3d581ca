"""Tables and classes: names of columns, integer labels only on request, rows that sum to one, one column, logits."""

from functools import partial

import numpy as np
import pyarrow as pa
import pytest

import confide
from confide.errors import InputError
from confide.tables import (
    ClassColumns,
    LossColumns,
    TargetColumns,
    calibrate_table,
    evaluate_table,
    predict_table,
    score_histogram,
)
from tests.builders import slow
from tests.files import NAMES, classified, write
from tests.refused import bad_rows, refused
from tests.tables.engines import everyday_on

P, Y = classified(3000, dtype=np.float64)
ROWS = {f"p_{name}": P[:, k] for k, name in enumerate(NAMES)}
LABELS = {"name": np.array(NAMES)[Y], "code": Y, "one": Y + 1}


def table(columns=ROWS, **more):
    return pa.table({**columns, **LABELS, **more})


def release(source, label="name", **options):
    what = ClassColumns(
        "p_*", label, **{key: options.pop(key) for key in ("label_positions", "classes") if key in options}
    )
    return calibrate_table(source, what, 0.1, 1.0, **options)


@pytest.mark.slow(unless=("postgres-code", "sqlite-code"))
@pytest.mark.parametrize("label", ["code", *slow(["one"])])
def test_integer_labels_with_named_classes_raise_an_error(engine, label):
    """Labels from 1 to K-1, without the last class, were once shifted by one silently."""
    source = engine.table(table().filter(pa.array(Y < 2)))
    what = ClassColumns("p_*", label)
    released = confide.calibrate(confide.lac_score(P, Y), 0.1, 1.0)
    for act in (
        lambda: score_histogram(source, what),
        lambda: calibrate_table(source, what, 0.1, 1.0),
        lambda: calibrate_table(source, what, 0.1, 1.0, by_class=True),
        lambda: evaluate_table(source, what, released),
    ):
        with refused(InputError, "column"):
            act()


@pytest.mark.long(unless="postgres")
@everyday_on("memory", "duckdb_sql", "postgres")
def test_label_positions(engine):
    source = engine.table(table())
    counts = [
        score_histogram(source, ClassColumns("p_*", "name")).counts,
        score_histogram(source, ClassColumns("p_*", "code", label_positions=True)).counts,
        score_histogram(source, ClassColumns("p_*", "one", classes=(1, 2, 3))).counts,
    ]
    for other in counts[1:]:
        np.testing.assert_array_equal(other, counts[0])
    with refused(InputError, "table") as caught:
        score_histogram(source, ClassColumns("p_*", "one", label_positions=True))
    assert [count for count, _ in bad_rows(caught)] == [np.count_nonzero(Y == 2)]
    with refused(InputError, "column"):
        score_histogram(source, ClassColumns("p_*", "name", label_positions=True))


@pytest.mark.slow
def test_a_release_contains_the_classes_of_the_table(tmp_path):
    assert release(table()).classes == NAMES
    assert release(table(), about={"model": "m"}).about == {"model": "m"}
    assert release(pa.table({f"p_{k}": P[:, k] for k in range(3)} | LABELS), "code").classes == 3
    assert release(table(), by="name", groups=NAMES).classes == NAMES
    assert release(table(), by_class=True).classes == NAMES
    what = LossColumns(probabilities="p_*", truth="t_*")
    labels = {f"t_{name}": P[:, k] > 0.5 for k, name in enumerate(NAMES)}
    assert calibrate_table(table(**labels), what, 0.2, 1.0).classes == NAMES


@pytest.mark.slow
@pytest.mark.parametrize("columns", [{"p_cat": 0.5, "p_dog": 0.5}, {"p_x": 0.5, "p_y": 0.25, "p_z": 0.25}])
@pytest.mark.parametrize("by_class", [False, True])
def test_columns_of_other_classes_raise_an_error(tmp_path, columns, by_class):
    released = release(table(), by_class=by_class)
    data = pa.table({name: [value] * 4 for name, value in columns.items()} | {"name": ["cat"] * 4})
    for act in (
        partial(predict_table, data, ClassColumns("p_*"), released, tmp_path / "a.parquet"),
        partial(evaluate_table, data, ClassColumns("p_*", "name"), released),
    ):
        with refused(InputError, "classes"):
            act()
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@everyday_on("memory", "duckdb_sql", "postgres")
@pytest.mark.parametrize("score", ["lac", "aps_deterministic"])
def test_rows_that_do_not_sum_to_one(engine, tmp_path, score):
    """Also where SQL reads one entry of a row, or an engine computes the score."""
    wrong = {name: np.full(50, 0.9) for name in ROWS}
    source = engine.table(pa.table({**wrong, "name": ["cat"] * 50}))
    released = confide.calibrate(np.linspace(0, 1, 2000), 0.1, 1.0, score=score)
    what = ClassColumns("p_*", "name", score=score)
    for act in (
        partial(calibrate_table, source, what, 0.1, 1.0),
        partial(evaluate_table, source, what, released),
        partial(predict_table, source, ClassColumns("p_*"), released, tmp_path / "a.parquet"),
    ):
        with refused(InputError, "table"):
            act()
    assert not list(tmp_path.glob("a.*"))


def test_releases_without_a_name_predict_nothing(tmp_path):
    bare = confide.calibrate(np.linspace(0, 1, 2000), 0.1, 1.0)
    for act in (
        partial(predict_table, table(), ClassColumns("p_*"), bare, tmp_path / "a.parquet"),
        partial(predict_table, table(), TargetColumns("p_cat"), bare, tmp_path / "a.parquet"),
        partial(evaluate_table, table(), ClassColumns("p_*", "name"), bare),
        partial(evaluate_table, table(), TargetColumns("p_cat", "p_dog"), bare),
    ):
        with refused(InputError, "calibration"):
            act()


# --- one column, the probability of the second of two classes

PAIR = ("no", "yes")
RNG = np.random.default_rng(0)
YES = np.concatenate([[0.0, 1.0, 0.5, 1e-300, 5e-324, 0.1, 1 / 3], RNG.random(400)])
LIKELY = RNG.random(len(YES)) < YES


def pair_table(p=YES, label=LIKELY):
    return pa.table({"p": p, "label": np.array(PAIR)[label.astype(int)]})


@pytest.mark.filterwarnings("ignore:the threshold is 1:confide.CoverageWarning")  # of random labels
def test_releases_and_evaluations_contain_both_classes(tmp_path):
    what = ClassColumns("p", "label", PAIR, "aps_deterministic")
    released = calibrate_table(pair_table(), what, 0.2, 4.0)
    assert released.classes == PAIR
    found = evaluate_table(pair_table(), what, released)
    expected = confide.evaluation.evaluate_sets(
        released, np.column_stack([1 - YES, YES]), np.array(PAIR)[LIKELY.astype(int)], PAIR
    )
    assert found == expected
    turned = ClassColumns("p", "label", PAIR[::-1])
    for act in (
        lambda: evaluate_table(pair_table(), turned, released),
        lambda: predict_table(pair_table(), turned, released, tmp_path / "s.csv"),
    ):
        with refused(InputError, "classes"):
            act()
    both_columns = pa.table({"p_yes": YES, "p_no": 1 - YES, "label": pair_table()["label"]})
    either = evaluate_table(both_columns, ClassColumns("p_*", "label"), released).classes
    assert set(either) == set(found.classes), "two columns may stand in either order"


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_invalid_probabilities_raise_an_error(tmp_path, suffix):
    p = np.array([0.5, 1.5, np.nan, -0.1])
    path = write(tmp_path / f"a.{suffix}", pair_table(p, np.array([True] * 4)))
    with refused(InputError, "table") as caught:
        score_histogram(path, ClassColumns("p", "label", PAIR), confide.Candidates.unit())
    assert bad_rows(caught) == [(3, 3 if suffix == "csv" else 1)]


# --- logits

N = 400
Z = (3 * RNG.standard_normal((N, 3))).astype(np.float32)
SOFTMAX = np.exp(Z.astype(np.float64)) / np.exp(Z.astype(np.float64)).sum(axis=1)[:, None]
DRAWN = (SOFTMAX.cumsum(axis=1) < RNG.random(N)[:, None]).sum(axis=1).clip(max=2)


def logit_table():
    return pa.table({f"z_{name}": Z[:, k] for k, name in enumerate(NAMES)} | {"label": np.array(NAMES)[DRAWN]})


@pytest.mark.slow
def test_a_release_states_that_its_scores_are_of_logits():
    what = ClassColumns("z_*", "label", logits=True)
    released = calibrate_table(logit_table(), what, 0.2, mechanism="none", neighbors="replace_one")
    assert released.about == {"outputs": "logits; softmax in double precision"}


@pytest.mark.parametrize(("broken", "value"), [([7], np.nan), ([3, 9], np.inf)])
def test_invalid_logits_raise_an_error(broken, value):
    z = Z[:, 0].copy()
    z[broken] = value
    held = logit_table().set_column(0, "z_cat", pa.array(z))
    with refused(InputError, "table") as caught:
        score_histogram(held, ClassColumns("z_*", "label", logits=True), confide.Candidates.unit(64))
    assert bad_rows(caught) == [(len(broken), broken[0])]


@pytest.mark.slow(unless="False")
@pytest.mark.parametrize("pair", [False, True])
def test_probabilities_are_noticed(pair):
    p = SOFTMAX[4:]
    columns = {"z": p[:, 0]} if pair else {f"z_{name}": p[:, k] for k, name in enumerate(NAMES)}
    held = pa.table({**columns, "label": np.array(NAMES[:2] if pair else NAMES)[DRAWN[4:] % (2 if pair else 3)]})
    what = ClassColumns("z", "label", NAMES[:2], logits=True) if pair else ClassColumns("z_*", "label", logits=True)
    with refused(InputError, "table"):
        score_histogram(held, what, confide.Candidates.unit(64))
    few = held.slice(0, 2)  # too few rows to decide
    assert score_histogram(few, what, confide.Candidates.unit(64)).total == 2
