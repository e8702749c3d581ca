"""No trace of the private data in anything that leaves the library, and no cost that betrays them."""

import gc
import json
import pickle
import sqlite3
import warnings
from decimal import Decimal
from functools import partial

import duckdb
import ibis
import numpy as np
import pandas
import polars
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pytest

import confide
from confide.tables import (
    ContributionBound,
    ScoreColumn,
    TargetColumns,
    calibrate_table,
    count_batches,
    evaluate_table,
    predict_table,
)
from confide.tables.failures import library_errors_in_fixed_words
from tests.draws import always
from tests.refused import PLANTED, assert_error_is_private, assert_no_private_value, planted_scores

REQUESTS = [
    {},
    {"neighbors": "replace_one"},
    {"rho": 0.1, "epsilon": None},
    {"delta": 0.05},
    {"n_min": 100},
    {"epsilon": 1e-5, "neighbors": "replace_one"},
]


def released_from(scores, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        calibration = confide.calibrate(scores, **{"alpha": 0.1, "epsilon": 1.0, **options})
    return calibration, caught


@pytest.mark.slow
@pytest.mark.parametrize("request_", REQUESTS, ids=str)
def test_nothing_that_is_released_shows_a_value(request_):
    calibration, caught = released_from(planted_scores(500), **request_)
    for text in (
        repr(calibration),
        str(calibration),
        calibration.to_json(),
        pickle.dumps(calibration),
        pickle.dumps(calibration, 0),
        vars(calibration),
        calibration.guarantee,
        calibration.privacy,
        calibration.mechanism,
        [str(w.message) for w in caught],
        confide.plan(**{"alpha": 0.1, "epsilon": 1.0, "n": 500, **request_}),
    ):
        assert_no_private_value(text)


def test_the_search_finds_what_is_planted():
    for value in PLANTED:
        with pytest.raises(AssertionError, match="a private value is visible"):
            assert_no_private_value({"leak": [np.float64(value)]})
    hidden = confide.errors.InputError("scores", "must be right")
    hidden.__context__, hidden.__suppress_context__ = ValueError(f"not a float: {PLANTED[0]} apples"), True
    with pytest.raises(AssertionError, match="visible"):
        assert_error_is_private(hidden)


@pytest.mark.slow
def test_a_released_calibration_holds_no_arrays():
    """Follow every reference from the calibration: no array, no histogram, and nothing that refers to the scores."""
    scores = planted_scores(1000)
    calibration, _ = released_from(scores, neighbors="replace_one")
    seen, todo = set(), [calibration]
    while todo:
        item = todo.pop()
        if (
            id(item) in seen
            or isinstance(item, type)
            or type(item).__name__ in ("module", "function", "getset_descriptor")
        ):
            continue
        seen.add(id(item))
        assert not isinstance(item, np.ndarray | confide.ScoreHistogram | confide.Candidates)
        todo += gc.get_referents(item)
    assert id(scores) not in seen
    assert len(seen) < 200


@pytest.mark.slow
def test_nothing_keeps_the_scores_alive():
    import weakref

    scores = planted_scores(1000)
    watch = weakref.ref(scores)
    calibration, _ = released_from(scores)
    del scores
    gc.collect()
    assert watch() is None
    assert calibration.coverage == 0.9


@pytest.mark.slow
def test_only_the_threshold_depends_on_a_secret_data_set(draw_with):
    """Under add_remove data sets of any sizes with the same noisy number give releases that differ in the threshold."""
    draw_with(noisy_number=always(1010))
    texts = set()
    for n, high in ((10, 1.0), (999, 0.3), (5000, 0.9)):
        calibration, _ = released_from(np.linspace(0, high, n), candidates=confide.Candidates.unit(50))
        content = json.loads(calibration.to_json())
        del content["thresholds"][0]["threshold"], content["sha256"]
        texts.add(json.dumps(content))
    assert len(texts) == 1


BAD_CALLS = {
    "NaN": lambda s: confide.calibrate(np.append(s, np.nan), 0.1, 1.0),
    "-inf": lambda s: confide.calibrate(np.append(s, -np.inf), 0.1, 1.0),
    "above 1": lambda s: confide.calibrate(s, 0.1, 1.0, score="lac"),
    "below 0": lambda s: confide.calibrate(-s, 0.1, 1.0, score="absolute_residual"),
    "shape": lambda s: confide.calibrate(s.reshape(-1, 2), 0.1, 1.0),
    "texts": lambda s: confide.calibrate(s.astype(str), 0.1, 1.0),
    "objects": lambda s: confide.calibrate([*s.tolist(), "0.123456789"], 0.1, 1.0),
    "complex": lambda s: confide.calibrate(s + 0j, 0.1, 1.0),
    "swapped with alpha": lambda s: confide.calibrate(0.1, s, 1.0),
    "as alpha": lambda s: confide.calibrate([0.5], s, 1.0),
    "as epsilon": lambda s: confide.calibrate([0.5], 0.1, s),
    "as candidates": lambda s: confide.calibrate(s, 0.1, 1.0, candidates=s),
    "as neighbors": lambda s: confide.calibrate(s, 0.1, 1.0, neighbors=s),
    "as score": lambda s: confide.calibrate(s, 0.1, 1.0, score=s),
    "as offers": lambda s: confide.choose_score(s, 0.1, 1.0),
    "offers with NaN": lambda s: confide.choose_score(
        {"a": s, "b": np.append(s[1:], np.nan)}, 0.1, 1.0, sizes={"a": s[:, None], "b": s[:, None]}, largest_size=1
    ),
    "as sizes": lambda s: confide.choose_score({"a": s, "b": s}, 0.1, 1.0, sizes={"a": s, "b": s}),
    "as ids and key": lambda s: confide.choose_score(
        {"a": s, "b": s}, 0.1, 1.0, sizes={"a": s[:, None], "b": s[:, None]}, largest_size=1, ids=s, key=s.tobytes()
    ),
    "as histogram": lambda s: confide.calibrate_histogram(s, 0.1, 1.0),
    "as counts": lambda s: confide.ScoreHistogram(confide.Candidates.unit(len(s)), s),
    "as text": lambda s: confide.Release.from_json(s),
    "as calibration": lambda s: confide.predict_set([[0.5]], s),
    "labels": lambda s: confide.lac_score(np.full((len(s), 2), 0.5), s),
    "labels by name": lambda s: confide.lac_score(np.full((len(s), 2), 0.5), s, classes=["a", "b"]),
    "text labels": lambda s: confide.lac_score(np.full((len(s), 2), 0.5), s.astype(str)),
    "probabilities": lambda s: confide.lac_score(s.reshape(-1, 2), np.zeros(len(s) // 2, int)),
    "predictions": lambda s: confide.absolute_residual_score(np.append(s, np.nan), np.append(s, 0)),
    "targets": lambda s: confide.absolute_residual_score(s, np.append(s[1:], np.inf)),
    "lengths": lambda s: confide.absolute_residual_score(s, s[1:]),
    "reference": lambda s: confide.Candidates.from_reference(np.append(s, np.nan)),
    "unsorted": lambda s: confide.Candidates.of(s),
    "covered": lambda s: confide.evaluation.coverage(s),
}


# Tables of every source with one cell that a library cannot read: no value in any error, log or output

SECRET = f"secret {PLANTED[0]}"
N = 300


def _mixed(frame=False):
    """Columns of which `score` and `note` have one text among numbers."""
    numbers = np.array([*np.linspace(0, 1, N - 1), SECRET], dtype=object)
    columns = {"score": numbers, "prediction": numbers, "target": numbers, "group": np.resize(["a", "b"], N)}
    return pandas.DataFrame(columns) if frame else columns


def _unread():
    """A frame that can be used but for a column that nothing reads."""
    frame = pandas.DataFrame({name: np.linspace(0, 1, N) for name in ("score", "prediction", "target")})
    return frame.assign(group="a", note=_mixed()["score"])


def _later(value):
    """Batches of which the last has a value of another type."""
    usable = {name: np.linspace(0, 1, N) for name in ("score", "prediction", "target")}
    yield usable | {"group": np.resize(["a", "b"], N)}
    yield {name: np.array([value], dtype=object) for name in ("score", "prediction", "target", "group")}


def _not_utf8():
    """An Arrow table whose texts are not UTF-8."""
    texts = [b"secret 123456789 \xff", *[b"a"] * (N - 1)]
    offsets = np.cumsum([0, *map(len, texts)]).astype(np.int32)
    group = pa.StringArray.from_buffers(N, pa.py_buffer(offsets), pa.py_buffer(b"".join(texts)))
    numbers = {name: np.linspace(0, 1, N) for name in ("score", "prediction", "target")}
    return pa.table(numbers | {"group": group})


def _csv(folder):
    lines = [f"{x},{x},{x},a" for x in (*np.linspace(0, 1, N - 1), SECRET)]
    path = folder / "records.csv"
    path.write_text("\n".join(["score,prediction,target,group", *lines]) + "\n")
    return path


def _broken_csv(folder):
    path = _csv(folder)
    path.write_text(path.read_text() + f"0.1,{SECRET},0.1,a,one cell too many\n")
    return path


def _typed():
    return pa.csv.ConvertOptions(column_types={"score": pa.float64()})


def _sqlite(folder):
    """A table of SQLite whose columns are declared as numbers and have a text."""
    rows = [(x, x, x, "a") for x in (*np.linspace(0, 1, N - 1), SECRET)]
    with sqlite3.connect(folder / "records.sqlite") as connection:
        connection.execute('CREATE TABLE records (score REAL, prediction REAL, target REAL, "group" TEXT)')
        connection.executemany("INSERT INTO records VALUES (?, ?, ?, ?)", rows)
    return ibis.sqlite.connect(folder / "records.sqlite").table("records")


TEXTS = pa.table({"text": ["0.5"] * 10 + [SECRET]})
_CAST = dict.fromkeys(("score", "prediction", "target"), "CAST(text AS DOUBLE)") | {'"group"': "text"}
CASTS = [f"{cell} AS {name}" for name, cell in _CAST.items()]


def _relation(place=":memory:"):
    """A query of DuckDB with a cast that fails for one record."""
    connection = duckdb.connect(place)
    connection.register("texts", TEXTS)
    connection.execute("CREATE TABLE texts_kept AS SELECT * FROM texts")
    connection.execute(f"CREATE VIEW records AS SELECT {', '.join(CASTS)} FROM texts_kept")  # noqa: S608 - constants
    return connection, connection.sql("SELECT * FROM records")


def _duckdb(folder):
    """The same as a view, through Ibis."""
    _relation(folder / "records.duckdb")[0].close()
    return ibis.duckdb.connect(folder / "records.duckdb").table("records")


def _cast(texts):
    """The same in another engine of Ibis."""
    number = texts.text.cast("float64")
    return texts.select(score=number, prediction=number, target=number, group=texts.text)


SOURCES = {
    "frame with a mixed column": lambda folder: _mixed(frame=True),
    "frame with a mixed column that nothing reads": lambda folder: _unread(),
    "frame of polars with objects": lambda folder: polars.DataFrame(
        {name: polars.Series(values.tolist(), dtype=polars.Object) for name, values in _mixed().items()}
    ),
    "arrays": lambda folder: _mixed(),
    "arrays with a decimal among texts": lambda folder: {
        name: np.array([Decimal(f"{PLANTED[0]}"), *["0.5"] * (N - 1)], object)
        for name in ("score", "prediction", "target", "group")
    },
    "arrays with integers that are too large": lambda folder: {
        name: np.array([int("123456789" * 5), *[1] * (N - 1)], object)
        for name in ("score", "prediction", "target", "group")
    },
    "texts that are not UTF-8": lambda folder: _not_utf8(),
    "batches of mixed arrays": lambda folder: [_mixed()],
    "batches, the last with a text": lambda folder: _later(SECRET),
    "batches, the last with a decimal": lambda folder: _later(Decimal(f"{PLANTED[0]}")),
    "data set": lambda folder: ds.dataset(
        _csv(folder), format=ds.CsvFileFormat(convert_options=_typed(), read_options=pa.csv.ReadOptions(block_size=999))
    ),
    "stream": lambda folder: pa.csv.open_csv(
        _csv(folder), convert_options=_typed(), read_options=pa.csv.ReadOptions(block_size=999)
    ),
    "CSV": _csv,
    "CSV with a broken line": _broken_csv,
    "SQLite": _sqlite,
    "a query of DuckDB": lambda folder: _relation()[1],
    "a view of DuckDB": _duckdb,
    "polars through Ibis": lambda folder: _cast(ibis.polars.connect().create_table("texts", TEXTS)),
}
USABLE = confide.calibrate(np.linspace(0, 1, 3000), 0.1, 1.0, score="absolute_residual", unit=1)
SCORED, TARGETS = ScoreColumn("score"), TargetColumns("prediction", "target")
CALLS = {
    "calibrate_table": lambda source, folder: calibrate_table(source, SCORED, 0.1, 1.0),
    "calibrate_table by": lambda source, folder: calibrate_table(
        source, SCORED, 0.1, 1.0, by="group", groups=["a", "b"]
    ),
    "calibrate_table people": lambda source, folder: calibrate_table(
        source, SCORED, 0.1, 1.0, people=ContributionBound("group", 1, ("target",))
    ),
    "evaluate_table": lambda source, folder: evaluate_table(source, TARGETS, USABLE, by="group"),
    "evaluate epsilon": lambda source, folder: confide.evaluate(USABLE, table=source, what=TARGETS, epsilon=1.0),
    "predict_table": lambda source, folder: predict_table(source, TARGETS, USABLE, folder / "out.csv"),
    "watch": lambda source, folder: confide.watch(
        source, TARGETS, USABLE, state=folder / "watch.json", look="1", epsilon=1.0, tolerance=0.05
    ),
    "count_batches": lambda source, folder: count_batches([source], SCORED),
}


SERVERS = {
    "postgres": lambda reader: _cast(reader.table(TEXTS)),
    "spark": lambda session: session.createDataFrame(
        [(text,) for text in TEXTS["text"].to_pylist()], "text string"
    ).selectExpr(*[cast.replace('"', "`") for cast in CASTS]),
}


@pytest.mark.long(unless=("CSV", "a query of DuckDB", "batches of mixed arrays", "data set"))
@pytest.mark.parametrize("source", [*SOURCES, "postgres", "spark"])
def test_no_error_of_a_table_shows_a_value(source, tmp_path, capfd, caplog, request):
    """Every call either succeeds, where it does not read the cell, or raises an error of the library without values."""
    server = {"postgres": "reader", "spark": "spark"}.get(source)
    source = SOURCES[source] if server is None else partial(SERVERS[source], request.getfixturevalue(server))
    caplog.set_level("DEBUG", "confide")
    errors = []
    for name, call in CALLS.items():
        folder = tmp_path / name
        folder.mkdir()
        table = source(folder) if server is None else source()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", confide.CoverageWarning)
            try:
                call(table, folder)
            except confide.ConfideError as error:  # every other error fails the test
                errors.append(error)
    assert len(errors) >= 2
    for error in errors:
        assert_error_is_private(error)
        assert len(str(error)) < 400
        assert "\n" not in str(error)
    assert_no_private_value(caplog.text)
    assert_no_private_value("".join(capfd.readouterr()))


@pytest.mark.parametrize(
    ("error", "instead"),
    [
        (duckdb.InterruptException("stopped"), KeyboardInterrupt),
        (duckdb.OutOfMemoryException("full"), confide.errors.InputError),
        (pa.ArrowMemoryError("full"), MemoryError),
        (RuntimeError("of the caller"), RuntimeError),
    ],
)
def test_interruptions_and_lack_of_memory_are_not_blamed_on_values(error, instead):
    with pytest.raises(instead) as caught, library_errors_in_fixed_words("the table"):
        raise error
    assert "values of one type" not in str(caught.value)
