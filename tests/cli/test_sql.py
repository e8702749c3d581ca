"""`confide sql` and `confide calibrate --counts`: from a request to a release by a warehouse."""

from pathlib import Path

import duckdb
import pytest
from pyarrow import parquet

from confide.cli.exit_codes import REFUSED
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
@pytest.mark.parametrize("more", [(), ("--neighbors", "replace_one", "--n", "1200"), OF_GROUPS], ids=len)
def test_counts_give_the_release_of_the_table(confide_run, clinic, more):
    """A ledger recognises the table as the data of the counts, because request and counts are equal."""
    asked = confide_run("sql", "--dialect", "duckdb", "--table", "records", *REQUEST, *more)
    assert (asked.code, asked.err) == (0, "")
    clinic(asked.out)
    paid = ["--ledger", "b.db", "--dataset", "d", *(["--set", "partition=ward"] if "--by" in more else [])]
    first = confide_run("calibrate", "--counts", "counts.csv", *REQUEST, *more, "--out", "a.json", *paid)
    assert first.code == 0, first.err
    columns = ("--probabilities", "p_*", *REQUEST[2:])
    table = confide_run("calibrate", "records.parquet", *columns, *more, "--out", "c.json", *paid)
    assert "nothing was charged" in table.out, table.err
    assert Path("a.json").read_bytes() == Path("c.json").read_bytes()


@pytest.mark.slow
def test_a_ledger_rejects_counts_of_other_records(confide_run, clinic):
    clinic(confide_run("sql", "--dialect", "duckdb", "--table", "records", *REQUEST).out)
    run = ("calibrate", "--counts", "counts.csv", *REQUEST, "--ledger", "b.db", "--dataset", "d")
    assert confide_run(*run, "--out", "a.json").code == 0
    lines = Path("counts.csv").read_text().splitlines()
    Path("counts.csv").write_text("\n".join(lines[:-1]) + "\n")
    assert confide_run(*run, "--out", "b.json").refused == (REFUSED, "--dataset")
    assert not Path("b.json").exists()
