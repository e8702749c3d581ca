"""The rule for names: which names are the same, in which lists, and the speed of matching a million values."""

import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import confide
from confide.arrays.checked import as_positions
from confide.support.names import as_integer, canonical_name, check_names, order_of, places, positions
from tests.builders import slow
from tests.refused import refused

NAMES = (
    st.integers() | st.integers().map(str) | st.text(max_size=4) | st.sampled_from(["07", "1.0", " 7", "-0", "+1", "١"])
)


@given(NAMES, NAMES)
def test_equivalent_names_are_the_same(one, other):
    same = canonical_name(one) == canonical_name(other)
    assert (places([one])[other] == 0) == (places([other])[one] == 0) == same
    if same and as_integer(one) is not None:
        assert as_integer(one) == as_integer(other)


@given(st.lists(NAMES, min_size=1, max_size=6, unique_by=canonical_name), st.randoms(use_true_random=False))
def test_lists_of_names(names, random):
    assert check_names("names", names) == tuple(names)
    mixed = [as_integer(name) if as_integer(name) is not None else name for name in names]
    texts = [canonical_name(name) for name in names]
    assert order_of(mixed, texts) == order_of(texts, mixed) == list(range(len(names)))
    shuffled = random.sample(texts, len(texts))
    assert [texts[i] for i in order_of(shuffled, names)] == shuffled
    assert order_of([*texts, "another name"], names) is None
    assert order_of([texts[0]] * 2, names) is None


def test_the_same_text_and_the_same_integer_come_first():
    np.testing.assert_array_equal(positions("groups", [1, "1", 2, "2"], ["1", 1, "2"]), [1, 0, 2, 2])
    with refused(confide.InputError, "names"):
        check_names("names", [1, "1", 2, 1])


@pytest.mark.parametrize(
    "values",
    [
        [1, 0, 1],
        ["1", "0", "1"],
        [1, "0", np.int8(1)],
        np.array([1, 0, 1], np.uint64),
        np.array(["1", "0", "1"]),
        np.array([1, "0", 1], dtype=object),
        pd.Series(["1", "0", "1"], dtype="category"),
        pd.Series([1, 0, 1], dtype="Int8"),
    ],
)
@pytest.mark.parametrize("names", [(0, 1), ("0", "1"), (0, "1")])
def test_groups_of_any_kind(values, names):
    np.testing.assert_array_equal(as_positions("groups", values, names, 3), [1, 0, 1])


@pytest.mark.parametrize("wrong", ["01", "1.0", " 1", "+1", "", None, 2, 2**70, np.nan, 0.5])
def test_values_that_are_not_names(wrong):
    with refused(confide.InputError, "groups"):
        as_positions("groups", [0, wrong, 1], ("0", 1), 3)


def test_invalid_names():
    for names in ([], [1.0], [None], [b"a"], [("a",)]):
        with refused(confide.InputTypeError, "names"):
            check_names("names", names)
    for names in ("ab", 3, None):
        with refused(confide.InputTypeError, "names"):
            check_names("names", names)
    with refused(confide.InputTypeError, "groups"):
        positions("groups", [["a"]], ["a"])


@pytest.mark.parametrize("kind", [np.int64, "U4", *slow([object])])
def test_a_million_values(kind):
    values = np.random.default_rng(0).integers(0, 1000, 10**6)
    typed = values.astype("U4").astype(kind)
    start = time.perf_counter()
    np.testing.assert_array_equal(positions("groups", typed, range(1000)), values)
    assert time.perf_counter() - start < 5  # a tenth of a second on an idle machine
