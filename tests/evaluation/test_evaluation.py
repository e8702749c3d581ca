"""Evaluations: coverage and its interval, who is covered least, the one counter, and changed files."""

import json
import math
import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import confide
from confide import PredictionSets
from confide.core import Document
from confide.errors import ConfideError, InputError, InputTypeError
from confide.evaluation import (
    CoverageTable,
    Evaluation,
    Partition,
    PrivateRequest,
    ScoreOutcomes,
    Tally,
    TooManyGroupsError,
    coverage,
    evaluate_arrays,
    evaluate_intervals,
    evaluate_scores,
    evaluate_sets,
    exact_query,
    group_coverage,
    size_coverage,
)
from confide.evaluation.comparison import LabelledRecords, RecordOutcomes, outcomes_of
from confide.evaluation.count_tables import PartCounts
from confide.evaluation.parts import marked
from confide.evaluation.tally import Counts
from confide.sets import coverage_from_counts
from confide.tables import TargetColumns, evaluate_table
from tests.builders import slow
from tests.calibrations import calibration_at, calibrations_at
from tests.changed import changes
from tests.draws import without_noise
from tests.files import signed
from tests.kept import content_of
from tests.refused import Refused, refused
from tests.reports.pages import invented, several


def records(n=3000, seed=1):
    p, y = invented(3000, seed)
    return p[:n], y[:n], np.random.default_rng(seed).choice(["north", "south"], n)


def same(part, estimate):
    assert (part.value, part.low, part.high) == (estimate.value, estimate.low, estimate.high)


def compare(parts, table):
    """The parts that have records are those of a table; sets of size 0 cover no label and are left out."""
    some = [part for part in table if part.n and (table.kind, part.name) != ("size", "0")]
    assert [replace(part, promised=None, below=False) for part in parts] == some


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["one", "levels", "classes"])
def test_evaluation_equals_sets_at_each_level(kind):
    p, y, ward = records()
    released = calibration_at(0.6) if kind == "one" else several()[kind][0]
    found, plain = evaluate_sets(released, p, y, groups=ward), evaluate_sets(released, p, y)
    assert list(found.levels) == list(released.levels if kind == "levels" else [])
    for alpha in found.levels or [None]:
        level, (one, ungrouped) = (
            released.at(alpha),
            ((e.finding if alpha is None else e[alpha]) for e in (found, plain)),
        )
        sets, alone = (
            confide.predict_set(p, level, range(4)),
            evaluate_sets(level, p, y, groups=ward).finding,
        )
        for other in (alone, ungrouped):
            assert (one.coverage, one.classes, one.sizes, one.shares) == (
                other.coverage, other.classes, other.sizes, other.shares
            )  # fmt: skip
        assert (one.tables, one.mean_size, ungrouped.groups.parts) == (alone.tables, alone.mean_size, ())
        same(one.coverage, confide.evaluation.coverage(sets.contains(y)))
        assert one.coverage.promised == level.promised
        compare(one.classes, confide.evaluation.class_coverage(sets, y))
        compare(one.sizes, confide.evaluation.size_coverage(sets, y, bins=range(6)))
        compare(one.groups, confide.evaluation.group_coverage(sets, y, ward))
    with refused(InputError, "alpha"):
        found[0.3]


@pytest.mark.slow
def test_randomised_scores_use_same_uniforms_at_every_level():
    p, y, _ = records()
    rng = np.random.default_rng(0)
    scores = confide.aps_score(p, y)
    released = confide.calibrate(scores, [0.3, 0.1], epsilon=2.0, score="aps")
    u = rng.random(len(y))
    found = evaluate_sets(released, p, y, u=u)
    for alpha in released.levels:
        same(
            found[alpha].coverage,
            confide.evaluation.coverage(confide.predict_set(p, released.at(alpha), u=u).contains(y)),
        )
    fresh = evaluate_sets(released, p, y)
    assert found[0.3].coverage.value <= fresh[0.1].coverage.value


def test_risk_by_critical_thresholds():
    rng = np.random.default_rng(0)
    p = rng.random((4000, 6))
    truth = rng.random(p.shape) < p
    released = confide.calibrate_false_negatives(p, truth, 0.1, 1.0)
    scores = confide.core.risk.false_negative_thresholds(p, truth)
    found = evaluate_scores(released, scores)
    loss = confide.evaluation.false_negative_rate(confide.predict_labels(p, released), truth).mean()
    wide = confide.evaluation.coverage(
        scores <= released.threshold, confidence=1 - 1e-6
    )  # another draw of u, at a level for tests
    assert wide.value == found.coverage.value
    assert 1 - wide.high <= loss <= 1 - wide.low
    with refused(InputTypeError, "release"):
        evaluate_sets(released, p, np.zeros(4000, int))
    with refused(InputTypeError, "release"):
        evaluate_intervals(released, p[:, 0], p[:, 0])


WARDS = calibrations_at("group", {"north": 0.5, "south": 0.5})
SIDES = calibrations_at("side", {"low": 0.5, "high": 0.5})
P, Y, WARD = records(100)
SETS, SCORES = {"release": calibration_at(0.6), "probabilities": P, "labels": Y}, {"release": WARDS, "scores": P[:, 0]}
INTERVALS = {"release": calibration_at(1.0, "absolute_residual"), "predictions": [1.0], "targets": [1.0]}


@pytest.mark.parametrize(
    "row",
    [
        Refused(evaluate_sets, SETS, {"release": WARDS}, "groups", kind=InputError),
        Refused(evaluate_sets, SETS, {"release": WARDS, "groups": ["east"] * 100}, "groups", kind=InputError),
        Refused(evaluate_sets, SETS, {"labels": Y + 1}, "labels", kind=InputError),
        Refused(evaluate_sets, SETS, {"probabilities": P[:0], "labels": Y[:0]}, "probabilities", kind=InputError),
        Refused(evaluate_sets, SETS, {"groups": WARD[:99]}, "groups", kind=InputError),
        Refused(evaluate_sets, SETS, {"groups": [None, *WARD[1:]]}, "groups", kind=InputError),
        Refused(evaluate_sets, SETS, {"groups": np.linspace(0, 1, 100)}, "groups", kind=InputTypeError),
        Refused(evaluate_scores, SCORES, {}, "groups", kind=InputError),
        Refused(evaluate_scores, SCORES, {"release": SETS["release"], "scores": [math.nan]}, "scores", kind=InputError),
        Refused(evaluate_scores, SCORES, {"release": SIDES}, "release", kind=InputTypeError),
        Refused(
            confide.evaluate, {"release": SETS["release"], "scores": [0.5]}, {"u": [0.5]}, "u", kind=InputTypeError
        ),
        Refused(confide.evaluate, SETS, {"partition": [0]}, "partition", kind=InputTypeError),
        Refused(evaluate_intervals, INTERVALS, {"targets": [math.inf]}, "targets", kind=InputError),
        Refused(Partition, {"kind": "group"}, {"names": ("a", "a")}, "names", kind=InputError),
    ],
    ids=str,
)
def test_refusals(row):
    row.check()


def test_empty_intervals_have_width_zero_in_every_evaluation():
    """Quantiles apart by 10, 1, -6, 9.7 and 0, with a threshold of -4.75: of ten records of each, eight are empty."""
    released = calibration_at(-4.75, score="cqr")
    apart = np.repeat([10.0, 1.0, -6.0, 9.75, 0.0], 10)
    ward = np.tile(["north", "south"], 25)
    quantiles = np.column_stack([np.zeros(50), apart])
    widths = confide.predict_interval(quantiles, released).widths
    np.testing.assert_allclose(widths, np.maximum(apart - 9.5, 0), atol=1e-9)
    table = pa.table({"low": quantiles[:, 0], "high": apart, "y": np.full(50, 4.75), "ward": ward})
    columns = TargetColumns(("low", "high"), "y")
    for found in (
        evaluate_intervals(released, quantiles, np.full(50, 4.75), groups=ward),
        evaluate_table(table, columns, released, by="ward"),
    ):
        assert found.mean_width == pytest.approx((0.5 + 0.25) / 5)
        assert [part.mean_width for part in found.groups] == pytest.approx([0.15, 0.15])
        assert found.coverage.value == 0.4
        assert Evaluation.from_json(found.to_json()) == found


# Who is covered least, and who surely less than promised.


@pytest.mark.parametrize("n", [5, 50, 500])
@pytest.mark.parametrize("parts", [1, 9, 300])
def test_surely_below_is_simultaneous_and_exact(n, parts):
    """By the law of the count: wrongly named with probability .025 / parts at most, and no one needlessly spared."""

    def named(hits):
        missed = np.array([0] * (parts - 1) + [n - hits])
        table = CoverageTable("class", PartCounts(range(parts), n - missed, missed).parts(0.05))
        return bool(table.surely_below(0.9)[-1])

    hits = [h for h in range(n + 1) if stats.binom.cdf(h, n, 0.9) < 0.025 / parts]
    most = max(hits, default=-1)
    assert all(named(h) for h in {0, most // 2, most} if h in hits)
    assert not named(most + 1)


def test_worst_part_and_parts_below_promise():
    """As on pathology slides: 0.9 over all, half of one class; a rare class of which no one can be sure."""
    tissues = ("adipose", "cancer-associated stroma", "rare")
    labels, members, times = zip(
        (0, [0], 4870), (0, [0, 1], 2000), (0, [1, 2], 540), (1, [0, 1], 125), (1, [0, 2], 115), (2, [0, 2], 3),
        (2, [0, 1], 2), strict=True,
    )  # fmt: skip
    p = np.repeat([np.isin(range(3), inside) / len(inside) for inside in members], times, axis=0)
    found = evaluate_sets(calibration_at(0.7), p, np.repeat(np.array(tissues)[list(labels)], times), tissues)
    assert found.shortfall is None
    assert (found.classes.worst.name, len(found.classes)) == ("cancer-associated stroma", 3)
    assert [part.name for part in found.classes.below] == ["cancer-associated stroma"]
    assert len(found.sizes.below) == 1
    with refused(InputError, "parts"):
        _ = found.ends.worst


def test_parts_are_compared_with_their_guarantee():
    parts = marked(PartCounts("ab", np.array([820, 860]), np.array([180, 140]), [0.8, 0.9]).parts(0.05))
    assert [part.below for part in parts] == [False, True]
    released, _ = several()["classes"]
    p, y = invented(3000, 1)
    found = evaluate_sets(released, p, np.where(np.arange(3000) % 2, 0, y))
    assert found.classes.own
    assert found.classes.below[0].name == "0"


@pytest.mark.slow
def test_intervals_and_scores_of_any_release_group_by_group():
    rng = np.random.default_rng(0)
    y, site = rng.normal(size=2000), rng.integers(1, 3, 2000)
    y = np.where(site == 2, 3 * y, y)
    sides, _ = several()["sides"]
    found = evaluate_intervals(sides, np.tile([-1.0, 1.0], (2000, 1)), y, groups=site)
    assert found.groups.names == ("1", "2")
    assert found.groups[0].mean_width == pytest.approx(found.mean_width)
    assert found.ends.names == ("lower end", "upper end")
    assert Evaluation.from_json(found.to_json()) == found
    assert found.groups.worst.name == "2"
    assert found.shortfall.is_broken, "and then no other division of the records would help"
    released = calibration_at(1.5, "absolute_residual")
    by_score = evaluate_scores(released, np.abs(y), groups=site)
    by_interval = evaluate_intervals(released, np.zeros(2000), y, groups=site)
    assert by_score.groups.hits.tolist() == by_interval.groups.hits.tolist()
    assert by_score.groups.n.sum() == 2000


EVALUATION = {"query.partitions", "query.records_per_person", "query.statements", "counts", "sums"}
WATCH = {
    *("epsilon", "batch", "looks", "records_per_person", "promised", "promised.name", "reference"),
    *("reference.counts", "reference.epsilon", "reference.noises"),
    *("correction", "correction.alpha", "correction.delay", "correction.scales.threshold"),
}
STATED = {
    "evaluation": {"query.epsilon", "query.partitions.names", "query.partitions.promised", "versions", *EVALUATION},
    "watch": {"looks", "looks.name", "looks.counts", *(f"settings.{name}" for name in WATCH)},
    "corrected": set(),
}
"""Fields that their writer may state otherwise: the others follow from them."""


def content(name):
    """A kept file, or an evaluation of several parts."""
    return json.loads(several()[name][1].to_json()) if name in several() else content_of(name)


def plain(text):
    return json.dumps(json.loads(text), sort_keys=True)


@pytest.mark.slow(unless=("intervals", "private-sets", "watch"))
@pytest.mark.parametrize(
    "name",
    [
        *("sides", "intervals", "private-sets", "watch", "watch-sizes", "watch-correction", "watch-alarm"),
        *slow(["levels", "groups", "classes", "lengths", "sets", "corrected"]),
    ],
)
def test_whatever_is_changed_is_refused_or_read_as_stated(name):
    """A changed file with its own checksum is refused, or the field may be so; and nothing is read as another value."""
    document = content(name)
    kind, read = document["kind"].removeprefix("confide/"), set()
    assert plain(Document.from_json(signed(document)).to_json()) == plain(signed(document))
    for path, changed in changes(document, first=3):
        if not isinstance(changed, dict) or path == ("sha256",):
            continue
        try:
            value = Document.from_json(signed(changed))
        except ConfideError:
            continue
        read.add(re.sub(r"\.\d+", "", ".".join(map(str, path))))
        assert plain(value.to_json()) == plain(signed(changed))
    assert {re.sub(r"^versions\..*", "versions", one) for one in read} <= STATED[kind]
    assert kind != "evaluation" or ("counts" in read) == (len(document["counts"]) == 1)  # several tables must add up


BATCHES = [slice(0, 1), slice(1, 1), slice(1, 260), slice(260, 400)]


@pytest.mark.parametrize("parts", [(), (1,), (5,), (3, 4), (2, 3, 2)])
@pytest.mark.parametrize("outcomes", [2, 4])
def test_cells_equal_loop_over_records(parts, outcomes):
    rng = np.random.default_rng(len(parts))
    places = [rng.integers(0, size, 400) for size in parts]
    outcome, measured = rng.integers(0, outcomes, 400), rng.integers(0, 9, (2, 400))
    counts = Counts((*parts, outcomes), (*parts, 2))
    for batch in BATCHES:
        counts.add([place[batch] for place in places], outcome[batch], measured[:, batch])
    cells, sums = Counter(), Counter()
    for one, sizes, *place in zip(outcome, measured.T, *places, strict=True):
        cells[*place, one] += 1
        sums.update({(*place, level): size for level, size in enumerate(sizes.tolist())})
    assert counts.cells.shape == (*parts, outcomes)
    assert all(counts.cells[at] == cells[at] for at in np.ndindex(counts.cells.shape))
    assert all(counts.sums[at] == sums[at] for at in np.ndindex(*parts, 2))


def test_groups_are_counted_by_name_in_any_batches():
    rng = np.random.default_rng(7)
    names, scores = rng.choice(list("ecafbd"), 400), rng.random(400)
    comparison = ScoreOutcomes(calibration_at(0.5))
    tally = Tally(comparison, exact_query(comparison, grouped=True))
    for batch in BATCHES:
        tally.add(LabelledRecords(scores[batch]), names[batch])
    found = tally.result().groups
    assert found.names == tuple("abcdef")
    for part in found:
        own = names == part.name
        assert (part.n, part.covered) == (own.sum(), (own & (scores <= 0.5)).sum())
    with refused(TooManyGroupsError, "groups"):
        tally.add(LabelledRecords(np.zeros(995)), range(995))


def test_invalid_part_raises():
    for place in (-1, 2):
        for parts in ((2,), (2, 2)):
            counts = Counts((*parts, 2))
            with pytest.raises(ValueError):
                counts.add([np.array([place])] * len(parts), np.array([0]))
            assert not counts.cells.any()


def test_outcomes_of_sides_and_of_levels():
    low, high = np.array([True, False, True, False]), np.array([True, True, False, False])
    assert outcomes_of([RecordOutcomes(low & high, None, (low, high))]).tolist() == [0, 1, 2, 3]
    nested = [RecordOutcomes(low & high), RecordOutcomes(low), RecordOutcomes(low | high)]
    assert outcomes_of(nested).tolist() == [0, 2, 1, 3]
    assert outcomes_of([RecordOutcomes(low)]).tolist() == [0, 1, 0, 1]


@pytest.mark.slow
@pytest.mark.parametrize("by", ["sets", "groups", "sides", "levels"])
def test_evaluation_equals_private_one_without_noise(draw_with, by):
    rng = np.random.default_rng(3)
    p = rng.dirichlet([4, 2, 1], 1500)
    y, ward = (p.cumsum(axis=1) > rng.random((1500, 1))).argmax(axis=1), rng.choice(["a", "b"], 1500)
    targets, quantiles = rng.normal(size=1500), np.tile([-1.0, 1.0], (1500, 1))
    scores, arrays, groups = confide.lac_score(p, y), {"probabilities": p, "labels": y}, None
    if by == "sets":
        released = confide.calibrate(scores, 0.1, 5.0, score="lac", classes=3)
    elif by == "groups":
        released, groups = confide.calibrate(scores, 0.1, 5.0, groups=ward, names=["a", "b"], score="lac"), ward
    elif by == "levels":
        released = confide.calibrate(scores, [0.3, 0.1], 5.0, score="lac")
    else:
        released = confide.calibrate_sides(quantiles, targets, 0.2, 5.0)
        arrays = {"predictions": quantiles, "targets": targets}
    draw_with(noisy_counts=without_noise)
    plain = evaluate_arrays(released, None, arrays, groups)
    private = evaluate_arrays(released, PrivateRequest(epsilon=1.0), arrays, groups)
    for name, exact in plain.findings.items():
        found = private.findings[name]
        assert found.coverage.value == exact.coverage.value
        assert {table.kind for table in found.tables} == {
            "sets": {"class", "size"}, "levels": {"class"}, "groups": {"class", "size", "group"},
            "sides": set() if name else {"end"},
        }[by]  # fmt: skip
        for table in found.tables:
            some = [(part.name, part.covered, part.missed) for part in table if part.n]
            assert some == [(part.name, part.covered, part.missed) for part in exact.table(table.kind)]


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


BOTH_CLASSES = PredictionSets(np.ones((3, 2), dtype=bool))
GROUPED = {"sets": BOTH_CLASSES, "labels": [0, 1, 0], "groups": ["a", "a", "b"]}
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
        Refused(coverage, {}, {"covered": BOTH_CLASSES}, "labels", kind=InputTypeError),
        *(Refused(coverage_from_counts, COUNTED, {"hits": own}, "hits", kind=InputError) for own in (-1, 6)),
        *(Refused(coverage_from_counts, COUNTED, {"n": own}, "n", kind=InputError) for own in (0, -1)),
        Refused(coverage_from_counts, COUNTED, {"n": 5.0}, "n", kind=InputTypeError),
        Refused(group_coverage, GROUPED, {"groups": ["a", None, "b"]}, "groups", kind=InputError),
        Refused(group_coverage, GROUPED, {"groups": np.array(["a", np.nan, "b"], object)}, "groups", kind=InputError),
        Refused(group_coverage, GROUPED, {"groups": [1.0, np.nan, 2.0]}, "groups", kind=InputTypeError),
        Refused(group_coverage, MANY, {}, "groups", kind=TooManyGroupsError),
        *(Refused(size_coverage, {"sets": BOTH_CLASSES, "labels": [0, 1, 0]}, {"bins": own}, "bins", kind=InputError)
          for own in ([], [1, 2], [0, 2, 2], [0.0, 1.0], [[0, 1]])),
    ],
    ids=str,
)  # fmt: skip
def test_refusals_of_counts(row):
    row.check()


def test_thousand_groups_are_allowed():
    assert len(group_coverage(*(values[:1000] for values in MANY.values())).names) == 1000
