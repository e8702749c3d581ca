"""Column names of data frames, whichever library they come from."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import confide
from confide.arrays import column_names

P = {"cat": [0.7, 0.2], "dog": [0.2, 0.5], "owl": [0.1, 0.3]}
FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table, "batch": pa.RecordBatch.from_pydict}


@pytest.mark.parametrize("library", FRAMES)
def test_names_of_columns(library):
    assert column_names(FRAMES[library](P)) == ("cat", "dog", "owl")


@pytest.mark.parametrize(
    "unnamed",
    [
        np.eye(3),
        np.eye(3).tolist(),
        pd.DataFrame(np.eye(3)),
        pd.DataFrame(np.eye(2), columns=[0.5, 1.5]),
        pa.array([1]),
    ],
)
def test_arrays_and_numbered_frames_have_none(unnamed):
    assert column_names(unnamed) is None


def test_integers_are_names_unless_they_count():
    assert column_names(pd.DataFrame(np.eye(2), columns=[3, 5])) == (3, 5)
    assert column_names(pd.DataFrame(np.eye(2), columns=["0", "1"])) is None


def test_columns_of_one_name_are_refused():
    with pytest.raises(confide.InputError, match="columns of different names; found 1 repeated"):
        confide.lac_score(pd.DataFrame(np.eye(2), columns=["a", "a"]), ["a", "a"])


@pytest.mark.parametrize("library", FRAMES)
def test_scores_are_matched_by_name(library):
    """Labels are names; integers beside named columns are not silently positions, from 0 or from 1."""
    frame = FRAMES[library](P)
    scores = confide.lac_score(frame, ["dog", "dog"])
    np.testing.assert_allclose(scores, [0.8, 0.5])
    assert scores.classes == ("cat", "dog", "owl")
    for labels in ([0, 1], [1, 2]):
        with pytest.raises(confide.InputError, match=r"must name the 3 classes, .*found integers: if they count"):
            confide.lac_score(frame, labels)
    assert (
        confide.lac_score(frame, [0, 1], classes=[0, 1, 2]).tolist()
        == confide.lac_score(np.asarray(frame), [0, 1]).tolist()
    )


def test_integer_names_match_integer_labels():
    frame = pd.DataFrame({"1": P["cat"], "2": P["dog"], "3": P["owl"]})
    np.testing.assert_allclose(confide.lac_score(frame, [1, 3]), [0.3, 0.7])
