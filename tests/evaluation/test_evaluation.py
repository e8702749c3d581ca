"""Evaluations: what is counted is what the sets and intervals say; who is covered least; what is read adds up."""

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import confide
from confide.errors import InputError, InputTypeError
from confide.evaluation import CoverageTable, Evaluation, evaluate_intervals, evaluate_scores, evaluate_sets
from confide.evaluation.parts import PartCounts, marked
from confide.tables import TargetColumns, evaluate_table
from tests.calibrations import calibration_at, calibrations_at
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
    found, plain = evaluate_sets(released, p, y, examples=5, groups=ward), evaluate_sets(released, p, y)
    assert list(found.levels) == list(released.levels if kind == "levels" else [])
    for alpha in found.levels or [None]:
        level, (one, ungrouped) = (
            released.at(alpha),
            ((e.finding if alpha is None else e[alpha]) for e in (found, plain)),
        )
        sets, alone = (
            confide.predict_set(p, level, range(4)),
            evaluate_sets(level, p, y, examples=5, groups=ward).finding,
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
        assert [list(shown.members) for shown in one.examples] == [[str(k) for k in row] for row in sets.labels()[:5]]
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


WARDS = confide.calibrate(
    np.linspace(0, 1, 2000),
    0.1,
    1.0,
    groups=np.tile(["north", "south"], 1000),
    names=["north", "south"],
    score="lac",
    candidates=confide.Candidates.unit(100),
)
SIDES = calibrations_at("side", {"low": 0.5, "high": 0.5})
P, Y, WARD = records(100)
SETS, SCORES = {"release": calibration_at(0.6), "probabilities": P, "labels": Y}, {"release": WARDS, "scores": P[:, 0]}
INTERVALS = {"release": calibration_at(1.0, "absolute_residual"), "predictions": [1.0], "targets": [1.0]}


@pytest.mark.parametrize(
    "row",
    [
        Refused(evaluate_sets, SETS, {"release": WARDS}, "groups", kind=InputError),
        Refused(evaluate_sets, SETS, {"release": WARDS, "groups": ["east"] * 100}, "groups", kind=InputError),
        Refused(evaluate_sets, SETS, {"examples": 1001}, "examples", kind=InputError),
        Refused(evaluate_sets, SETS, {"labels": Y + 1}, "labels", kind=InputError),
        Refused(evaluate_sets, SETS, {"probabilities": P[:0], "labels": Y[:0]}, "probabilities", kind=InputError),
        Refused(evaluate_sets, SETS, {"groups": WARD[:99]}, "groups", kind=InputError),
        Refused(evaluate_sets, SETS, {"groups": [None, *WARD[1:]]}, "groups", kind=InputError),
        Refused(evaluate_sets, SETS, {"groups": np.linspace(0, 1, 100)}, "groups", kind=InputTypeError),
        Refused(evaluate_scores, SCORES, {}, "groups", kind=InputError),
        Refused(evaluate_scores, SCORES, {"release": SETS["release"], "scores": [math.nan]}, "scores", kind=InputError),
        Refused(evaluate_scores, SCORES, {"release": SIDES}, "release", kind=InputTypeError),
        Refused(evaluate_intervals, INTERVALS, {"targets": [math.inf]}, "targets", kind=InputError),
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


def evaluated(rows):
    """An evaluation of sets, from rows of a true class, the classes in its set, and the number of such records."""
    labels = np.repeat([label for label, _, _ in rows], [times for *_, times in rows])
    p = np.repeat([np.isin(range(3), members) / len(members) for _, members, _ in rows], [t for *_, t in rows], axis=0)
    return evaluate_sets(calibration_at(0.7), p, np.array(TISSUES)[labels], TISSUES)


TISSUES = ("adipose", "cancer-associated stroma", "rare")


def test_worst_part_and_parts_below_promise():
    """As on pathology slides: 0.9 over all, half of one class; a rare class of which no one can be sure."""
    found = evaluated([(0, [0], 4870), (0, [0, 1], 2000), (0, [1, 2], 540), (1, [0, 1], 125), (1, [0, 2], 115),
                       (2, [0, 2], 3), (2, [0, 1], 2)])  # fmt: skip
    assert found.shortfall is None
    assert (found.classes.worst.name, len(found.classes)) == ("cancer-associated stroma", 3)
    assert [part.name for part in found.classes.below] == ["cancer-associated stroma"]
    assert found.classes.sentence == (
        "1 of 3 classes is covered less than 0.9 beyond chance (95 %, all classes at once): cancer-associated stroma. "
        "The promise is an average over all classes. Calibrate by class for a promise to each class."
    )
    assert found.sizes.sentence.startswith("1 of 2 set sizes is covered less than 0.9 beyond chance (95 %, all set")
    assert "such as aps," in found.sizes.sentence


def test_parts_are_compared_with_their_guarantee():
    parts = marked(PartCounts("ab", np.array([820, 860]), np.array([180, 140]), [0.8, 0.9]).parts(0.05))
    assert [part.below for part in parts] == [False, True]
    released, _ = several()["classes"]
    p, y = invented(3000, 1)
    found = evaluate_sets(released, p, np.where(np.arange(3000) % 2, 0, y))
    assert found.classes.own
    assert found.classes.below[0].name == "0"
    assert found.classes.sentence == "" or "--by-class" not in found.classes.sentence


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
    assert (
        found.groups.sentence == "1 of 2 groups is covered less than 0.9 beyond chance (95 %, all groups at once): 2."
    )
    assert found.shortfall.is_broken, "and then no other division of the records would help"
    released = calibration_at(1.5, "absolute_residual")
    by_score = evaluate_scores(released, np.abs(y), groups=site)
    by_interval = evaluate_intervals(released, np.zeros(2000), y, groups=site)
    assert by_score.groups.hits.tolist() == by_interval.groups.hits.tolist()
    assert by_score.groups.n.sum() == 2000


def test_records_outside_all_classes_are_no_class_in_the_sentence():
    parts = PartCounts(["cat", "dog", "(other)"], np.array([20, 60, 3]), np.array([40, 2, 0])).parts(0.05)
    table = CoverageTable("class", [replace(part, promised=0.9, below=part.name == "cat") for part in parts])
    assert table.sentence.startswith("1 of 2 classes is covered less than 0.9 ")
