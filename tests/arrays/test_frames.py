"""Column names of data frames of every library."""

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import confide
from confide.arrays import column_names
from tests.calibrations import calibration_at
from tests.refused import refused

P = {"cat": [0.7, 0.2], "dog": [0.2, 0.5], "owl": [0.1, 0.3]}
FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table, "batch": pa.RecordBatch.from_pydict}


@pytest.mark.parametrize("library", FRAMES)
def test_names_of_columns(library):
    assert column_names(FRAMES[library](P)) == ("cat", "dog", "owl")


UNNAMED = [np.eye(3), np.eye(3).tolist(), pd.DataFrame(np.eye(3)), pd.DataFrame(np.eye(2), columns=[0.0, 1.0])]


@pytest.mark.parametrize("unnamed", [*UNNAMED, pa.array([1])])
def test_arrays_and_numbered_frames_have_none(unnamed):
    assert column_names(unnamed) is None


def test_integers_are_names_unless_they_count():
    assert column_names(pd.DataFrame(np.eye(2), columns=[3, 5])) == (3, 5)
    assert column_names(pd.DataFrame(np.eye(2), columns=["0", "1"])) is None


def test_repeated_column_names_raise_an_error():
    with refused(confide.errors.InputError, "probabilities"):
        confide.lac_score(pd.DataFrame(np.eye(2), columns=["a", "a"]), ["a", "a"])


@pytest.mark.parametrize("library", FRAMES)
def test_scores_are_matched_by_name(library):
    """Labels are names; integers with named columns are never silently positions, from 0 or from 1."""
    frame = FRAMES[library](P)
    scores = confide.lac_score(frame, ["dog", "dog"])
    np.testing.assert_allclose(scores, [0.8, 0.5])
    assert scores.classes == ("cat", "dog", "owl")
    for labels in ([0, 1], [1, 2]):
        with refused(confide.errors.InputError, "labels"):
            confide.lac_score(frame, labels)
    positions = confide.lac_score(frame, [0, 1], classes=[0, 1, 2])
    assert positions.tolist() == confide.lac_score(np.asarray(frame), [0, 1]).tolist()


def test_integer_names_match_integer_labels():
    frame = pd.DataFrame({"1": P["cat"], "2": P["dog"], "3": P["owl"]})
    np.testing.assert_allclose(confide.lac_score(frame, [1, 3]), [0.3, 0.7])


CLASSES = ("cat", "dog")
ROWS = [[0.75, 0.25], [0.5, 0.5]]


def released():
    return calibration_at(0.5, classes=CLASSES)


TURNED = {"dog": [0.25, 0.5], "cat": [0.75, 0.5]}
OF_EVERY_KIND = {
    "pandas": pd.DataFrame(TURNED),
    "pandas of Arrow": pd.DataFrame(TURNED).convert_dtypes(dtype_backend="pyarrow"),
    "polars": pl.DataFrame(TURNED),
    "Arrow": pa.table(TURNED),
    "Arrow batch": pa.RecordBatch.from_pydict(TURNED),
    "narwhals": nw.from_native(pl.DataFrame(TURNED)),
}


@pytest.mark.parametrize("frame", OF_EVERY_KIND.values(), ids=OF_EVERY_KIND)
def test_columns_of_any_frame_are_classes_by_name(frame):
    sets = confide.predict_set(frame, released())
    assert sets.classes == CLASSES
    assert sets.labels() == [["cat"], ["cat", "dog"]]
    own = confide.lac_score(frame, CLASSES)
    np.testing.assert_allclose(own, [0.25, 0.5])
    np.testing.assert_allclose(confide.lac_score(np.array(ROWS), [0, 1]), own)


@pytest.mark.slow
def test_a_relation_is_collected():
    with duckdb.connect() as connection:
        two = connection.sql("select * from (values (0.25::double, 0.75::double), (0.5, 0.5)) as t(dog, cat)")
        sets = confide.predict_set(two, released())
        assert (sets.classes, sets.labels()) == (CLASSES, [["cat"], ["cat", "dog"]])
        none = connection.sql("select 0.5::double as cat, 0.5::double as dog where false")
        assert confide.predict_set(none, released()).mask.shape == (0, 2)
