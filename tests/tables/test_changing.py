"""Tables that are cut are refused before a charge, one that grows has one number of rows; progress."""

import gzip
import io
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from confide.errors import FormatError
from confide.ledger import Ledger
from confide.tables import ScoreColumn, calibrate_table, open_table, score_histogram
from tests.refused import refused
from tests.tables import postgres_server

DATA = pa.table({"s": np.random.default_rng(0).random(3000)})
PLAIN = {"alpha": 0.1, "epsilon": 1.0}


def arrow(new, data=DATA):
    sink = io.BytesIO()
    with new(sink, data.schema) as writer:
        for batch in data.to_batches(500):
            writer.write_batch(batch)
    return sink.getvalue()


def csv(data=DATA):
    sink = io.BytesIO()
    pyarrow.csv.write_csv(data, sink)
    return sink.getvalue()


def parquet(data=DATA):
    sink = io.BytesIO()
    pyarrow.parquet.write_table(data, sink, row_group_size=500)
    return sink.getvalue()


FILES = {
    "s.csv.gz": gzip.compress(csv(), mtime=0),
    "s.parquet": parquet(),
    "s.arrow": arrow(pa.ipc.new_file),
}


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_cut_is_refused_before_a_charge(name, share, tmp_path):
    whole, cut = tmp_path / name, tmp_path / f"cut_{name}"
    whole.write_bytes(FILES[name])
    cut.write_bytes(FILES[name][: int(share * len(FILES[name]))])
    ledger = Ledger(tmp_path / "budget.db")
    paid = {"ledger": ledger, "dataset": "d"}
    with refused(FormatError, "path"):
        calibrate_table(cut, ScoreColumn("s"), **PLAIN, **paid)
    assert ledger.accounts() == {}
    assert calibrate_table(whole, ScoreColumn("s"), **PLAIN, **paid).threshold <= 1
    assert len(ledger.account("d").entries) == 1


PIPED = {
    "gzip": (FILES["s.csv.gz"], "gzip"),
    "Parquet": (FILES["s.parquet"], "Parquet"),
    "Arrow file": (FILES["s.arrow"], "an Arrow file"),
    "Zstandard": (b"(\xb5/\xfd" + bytes(50), "Zstandard"),
    "Arrow stream, cut": (arrow(pa.ipc.new_stream)[:-4000], "truncated"),
    "Arrow stream, cut in its schema": (arrow(pa.ipc.new_stream)[:50], "truncated"),
}


@pytest.mark.long
@pytest.mark.parametrize("name", PIPED)
def test_standard_input_that_is_cut_or_packed_is_refused_before_a_charge(name, tmp_path):
    content, words = PIPED[name]
    command = "calibrate - --score-column s --alpha 0.1 --epsilon 1 --ledger b.db --dataset d --out r.json"
    done = subprocess.run(
        [Path(sys.executable).parent / "confide", *command.split()],
        input=content,
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 3
    assert done.stderr.decode().startswith("error: path: standard input ")
    assert words in done.stderr.decode()
    assert list(tmp_path.glob("r.json")) == []
    assert Ledger(tmp_path / "b.db").accounts() == {}


@pytest.mark.long
@pytest.mark.parametrize("form", ["csv", "folder"])
def test_a_table_that_grows_while_it_is_read_has_one_number_of_rows(form, tmp_path):
    """Whole lines, or files of a folder, are added all the time: a count has all rows before it, and none twice.

    Scores are the numbers of rows, divided by a million: the cells of the histogram then are rows without a gap.
    """
    rows = 200_000
    values = np.arange(rows) / 1e6
    place = tmp_path / ("grows.csv" if form == "csv" else "grows")
    if form == "csv":
        place.write_text("s\n" + "".join(f"{value:.6f}\n" for value in values))
    else:
        place.mkdir()
        (place / "0.csv").write_text("s\n" + "".join(f"{value:.6f}\n" for value in values))
    stop, written = threading.Event(), [rows]

    def grow():
        while not stop.is_set():
            more = "".join(f"{number / 1e6:.6f}\n" for number in range(written[0], written[0] + 500))
            if form == "csv":
                with place.open("a") as file:
                    file.write(more)
            else:
                hidden = place / f".{written[0]}"
                hidden.write_text("s\n" + more)
                hidden.rename(place / f"{written[0]}.csv")
            written[0] += 500

    thread = threading.Thread(target=grow)
    thread.start()
    try:
        releases = []
        for _ in range(5):
            before = written[0]
            released = calibrate_table(place, ScoreColumn("s"), 0.1, 50.0, unit=1.0)
            releases.append((before, released, written[0]))
    finally:
        stop.set()
        thread.join()
    for before, released, after in releases:
        # The noisy number has a fifth of epsilon: it is more than 10 off with a probability below 1e-47.
        assert before - 10 <= released.size.counted <= after + 10
        assert 0.88 * before / 1e6 <= released.threshold <= 0.92 * after / 1e6


@pytest.mark.slow(unless="sqlite")
def test_rows_are_reported_batch_by_batch(engine):
    rows: list[int] = []
    source = engine.table(pa.table({"s": np.linspace(0, 1, 5000)}))
    score_histogram(source, ScoreColumn("s", "lac"), progress=rows.append)
    assert sum(rows) == 5000


def test_expected_rows_of_a_database(tmp_path):
    import duckdb

    with duckdb.connect(tmp_path / "db.duckdb") as connection:
        connection.execute("CREATE TABLE t AS SELECT 0.5 AS s FROM range(5000)")
    with open_table(f"duckdb://{tmp_path}/db.duckdb", "t") as table:
        assert table.row_count() == 5000


def test_postgresql_estimates_the_number_of_rows(postgres, reader):
    import psycopg

    table = reader.table(pa.table({"s": np.arange(5000.0)}))
    with psycopg.connect(postgres.url(postgres_server.OWNER), autocommit=True) as owner:
        owner.execute(f"ANALYZE {table.get_name()}")
    with open_table(table) as whole, open_table(table.filter(table.s < 2500)) as half:
        assert whole.row_count() == 5000
        assert half.row_count() == pytest.approx(2500, rel=0.1)
