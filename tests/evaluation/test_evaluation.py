"""Evaluations: what is counted is what the sets and intervals say, and what is read adds up."""

import json
import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import confide
from confide.errors import FormatError, InputError, InputTypeError
from confide.evaluation import (
    evaluate_intervals,
    evaluate_scores,
    evaluate_sets,
    read_evaluation,
)
from confide.tables import TargetColumns, evaluate_table
from tests.calibrations import calibration_at, calibrations_at
from tests.refused import Refused, refused
from tests.reports.pages import invented, several

CLASSES_BY_NUMBER = (0, 1, 2, 3)
KINDS = ("levels", "groups", "classes", "sides", "lengths")


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_evaluation_round_trip(kind):
    _, found = several()[kind]
    read = read_evaluation(found.to_json())
    assert read == found
    assert read.to_json() == found.to_json()


def records(n=3000, seed=1):
    p, y = invented(n, seed)
    ward = np.random.default_rng(seed).choice(["north", "south"], n)
    return p, y, ward


def same(part, estimate):
    assert (part.coverage.value, part.coverage.low, part.coverage.high) == (
        estimate.value, estimate.low, estimate.high
    )  # fmt: skip


def compare(parts, table):
    kept = [i for i in range(len(table.names)) if table.n[i]]
    assert [part.name for part in parts] == [str(table.names[i]) for i in kept]
    for part, i in zip(parts, kept, strict=True):
        assert (part.n, part.covered, part.mean_size) == (table.n[i], table.hits[i], table.size[i])
        assert (part.coverage.low, part.coverage.high) == (table.low[i], table.high[i])


@pytest.mark.slow
def test_levels_equal_sets_at_each_level():
    p, y, _ = records()
    released, _ = several()["levels"]
    found = evaluate_sets(released, p, y, CLASSES_BY_NUMBER, examples=5)
    assert list(found) == [Fraction(1, 5), Fraction(1, 10), Fraction(1, 20)]
    for alpha in released.levels:
        part = released.at(alpha)
        sets = confide.predict_set(p, part)
        one = found[alpha]
        assert one == evaluate_sets(part, p, y, CLASSES_BY_NUMBER, examples=5)
        same(one, confide.coverage(sets.contains(y)))
        assert one.promised == part.coverage
        compare(one.classes, confide.class_coverage(sets, y))
        compare(one.sizes, confide.size_coverage(sets, y, bins=range(6)))
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
        same(found[alpha], confide.coverage(confide.predict_set(p, released.at(alpha), u=u).contains(y)))
    fresh = evaluate_sets(released, p, y)
    assert found[0.3].coverage.value <= fresh[0.1].coverage.value


def test_risk_by_critical_thresholds():
    rng = np.random.default_rng(0)
    p = rng.random((4000, 6))
    truth = rng.random(p.shape) < p
    released = confide.calibrate_false_negatives(p, truth, 0.1, 1.0)
    scores = confide.core.risk.false_negative_thresholds(p, truth)
    found = evaluate_scores(released, scores)
    loss = confide.false_negative_rate(confide.predict_labels(p, released), truth).mean()
    wide = confide.coverage(
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


def changed(found, path, value):
    content = json.loads(found.to_json())
    place = content
    for key in path[:-1]:
        place = place[key]
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return json.dumps(content)


CHANGES = {
    "levels": [
        (("levels", 0, "alpha"), "1/10", "levels"), (("levels", 0, "alpha"), "2", None), (("levels", 0), 3, None),
        (("levels", 0, "surprise"), 3, None), (("levels", 0, "examples"), [], "levels"), (("levels",), [], "levels"),
        (("levels", 0, "sizes", 0, "name"), "one", "sizes"), (("levels", 0, "sizes", 0, "members"), 7, "classes"),
        (("levels", 0, "sizes", 0, "name"), "9", "sizes"), (("levels", 0, "classes"), None, "sizes"),
        (("levels", 0, "sizes"), None, None), (("schema",), 2, "schema"), (("schema",), 3, "schema"),
        (("kind",), "confide/watch", "file"), (("private",), True, None),
    ],
    "groups": [
        (("groups", 0, "covered"), 1, "groups"), (("groups", 0, "members"), 1, "groups"),
        (("groups", 0, "members"), None, "groups"), (("groups",), None, "by"), (("groups", 0, "promised"), 1.5, None),
        (("by",), "ward", None), (("by",), "class", "by"), (("by",), None, "by"), (("mean_width",), 1.0, "sizes"),
        (("mean_size",), None, "sizes"), (("examples", 0, "set"), [1], None), (("sizes", 1, "name"), "1", "sizes"),
        (("examples", 0, "truth"), "\ud800", "file"),
    ],
    "sides": [
        (("groups", 0, "covered"), 0, "groups"), (("groups", 0, "name"), "a", "groups"), (("mean_width",), "a", None),
        (("coverage", "covered"), 0, "groups"), (("coverage", "covered"), 10**6, None), (("mean_size",), 1.0, "sizes"),
    ],
    "classes": [(("classes", 0, "n"), 0, None), (("classes", 0, "n"), -1, None), (("classes",), [], None)],
}  # fmt: skip
"""Of each kind of evaluation: what is changed in its file, and which field is then refused, None if the file's form."""


@pytest.mark.slow
@pytest.mark.parametrize("kind", CHANGES)
def test_contradictions_raise(kind):
    _, found = several()[kind]
    for path, value, argument in CHANGES[kind]:
        with pytest.raises(FormatError) as caught:
            read_evaluation(changed(found, path, value))
        assert argument in (None, caught.value.argument.removeprefix("evaluation.")), (path, value)


@pytest.mark.slow
def test_shares_and_intervals_in_file_are_recomputed():
    _, found = several()["groups"]
    for path in (("mean_size",), ("coverage", "low"), ("groups", 0, "high"), ("singletons",)):
        assert read_evaluation(changed(found, path, 0.5)) == found


def test_levels_must_be_nested():
    _, found = several()["levels"]
    content = json.loads(found.to_json())
    content["levels"][0]["alpha"], content["levels"][2]["alpha"] = "1/20", "1/5"
    with refused(FormatError, "evaluation.levels"):
        read_evaluation(json.dumps(content))


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
        assert [part.mean_width for part in found.subgroups] == pytest.approx([0.15, 0.15])
        assert found.coverage.value == 0.4
        assert read_evaluation(found.to_json()) == found
