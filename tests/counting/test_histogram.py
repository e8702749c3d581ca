"""Counts equal `np.sum(scores <= e)` for every candidate e and all scores, and can be added."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import confide
import confide.arrays.blocks
import confide.counting
from confide import Candidates, ScoreHistogram
from confide.counting import BinCounter
from tests.module_fixtures import with_and_without_numba  # noqa: F401 - a fixture
from tests.refused import PLANTED, assert_no_private_value, numbers, refused

FAMILIES = {
    "unit": Candidates.unit(1000),
    "logit": Candidates.unit(1000, "logit"),
    "geometric": Candidates.spread("residual", 200),
    "sinh": Candidates.spread("signed", 200),
    "anything": Candidates.spread("any", 200),
    "reference": Candidates.from_reference(np.random.default_rng(0).normal(size=500), 100),
    "of": Candidates.of([-1e300, -5e-324, 0.0, 5e-324, 0.1, 0.5, 1.0, 2.0**53, 1e300]),
    "one": Candidates.of([0.5]),
    "only infinity": Candidates.unit(1),
}


def brute_force(scores, candidates):
    at_or_below = [int(np.sum(np.asarray(scores).astype(np.float64) <= edge)) for edge in candidates.values]
    return np.diff([0, *at_or_below])


def assert_counts(scores, candidates):
    counts = ScoreHistogram.from_scores(scores, candidates).counts
    np.testing.assert_array_equal(counts, brute_force(scores, candidates))
    assert counts.dtype == np.int64


@pytest.mark.slow(unless="numpy-one")
@pytest.mark.parametrize("candidates", FAMILIES.values(), ids=FAMILIES.keys())
def test_edges_and_their_neighbours(candidates):
    edges = candidates.edges[:: max(1, len(candidates.edges) // 200)]
    scores = np.concatenate([edges, np.nextafter(edges, -np.inf), np.nextafter(edges, np.inf), [0.0, -0.0, np.inf]])
    scores = scores[scores > -np.inf]
    assert_counts(scores, candidates)
    assert_counts(scores[::-1], candidates)
    with np.errstate(over="ignore"):
        narrow = scores.astype(np.float32), np.clip(scores, -6e4, 6e4).astype(np.float16)
    for few_digits in narrow:
        few_digits = few_digits[few_digits > -np.inf]
        around = np.concatenate([few_digits, np.nextafter(few_digits, few_digits.dtype.type(np.inf))])
        assert_counts(around, candidates)


@pytest.mark.parametrize("candidates", FAMILIES.values(), ids=FAMILIES.keys())
def test_extreme_scores(candidates):
    tiny, huge = 5e-324, np.finfo(float).max
    assert_counts([0.0, -0.0, tiny, -tiny, 2.2e-308, -2.2e-308, huge, -huge, np.inf, np.inf], candidates)
    assert_counts(np.array([2**53, 2**53 + 1, 2**63 - 1, -(2**63)]), candidates)
    assert_counts(np.array([2**64 - 1, 0], np.uint64), candidates)
    assert_counts(np.zeros(1000), candidates)
    assert_counts(np.full(1000, np.inf), candidates)


def test_a_score_on_a_candidate_is_at_or_below_it():
    candidates = Candidates.of([0.1, 0.3])
    assert ScoreHistogram.from_scores([0.1, 0.1 + 0.2, 0.3], candidates).counts.tolist() == [1, 1, 1]
    assert ScoreHistogram.from_scores(np.float32([0.1, 0.3]), candidates).counts.tolist() == [0, 1, 1]  # both above
    assert ScoreHistogram.from_scores([-0.0], Candidates.of([0.0])).counts.tolist() == [1, 0]
    assert ScoreHistogram.from_scores([0.0], Candidates.of([-0.0])).counts.tolist() == [1, 0]


FLOATS = st.floats(allow_nan=False, width=64).filter(lambda v: v > -np.inf)


@pytest.mark.long
@settings(max_examples=200, deadline=None)
@given(
    scores=st.one_of(
        hnp.arrays(np.float64, st.integers(1, 50), elements=FLOATS),
        hnp.arrays(np.float32, st.integers(1, 50), elements=st.floats(-(2.0**127), 2.0**127, width=32)),
        hnp.arrays(np.float16, st.integers(1, 50), elements=st.floats(-(2.0**15), 2.0**15, width=16)),
        hnp.arrays(np.int64, st.integers(1, 50)),
    ),
    edges=st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=20, unique_by=lambda v: v + 0.0),
    own=st.integers(0, 20),
    block=st.integers(1, 60),
    threads=st.sampled_from([1, 4]),
)
def test_counts_equal_brute_force(scores, edges, own, block, threads):
    edges = np.unique(np.concatenate([edges, scores[:own].astype(np.float64)]))
    edges = edges[np.isfinite(edges)]
    candidates = Candidates.of(np.append(edges, np.inf))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(confide.counting, "BLOCK", block)
        patch.setattr(confide.counting, "_SAMPLE", max(1, block // 2))  # a sample is smaller than a block
        patch.setattr(confide.counting, "_WORTH_CELLS", own)
        patch.setattr(confide.counting, "_WORTH_SORTING", block // 4)
        patch.setattr(confide.counting, "_SLICE", 3 * block)
        patch.setattr(confide.arrays.blocks, "_WORTH_THREADS", 1)
        patch.setattr(confide.arrays.blocks, "_processors", lambda: threads)
        assert_counts(scores, candidates)


@pytest.mark.parametrize("n", [1, 6, 7, 8, 14, 15])
def test_blocks(monkeypatch, n):
    monkeypatch.setattr(confide.counting, "BLOCK", 7)
    scores = np.random.default_rng(n).random(2 * n)[::2]
    assert_counts(scores, FAMILIES["unit"])
    bad = scores.copy()
    bad[[n // 2, n - 1]] = np.nan
    count = 1 if n // 2 == n - 1 else 2
    with refused(confide.errors.InputError, "scores") as e:
        ScoreHistogram.from_scores(bad, FAMILIES["unit"])
    assert numbers(e) == [count, 0, n // 2]


@pytest.mark.slow(unless="numpy-float32")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sorted_scores(dtype):
    """The first scores contain no information about the rest, and those of a thread none about another's."""
    scores = np.sort(np.random.default_rng(0).exponential(size=600_000)).astype(dtype)
    candidates = Candidates.spread("residual", 200)
    expected = np.searchsorted(scores.astype(np.float64), candidates.edges, side="right")
    for values in (scores, scores[::-1], np.append(scores[400_000:], scores[:400_000])):
        assert ScoreHistogram.from_scores(values, candidates).counts.cumsum()[:-1].tolist() == expected.tolist()
        counter = confide.counting.BinCounter(candidates.edges, 0.0, np.inf)
        for start in range(0, len(values), 20_000):
            counter.add(values[start : start + 20_000])
        assert counter.counts().cumsum()[:-1].tolist() == expected.tolist()


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_bad_scores_are_counted_across_blocks(dtype):
    scores = np.full(300_000, 0.5, dtype=dtype)
    scores[[5, 150_000]] = np.nan
    scores[[3, 299_999]] = -np.inf
    with refused(confide.errors.InputError, "scores") as e:
        ScoreHistogram.from_scores(scores, FAMILIES["unit"])
    assert numbers(e) == [2, 2, 3]


@pytest.mark.parametrize(
    ("score", "bad"),
    [
        ("lac", [1.25, -0.25, -np.inf]),
        ("absolute_residual", [-0.25, np.inf, -np.inf]),
        (None, [-np.inf]),
        ("my own", [-np.inf]),
    ],
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_range_of_a_score(score, bad, dtype):
    for value in bad:
        scores = np.array([0.5, 0.5, value, 0.5], dtype=dtype)
        with refused(confide.errors.InputError, "scores") as e:
            confide.calibrate(scores, alpha=0.1, epsilon=1.0, score=score)
        assert numbers(e) == [0, 1, 2]


@pytest.mark.parametrize(
    ("score", "value"), [(None, np.inf), ("my own", np.inf), ("lac", np.inf), ("lac", 1.0), ("lac", 0.0)]
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_ends_of_the_range_are_scores(score, value, dtype):
    scores = np.array([0.5, value], dtype=dtype)
    assert ScoreHistogram.from_scores(scores, FAMILIES["unit"], score).total == 2


# --- addition


def random_histogram(seed, candidates=FAMILIES["unit"]):
    return ScoreHistogram.from_scores(np.random.default_rng(seed).random(100 + seed), candidates)


def test_histograms_over_equal_candidates_form_a_commutative_monoid():
    lists = [Candidates.unit(5), Candidates.of([0.25, 0.5, 0.75, 1.0]), Candidates.unit(5)]
    a, b, c = (random_histogram(seed, candidates) for seed, candidates in enumerate(lists))
    empty = ScoreHistogram.empty(a.candidates)
    for left, right in [(a + b, b + a), ((a + b) + c, a + (b + c)), (a + empty, a), (empty + a, a)]:
        np.testing.assert_array_equal(left.counts, right.counts)
    assert (a + b).total == a.total + b.total == 201


def test_histograms_that_cannot_be_added():
    a = random_histogram(0)
    with refused(confide.errors.InputError, "other"):
        a + random_histogram(0, Candidates.unit(999))
    weighted = ScoreHistogram(a.candidates, 3 * a.counts, records=a.total)
    with refused(confide.errors.InputError, "other"):
        weighted + a
    assert (weighted + weighted).total == 200
    for other in (1, a.counts, None):
        with pytest.raises(TypeError):
            a + other


# --- construction


def test_counts_are_a_read_only_copy():
    counts = np.array([1, 2, 3], dtype=np.int32)
    histogram = ScoreHistogram(Candidates.of([0.0, 1.0]), counts)
    counts[0] = 9
    assert histogram.counts.tolist() == [1, 2, 3]
    assert histogram.counts.dtype == np.int64
    with pytest.raises(ValueError, match="read-only"):
        histogram.counts[0] = 9
    with pytest.raises(AttributeError):
        histogram.counts = counts
    copy = pickle.loads(pickle.dumps(histogram))  # noqa: S301
    np.testing.assert_array_equal(copy.counts, histogram.counts)
    assert copy.candidates == histogram.candidates
    assert not copy.counts.flags.writeable
    assert not copy.candidates.edges.flags.writeable


@pytest.mark.parametrize(
    ("counts", "kind", "got"),
    [
        ([1.0, 2.0, 3.0], confide.errors.InputTypeError, [64]),
        ([True, False, True], confide.errors.InputTypeError, []),
        (["1", "2", "3"], confide.errors.InputTypeError, [1]),
        ([1, 2], confide.errors.InputError, [2]),
        ([[1, 2, 3]], confide.errors.InputError, [1, 3]),
        (3, confide.errors.InputError, []),
        ([1, -1, -3], confide.errors.InputError, [1]),
        ([1, 0, -1], confide.errors.InputError, [2]),
        ([2**47, 2**47, 1], confide.errors.InputError, []),
        (np.array([2**64 - 1, 0, 0], np.uint64), confide.errors.InputError, []),
        ([2**62, 2**62, 2**62], confide.errors.InputError, []),
    ],
)
def test_counts_that_cannot_be_used(counts, kind, got):
    """The reported value is a type, a shape, or the position of the first negative count."""
    with refused(kind, "counts") as e:
        ScoreHistogram(Candidates.of([0.0, 1.0]), counts)
    assert numbers(e) == got
    assert ScoreHistogram(Candidates.of([0.0, 1.0]), [2**47, 2**47, 0]).counts.sum() == 2**48


def test_scores_at_both_ends_of_the_range_count_among_invalid_ones():
    counter = BinCounter(np.array([0.5, 1.0]), 0.0, 2.0)
    counter.add(np.array([0.0, np.nan, 2.0, -0.1, 2.1, 0.5]))
    assert counter.counts().tolist() == [2, 0, 1]
    assert (counter.missing, counter.outside, counter.first) == (1, 2, 1)


def test_scores_far_from_those_of_the_first_batch_are_counted():
    """The cells are chosen for the first batch; later scores may lie below and above all of them."""
    edges, rng = np.array([0.1, 0.5, 0.7, 3.0]), np.random.default_rng(1)
    counter = BinCounter(edges, 0.0, np.inf)
    batches = [0.6 + 0.2 * rng.random(2**14), np.append(rng.random(5000) / 2, 0.75), np.array([0.6, 5.0, 1e300])]
    for batch in batches:
        counter.add(batch)
    scores = np.concatenate(batches)
    assert counter._cells is not None
    assert np.cumsum(counter.counts())[:-1].tolist() == [int((scores <= edge).sum()) for edge in edges]


def test_repr_contains_no_counts():
    histogram = ScoreHistogram.from_scores(np.full(1234567, 0.5), FAMILIES["unit"])
    assert (
        repr(histogram)
        == str(histogram)
        == ("ScoreHistogram(Candidates.unit(size=1000, spacing='uniform'), counts are private)")
    )
    assert "1234567" not in f"{histogram} {histogram!r}"
    assert_no_private_value(ScoreHistogram.from_scores(PLANTED, Candidates.unit(3)))


def test_counts_over_some_candidates_equal_counts_over_only_these():
    rng = np.random.default_rng(0)
    edges = np.unique(rng.normal(size=60).round(2))
    scores = rng.choice(np.append(edges, rng.normal(size=40) * 3), 500)
    fine = ScoreHistogram.from_scores(scores, Candidates.of(edges))
    for kept in (edges, edges[::3], edges[:1], edges[-2:]):
        few = Candidates.of(kept)
        np.testing.assert_array_equal(fine.over(few).counts, ScoreHistogram.from_scores(scores, few).counts)
    with refused(confide.errors.InputError, "candidates"):
        fine.over(Candidates.of([edges[0], edges[0] + 1e-9]))
