"""Property: the counts of every source are the counts of the same scores in an array."""

from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import csv, feather, parquet

from confide.candidates import Candidates
from confide.counting import ScoreHistogram
from confide.tables import ScoreColumn, open_table, score_histogram

EDGES = st.lists(st.floats(0, 1, allow_subnormal=False), min_size=1, max_size=8, unique=True).map(sorted)


@st.composite
def scores_and_candidates(draw):
    """Scores in [0, 1], many of them equal to a candidate or one rounding step from it."""
    edges = draw(EDGES)
    near = st.sampled_from(edges).flatmap(
        lambda edge: st.sampled_from([edge, float(np.nextafter(edge, 0)), float(np.nextafter(edge, 1))])
    )
    scores = draw(st.lists(st.one_of(near, st.floats(0, 1, allow_subnormal=False)), min_size=1, max_size=30))
    return scores, Candidates.of(edges)


def duckdb_file(scores, folder):
    with duckdb.connect(folder / "scores.duckdb") as database:
        database.register("given", pa.table({"s": pa.array(scores, pa.float64())}))
        database.execute("create table records as select * from given")
    return f"duckdb://{folder / 'scores.duckdb'}"


def file_of(write, name):
    def made(scores, folder):
        write(pa.table({"s": pa.array(scores, pa.float64())}), folder / name)
        return folder / name

    return made


def parts(scores, folder):
    """A folder of two Parquet files."""
    half = len(scores) // 2
    for name, some in (("a", scores[:half]), ("b", scores[half:])):
        parquet.write_table(pa.table({"s": pa.array(some, pa.float64())}), folder / f"{name}.parquet")
    return folder


SOURCES = {
    "arrow": lambda scores, _: pa.table({"s": pa.array(scores, pa.float64())}),
    "batches": lambda scores, _: pa.table({"s": pa.array(scores, pa.float64())}).to_reader(max_chunksize=3),
    "pandas": lambda scores, _: pd.DataFrame({"s": scores}),
    "polars": lambda scores, _: pl.DataFrame({"s": scores}),
    "csv": file_of(csv.write_csv, "scores.csv"),
    "parquet": file_of(parquet.write_table, "scores.parquet"),
    "feather": file_of(feather.write_feather, "scores.arrow"),
    "folder": parts,
    "duckdb": duckdb_file,
}


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES)
@settings(max_examples=15)
@given(scores_and_candidates())
def test_counts_of_a_source_are_those_of_an_array(source, case):
    scores, candidates = case
    expected = ScoreHistogram.from_scores(np.array(scores), candidates, "lac")
    with TemporaryDirectory() as folder:
        made = SOURCES[source](scores, Path(folder))
        if source == "duckdb":
            with open_table(made, "records") as table:
                found = score_histogram(table, ScoreColumn("s", "lac"), candidates)
        else:
            found = score_histogram(made, ScoreColumn("s", "lac"), candidates)
    assert np.array_equal(found.counts, expected.counts)
