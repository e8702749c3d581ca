"""Every use of a release warns of a threshold that is +inf, or nearly so; a release is examined once."""

import dataclasses
import math
import sys
import warnings

import numpy as np
import pytest

import confide
from confide import core
from confide.core import remarks, warn_about
from tests.calibrations import calibration_at, released

INFINITE, USEFUL = calibration_at(math.inf), calibration_at(0.5)
WIDE = calibration_at(math.inf, score="absolute_residual")
P, Y = np.array([[0.75, 0.25], [0.5, 0.5]]), np.array([0, 1])
LABELS = "every label is in every set"


def groups(by="group", threshold=math.inf):
    """Two thresholds; the given one is the second."""
    parts = {0: USEFUL, 1: calibration_at(threshold)}
    return confide.GroupCalibration(by, "add_remove", parts)


def losses(threshold=math.inf):
    """A bound on the share of true labels that are missed."""
    score = core.critical_score(core.FALSE_NEGATIVES)
    return confide.RiskCalibration(core.FALSE_NEGATIVES, 1.0, calibration_at(threshold, score=score))


def sides(threshold=math.inf):
    """A threshold for each side."""
    low, high = calibration_at(0.5, score="cqr_low"), calibration_at(threshold, score="cqr_high")
    return confide.SidesCalibration(low, high)


def levels(threshold=math.inf):
    """Two levels; the smaller one has the given threshold."""
    parts = (dataclasses.replace(USEFUL, alpha=USEFUL.alpha * 2), calibration_at(threshold))
    return confide.LevelCalibration({part.alpha: part for part in parts})


def nearly():
    return dataclasses.replace(released("geometric"), score="absolute_residual", threshold=9.0)


APPLIED = {
    "set": (lambda: confide.predict_set(P, INFINITE), LABELS),
    "set by group": (lambda: confide.predict_set(P, groups(), groups=[0, 1]), r"1 of 2 groups: 1; every label"),
    "set by class": (lambda: confide.predict_set(P, groups("class")), r"1 of 2 classes: 1; every label"),
    "interval": (lambda: confide.predict_interval([1.0], WIDE), "every interval is the whole line"),
    "sides": (lambda: confide.predict_interval([[0.0, 1.0]], sides()), "upper side"),
    "labels": (lambda: confide.predict_labels(P, losses()), "nothing is excluded"),
    "none": (lambda: confide.predict_set(np.zeros((0, 2)), INFINITE), LABELS),
    "sets": (lambda: confide.evaluate_sets(INFINITE, P, Y), LABELS),
    "sets of levels": (lambda: confide.evaluate_sets(levels(), P, Y), LABELS),
    "intervals": (lambda: confide.evaluate_intervals(WIDE, [1.0], [2.0]), "the whole line"),
    "scores": (lambda: confide.evaluate_scores(INFINITE, [0.5]), LABELS),
    "scores of levels": (lambda: confide.evaluate_scores(levels(), [0.5]), "for alpha 0.1; every label"),
    "critical thresholds": (lambda: confide.evaluate_scores(losses(), [0.5]), "nothing is excluded"),
    "nearly": (
        lambda: confide.predict_interval([1.0], nearly()),
        "not a plausible size",
    ),
}


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
    confide.evaluate_scores(levels(0.5), [0.5])


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
    other = dataclasses.replace(one, threshold=0.5)
    assert not confide.predict_set([[0.9, 0.1]], other).mask.all()
    assert looked == [one, other]
