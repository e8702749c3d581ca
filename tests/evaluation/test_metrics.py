"""Coverage and its Clopper-Pearson interval."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import confide
from confide import PredictionSets
from confide.errors import InputError, InputTypeError
from confide.evaluation import TooManyGroupsError, coverage, group_coverage, size_coverage
from confide.sets import coverage_from_counts
from tests.refused import Refused


@pytest.mark.slow
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


def test_coverage_of_sets():
    sets = confide.PredictionSets(np.array([[True, False], [False, True], [True, True], [False, False]]))
    estimate = confide.evaluation.coverage(sets.contains([0, 0, 1, 1]))
    assert (estimate.value, estimate.n, estimate.confidence) == (0.5, 4, 0.95)
    assert estimate == coverage_from_counts(2, 4)
    assert str(coverage_from_counts(90, 100, "0.99")) == "0.900 (99 % interval 0.798 to 0.962, n=100)"


@pytest.mark.parametrize("make", [list, np.array, pd.Series, lambda v: np.array(v)[::-1], lambda v: np.ma.array(v)])
def test_any_array_of_booleans(make):
    assert confide.evaluation.coverage(make([True, False, True, True])).value == 0.75


SETS = PredictionSets(np.ones((3, 2), dtype=bool))
GROUPED = {"sets": SETS, "labels": [0, 1, 0], "groups": ["a", "a", "b"]}
MANY = {"sets": PredictionSets(np.ones((1001, 2), dtype=bool)), "labels": np.zeros(1001, int), "groups": range(1001)}
COUNTED = {"hits": 1, "n": 5}
MASKED = np.ma.array([True, False], mask=[False, True])


@pytest.mark.parametrize(
    "row",
    [
        *(Refused(coverage, {}, {"covered": own}, "covered", kind=InputTypeError)
          for own in ([0, 1], [0.0, 1.0], ["a"], [None, True], pd.Series([True, None]))),
        *(Refused(coverage, {}, {"covered": own}, "covered", kind=InputError)
          for own in (np.zeros(0, bool), np.zeros((2, 2), bool), np.bool_(True), True, MASKED)),
        *(Refused(coverage, {"covered": [True]}, {"confidence": own}, "confidence", kind=InputError)
          for own in (0, 1, 1.5, -0.1, float("nan"), "abc")),
        *(Refused(coverage, {"covered": [True]}, {"confidence": own}, "confidence", kind=InputTypeError)
          for own in (True, None, [0.9])),
        Refused(coverage, {"labels": [0.5]}, {"covered": (np.zeros(2), np.ones(2))}, "covered", kind=InputTypeError),
        Refused(coverage, {"covered": [True, False]}, {"labels": [1, 2]}, "covered", kind=InputTypeError),
        Refused(coverage, {}, {"covered": SETS}, "labels", kind=InputTypeError),
        *(Refused(coverage_from_counts, COUNTED, {"hits": own}, "hits", kind=InputError) for own in (-1, 6)),
        *(Refused(coverage_from_counts, COUNTED, {"n": own}, "n", kind=InputError) for own in (0, -1)),
        Refused(coverage_from_counts, COUNTED, {"n": 5.0}, "n", kind=InputTypeError),
        Refused(group_coverage, GROUPED, {"groups": ["a", None, "b"]}, "groups", kind=InputError),
        Refused(group_coverage, GROUPED, {"groups": np.array(["a", np.nan, "b"], object)}, "groups", kind=InputError),
        Refused(group_coverage, GROUPED, {"groups": [1.0, np.nan, 2.0]}, "groups", kind=InputTypeError),
        Refused(group_coverage, MANY, {}, "groups", kind=TooManyGroupsError),
        *(Refused(size_coverage, {"sets": SETS, "labels": [0, 1, 0]}, {"bins": own}, "bins", kind=InputError)
          for own in ([], [1, 2], [0, 2, 2], [0.0, 1.0], [[0, 1]])),
    ],
    ids=str,
)  # fmt: skip
def test_refusals(row):
    row.check()


def test_thousand_groups_are_allowed():
    assert len(group_coverage(*(values[:1000] for values in MANY.values())).names) == 1000
