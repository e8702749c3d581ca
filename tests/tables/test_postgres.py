"""Databases: a reader's role suffices, and errors of a server are one line without passwords and values."""

import re

import pyarrow as pa
import pytest

from confide.cli.run import main
from confide.tables import EngineError, TargetColumns, open_table, score_histogram
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
