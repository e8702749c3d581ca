"""Sets and intervals as values: lists of records, pairs of arrays, and empty batches."""

import copy
import pickle

import numpy as np
import pandas
import pytest

import confide
from confide.errors import InputError, InputTypeError
from confide.sets import PredictionIntervals, PredictionSets
from tests.calibrations import calibration_at, calibrations_at
from tests.refused import refused

MASK = np.array([[True, False, False], [False, False, False], [True, True, False], [False, True, True]])
SETS = PredictionSets(MASK, ("cat", "dog", "emu"), 0.9)


def test_sets_are_a_sequence():
    lists = [["cat"], [], ["cat", "dog"], ["dog", "emu"]]
    assert list(SETS) == SETS.labels() == [SETS[i] for i in range(4)] == lists
    assert SETS[-1] == SETS[np.int64(3)] == ["dog", "emu"]
    for chosen in (slice(1, 3), [1, 2], np.array([False, True, True, False])):
        part = SETS[chosen]
        assert isinstance(part, PredictionSets)
        assert part.labels() == lists[1:3]
        assert (part.classes, part.promised) == (SETS.classes, 0.9)
    assert PredictionSets(MASK)[3] == [1, 2]
    with pytest.raises(IndexError):
        SETS[4]
    with refused(InputError, "sets"):
        SETS[[[0, 1], [1, 2]]]


@pytest.mark.parametrize("which", ["cat", "lower", 1.5, None, True, ["cat"], [0.5], (0, "cat"), {"cat": 1}, object()])
def test_records_are_selected_by_position_only(which):
    with refused(InputTypeError, "sets"):
        SETS[which]
    if which is not True:  # which is the position 1, of the upper ends
        with refused(InputTypeError, "intervals"):
            PredictionIntervals(np.zeros(4), np.ones(4))[which]
    assert len(SETS[[]]) == len(PredictionIntervals(np.zeros(4), np.ones(4))[[]].lower) == 0


def test_intervals_carry_their_guarantee():
    residuals = calibration_at(2.0, "absolute_residual")
    found = confide.predict_interval([1.0, 5.0], residuals)
    lower, upper = found
    assert found.promised == found[:1].promised == found[[True, False]].promised == residuals.coverage == 0.9
    assert "promised: coverage at least 0.9 on average" in found._repr_html_()
    assert (isinstance(found, tuple), len(found), found._fields) == (True, 2, ("lower", "upper"))
    assert found == (lower, upper)
    for again in (pickle.loads(pickle.dumps(found)), copy.copy(found), copy.deepcopy(found)):  # noqa: S301
        assert (type(again), again.promised) == (PredictionIntervals, 0.9)
        np.testing.assert_array_equal(again, found)
    with pytest.raises(AttributeError):
        found.promised = 0.99
    own = PredictionIntervals(lower, upper)
    assert (own.promised, own[:1].promised) == (None, None)
    assert "promised" not in own._repr_html_()


def test_frames_keep_the_index_and_names_of_any_kind():
    people = pandas.DataFrame({"age": [1, 2, 3, 4]}, index=pandas.Index(["p", "q", "r", "s"], name="cat"))
    assert SETS.to_frame(people).index.equals(people.index)
    odd = PredictionSets(MASK, (("a", 1), 1, "1"))
    assert list(odd.to_frame().columns) == list(odd.to_pandas().columns) == [("a", 1), 1, "1"]
    assert list(PredictionSets(MASK).to_frame().columns) == [0, 1, 2]
    assert PredictionSets(MASK, (1, "a", "b")).to_arrow().to_pylist()[0] == ["1"]
    with refused(InputError, "like"):
        SETS[:2].to_frame(people)
    with refused(InputError, "classes"):
        odd.to_frame("polars")
    for wrong in ("duckdb", "nonsense", 7):
        with refused(InputTypeError, "like"):
            SETS.to_frame(wrong)


def test_intervals_unpack_and_carry_attributes():
    found = confide.predict_interval([1.0, 5.0], calibration_at(2.0, "absolute_residual"))
    lower, upper = found
    assert found[0] is lower is found.lower
    assert found[1] is upper is found.upper
    np.testing.assert_array_equal(found.contains([3.0, 8.0]), [True, False])
    np.testing.assert_allclose(found.widths, 4)
    assert list(found.to_pandas().columns) == ["lower", "upper"]
    assert repr(found) == "PredictionIntervals(n=2, mean width 4, empty 0, infinite 0)"
    odd = PredictionIntervals(np.array([1.0, -np.inf]), np.array([0.0, np.inf]))
    assert "empty 1, infinite 1" in repr(odd)
    assert odd.widths.tolist() == [0, np.inf]
    with refused(InputError, "targets"):
        found.contains([1.0, 2.0, 3.0])


EMPTY = {
    "list": [],
    "tuple": (),
    "numpy": np.empty((0, 3)),
    "numpy, one dimension": np.empty(0),
    "pandas": pandas.DataFrame({"cat": [], "dog": [], "emu": []}),
    "pandas of objects": pandas.DataFrame(columns=["emu", "dog", "cat"]),
}


@pytest.mark.parametrize("batch", EMPTY.values(), ids=EMPTY)
def test_an_empty_batch_gives_empty_sets(batch):
    for score in "lac", "aps_deterministic", "raps(penalty=0.1,k_reg=1)":
        sets = confide.predict_set(batch, calibration_at(0.5, score, classes=("cat", "dog", "emu")))
        assert (sets.mask.shape, sets.mask.dtype, sets.classes) == ((0, 3), np.bool_, ("cat", "dog", "emu"))
    assert list(sets) == sets.labels() == sets.to_arrow().to_pylist() == []
    assert sets.contains([]).shape == sets.sizes.shape == (0,)
    assert sets.to_pandas().shape == sets.to_frame("polars").shape == (0, 3)
    assert "n=0" in sets._repr_html_()
    assert "mean size undefined" in repr(sets)


@pytest.mark.parametrize("batch", [[], np.empty(0)], ids=["list", "numpy"])
def test_an_empty_batch_of_unknown_classes_is_empty_too(batch):
    sets = confide.predict_set(batch, calibration_at(0.5))
    assert (len(sets), sets.labels(), sets.to_arrow().to_pylist()) == (0, [], [])
    for calibration, classes in ((calibration_at(0.5), ["a", "b"]), (calibration_at(0.5, classes=2), None)):
        assert confide.predict_set(batch, calibration, classes).mask.shape == (0, 2)
    for score, more in (("absolute_residual", {}), ("cqr", {}), ("normalised_residual", {"difficulty": []})):
        found = confide.predict_interval(batch, calibration_at(0.5, score), **more)
        assert (found.lower.shape, found.lower.dtype, found.widths.shape) == ((0,), np.float64, (0,))
        assert found.contains([]).shape == (0,)
    assert len(confide.predict_interval(np.zeros((0, 2)), calibration_at(2.0, "cqr")).upper) == 0
    wards = calibrations_at("group", {0: 0.5, 1: 0.5})
    assert len(confide.predict_set(np.zeros((0, 3)), wards, groups=[])) == 0
    for no_records in (3, np.zeros((0, 0))):
        with refused(InputError, "probabilities"):
            confide.predict_set(no_records, calibration_at(0.5))
