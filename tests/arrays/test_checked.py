"""Arrays: every one that numpy reads gives the same counts or a clear error; rows of probabilities sum to one."""

import datetime
import decimal
from fractions import Fraction

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import confide
from confide.array_api import rows_unlike_one
from confide.arrays import column_names
from confide.arrays.checked import as_numeric, as_probabilities, as_vector
from confide.arrays.labels import as_labels
from confide.arrays.row_sums import far_from_one
from tests.builders import slow
from tests.calibrations import calibration_at
from tests.refused import numbers, refused

VALUES = [0.125, 0.5, 0.75, 0.0, 1.0, 0.25]  # exact in every float dtype
CANDIDATES = confide.Candidates.of([0.0, 0.2, 0.25, 0.5, 0.9])
COUNTS = [1, 1, 1, 1, 1, 1]


NOTHING = [np.nan] * len(VALUES)


class WithArrayProtocol:
    def __array__(self, dtype=None, copy=None):
        return np.array(VALUES, dtype=dtype)


SAME = {
    "list": lambda: list(VALUES),
    "list of numpy scalars": lambda: [np.float32(v) for v in VALUES],
    "float64": lambda: np.array(VALUES),
    "float32": lambda: np.array(VALUES, np.float32),
    "float16": lambda: np.array(VALUES, np.float16),
    "longdouble": lambda: np.array(VALUES, np.longdouble),
    "big endian float64": lambda: np.array(VALUES, ">f8"),
    "big endian float16": lambda: np.array(VALUES, ">f2"),
    "reversed": lambda: np.array(VALUES[::-1])[::-1],
    "strided": lambda: np.array([VALUES, NOTHING], order="F")[0],
    "column of Fortran": lambda: np.array([NOTHING, VALUES, NOTHING]).T[:, 1],
    "read-only": lambda: np.frombuffer(np.array(VALUES).tobytes()),
    "array protocol": WithArrayProtocol,
    "memoryview": lambda: memoryview(np.array(VALUES)),
    "object": lambda: np.array(VALUES, dtype=object),
    "object of fractions": lambda: np.array([Fraction(v) for v in VALUES], dtype=object),
    "object of decimals": lambda: [decimal.Decimal(v) for v in VALUES],
    "masked, nothing masked": lambda: np.ma.array(VALUES, mask=[False] * len(VALUES)),
    "pandas": lambda: pd.Series(VALUES),
    "pandas, odd index": lambda: pd.Series(VALUES, index=[9, 8, 7, 7, 1, 0]),
    "pandas Float64": lambda: pd.Series(VALUES, dtype="Float64"),
    "pandas object": lambda: pd.Series(VALUES, dtype=object),
    "pandas Arrow": lambda: pd.Series(VALUES, dtype="double[pyarrow]"),
    "pandas category": lambda: pd.Series(VALUES, dtype="category"),
    "pandas sparse": lambda: pd.Series(pd.arrays.SparseArray(VALUES)),
    "polars": lambda: pl.Series(VALUES),
    "polars decimal": lambda: pl.Series([str(v) for v in VALUES]).cast(pl.Decimal(10, 3)),
    "Arrow": lambda: pa.array(VALUES),
    "Arrow float32": lambda: pa.array(VALUES, pa.float32()),
    "Arrow float16": lambda: pa.array(np.array(VALUES, np.float16)),
    "Arrow chunks": lambda: pa.chunked_array([VALUES[:2], VALUES[2:]]),
    "Arrow slice": lambda: pa.array([9.0, *VALUES, 9.0]).slice(1, len(VALUES)),
    "Arrow dictionary": lambda: pa.array(VALUES).dictionary_encode(),
}


@pytest.mark.parametrize("make", SAME.values(), ids=SAME.keys())
def test_same_counts_as_a_plain_array(make):
    histogram = confide.ScoreHistogram.from_scores(make(), CANDIDATES)
    np.testing.assert_array_equal(histogram.counts, COUNTS)


@pytest.mark.parametrize(
    "make",
    [
        lambda: [0, 1, 2, 3],
        lambda: np.arange(4, dtype=np.int8),
        lambda: np.arange(4, dtype=np.uint64),
        lambda: np.arange(4, dtype=">i4"),
        lambda: range(4),
        lambda: pd.Series([0, 1, 2, 3], dtype="Int64"),
        lambda: pl.Series([0, 1, 2, 3]),
        lambda: pa.array([0, 1, 2, 3], pa.uint8()),
    ],
)
def test_integers_count_as_floats(make):
    candidates = confide.Candidates.of([0, 1.5, 2])
    np.testing.assert_array_equal(confide.ScoreHistogram.from_scores(make(), candidates).counts, [1, 1, 1, 1])


MISSING = {
    "numpy": lambda: np.array([0.5, np.nan, 0.25, np.nan]),
    "float16": lambda: np.array([0.5, np.nan, 0.25, np.nan], np.float16),
    "list with None": lambda: [0.5, None, 0.25, None],
    "object with pandas.NA": lambda: np.array([0.5, pd.NA, 0.25, pd.NA], dtype=object),
    "object with a decimal NaN": lambda: [decimal.Decimal("0.5"), decimal.Decimal("sNaN"), 0.25, None],
    "masked": lambda: np.ma.array([0.5, 0.123456789, 0.25, 0.7], mask=[0, 1, 0, 1]),
    "masked integers": lambda: np.ma.array([1, 2, 3, 4], mask=[0, 1, 0, 1]),
    "pandas": lambda: pd.Series([0.5, None, 0.25, None]),
    "pandas Float64": lambda: pd.Series([0.5, pd.NA, 0.25, pd.NA], dtype="Float64"),
    "pandas Int64": lambda: pd.Series([1, pd.NA, 0, pd.NA], dtype="Int64"),
    "pandas Arrow": lambda: pd.Series([0.5, None, 0.25, None], dtype="double[pyarrow]"),
    "polars": lambda: pl.Series([0.5, None, 0.25, None]),
    "polars integers": lambda: pl.Series([1, None, 0, None]),
    "Arrow": lambda: pa.array([0.5, None, 0.25, None]),
    "Arrow integers": lambda: pa.array([1, None, 0, None]),
    "Arrow chunks": lambda: pa.chunked_array([[0.5], [None, 0.25, None]]),
}


@pytest.mark.parametrize("make", MISSING.values(), ids=MISSING.keys())
def test_missing_values_raise_an_error_with_count_and_first_position(make):
    with pytest.raises(confide.errors.InputError) as caught:
        confide.calibrate(make(), alpha=0.1, epsilon=1.0)
    assert numbers(caught) == [2, 0, 1]  # NaN, outside, first position


NOT_NUMBERS = {
    "bool": np.array([True, False]),
    "complex": np.array([0.5 + 1j]),
    "dates": np.array(["2020-01-01"], dtype="M8[D]"),
    "texts": np.array(["0.123456789"]),
    "bytes": np.array([b"0.123456789"]),
    "one text": "0.123456789",
    "texts among numbers": [0.5, "0.123456789"],
    "object text": np.array([0.5, "0.123456789"], dtype=object),
    "object bool": np.array([0.5, True], dtype=object),
    "object date": np.array([0.5, datetime.date(2020, 1, 1)], dtype=object),
    "object list": np.array([0.5, [1, 2]], dtype=object),
    "structured": np.zeros(3, dtype=[("a", float)]),
    "ragged": [[0.5], [0.123456789, 0.6]],
    "None": None,
    "dict": {"a": 0.123456789},
    "set": {0.123456789},
    "generator": (v for v in [0.123456789]),
    "object": object(),
    "masked bool": np.ma.array([True, False], mask=[0, 1]),
    "masked text": np.ma.array(["0.123456789", "b"]),
    "pandas bool": pd.Series([True, False]),
    "pandas boolean": pd.Series([True, None], dtype="boolean"),
    "pandas dates": pd.Series(pd.to_datetime(["2020-01-01"])),
    "pandas dates with zone": pd.Series(pd.to_datetime(["2020-01-01"]).tz_localize("UTC")),
    "pandas texts": pd.Series(["0.123456789"]),
    "pandas categories": pd.Series(["0.123456789"], dtype="category"),
    "pandas periods": pd.Series(pd.period_range("2020", periods=2)),
    "polars bool with nulls": pl.Series([True, None]),
    "polars texts": pl.Series(["0.123456789"]),
    "polars categories": pl.Series(["0.123456789"], dtype=pl.Categorical),
    "polars lists": pl.Series([[0.123456789, 0.6], [0.5, 0.6]]),
    "polars query": pl.LazyFrame({"s": [0.123456789, 0.5]}),
    "Arrow bool with nulls": pa.array([True, None]),
    "Arrow texts": pa.array(["0.123456789"]),
    "Arrow times": pa.array([1], pa.timestamp("s")),
    "Arrow lists": pa.array([[0.123456789], [0.5]]),
}


@pytest.mark.parametrize("data", NOT_NUMBERS.values(), ids=NOT_NUMBERS.keys())
def test_values_that_are_not_numbers_raise_an_error(data):
    with refused(confide.errors.InputTypeError, "scores") as refusal:
        confide.calibrate(data, alpha=0.1, epsilon=1.0)
    assert isinstance(refusal.value, TypeError)


@pytest.mark.parametrize(
    ("data", "shape"),
    [
        (0.5, []),
        (np.float64(0.5), []),
        (np.zeros((3, 1, 1)), [3, 1, 1]),
        (pd.DataFrame({"a": [0.5], "b": [0.6]}), [1, 2]),
        (pl.DataFrame({"a": [0.5], "b": [0.6]}), [1, 2]),
        (pa.table({"a": [0.5], "b": [0.6]}), [1, 2]),
        ([[0.5, 0.6]], [1, 2]),
    ],
)
def test_vectors_have_one_dimension(data, shape):
    with refused(confide.errors.InputError, "scores") as caught:
        confide.calibrate(data, alpha=0.1, epsilon=1.0)
    assert numbers(caught) == shape


@pytest.mark.parametrize("data", [[], np.array([]), np.array([], dtype=np.float16), pd.Series([], dtype=float)])
def test_empty_input_raises_an_error_where_n_is_public(data):
    for options in ({"epsilon": 1.0, "neighbors": "replace_one"}, {"mechanism": "none"}):
        with refused(confide.errors.InputError, "n"):
            confide.calibrate(data, alpha=0.1, **options)


def test_numbers_beyond_float64_become_infinite():
    numbers = as_vector("scores", [10**400, -(10**400), 2**70])
    np.testing.assert_array_equal(numbers, [np.inf, -np.inf, 2.0**70])
    np.testing.assert_array_equal(as_vector("scores", np.array([np.longdouble("1e4000")])), [np.inf])


def test_numeric_arrays_are_not_copied():
    for array in (np.zeros(3), np.zeros(3, np.float16), np.arange(3), np.asfortranarray(np.zeros((3, 2)))):
        assert np.shares_memory(as_numeric("a", array), array)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", ">f8", "i8", "O"])
def test_inputs_are_never_modified(dtype):
    scores = np.array([3, 1, 2] * 100, dtype=dtype)
    probabilities = np.tile(np.array([[1, 0, 0]], dtype=dtype), (300, 1))
    labels = np.array([0, 1, 2] * 100)
    before = scores.copy(), probabilities.copy(), labels.copy()
    calibration = confide.calibrate(scores, alpha=0.1, epsilon=5.0, candidates=confide.Candidates.of([0.5, 1, 2, 3]))
    confide.lac_score(probabilities, labels)
    confide.predict_set(probabilities, calibration, score="lac")
    confide.predict_interval(scores, calibration, score="absolute_residual")
    confide.absolute_residual_score(scores, scores[::-1])
    confide.Candidates.of(np.unique(scores))
    confide.Candidates.from_reference(scores, 5)
    for now, then in zip((scores, probabilities, labels), before, strict=True):
        np.testing.assert_array_equal(now, then)
        assert now.dtype == then.dtype


# --- probabilities


@pytest.mark.parametrize(
    "make",
    [
        lambda rows: np.array(rows, np.float32),
        lambda rows: np.array(rows, np.float16),
        lambda rows: np.array(rows, ">f4"),
        lambda rows: np.asfortranarray(rows),
        lambda rows: pd.DataFrame(rows),
        lambda rows: pd.DataFrame(rows, dtype="Float64"),
        lambda rows: pl.DataFrame(rows, orient="row"),
        lambda rows: pa.table({"a": [r[0] for r in rows], "b": [r[1] for r in rows]}),
        lambda rows: rows,
    ],
)
def test_tables_of_probabilities(make):
    rows = [[0.25, 0.75], [1.0, 0.0], [0.5, 0.5]]
    np.testing.assert_array_equal(confide.lac_score(make(rows), [0, 1, 1], classes=[0, 1]), [0.75, 1.0, 0.5])


@pytest.mark.parametrize("bad", [np.nan, -0.25, 1.25, np.inf, -np.inf, "just above 1", "just below 0"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_probabilities_outside_the_unit_interval(bad, dtype):
    p = np.full((300_000, 2), 0.5, dtype=dtype)
    nearest = {"just above 1": np.nextafter(dtype(1), dtype(2)), "just below 0": -np.finfo(dtype).smallest_subnormal}
    p[[7, 280_000], 1] = nearest.get(bad, bad)
    with refused(confide.errors.InputError, "probabilities") as caught:
        as_probabilities("probabilities", p)
    assert numbers(caught) == [2, 7]


def test_ends_of_the_unit_interval_are_probabilities():
    assert as_probabilities("p", [[0.0, 1.0], [-0.0, 5e-324]]).shape == (2, 2)
    assert as_probabilities("p", np.eye(3, dtype=np.uint8)).dtype == np.uint8


# --- labels

NAMES = ["cat", "dog", "cat"]


@pytest.mark.parametrize(
    "labels",
    [
        [0, 2, 1],
        np.array([0, 2, 1], np.uint8),
        np.array([0, 2, 1], ">i2"),
        np.array([1, 2, 0])[::-1],
        pd.Series([0, 2, 1]),
        pd.Series([0, 2, 1], dtype="Int64"),
        pl.Series([0, 2, 1]),
        pa.array([0, 2, 1], pa.int8()),
        np.ma.array([0, 2, 1]),
    ],
)
def test_integer_labels(labels):
    np.testing.assert_array_equal(as_labels("labels", labels, 3, 3), [0, 2, 1])


@pytest.mark.parametrize(
    "labels",
    [
        NAMES,
        *(np.array(NAMES, dtype) for dtype in (str, object)),
        *(pd.Series(NAMES, dtype=dtype) for dtype in (None, "string", "category")),
        pd.Categorical(NAMES),
        *(pl.Series(NAMES, dtype=dtype) for dtype in (None, pl.Categorical)),
        pa.array(NAMES),
        pa.chunked_array([NAMES[:1], NAMES[1:]]),
        pa.array(NAMES).dictionary_encode(),
    ],
)
@pytest.mark.parametrize(
    "classes", [["dog", "cat"], ("dog", "cat"), np.array(["dog", "cat"]), pd.Index(["dog", "cat"])]
)
def test_labels_by_name(labels, classes):
    np.testing.assert_array_equal(as_labels("labels", labels, 3, 2, classes), [1, 0, 1])


def test_errors_of_unknown_labels_do_not_name_them():
    labels = np.array(["cat", "secret-123456789", "dog", None], dtype=object)
    with refused(confide.errors.InputError, "labels") as refusal:
        confide.lac_score(np.full((4, 2), 0.5), labels, classes=["cat", "dog"])
    assert numbers(refusal) == [1, 3]


@pytest.mark.parametrize(
    "labels", [[0.0, 1.0], [True, False], ["0", "1"], [1j, 0], pl.Series([0, None]), pa.array([0, None]), [None, 1]]
)
def test_labels_without_names_are_integers(labels):
    with refused(confide.errors.InputTypeError, "labels"):
        confide.lac_score(np.full((2, 2), 0.5), labels)


@pytest.mark.parametrize("classes", [None, ["a", "b"]])
def test_masked_labels_raise_an_error(classes):
    labels = np.ma.array([0, 1, 1] if classes is None else ["a", "b", "b"], mask=[0, 1, 0])
    with refused(confide.errors.InputError, "labels") as caught:
        confide.lac_score(np.full((3, 2), 0.5), labels, classes=classes)
    assert numbers(caught) == [1, 1]


@pytest.mark.parametrize("labels", [[0], [0, 1, 1], []])
def test_labels_as_many_as_rows(labels):
    with refused(confide.errors.InputError, "labels") as caught:
        confide.lac_score(np.full((2, 2), 0.5), labels)
    assert numbers(caught) == [len(labels), 2]


@pytest.mark.parametrize(
    ("classes", "error", "counts"),
    [
        (["a"], confide.errors.InputError, [1, 2]),
        (["a", "b", "c"], confide.errors.InputError, [3, 2]),
        (["a", "a"], confide.errors.InputError, [1]),
        ([1, 1.0], confide.errors.InputError, [1]),
        *(
            (wrong, confide.errors.InputTypeError, [])
            for wrong in ("ab", {"a", "b"}, {"a": 1, "b": 2}, [["a"], ["b"]], 5)
        ),
    ],
)
def test_classes_that_cannot_be_used(classes, error, counts):
    with refused(error, "classes") as caught:
        confide.lac_score(np.full((1, 2), 0.5), [0], classes=classes)
    assert numbers(caught) == counts


torch = pytest.importorskip("torch")

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("k", "dtype", "sharpness"),
    slow(
        [  # each value with each value of the others
            (k, dtype, [5.0, 0.3, 0.01][(i + j) % 3])
            for i, k in enumerate([2, 3, 10, 100, 1000, 20_000])
            for j, dtype in enumerate([np.float16, np.float32, np.float64])
        ],
        everyday=[(3, np.float16, 0.3), (1000, np.float32, 0.01)],
    ),
)
def test_probabilities_of_every_precision(k, dtype, sharpness):
    p = RNG.dirichlet(np.full(k, sharpness * 10 / k + 1e-3), 50)
    assert not far_from_one(p.astype(dtype)).any()
    assert not far_from_one(np.round(p, 2).astype(dtype)).any()
    assert not far_from_one(np.eye(k, dtype=np.int64)[:10]).any()


@pytest.mark.parametrize("k", [2, 3, 10, 100])
def test_rows_that_are_not_distributions(k):
    p = RNG.dirichlet(np.ones(k), 200)
    sigmoid = 1 / (1 + np.exp(-RNG.normal(size=(200, k))))
    for wrong in (np.full((200, k), 0.9), 100 * p, np.log(p), sigmoid + 0.3, 2.2 * p):
        assert far_from_one(wrong).mean() > 0.9
    assert far_from_one(RNG.dirichlet(np.ones(3), 200)[:, :2]).mean() > 0.8  # two of three classes


def test_the_bounds_are_those_of_rounding():
    """Entries of two decimals lose at most 0.005 each, and those that are not 0 gain as much; everything else 0.01."""
    decimals = np.array([[0.3, 0.3, 0.38], [0.3, 0.3, 0.37], [0.34, 0.34, 0.34], [0.35, 0.34, 0.34]])
    assert far_from_one(decimals).tolist() == [False, True, False, True]
    total = np.array([0.9888, 0.9909, 1.0091, 1.0112])
    assert far_from_one(np.tile(total[:, None] / 3, 3)).tolist() == [True, False, False, True]
    assert far_from_one(np.array([[1.01, 0, 0], [1.02, 0, 0]])).tolist() == [False, True]


def _softmax(k, dtype, scale=1.0):
    """The softmax of K logits, in a precision of its own."""
    z = np.exp(RNG.normal(size=(5, k)).astype(dtype))
    return (z / z.sum(axis=1, keepdims=True, dtype=dtype) * dtype(scale)).astype(dtype)


PROBABILITIES = {  # kind of entries: rows, whether they are far from one
    "halves of 200 classes": (RNG.dirichlet(np.ones(200), 5) / 2, True),
    "0.3 of 1,000 classes": (RNG.dirichlet(np.ones(1000), 5) * 0.3, True),
    "zeros of 3 classes": (np.zeros((5, 3)), True),
    "zeros of 1,000 classes": (np.zeros((5, 1000)), True),
    "zeros of 100,000 classes": (np.zeros((5, 100_000), np.float32), True),
    "half precision, 4,096 classes, twice": (_softmax(4096, np.float32, 2).astype(np.float16), True),
    "half precision, 4,096 classes, 0.86": (_softmax(4096, np.float32, 0.86).astype(np.float16), True),
    "half precision, 4,096 classes": (_softmax(4096, np.float32).astype(np.float16), False),
    "float32, 100,000 classes": (_softmax(100_000, np.float32), False),
    "half precision, 100,000 classes": (_softmax(100_000, np.float32).astype(np.float16), False),
    **{
        f"{decimals} decimals, {k} classes": (np.round(RNG.dirichlet(np.ones(k), 5), decimals), False)
        for decimals, k in ((2, 3), (2, 100), (3, 500), (4, 2000), (6, 100_000))
    },
    "2 decimals, 20 classes, 0.8": (np.round(RNG.dirichlet(np.ones(20), 5) * 0.75, 2), True),
    "4 decimals, 200 classes, 0.9": (np.round(RNG.dirichlet(np.ones(200), 5) * 0.9, 4), True),
}


@pytest.mark.parametrize("case", PROBABILITIES)
def test_the_tolerance_follows_the_precision_of_the_entries(case):
    p, far = PROBABILITIES[case]
    assert far_from_one(p).tolist() == [far] * 5
    assert np.asarray(rows_unlike_one(torch.tensor(p))).tolist() == [far] * 5


FUNCTIONS = {
    "lac": lambda p, y: confide.lac_score(p, y),
    "margin": lambda p, y: confide.margin_score(p, y),
    "all": lambda p, y: confide.all_scores(p, "aps_deterministic"),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_errors_have_count_position_and_remedy(name):
    p = np.full((2000, 3), 1 / 3)
    p[[7, 11]] = 0.9
    with refused(confide.errors.InputError, "probabilities") as caught:
        FUNCTIONS[name](p, np.zeros(2000, np.int64))
    assert numbers(caught) == [2, 1000, 7]  # rows, checked rows, first


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
