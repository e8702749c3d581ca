"""Tables and classes: names of columns, integer labels only on request, rows that sum to one."""

from functools import partial

import numpy as np
import pyarrow as pa
import pytest

import confide
from confide.errors import InputError
from confide.tables import ClassColumns, LossColumns, calibrate_table, evaluate_table, predict_table, score_histogram
from tests.builders import slow
from tests.files import NAMES, classified
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


@pytest.mark.slow(unless="postgres")
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
    from confide.tables import TargetColumns

    bare = confide.calibrate(np.linspace(0, 1, 2000), 0.1, 1.0)
    for act in (
        partial(predict_table, table(), ClassColumns("p_*"), bare, tmp_path / "a.parquet"),
        partial(predict_table, table(), TargetColumns("p_cat"), bare, tmp_path / "a.parquet"),
        partial(evaluate_table, table(), ClassColumns("p_*", "name"), bare),
        partial(evaluate_table, table(), TargetColumns("p_cat", "p_dog"), bare),
    ):
        with refused(InputError, "calibration"):
            act()
