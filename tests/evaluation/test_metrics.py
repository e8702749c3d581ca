"""Coverage and its Clopper-Pearson interval."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import confide
from confide import PredictionIntervals, PredictionSets, coverage, group_coverage
from confide.errors import InputError, InputTypeError
from confide.sets import coverage_from_counts


@settings(max_examples=200, deadline=None)
@given(n=st.integers(1, 3000), share=st.floats(0, 1), confidence=st.sampled_from([0.5, 0.9, 0.95, 0.99, 0.999]))
def test_interval_is_exact(n, share, confidence):
    """The ends are where a tail of the binomial law holds exactly (1 - confidence)/2, as precisely as scipy."""
    hits = round(share * n)
    estimate = coverage_from_counts(hits, n, confidence)
    tail = (1 - confidence) / 2
    if hits:
        assert stats.binom.sf(hits - 1, n, estimate.low) == pytest.approx(tail, rel=1e-9)
    else:
        assert estimate.low == 0.0
    if hits < n:
        assert stats.binom.cdf(hits, n, estimate.high) == pytest.approx(tail, rel=1e-9)
    else:
        assert estimate.high == 1.0
    assert estimate.low <= estimate.value <= estimate.high
    assert estimate.value == hits / n


@pytest.mark.parametrize(
    ("hits", "n"), [(0, 1), (1, 1), (0, 50), (50, 50), (1, 2), (37, 40), (901, 1000), (9000, 10000)]
)
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_interval_agrees_with_scipy(hits, n, confidence):
    expected = stats.binomtest(hits, n).proportion_ci(confidence, method="exact")
    estimate = coverage_from_counts(hits, n, confidence)
    # scipy finds the ends by a root search with an absolute tolerance of 2e-12
    assert (estimate.low, estimate.high) == pytest.approx((expected.low, expected.high), rel=0, abs=1e-11)


def test_coverage_of_sets():
    sets = confide.PredictionSets(np.array([[True, False], [False, True], [True, True], [False, False]]))
    estimate = confide.coverage(sets.contains([0, 0, 1, 1]))
    assert (estimate.value, estimate.n, estimate.confidence) == (0.5, 4, 0.95)
    assert estimate == coverage_from_counts(2, 4)
    assert str(coverage_from_counts(90, 100, "0.99")) == "0.900 (99 % interval 0.798 to 0.962, n=100)"


@pytest.mark.parametrize("make", [list, np.array, pd.Series, lambda v: np.array(v)[::-1], lambda v: np.ma.array(v)])
def test_any_array_of_booleans(make):
    assert confide.coverage(make([True, False, True, True])).value == 0.75


@pytest.mark.parametrize("data", [[0, 1], [0.0, 1.0], ["a"], [None, True], pd.Series([True, None])])
def test_only_booleans(data):
    with pytest.raises(confide.InputTypeError, match=r"^covered must be boolean; found dtype"):
        confide.coverage(data)


@pytest.mark.parametrize("data", [np.zeros(0, bool), np.zeros((2, 2), bool), np.bool_(True), True])
def test_only_vectors(data):
    with pytest.raises(confide.InputError, match=r"^covered must be one-dimensional and not empty; found shape"):
        confide.coverage(data)


def test_masked_entries_are_refused():
    with pytest.raises(confide.InputError, match=r"^covered must not be masked; found 1 masked"):
        confide.coverage(np.ma.array([True, False], mask=[False, True]))


def test_confidence_is_a_probability():
    for confidence in (0, 1, 1.5, -0.1, float("nan"), "abc"):
        with pytest.raises(confide.InputError, match=r"^confidence must"):
            confide.coverage([True], confidence=confidence)
    for confidence in (True, None, [0.9]):
        with pytest.raises(confide.InputTypeError, match=r"^confidence must"):
            confide.coverage([True], confidence=confidence)


def test_counts_are_checked():
    for hits, n in [(-1, 5), (6, 5), (0, 0), (0, -1)]:
        with pytest.raises(confide.InputError, match="must"):
            coverage_from_counts(hits, n)
    with pytest.raises(confide.InputTypeError, match=r"^n must"):
        coverage_from_counts(1, 5.0)


def test_coverage_of_groups_of_intervals():
    intervals = PredictionIntervals(np.zeros(6), np.array([1.0, 1.0, 3.0, 3.0, np.inf, 1.0]))
    table = group_coverage(intervals, [0.5, 2.0, 2.0, 2.0, 9.0, 9.0], [7, 7, 3, 3, 3, 9])
    assert table.names == (3, 7, 9)
    np.testing.assert_array_equal(table.coverage, [1, 0.5, 0])
    np.testing.assert_array_equal(table.size, [np.inf, 1, 1])
    assert str(table).splitlines()[0].split() == ["part", "n", "coverage", "interval", "width"]
    assert ">width</th>" in table._repr_html_()


@pytest.mark.parametrize("nothing", [np.nan, None])
def test_records_without_a_group_are_refused(nothing):
    groups = np.array(["a", nothing, "b"], dtype=object)
    sets = PredictionSets(np.ones((3, 2), dtype=bool))
    with pytest.raises(InputError, match="texts or integers; found 1 that are not, the first at position 1"):
        group_coverage(sets, [0, 1, 0], groups)
    with pytest.raises(InputTypeError, match="groups must be texts or integers; found dtype float64; name the group"):
        group_coverage(sets, [0, 1, 0], [1.0, np.nan, 2.0])


def test_more_than_a_thousand_groups_are_refused_as_everywhere():
    sets = PredictionSets(np.ones((1001, 2), dtype=bool))
    with pytest.raises(InputError, match="at most 1,000 different values; found more"):
        group_coverage(sets, np.zeros(1001, int), range(1001))


def test_a_pair_of_arrays_is_told_what_it_should_be():
    with pytest.raises(InputTypeError, match=r"found a pair; wrap it: confide.PredictionIntervals\(lower, upper\)"):
        coverage((np.zeros(2), np.ones(2)), [0.5, 0.5])
