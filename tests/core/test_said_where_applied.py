"""Every use of a release warns of a threshold that is +inf, or nearly so; a release is examined once."""

import math
import sys
import warnings
from dataclasses import replace

import numpy as np
import pytest

import confide
from confide import core
from confide.core import remarks, warn_about
from tests.calibrations import calibration_at, calibrations_at, changed, released

INFINITE, USEFUL = calibration_at(math.inf), calibration_at(0.5)
WIDE = calibration_at(math.inf, score="absolute_residual")
P, Y = np.array([[0.75, 0.25], [0.5, 0.5]]), np.array([0, 1])
LABELS = "every label is in every set"


def groups(by="group", threshold=math.inf):
    """Two thresholds; the given one is the second."""
    return calibrations_at(by, {0: 0.5, 1: threshold})


def losses(threshold=math.inf):
    """A bound on the share of true labels that are missed."""
    return calibration_at(threshold, score=None, loss=core.FALSE_NEGATIVES)


def sides(threshold=math.inf):
    """A threshold for each side."""
    return calibrations_at("side", {"low": 0.5, "high": threshold})


def levels(threshold=math.inf):
    """Two levels; the smaller one has the given threshold."""
    return calibrations_at("level", {"1/5": 0.5, "1/10": threshold})


def nearly():
    made = released("geometric")
    return changed(replace(made, request=replace(made.request, score="absolute_residual")), threshold=9.0)


APPLIED = {
    "set": (lambda: confide.predict_set(P, INFINITE), LABELS),
    "set by group": (lambda: confide.predict_set(P, groups(), groups=[0, 1]), r"1 of 2 groups: 1; every label"),
    "set by class": (lambda: confide.predict_set(P, groups("class")), r"1 of 2 classes: 1; every label"),
    "interval": (lambda: confide.predict_interval([1.0], WIDE), "every interval is the whole line"),
    "sides": (lambda: confide.predict_interval([[0.0, 1.0]], sides()), "upper side"),
    "labels": (lambda: confide.predict_labels(P, losses()), "nothing is excluded"),
    "none": (lambda: confide.predict_set(np.zeros((0, 2)), INFINITE), LABELS),
    "sets": (lambda: confide.evaluation.evaluate_sets(INFINITE, P, Y), LABELS),
    "sets of levels": (lambda: confide.evaluation.evaluate_sets(levels(), P, Y), LABELS),
    "intervals": (lambda: confide.evaluation.evaluate_intervals(WIDE, [1.0], [2.0]), "the whole line"),
    "scores": (lambda: confide.evaluation.evaluate_scores(INFINITE, [0.5]), LABELS),
    "scores of levels": (lambda: confide.evaluation.evaluate_scores(levels(), [0.5]), "for alpha 0.1; every label"),
    "critical thresholds": (lambda: confide.evaluation.evaluate_scores(losses(), [0.5]), "nothing is excluded"),
    "nearly": (lambda: confide.predict_interval([1.0], nearly()), "not a plausible size"),
}


@pytest.mark.slow(unless="set")
@pytest.mark.parametrize("name", APPLIED)
def test_every_answer_has_a_warning(name):
    applied, word = APPLIED[name]
    with pytest.warns(confide.CoverageWarning, match=word) as said:
        applied()
    assert [one.filename for one in said] == [__file__]
    with warnings.catch_warnings():  # as in a service that expects the warning
        warnings.simplefilter("ignore", confide.CoverageWarning)
        applied()


def test_a_useful_threshold_causes_no_warning():
    confide.predict_set(P, USEFUL)
    confide.predict_set(P, groups(threshold=0.5), groups=[0, 1])
    confide.predict_labels(P, losses(0.5))
    confide.predict_interval([[0.0, 1.0]], sides(0.5))
    confide.evaluation.evaluate_scores(levels(0.5), [0.5])


def test_a_release_is_examined_once_and_does_not_change(monkeypatch):
    looked = []

    def counted(release):
        looked.append(release)
        return remarks(release)

    monkeypatch.setattr(sys.modules[warn_about.__module__], "remarks", counted)
    one = calibration_at(math.inf)
    before = hash(one), one.to_json(), repr(one)
    for _ in range(3):
        with pytest.warns(confide.CoverageWarning, match=LABELS):
            confide.predict_set(P, one)
    assert looked == [one]
    assert (hash(one), one.to_json(), repr(one)) == before
    other = changed(one, threshold=0.5)
    assert not confide.predict_set([[0.9, 0.1]], other).mask.all()
    assert looked == [one, other]
