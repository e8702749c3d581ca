"""`confide sql` and `confide calibrate --counts`: from a request to a release by a warehouse."""

from pathlib import Path

import duckdb
import pytest
from pyarrow import parquet

from tests.tables.counted import COLUMNS, NAMES, records

REQUEST = (
    "--probabilities", ",".join(COLUMNS), "--classes", ",".join(NAMES), "--label", "y", "--alpha", "0.1",
    "--epsilon", "1", "--set", "candidates=unit:50",
)  # fmt: skip
PEOPLE = "people={person = 'who', most = 2, order = 'visit'}"
OF_GROUPS = ("--by", "ward", "--groups", "n,s,7", "--set", PEOPLE)


@pytest.fixture
def clinic(folder):
    """A table of records, and a function that writes the answer of a query to counts.csv."""
    parquet.write_table(records(), "records.parquet")

    def ask(query, answer="counts.csv"):
        with duckdb.connect() as database:
            database.execute("CREATE VIEW records AS FROM 'records.parquet'")
            database.sql(query).write_csv(answer)

    return ask


@pytest.mark.slow
def test_counts_give_the_release_of_the_table(confide_run, clinic):
    """A ledger recognises the table as the data of the counts, because request and counts are equal."""
    asked = confide_run("sql", "--dialect", "duckdb", "--table", "records", *REQUEST, *OF_GROUPS)
    assert (asked.code, asked.err) == (0, "")
    clinic(asked.out)
    paid = ("--ledger", "b.db", "--dataset", "d", "--set", "partition=ward")
    first = confide_run("calibrate", "--counts", "counts.csv", *REQUEST, *OF_GROUPS, "--out", "a.json", *paid)
    assert first.code == 0, first.err
    columns = ("--probabilities", "p_*", *REQUEST[2:])
    table = confide_run("calibrate", "records.parquet", *columns, *OF_GROUPS, "--out", "c.json", *paid)
    assert "nothing was charged" in table.out, table.err
    assert Path("a.json").read_bytes() == Path("c.json").read_bytes()
