"""Engines count as this process does, in every bin and for every reason, also by queries without a connection."""

from itertools import product

import duckdb
import numpy as np
import pyarrow as pa
import pytest
import sqlglot

import confide
from confide.candidates import Candidates, Spread
from confide.cli import main
from confide.core import release
from confide.core.sources import Scores
from confide.errors import EarlierReleaseWarning, InputError
from confide.tables import (
    DIALECTS,
    ClassColumns,
    ContributionBound,
    CountsFiles,
    LossColumns,
    ScoreColumn,
    TableRequest,
    TargetColumns,
    calibrate_table,
    counting_query,
)
from confide.tables.bin_counts import Job, count_rows
from confide.tables.calibrate import bounded
from confide.tables.engine_counts import _call, with_trees
from confide.tables.open_table import as_open_table
from confide.tables.table import no_progress
from confide.tables.unread import UnreadTable
from tests.draws import always, recording
from tests.refused import Refused, bad_rows, refused
from tests.tables.counted import CASES, OF_CLASSES, answer_of, records, request_of
from tests.tables.engines import EMBEDDED, Spark

pytestmark = pytest.mark.filterwarnings("ignore::confide.CoverageWarning")  # +inf is possible, if improbable

TABLE = records()
BAD = pa.table(
    {
        "p": [0.5, None, np.nan, 1.5, -0.1, 0.5, 0.5, 0.5],
        "y": ["yes", "yes", "no", "yes", "yes", "other", None, "no"],
        "g": ["a", "a", "a", "a", "a", "a", "a", "b"],
        "f": [1.0, np.inf, -np.inf, None, np.nan, 1e308, 0.0, 0.0],
        "h": [1.0, np.inf, -np.inf, None, np.nan, 1e308, 0.0, 0.0],
        "t": [1.0, 0.0, 0.0, 0.0, 0.0, -1e308, None, 0.0],
        "who": ["x", "x", "x", "y", None, "z", "z", "z"],
        "visit": [1, 2, 2, 1, 1, None, None, 3],
        "w": [1.0, 0.5, None, np.nan, -1.0, 4.5, 4.0, np.inf],
    }
)
SIGNED = Candidates.spread("signed", 200, unit=1.0)
PAIR = ClassColumns("p", "y", ("no", "yes"))
UNUSABLE = {
    "classes": (PAIR, {}),
    "a group": (PAIR, {"by": "g", "groups": ["a"]}),
    "people": (PAIR, {"people": ContributionBound("who", 3, ("visit",))}),
    "weights": (PAIR, {"weights": "w", "weight_bound": 4.0}),
    "residuals": (TargetColumns("f", "t"), {}),
    "sides": (TargetColumns(("f", "h"), "t", "cqr_sides"), {}),
    "scores": (ScoreColumn("h"), {}),
}
"""NULL, NaN, infinities, values out of range, unknown classes and groups, no person, no weight."""


def jobs_of(request, table):
    """The rows of an open table that count for a request, and what is counted."""
    asked = TableRequest.of(**request)
    source, known = asked._records(table)
    candidates = bounded(known, UnreadTable.most_candidates, asked.n).counted_over(asked.n)
    return source.rows, [Job(columns, candidates) for columns in source.records]


def plain(found):
    return [(counts.array.tolist(), counts.errors.counts()) for counts in found]


def by_engine(source, request):
    """The counts and the unusable records of each score, by the engine of a source, or else by this process."""
    with as_open_table(source) as table:
        rows, jobs = jobs_of(request, table)
        return plain(rows.count(jobs, no_progress) or count_rows(rows, jobs, no_progress))


def by_query(request, dialect, ask, folder, name="records"):
    """The same from a file with the answer to a query."""
    names, rows = ask(counting_query(dialect, name, **request))
    lines = [names, *(["" if value is None else value for value in row] for row in rows)]
    path = folder / "counts.csv"
    path.write_text("".join(",".join(map(str, line)) + "\n" for line in lines))
    return by_engine(UnreadTable(TableRequest.of(**request).columns, files=[path]), request)


def asked_of_duckdb(table, dialect="duckdb"):
    """A function that runs a query by DuckDB: its own, or another dialect's, which sqlglot translates."""

    def ask(query):
        if dialect != "duckdb":
            (query,) = sqlglot.transpile(
                query, read=DIALECTS[dialect], write="duckdb", unsupported_level=sqlglot.ErrorLevel.RAISE
            )
        with duckdb.connect() as database:
            database.register("records", table)
            answer = database.execute(query)
            return [column[0] for column in answer.description], answer.fetchall()

    return ask


ENGINES = ["duckdb_sql", "ibis.polars", "ibis.datafusion"]
TRANSLATED = ["duckdb", "snowflake", "bigquery", "databricks"]
LONG = "default candidates"
UNRANKED = ("each group", "levels of people", "people")
"""Requests that Polars cannot count, because it cannot number the records of each person."""


@pytest.fixture(scope="module")
def expected():
    """The counts of each case by this process, which reads the rows."""
    known = {}

    def find(case):
        if case not in known:
            known[case] = by_engine(TABLE, request_of(case))
        return known[case]

    return find


@pytest.mark.slow(unless=("ibis.polars-no candidates", "ibis.polars-quantiles"))
@pytest.mark.parametrize(("engine", "case"), list(product(ENGINES, CASES)))
def test_engines_count_as_this_process(expected, tmp_path, engine, case):
    if engine == "ibis.polars" and case in UNRANKED:
        pytest.skip("cannot number the records of each person")
    assert by_engine(EMBEDDED[engine](tmp_path).table(TABLE), request_of(case)) == expected(case)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_postgres_counts_as_this_process(reader, expected, tmp_path, case):
    """Connected, and by the query."""
    name, request = reader.create(TABLE), request_of(case)

    def ask(query):
        with reader.connection.raw_sql(query) as cursor:
            return [column[0] for column in cursor.description], cursor.fetchall()

    assert by_engine(reader.connection.table(name), request) == expected(case)
    assert by_query(request, "postgres", ask, tmp_path, name) == expected(case)


@pytest.mark.slow(unless=("duckdb-weights", "snowflake-holes"))
@pytest.mark.parametrize(
    ("dialect", "case"), [*product(TRANSLATED, [case for case in CASES if case != LONG]), ("duckdb", LONG)]
)
def test_queries_count_as_this_process(expected, tmp_path, dialect, case):
    """Dialects that are not run here are translated by sqlglot and run by DuckDB."""
    assert by_query(request_of(case), dialect, asked_of_duckdb(TABLE, dialect), tmp_path) == expected(case)


@pytest.mark.long
@pytest.mark.xdist_group("spark")
def test_queries_of_spark_count_as_this_process(spark, expected, tmp_path):
    frame = Spark(spark, tmp_path).table(TABLE)
    frame.createOrReplaceTempView("confide_counted")

    def ask(query):
        answer = spark.sql(query)
        return answer.columns, answer.collect()

    for case in CASES:
        assert by_query(request_of(case), "spark", ask, tmp_path, "confide_counted") == expected(case), case


@pytest.mark.slow(unless="ibis.polars-people")
@pytest.mark.parametrize("case", UNUSABLE)
@pytest.mark.parametrize("engine", [*ENGINES, *TRANSLATED])
def test_unusable_records_have_the_same_reasons(tmp_path, engine, case):
    what, options = UNUSABLE[case]
    request = {"what": what, "alpha": 0.1, "epsilon": 1.0, "candidates": SIGNED, **options}
    if engine == "ibis.polars" and case in UNRANKED:
        pytest.skip("cannot number the records of each person")
    if engine in ENGINES:
        found = by_engine(EMBEDDED[engine](tmp_path).table(BAD), request)
    else:
        found = by_query(request, engine, asked_of_duckdb(BAD, engine), tmp_path)
    reasons = [errors for _, errors in by_engine(BAD, request)]
    assert [errors for _, errors in found] == reasons
    assert all(reasons)


@pytest.mark.slow
def test_unusable_records_release_nothing():
    counts = answer_of(counting_query("duckdb", "records", PAIR, 0.1, 1.0, candidates=SIGNED), BAD)
    with refused(InputError, "table") as caught:
        calibrate_table(CountsFiles(counts), PAIR, 0.1, 1.0, candidates=SIGNED)
    assert [number for number, _ in bad_rows(caught)] == [4, 1]


@pytest.mark.slow(unless=("bigquery", "duckdb"))
@pytest.mark.parametrize("dialect", DIALECTS)
def test_names_are_quoted(dialect):
    """A name is data, never SQL; quotes of every kind stay within it."""
    names = ("a'); --", "b\\")
    if dialect in ("spark", "databricks", "bigquery"):
        with refused(InputError, "columns"):
            counting_query(dialect, "records", ClassColumns("p_*", 'y"; DROP', names), 0.1, 1.0)
    request = {"what": ClassColumns(("p", "q"), 'y"; DROP', names), "alpha": 0.1, "epsilon": 1.0}
    query = counting_query(dialect, "a.b.records", **request, candidates=Candidates.unit(5))
    (parsed,) = sqlglot.parse(query, read="postgres" if dialect == "datafusion" else DIALECTS[dialect])
    assert set(names) <= {one.this for one in parsed.find_all(sqlglot.exp.Literal) if one.is_string}
    assert 'y"; DROP' in {column.name for column in parsed.find_all(sqlglot.exp.Column)}
    tables = [[part.name.lower() for part in table.parts] for table in parsed.find_all(sqlglot.exp.Table)]
    assert ["a", "b", "records"] in tables


@pytest.mark.slow
def test_snowflake_finds_its_columns():
    """Names that were never quoted are upper-case there; others are typed in quotes."""
    query = counting_query("snowflake", "clinic.records", TargetColumns('"f"', "t of day"), 0.1, 1.0)
    assert all(name in query for name in ('"t0"."f"', '"t0"."t of day"', '"CLINIC"."RECORDS"'))
    assert '"t0"."F"' in counting_query("snowflake", "records", ScoreColumn("f"), 0.1, 1.0)


def test_quoted_scores_keep_their_names():
    """A tree of comparisons stands where its call stood, whatever the name of a column."""
    score, edges = '"a ) (""of"" b"', np.array([0.5])
    assert with_trees(f"SELECT {_call(edges)}({score}), f(x)", edges) == (
        f"SELECT CASE WHEN {score} <= CAST('0.5' AS DOUBLE) THEN 0\nELSE 1 END, f(x)"
    )


@pytest.mark.long
@pytest.mark.parametrize("dialect", ["snowflake", "bigquery"])
def test_queries_stay_within_the_limits_of_engines(dialect):
    """Default lists of every kind of score, also with a thousand classes; a longer query raises an error."""
    classes = tuple(f"class number {i}" for i in range(1000))
    for what, by_class in (
        (ClassColumns("probability_of_*", "y", classes), False),
        (TargetColumns("f", "t"), False),
        (TargetColumns(("f", "g"), "t", "cqr_sides"), False),
        (ScoreColumn("s", "aps_deterministic"), False),
    ):
        assert len(counting_query(dialect, "records", what, 0.1, 10.0, by_class=by_class)) < 900_000
    longest = {"what": ScoreColumn("s"), "alpha": 0.1, "epsilon": 1.0}
    longest["candidates"] = Candidates.spread("residual", 60_000, unit=1.0)
    assert len(counting_query("duckdb", "records", **longest)) > 1_000_000
    with refused(InputError, "query"):
        counting_query(dialect, "records", **longest)


LAC = ClassColumns("p_*", "y", ("a", "b", "c"))
INVALID = [
    Refused(
        counting_query,
        {"dialect": "duckdb", "table": "records", "what": LAC, "alpha": 0.1, "epsilon": 1.0},
        change,
        argument,
        kind=InputError,
    )
    for change, argument in (
        ({"dialect": "oracle"}, "dialect"),
        ({"table": "a.b.c.d"}, "table"),
        ({"what": ClassColumns("p_*", "y", ("a", "b"), "aps_deterministic")}, "score"),
        ({"what": TargetColumns("f", "t", "gamma")}, "score"),
        ({"what": ClassColumns(("p_a", "p_b"), "y", ("a", "b"), logits=True)}, "logits"),
        ({"what": LossColumns(probabilities="p_*", truth="t_*")}, "losses"),
        ({"what": ClassColumns("p", "y", ("a", "b", "c"))}, "column"),
        ({"what": ClassColumns("p_*", "y")}, "classes"),
        ({"what": ClassColumns(("a", "b"), "y", ("a", "b", "c"))}, "classes"),
        ({"n": 100}, "n"),
        ({"groups": ["a"]}, "by"),
        ({"people": ContributionBound("who", 3, ("y",))}, "order"),
        ({"what": TargetColumns("f", "t", "cqr")}, "prediction"),
        ({"epsilon": -1.0}, "epsilon"),
    )
]


@pytest.mark.parametrize("row", INVALID, ids=str)
def test_invalid_requests_raise_an_error(row):
    row.check()


def test_candidates_are_those_of_a_table():
    """Those of the public number; otherwise of the longest list among which a noisy number chooses, up to 7,680."""

    def edges(what, **options):
        request = {"what": what, "alpha": 0.1, "epsilon": 0.5, **options}
        return jobs_of(request, UnreadTable(TableRequest.of(**request).columns))[1][0].edges.tolist()

    assert edges(LAC) == Candidates.quantiles(Spread("probability"), 7680).edges.tolist()
    residuals = Candidates.quantiles(Spread("residual", unit=25.0), 7680)
    assert edges(TargetColumns("f", "t"), unit=25.0) == residuals.edges.tolist()
    own = Candidates.of([0.25, 0.5])
    assert edges(LAC, candidates=own) == [0.25, 0.5]


SCORES = np.random.default_rng(5).random(2000)
REQUESTS = {
    "classes": (OF_CLASSES, {}),
    "own list": (OF_CLASSES, {"candidates": Candidates.unit(60)}),
    "around a guess": (OF_CLASSES, {"candidates": Candidates.around(0.4)}),
    "levels": (OF_CLASSES, {"alpha": ["0.2", "0.1"]}),
    "each class": (OF_CLASSES, {"by_class": True}),
    "each group": (OF_CLASSES, {"by": "ward", "groups": ["s", "7", "n"], "skip_incomplete": True}),
    "sides": (TargetColumns(("f", "g"), "t", "cqr_sides"), {}),
    "residuals of people": (
        TargetColumns("f", "t"),
        {"unit": 2.0, "people": ContributionBound("who", 2, ("visit",)), "delta": 0.1},
    ),
    "zcdp": (TargetColumns(("f", "g"), "t"), {"epsilon": None, "rho": 0.3}),
    "public number": (OF_CLASSES, {"neighbors": "replace_one", "n": 1200}),
    "not private": (OF_CLASSES, {"mechanism": "none", "epsilon": None, "candidates": Candidates.unit(60)}),
}


@pytest.mark.long
@pytest.mark.parametrize(("case", "first"), list(product(REQUESTS, ["counts", "table"])))
def test_ledger_recognises_the_request_of_the_table(draw_with, tmp_path, capsys, case, first):
    """The text is the same although the design for 40,000 records has a longer list for a table."""
    draw_with(noisy_number=always(40_000))
    what, options = REQUESTS[case]
    request = {"what": what, "alpha": 0.1, "epsilon": 1.0, **options}
    files = CountsFiles(answer_of(counting_query("duckdb", "records", **request), TABLE))
    if case == "not private":
        assert calibrate_table(files, **request).parts == calibrate_table(TABLE, **request).parts
        return
    account = {"ledger": confide.Ledger(tmp_path / "budget.db"), "dataset": "clinic"}
    if {"by", "by_class"} & options.keys():
        account["partition"] = "parts"
    released = calibrate_table(files if first == "counts" else TABLE, **request, **account)
    spent = account["ledger"].account("clinic").spent()
    with pytest.warns(EarlierReleaseWarning):
        again = calibrate_table(TABLE if first == "counts" else files, **request, **account)
    assert account["ledger"].account("clinic").spent() == spent
    assert again.to_json() == released.to_json()
    (tmp_path / "released.json").write_text(released.to_json())
    assert main(["verify", str(tmp_path / "released.json")]) == 0
    assert main(["show", str(tmp_path / "released.json")]) == 0
    if released.by is None and released.first.size is not None:
        assert "a noisy number" in capsys.readouterr().out
        assert confide.recalibrate(released, SCORES).renews == released.checksum


@pytest.mark.long
@pytest.mark.parametrize("number", [-50, 300, 1010, 40_000, 10**9])
def test_release_equals_that_of_arrays_whose_design_chooses_among_the_same_lists(draw_with, number):
    """Given the noisy number, the candidates have the same utilities, so that the threshold has the same law."""
    drawn = []
    draw_with(noisy_number=recording(drawn, always(number)), select=recording(drawn, always(5)))
    request = {"what": ScoreColumn("s", "lac"), "alpha": 0.1, "epsilon": 1.0}
    counts = answer_of(counting_query("duckdb", "records", **request), pa.table({"s": SCORES}))
    by_counts = calibrate_table(CountsFiles(counts), **request)
    assert by_counts == release(Scores({None: SCORES}), TableRequest.of(**request).request)
    half = len(drawn) // 2  # without a second draw where the answer is +inf
    assert drawn[:half] == drawn[half:]
    assert drawn[0] == (2000, 5.0)


@pytest.mark.slow
def test_another_number_of_records_releases_nothing():
    request = {"what": OF_CLASSES, "alpha": 0.1, "epsilon": 1.0, "neighbors": "replace_one", "n": 1199}
    with refused(InputError, "n"):
        calibrate_table(CountsFiles(answer_of(counting_query("duckdb", "records", **request), TABLE)), **request)
