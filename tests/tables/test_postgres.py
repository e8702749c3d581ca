"""Databases: a reader's role suffices, and errors of a server are one line without passwords and values."""

import re
from decimal import Decimal

import pyarrow as pa
import pytest

from confide.cli.app import main
from confide.tables import EngineError, ScoreColumn, TargetColumns, open_table, score_histogram
from confide.tables.arrow import ColumnRef
from tests.refused import refused
from tests.tables import postgres_server

COUNTED = ["--probabilities", "p_*", "--label", "y", "--alpha", "0.1", "--epsilon", "1"]


def test_a_reader_needs_no_right_to_write(postgres, reader):
    """The role can neither create tables nor temporary ones; the session is read-only as well."""
    import psycopg

    name = reader.create(pa.table({"y": [1]}))
    with psycopg.connect(postgres.url(postgres_server.READER), autocommit=True) as connection:
        for command in ("CREATE TEMPORARY TABLE t (a int)", "CREATE TABLE t (a int)", f"TRUNCATE {name}"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(command)
    with (
        open_table(postgres.url(postgres_server.OWNER), name) as table,
        pytest.raises(psycopg.errors.ReadOnlySqlTransaction),
    ):
        table.backend.raw_sql("CREATE TABLE t (a int)")


@pytest.mark.parametrize(
    ("source", "finding"),
    [
        (["postgresql://reader@127.0.0.1:{closed}/postgres", "--table", "t"], "no connection"),
        (["postgresql://nobody@127.0.0.1:{port}/postgres", "--table", "t"], "no connection|rejected"),
        (["postgresql://reader@127.0.0.1:{port}/postgres", "--table", "nothing"], "'nothing' is not in"),
        (["postgresql://reader@127.0.0.1:{port}/postgres"], "--table: must be given"),
        (["nosuch://reader@127.0.0.1/db", "--table", "t"], "got nosuch://"),
        (["postgresql://reader:{password}@127.0.0.1:{port}/postgres", "--table", "t"], "TABLE: an address carries no"),
        (["records.csv", "--ledger", "postgresql://host/db?password={password}"], "--ledger: an address carries no"),
        (["duckdb:///nowhere/at.all", "--table", "t"], "opening 'duckdb:///nowhere/at.all'"),
        (["/nowhere/*.parquet"], "must name files that end in one of .parquet, .* It names none of them"),
    ],
)
def test_failures_are_one_line_without_password(postgres, source, finding, tmp_path, capfd, monkeypatch):
    monkeypatch.setenv("PGPASSWORD", postgres_server.PASSWORD)
    values = {"password": postgres_server.PASSWORD, "port": postgres.port, "closed": 1}
    arguments = [text.format(**values) if "{" in text else text for text in source]
    assert main(["calibrate", *arguments, *COUNTED, "--out", str(tmp_path / "cal.json")]) == 3
    said = capfd.readouterr()
    assert re.search(finding, said.err), said.err
    assert len(said.err.splitlines()) == 1
    assert postgres_server.PASSWORD not in said.err + said.out
    assert not list(tmp_path.iterdir())


def test_a_number_that_overflows_in_the_server_is_not_quoted(reader):
    table = reader.table(pa.table({"f": [1e308], "y": [-1.7e308]}))
    with refused(EngineError, "engine") as caught:
        score_histogram(table, TargetColumns("f", "y"))
    assert "e308" not in str(caught.value)


TYPES = {
    "'5f0c954e-0f52-4e25-b9d0-f4bd13a8a1e5'::uuid": "5f0c954e-0f52-4e25-b9d0-f4bd13a8a1e5",
    "'10.0.0.1'::inet": "10.0.0.1/32",
    "'08:00:2b:01:02:03'::macaddr": "08:00:2b:01:02:03",
    "0.1234567890123::numeric": "0.1234567890123",
    "1e40::numeric": f"1{'0' * 40}",
    "'NaN'::numeric": "NaN",
    "0.5::numeric(4, 2)": Decimal("0.50"),
    "'1 month 0.25 seconds'::interval": "1 mon 00:00:00.25",
    "'(1,2)'::point": "(1,2)",
    "'[1,2]'::int4range": "[1,3)",
    "array['5f0c954e-0f52-4e25-b9d0-f4bd13a8a1e5'::uuid]": ["5f0c954e-0f52-4e25-b9d0-f4bd13a8a1e5"],
    "12.5::money": EngineError,
    "'infinity'::timestamp": EngineError,
}


@pytest.mark.parametrize("value", TYPES)
def test_a_column_of_any_type_is_copied_as_text_or_refused_by_name(postgres, value):
    """A column that is not read may hold anything; no value is in an error."""
    import psycopg

    name = f"types_{list(TYPES).index(value)}"
    with psycopg.connect(postgres.url(postgres_server.OWNER), autocommit=True) as connection:
        connection.execute(f"CREATE TABLE {name} AS SELECT 0.75::float8 AS p, {value} AS other")
    with open_table(postgres.url(postgres_server.OWNER), name) as table:
        assert score_histogram(table, ScoreColumn("p")).total == 1
        batches = table.batches([ColumnRef("other", "value")], 9000)
        if TYPES[value] is EngineError:
            with refused(EngineError, "engine") as caught:
                list(batches)
            assert "'other'" in str(caught.value)
            assert "12.5" not in str(caught.value)
        else:
            assert next(batches).column(0).to_pylist() == [TYPES[value]]
