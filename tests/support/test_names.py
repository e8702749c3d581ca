"""The rule for names: which names are the same, in which lists, and the speed of matching a million values."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import confide
from confide.arrays.labels import as_positions
from confide.support.names import as_integer, canonical_name, check_names, places, positions
from tests.refused import refused

NAMES = (
    st.integers() | st.integers().map(str) | st.text(max_size=4) | st.sampled_from(["07", "1.0", " 7", "-0", "+1", "١"])
)


@pytest.mark.slow
@given(NAMES, NAMES)
def test_equivalent_names_are_the_same(one, other):
    same = canonical_name(one) == canonical_name(other)
    assert (places([one])[other] == 0) == (places([other])[one] == 0) == same
    if same and as_integer(one) is not None:
        assert as_integer(one) == as_integer(other)


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
    with refused(confide.errors.InputError, "groups"):
        as_positions("groups", [0, wrong, 1], ("0", 1), 3)


def test_invalid_names():
    for names in ([], [1.0], [None], [b"a"], [("a",)]):
        with refused(confide.errors.InputTypeError, "names"):
            check_names("names", names)
    for names in ("ab", 3, None):
        with refused(confide.errors.InputTypeError, "names"):
            check_names("names", names)
    with refused(confide.errors.InputTypeError, "groups"):
        positions("groups", [["a"]], ["a"])
