"""Sets and intervals of every table equal those of `predict_set` and `predict_interval`; as columns and files."""

import json
from functools import lru_cache
from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import confide
from confide import Candidates
from confide.errors import InputError
from confide.tables import ClassColumns, LossColumns, TargetColumns, predict_table
from tests.builders import slow
from tests.files import class_table, classified, in_order_of, read, write
from tests.module_fixtures import any_row_sums  # noqa: F401 - a fixture
from tests.refused import Refused, bad_rows, refused
from tests.tables.class_records import NAMES, WARD, K, P, Y, calibrated
from tests.tables.engines import everyday_on

N = 400
SINGLE, G = P[:N], WARD[:N]
LOGITS = (3 * np.random.default_rng(3).standard_normal((N, K))).astype(np.float32)
WIDE = np.random.default_rng(1).dirichlet(np.full(K, 0.5), N)
F = np.sort(np.random.default_rng(2).normal(size=(N, 2)) * [1, 1e6], axis=1)
COLUMNS = tuple(f"p_{name}" for name in NAMES)
DATA = pa.table(
    {
        "id": np.arange(N),
        "ward": G,
        "p": WIDE.tolist(),
        **{name: SINGLE[:, k] for k, name in enumerate(COLUMNS)},
        **{f"z_{k}": LOGITS[:, k] for k in range(K)},
        **{name: F[:, k] for k, name in enumerate(("lo", "hi"))},
        **{f"{name}32": F[:, k].astype(np.float32) for k, name in enumerate(("lo", "hi"))},
    }
)
SETS, LISTS = ClassColumns(COLUMNS, classes=NAMES), ClassColumns("p", classes=NAMES)
PYTHON_SCORES = [
    "aps_deterministic",
    "raps_deterministic(penalty=0.01,k_reg=2)",
    "saps_deterministic(penalty=0.1)",
    "margin",
    "top_k",
    "lac(temperature=2)",
]
"""Scores that SQL cannot count."""


def released(threshold, score="lac"):
    """A calibration with this threshold: all scores equal it, and it is the only finite candidate."""
    return confide.calibrate(np.full(2000, threshold), 0.1, 8.0, score=score, candidates=Candidates.of([threshold]))


def sets_of(p, release, by=None, suffix=""):
    sets = confide.predict_set(p, release, NAMES, groups=None if by is None else G)
    return {f"prediction_set{suffix}": sets.labels(), f"set_size{suffix}": sets.sizes.tolist()}


def interval_of(f, release):
    return dict(zip(("lower", "upper"), (end.tolist() for end in confide.predict_interval(f, release)), strict=True))


@lru_cache
def cases(lists, single):
    """The columns, the release, its groups, and the columns that are written, by the calls on arrays."""
    p = SINGLE if single else SINGLE.astype(np.float64)
    infinite = {
        score: confide.calibrate([1.0], 0.1, 1.0, score=score, neighbors="replace_one")
        for score in ("lac", "absolute_residual")
    }
    found = {}
    for release in (infinite["lac"], *map(released, (1 - float(p[3, 1]), 1 - float(p[5, 2]), 0.0, 1.0, 0.7))):
        found[f"lac {release.threshold}"] = SETS, release, None, sets_of(p, release)
    for number, (score, by) in enumerate(product(("lac", *PYTHON_SCORES), (None, "group", "class"))):
        release, ward, listed = calibrated(score, by), "ward" if by == "group" else None, lists and number % 2
        expected = sets_of(WIDE if listed else p, release, ward)
        found[f"{score} by {by}"] = LISTS if listed else SETS, release, ward, expected
    softmax = np.exp(LOGITS.astype(np.float64) - LOGITS.max(axis=1, keepdims=True))
    softmax /= softmax.sum(axis=1)[:, None]
    for score in ("lac", "aps_deterministic"):
        release, logits = calibrated(score), ClassColumns("z_*", classes=NAMES, logits=True)
        found[f"{score} of logits"] = logits, release, None, sets_of(softmax, release)
    levels = confide.calibrate(confide.lac_score(P, Y), [0.1, 0.25], 20.0, score="lac")
    each = [sets_of(p, levels.at(alpha), suffix=f"_{float(alpha)}") for alpha in levels.parts]
    found["levels"] = SETS, levels, None, each[0] | each[1]
    labels = confide.calibrate_false_negatives(P, P > 0.3, 0.2, 20.0, u=confide.ExperimentalUniforms(5))
    members = [[NAMES[k] for k in np.flatnonzero(1.0 - row <= labels.threshold)] for row in p]
    found["labels"] = (
        LossColumns(probabilities=COLUMNS, classes=NAMES), labels, None,
        {"prediction_set": members, "set_size": list(map(len, members))},
    )  # fmt: skip
    for columns, f in ((("lo", "hi"), F), (("lo32", "hi32"), F.astype(np.float32))):
        for release in (
            infinite["absolute_residual"],
            *(released(t, "absolute_residual") for t in (1 / 3, 1e-9, 12e3)),
        ):
            expected = interval_of(f[:, 0], release)
            found[f"{columns[0]} {release.threshold}"] = TargetColumns(columns[0]), release, None, expected
        sides = confide.calibrate_sides(np.tile(f, (10, 1)), np.tile(f[:, 0] + 0.5, 10), 0.1, 5.0)
        for release in (sides, *(released(-0.1, score) for score in ("cqr", "cqr_low", "cqr_high"))):
            what = TargetColumns(columns, score=release.score)
            found[f"{release.score} of {columns[0]}"] = what, release, None, interval_of(f, release)
    return found


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::confide.CoverageWarning")  # thresholds at the ends and beyond
def test_predictions_are_those_of_arrays(engine, tmp_path):
    source = engine.table(DATA if engine.lists else DATA.drop_columns("p"))
    for number, (case, (what, release, by, expected)) in enumerate(cases(engine.lists, engine.single).items()):
        out = tmp_path / f"{number}.parquet"
        figures = predict_table(source, what, release, out, by=by, keep=("id",))
        answer = in_order_of(pq.read_table(out), "id")
        assert answer.column_names == ["id", *expected], case
        assert {name: answer[name].to_pylist() for name in expected} == expected, case
        if "set_size" in expected:
            sizes = np.array(expected["set_size"])
            mean = pytest.approx(sizes.mean())
            assert figures == {"rows": N, "mean_set_size": mean, "empty_sets": (sizes == 0).sum()}, case


@pytest.mark.parametrize("listed", [False, *slow([True])])
def test_rows_without_probabilities_have_no_set(request, engine, tmp_path, listed):
    bad = [[0.5, 0.5], [0.5, None], [float("nan"), 0.5], [1.5, 0.5], [-0.1, 0.5]]
    data = {"i": pa.array(range(5), pa.int64())}
    if listed:
        request.getfixturevalue("listing")
        data["p"] = pa.array(bad, pa.list_(pa.float64()))
    else:
        data |= {f"p{k}": pa.array([row[k] for row in bad], pa.float64()) for k in range(2)}
    table, what = engine.table(pa.table(data)), ClassColumns("p" if listed else ("p0", "p1"), classes=("a", "b"))
    with refused(InputError, "table") as caught:
        predict_table(table, what, released(0.5), tmp_path / "out.parquet")
    assert sum(count for count, _ in bad_rows(caught)) == 4
    assert not list(tmp_path.glob("*.par*"))


KINDS = ("lac 0.7", "aps_deterministic by None", "lac by group", "levels", "labels", "lo32 1e-09", "cqr of lo")


@pytest.mark.slow(unless="postgres")
@everyday_on("memory", "duckdb_sql", "postgres")
@pytest.mark.filterwarnings("ignore::confide.CoverageWarning")
def test_a_table_without_rows_gives_one_without_rows(engine, tmp_path):
    """With the columns and types of a table with rows, for every kind of prediction."""
    data = DATA if engine.lists else DATA.drop_columns("p")
    whole, none = engine.table(data), engine.table(data.slice(0, 0))
    for number, case in enumerate(KINDS):
        what, release, by, expected = cases(engine.lists, engine.single)[case]
        full, empty = tmp_path / f"{number}.parquet", tmp_path / f"empty{number}.parquet"
        predict_table(whole, what, release, full, by=by, keep=("id",))
        assert predict_table(none, what, release, empty, by=by, keep=("id",)) == {"rows": 0}, case
        answer, with_rows = pq.read_table(empty), pq.read_table(full)
        assert (answer.num_rows, answer.column_names) == (0, ["id", *expected]), case
        assert answer.select(list(expected)).schema.types == with_rows.select(list(expected)).schema.types, case


def test_an_infinite_threshold_is_said(tmp_path):
    with pytest.warns(confide.CoverageWarning):
        infinite = confide.calibrate([1.0], 0.1, 1.0, score="lac", neighbors="replace_one")
    with pytest.warns(confide.CoverageWarning):
        predict_table(DATA, SETS, infinite, tmp_path / "sets.parquet")


def test_columns_are_checked_before_anything_is_read(tmp_path):
    good = {"source": DATA, "what": LISTS, "release": calibrated("aps_deterministic"), "out": tmp_path / "out.parquet"}
    for change, argument in (
        ({"what": ClassColumns("q")}, "column"),
        ({"keep": ("q",)}, "column"),
        ({"keep": ("id", "id")}, "keep"),
        ({"source": DATA.append_column("set_size", DATA["id"])}, "column"),
        ({"out": tmp_path / "out.csv", "keep": ("p",)}, "column"),  # a list is no cell of CSV
        ({"what": ClassColumns(COLUMNS, classes=NAMES[:4])}, "classes"),
        ({"release": calibrated("aps_deterministic", "group")}, "by"),
        ({"release": calibrated("lac", "group"), "what": SETS}, "by"),
    ):
        Refused(predict_table, good, change, argument, kind=InputError).check()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_randomised_scores_draw_fresh_numbers(tmp_path):
    calibration = confide.calibrate(confide.class_score(P, Y, "aps"), 0.2, 10.0, score="aps")
    sizes = []
    for out in (tmp_path / "one.parquet", tmp_path / "two.parquet"):
        predict_table(pa.table({"p": P.tolist()}), LISTS, calibration, out, keep=())
        sizes.append(pq.read_table(out)["set_size"].to_numpy())
    assert (sizes[0] != sizes[1]).any()
    drawn = confide.predict_set(P, calibration, NAMES).sizes
    spread = np.sqrt((sizes[0].var() + drawn.var()) / len(P))
    assert abs(sizes[0].mean() - drawn.mean()) < 5 * spread


def predict(source, out, calibration, pattern="p_*", classes=None, **options):
    what = ClassColumns(pattern, classes=None if classes is None else tuple(classes))
    return predict_table(source, what, calibration, out, **options)


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.0, 0.2, 1.0])
def test_class_names_are_written_unchanged(tmp_path, share):
    rng = np.random.default_rng(int(10 * share))
    p = (rng.random((50, 4)) < share).astype(float)
    names = ("a", 'quo"te', "new\nline", "ünïcode")
    half = confide.calibrate([0.5] * 2000, 0.1, 8.0, score="lac", candidates=confide.Candidates.of([0.5]))
    for out in ("a.parquet", "a.csv"):
        predict(pa.table({f"p_{k}": p[:, k] for k in range(4)}), tmp_path / out, half, classes=names)
    expected = [[names[k] for k in np.flatnonzero(row)] for row in p]
    assert read(tmp_path / "a.parquet")["prediction_set"].to_pylist() == expected
    kinds = [read(tmp_path / "a.parquet").schema.field(name).type for name in ("prediction_set", "set_size")]
    assert kinds == [pa.list_(pa.string()), pa.int32()]
    texts = read(tmp_path / "a.csv")["prediction_set"].to_pylist()
    assert [json.loads(text) for text in texts] == expected
    assert read(tmp_path / "a.parquet")["set_size"].to_pylist() == list(map(len, expected))


def test_kept_columns(tmp_path, calibration):
    records = write(tmp_path / "in.parquet", class_table())
    predict(records, tmp_path / "a.parquet", calibration, keep=("name", "p_cat"))
    assert read(tmp_path / "a.parquet").column_names == ["name", "p_cat", "prediction_set", "set_size"]
    predict(records, tmp_path / "b.parquet", calibration, keep=())
    assert read(tmp_path / "b.parquet").column_names == ["prediction_set", "set_size"]


@pytest.mark.slow(unless="kind1-folder")
@pytest.mark.parametrize("out", ["a.parquet", "folder"])
@pytest.mark.parametrize("kind", [pa.duration("s"), pa.month_day_nano_interval(), pa.struct([])])
def test_columns_that_parquet_lacks_are_named(tmp_path, calibration, out, kind):
    table = class_table(100).append_column("odd", pa.nulls(100, kind)).select(["p_cat", "p_dog", "p_emu", "id", "odd"])
    with refused(InputError, "column") as caught:
        predict(table, tmp_path / out, calibration)
    assert "'odd'" in str(caught.value)
    assert list(tmp_path.iterdir()) == []
    predict(table, tmp_path / out, calibration, keep=("id",))


@pytest.mark.slow(unless="False")
@pytest.mark.parametrize("lists", [False, True])
def test_order_is_kept_over_many_batches_and_row_groups(tmp_path, calibration, lists):
    n = 150_000
    p, _ = classified(n)
    columns = {"p": pa.array(list(p))} if lists else {f"p_{k}": p[:, k] for k in range(3)}
    for i in range(3):  # files in the order of their names, rows in the order of their files
        rows = slice(i * n // 3, (i + 1) * n // 3)
        table = pa.table({"id": np.arange(n)} | columns).slice(rows.start, n // 3)
        pa.parquet.write_table(table, tmp_path / f"in-{i}.parquet", row_group_size=7_001)
    predict(tmp_path / "in-*.parquet", tmp_path / "out.parquet", calibration, "p" if lists else "p_*")
    back = read(tmp_path / "out.parquet")
    assert back["id"].to_pylist() == list(range(n))
    assert back["set_size"].to_pylist() == confide.predict_set(p, calibration).sizes.tolist()


@pytest.mark.slow
def test_an_unusable_row_leaves_no_output(tmp_path, calibration):
    p, _ = classified(60_000)
    p[50_000] = np.nan
    records = write(tmp_path / "in.parquet", {f"p_{k}": p[:, k] for k in range(3)})
    write(tmp_path / "out.parquet", {"prediction_set": [["a"]], "set_size": [1]})
    precious = (tmp_path / "out.parquet").read_bytes()
    with refused(InputError, "table") as caught:
        predict(records, tmp_path / "out.parquet", calibration, overwrite=True)
    assert bad_rows(caught) == [(1, 50_000)] * 3  # each column separately
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.parquet", "out.parquet"]
    assert (tmp_path / "out.parquet").read_bytes() == precious
