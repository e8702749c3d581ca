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
import pyarrow.parquet as pq
import pytest

import confide
from confide.errors import FormatError
from confide.ledger import Ledger
from confide.tables import (
    ContributionBound,
    ScoreColumn,
    TargetColumns,
    calibrate_table,
    open_table,
    score_batches,
    score_histogram,
)
from tests.builders import slow
from tests.draws import always
from tests.refused import refused
from tests.tables import postgres_server

DATA = pa.table({"s": np.random.default_rng(0).random(3000)})
PLAIN = {"alpha": 0.1, "epsilon": 1.0}


def arrow(new):
    sink = io.BytesIO()
    with new(sink, DATA.schema) as writer:
        writer.write_table(DATA, max_chunksize=500)
    return sink.getvalue()


CSV, PARQUET = io.BytesIO(), io.BytesIO()
pyarrow.csv.write_csv(DATA, CSV)
pq.write_table(DATA, PARQUET, row_group_size=500)
FILES = {
    "s.csv.gz": gzip.compress(CSV.getvalue(), mtime=0),
    "s.parquet": PARQUET.getvalue(),
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


# --- rows that can be read once, without a known number: the release is that of the plan

pytestmark = pytest.mark.filterwarnings("ignore::confide.CoverageWarning")  # a threshold may lie above all scores

N, PUBLIC = 200, {"neighbors": "replace_one"}
SCORES = np.abs(np.random.default_rng(0).normal(size=N))
WHAT = ScoreColumn("s", "absolute_residual")


def batches(columns):
    """The same rows as a new stream of mappings."""
    return ({name: values[rows] for name, values in columns.items()} for rows in np.array_split(np.arange(N), 4))


@pytest.mark.slow
@pytest.mark.parametrize("source", [batches, *slow([pa.table])])
def test_candidates_fit_the_records_that_count(source):
    """170 of 200 rows are complete; 50 persons have four rows each, two of which count."""
    plan = confide.plan(0.1, 1.0, N, score="absolute_residual", **PUBLIC)
    assert plan.chance_beyond < 0.05  # candidates for 1000 records, the default, would place half of the answers there
    for options in ({}, {"n": N}):
        released = calibrate_table(source({"s": SCORES}), WHAT, 0.1, 1.0, **PUBLIC, **options)
        assert (released.mechanism, released.recipe) == (plan.mechanism, plan.candidates.recipe)
    gaps = np.where(np.arange(N) < 30, np.nan, SCORES)
    released = calibrate_table(source({"s": gaps}), WHAT, 0.1, 1.0, skip_incomplete=True, **PUBLIC)
    assert released.mechanism == confide.plan(0.1, 1.0, 170, score="absolute_residual", **PUBLIC).mechanism
    owned = {"s": SCORES, "who": np.arange(N) % 50, "at": np.arange(N)}
    released = calibrate_table(source(owned), WHAT, 0.1, 4.0, people=ContributionBound("who", 2, ("at",)), **PUBLIC)
    planned = confide.plan(0.1, 4.0, 100, score="absolute_residual", records_per_person=2, **PUBLIC)
    assert released.mechanism == planned.mechanism


@pytest.mark.slow
def test_levels_and_sides_fit_the_actual_number():
    several = calibrate_table(batches({"s": SCORES}), WHAT, [0.2, 0.1], 2.0, **PUBLIC)
    at_once = confide.calibrate(SCORES, [0.2, 0.1], 2.0, score="absolute_residual", **PUBLIC)
    assert [part.mechanism for part in several.parts.values()] == [part.mechanism for part in at_once.parts.values()]
    quantiles = np.column_stack([SCORES - 1, SCORES + 1])
    low, high, y = *quantiles.T, SCORES[::-1]
    sides = calibrate_table(
        batches({"low": low, "high": high, "y": y}),
        TargetColumns(("low", "high"), "y", "cqr_sides"),
        0.2,
        2.0,
        **PUBLIC,
    )
    at_once = confide.calibrate_sides(quantiles, y, 0.2, 2.0, **PUBLIC)
    assert [one.recipe for one in sides.by_name.values()] == [one.recipe for one in at_once.by_name.values()]


@pytest.mark.parametrize("options", [{}, {"unit": 2.0}, {"candidates": confide.Candidates.around(2.0)}], ids=str)
def test_a_loader_is_calibrated_as_planned(options):
    torch = pytest.importorskip("torch", reason="needs the extra 'torch'")
    from confide import torch as front

    f, y = torch.zeros(N), torch.as_tensor(SCORES)
    loader = list(zip(f.split(60), y.split(60), strict=True))
    identity = torch.nn.Identity()
    request = {"score": "absolute_residual", **PUBLIC, **options}
    released = front.calibrate(identity, iter(loader), 0.1, 1.0, progress=False, **request)
    plan = confide.plan(0.1, 1.0, N, **request)
    assert released.mechanism == plan.mechanism
    assert released.recipe == plan.candidates.recipe


@pytest.mark.slow
def test_candidates_of_a_secret_number_ignore_the_rows(draw_with):
    """Under `add_remove` candidates depend on the noisy number only, because they must not reveal that of the rows."""
    draw_with(noisy_number=always(1000))
    plan = confide.plan(0.1, 1.0, 1000, score="absolute_residual")
    for scores in (SCORES, SCORES[:50]):
        rows = ({"s": part} for part in np.array_split(scores, 2))
        released = calibrate_table(rows, WHAT, 0.1, 1.0)
        assert released.recipe == plan.candidates.recipe
        assert released.mechanism == plan.mechanism


def test_counts_over_the_candidates_of_a_plan():
    """For array batches, which are counted before a request is made."""
    plan = confide.plan(0.1, 1.0, N, score="absolute_residual", **PUBLIC)
    counts = score_batches(np.array_split(SCORES, 4), score="absolute_residual", candidates=plan.candidates)
    released = confide.calibrate_histogram(counts, 0.1, 1.0, score="absolute_residual", **PUBLIC)
    assert released.mechanism == plan.mechanism
