"""Counts by the query equal those of this library exactly, in every dialect that can be run or translated."""

from itertools import product

import duckdb
import numpy as np
import pyarrow as pa
import pytest
import sqlglot

from confide.candidates import Candidates
from confide.errors import InputError
from confide.tables import ClassColumns, ContributionBound, ScoreColumn, TargetColumns
from confide.warehouse import DIALECTS, CountingPlan, counting_query, counts_of, read_counts
from confide.warehouse.query import COLUMNS
from tests.builders import slow
from tests.refused import bad_rows, refused
from tests.tables.engines import Spark
from tests.warehouse.requests import CASES, plan_of, records

TABLE = records()


@pytest.fixture(scope="module")
def database():
    with duckdb.connect() as connection:
        connection.register("arriving", TABLE)
        connection.execute("CREATE TABLE records AS SELECT * FROM arriving")
        yield connection


@pytest.fixture(scope="module")
def in_postgres(reader):
    return reader.create(TABLE)


@pytest.fixture(scope="module")
def in_spark(spark, tmp_path_factory):
    frame = Spark(spark, tmp_path_factory.mktemp("spark")).table(TABLE)
    frame.createOrReplaceTempView("confide_counted")
    yield "confide_counted"
    spark.catalog.dropTempView("confide_counted")


@pytest.fixture(scope="module")
def expected():
    """The counts of each case, by the tables of this library."""
    made = {}

    def find(case):
        if case not in made:
            what, _, count = CASES[case]
            made[case] = {name: one.counts.tolist() for name, one in count(TABLE, plan_of(case), what).items()}
        return made[case]

    return find


def counted(plan, rows, folder):
    """The counts read from a file with these rows."""
    path = folder / "counts.csv"
    lines = [",".join(COLUMNS), *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return {name: one.counts.tolist() for name, one in read_counts(path, plan).items()}


def asked_of_duckdb(database, dialect, query):
    """The rows that DuckDB returns: by its own query, or by the translation of another dialect's query."""
    if dialect != "duckdb":
        (query,) = sqlglot.transpile(query, read=dialect, write="duckdb", unsupported_level=sqlglot.ErrorLevel.RAISE)
    return database.execute(query).fetchall()


RUN_HERE = ["duckdb", "snowflake", "bigquery"]


def once_each(dialects):
    """Every case in every dialect; in the everyday suite each in one, except the long one of default candidates."""
    cases = [case for case in CASES if case != "default candidates"]
    once = [(dialects[i % len(dialects)], case) for i, case in enumerate(cases)]
    return [*once, *slow(pair for pair in product(dialects, CASES) if pair not in once)]


@pytest.mark.slow
@pytest.mark.parametrize(("dialect", "case"), once_each(RUN_HERE))
def test_counts_are_those_of_this_library(database, expected, tmp_path, dialect, case):
    """Dialects that are not run here are translated by sqlglot and run by DuckDB."""
    plan = plan_of(case)
    rows = asked_of_duckdb(database, dialect, counting_query(plan, dialect, "records"))
    assert counted(plan, rows, tmp_path) == expected(case)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_counts_in_postgres(reader, in_postgres, expected, tmp_path, case):
    plan = plan_of(case)
    with reader.connection.raw_sql(counting_query(plan, "postgres", in_postgres)) as cursor:
        assert counted(plan, cursor.fetchall(), tmp_path) == expected(case)


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("case", CASES)
def test_counts_in_spark(spark, in_spark, expected, tmp_path, case):
    plan = plan_of(case)
    rows = spark.sql(counting_query(plan, "spark", in_spark)).collect()
    assert counted(plan, rows, tmp_path) == expected(case)


@pytest.mark.parametrize(("dialect", "case"), once_each(list(DIALECTS)))
def test_queries_are_parsed_in_their_dialect(dialect, case):
    """One statement in every dialect, without functions that differ between engines."""
    plan = plan_of(case)
    query = counting_query(plan, dialect, "a.b.records")
    (parsed,) = sqlglot.parse(query, read=dialect, error_level=sqlglot.ErrorLevel.RAISE)
    assert parsed.named_selects == list(COLUMNS)
    literals = {one.this for one in parsed.find_all(sqlglot.exp.Literal) if one.is_string}
    edges = {repr(edge) for edge in plan.candidates.edges.tolist()}
    assert edges <= {one for text in literals for one in text.split(",")}
    anonymous = {one.name.lower() for one in parsed.find_all(sqlglot.exp.Anonymous)}
    assert anonymous <= ({"get"} if DIALECTS[dialect].searches else set())
    (table,) = [one for one in parsed.find_all(sqlglot.exp.Table) if not one.name.startswith("confide_")]
    assert [one.name.lower() for one in table.parts] == ["a", "b", "records"]
    if "label" in vars(plan.what):
        assert set(map(str, plan.what.classes if not plan.what.label_positions else "012")) <= literals


def test_unusable_records_are_counted_in_the_error(database, tmp_path):
    """NULL, NaN, infinities, values out of range, unknown classes and groups, records without a person."""
    bad = pa.table(
        {
            "p": [0.5, None, np.nan, 1.5, -0.1, 0.5, 0.5, 0.5],
            "y": ["yes", "yes", "no", "yes", "yes", "other", None, "no"],
            "g": ["a", "a", "a", "a", "a", "a", "a", "b"],
            "f": [1.0, np.inf, -np.inf, None, np.nan, 1e308, 0.0, 0.0],
            "h": [1.0, np.inf, -np.inf, None, np.nan, 1e308, 0.0, 0.0],
            "t": [1.0, 0.0, 0.0, 0.0, 0.0, -1e308, None, 0.0],
            "who": ["x", "x", "x", "y", None, "z", "z", "z"],
            "visit": [1, 2, 2, 1, 1, None, None, 3],
        }
    )
    database.register("bad", bad)

    def found(what, **options):
        plan, findings = (
            CountingPlan.of(what, 0.1, 1.0, candidates=Candidates.spread("signed", 200, unit=1.0), **options),
            [],
        )
        for dialect in ("duckdb", "bigquery"):
            rows = asked_of_duckdb(database, dialect, counting_query(plan, dialect, "bad"))
            findings.append({row[2]: row[3] for row in rows if row[2] < 0})
            with refused(InputError, "counts") as caught:
                counted(plan, rows, tmp_path)
            assert [count for count, _ in bad_rows(caught)] == list(dict(sorted(findings[-1].items())[::-1]).values())
        assert findings[0] == findings[1]
        return findings[0]

    classes = ClassColumns("p", "y", ("no", "yes"))
    assert found(classes) == {-1: 4, -2: 2}
    assert found(classes, by="g", groups=["a"]) == {-1: 4, -2: 2, -3: 1}
    assert found(TargetColumns("f", "t")) == {-1: 1, -2: 4, -3: 1}
    assert found(TargetColumns(("f", "h"), "t", "cqr_sides"))
    assert found(classes, people=ContributionBound("who", 3, ("visit",))) == {-1: 2, -2: 2, -3: 1, -4: 1}


@pytest.mark.slow
@pytest.mark.parametrize("dialect", DIALECTS)
def test_names_are_quoted(dialect):
    """A name is data, never SQL; quotes of every kind stay within it."""
    plan = CountingPlan.of(ClassColumns("p_*", 'y"; DROP', ("a'); --", "b\\")), 0.1, 1.0)
    if DIALECTS[dialect].quote == "`":
        with refused(InputError, "columns"):
            counting_query(plan, dialect, "records")
        plan = CountingPlan.of(ClassColumns(("p", "q"), 'y"; DROP', ("a'); --", "b\\")), 0.1, 1.0)
    (parsed,) = sqlglot.parse(counting_query(plan, dialect, "records"), read=dialect)
    strings = {one.this for one in parsed.find_all(sqlglot.exp.Literal) if one.is_string}
    assert {"a'); --", "b\\"} <= strings
    assert 'y"; DROP' in {one.name for one in parsed.find_all(sqlglot.exp.Column)}


def test_snowflake_finds_its_columns(database):
    """Names that were never quoted are upper-case there; others are typed in quotes."""
    query = counting_query(CountingPlan.of(TargetColumns('"f"', "t of day"), 0.1, 1.0), "snowflake", "clinic.records")
    assert 'SELECT "f", "t of day"\nFROM "CLINIC"."RECORDS"' in query
    assert 'SELECT "F"' in counting_query(CountingPlan.of(ScoreColumn("f"), 0.1, 1.0), "snowflake", "records")


@pytest.mark.slow
@pytest.mark.parametrize(("dialect", "most"), [("snowflake", 1_000_000), ("bigquery", 1_000_000)])
def test_queries_stay_within_the_limits_of_engines(dialect, most):
    """Default lists of every kind of score, also with a thousand classes; a longer query raises an error."""
    classes = tuple(f"class number {i}" for i in range(1000))
    scores = (None, "lac", "aps_deterministic", "margin", "top_k", "raps_deterministic(penalty=0.01,k_reg=3)")
    for what, by_class in (
        (ClassColumns("probability_of_*", "y", classes), True),
        (TargetColumns("f", "t"), False),
        (TargetColumns(("f", "g"), "t", "cqr_sides"), False),
        *((ScoreColumn("s", score), False) for score in scores),
    ):
        plan = CountingPlan.of(what, 0.1, 10.0, by_class=by_class)
        assert len(counting_query(plan, dialect, "records")) < 0.8 * most
    longest = CountingPlan.of(ScoreColumn("s"), 0.1, 1.0, candidates=Candidates.spread("residual", 60_000, unit=1.0))
    assert len(counting_query(longest, "duckdb", "records")) > most
    with refused(InputError, "query"):
        counting_query(longest, dialect, "records")


def test_zero_and_infinities_are_compared_as_numbers(database):
    """Signed zeros are one number, and a ready-made score may be +inf, but not -inf."""
    plan = CountingPlan.of(ScoreColumn("s"), 0.1, 1.0, candidates=Candidates.spread("signed", 200, unit=1.0))
    database.register("few", pa.table({"s": [0.0, -0.0, np.inf, -np.inf, np.nan]}))
    rows = database.execute(counting_query(plan, "duckdb", "few")).fetchall()
    zero = int(np.searchsorted(plan.candidates.edges, 0.0))
    assert counts_of([dict(zip(COLUMNS, row, strict=True)) for row in rows], plan) == {
        (0, -1): 2,
        (0, zero): 2,
        (0, plan.bins - 1): 1,
    }
