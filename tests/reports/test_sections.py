"""Other sections of a page: examples, who made it of what, what was spent, the worst class, the price, the terms."""

import math
import re
import warnings

import numpy as np
import pytest

import confide
from confide.reports.charts import course
from confide.reports.thresholds import worked_example
from tests.refused import refused
from tests.reports.pages import calibration
from tests.reports.test_pages import page_of, words_of

pytestmark = pytest.mark.xdist_group("released")
PUBLIC = {"neighbors": "replace_one"}


def released_at(score, threshold):
    """A release whose threshold is about what is given."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", confide.CoverageWarning)
        options = PUBLIC | {"candidates": confide.Candidates.of([threshold])}
        return confide.calibrate(np.full(400, threshold), 0.1, 5.0, score=score, **options)


@pytest.mark.parametrize(
    ("score", "threshold"),
    [("lac", 1e-6), ("lac", 0.0088), ("lac", 0.5), ("lac", 0.9958), ("lac", 0.999999),
     ("aps_deterministic", 0.3), ("aps_deterministic", 0.9), ("aps", 0.9999), ("margin", -0.99), ("margin", 0.3)],
)  # fmt: skip
def test_examples_differ_for_every_threshold(score, threshold):
    release = released_at(score, threshold)
    assert release.threshold == threshold
    example = worked_example(release)
    answers = [record.answer for record in example.records]
    assert len(set(answers)) == len(answers) >= 2
    for record in example.records:
        members = [name for name, (_, held) in zip("ABCDE", record.labels, strict=True) if held]
        assert record.answer == ("{" + ", ".join(members) + "}" if members else "the empty set")
        if score == "lac":
            assert all(held == (float(p) >= 1 - threshold) for p, held in record.labels if float(p) not in (0.0, 1.0))


def test_equal_sets_show_one_record():
    assert [record.answer for record in worked_example(released_at("top_k", 2.0)).records] == ["{A, B}"]


@pytest.mark.slow
def test_spending_of_data(tmp_path):
    ledger = confide.Ledger(tmp_path / "budget.db", limit=4.0, by="trial office")
    known, scores = {"ledger": ledger, "dataset": "patients"}, np.random.default_rng(0).random(3000)
    confide.calibrate(scores, 0.2, 0.75, score="lac", **known)
    released = confide.calibrate(scores, 0.1, 0.5, score="lac", **known)
    confide.calibrate(scores, 0.05, 0.25, score="lac", **known)
    levels = confide.calibrate(scores, [0.3, 0.15], 1.0, **known)
    words = words_of(page_of(released, ledger=ledger))
    assert "Spent before this release ε = 0.75 " in words
    assert "by trial office Spent with it ε = 1.25 Spent by now ε = 2.5, in 5 releases Limit ε = 4" in words
    assert "Left for one more release ε = 1.5" in words
    several = words_of(page_of(levels, ledger=tmp_path / "budget.db"))
    assert "Spent before this release ε = 1.5 " in several
    assert "Spent with it ε = 2.5 " in several
    assert "What the data have spent" not in words_of(page_of(released))
    with refused(confide.InputError, "ledger"):
        page_of(calibration(), ledger=ledger)


def test_text_about_intervals_of_one_width():
    said = words_of(page_of(released_at("absolute_residual", 1.0)))
    assert "All of them have one width. It shows how far the model errs among all records" in said
    assert "Short intervals mean that it is sure" not in said
    assert "Short intervals mean that it is sure" in words_of(page_of(released_at("normalised_residual", 1.0)))
    assert "No file can prove that the threshold was drawn with noise" in said


@pytest.mark.parametrize(
    ("thresholds", "circles", "lines"),
    [
        ([0.2, 0.4, 0.3], 3, 1),
        ([math.inf, 0.4], 1, 0),
        ([0.2, math.inf, 0.3], 2, 0),
        ([0.2, 0.3, math.inf], 2, 1),
        ([math.inf, math.inf], 0, 0),
        ([1e308, -1e308], 2, 1),
        ([0.5] * 200, 200, 1),
    ],
)
def test_thresholds_stay_within_the_frame_of_their_chart(thresholds, circles, lines):
    chart = course(thresholds, [""] * len(thresholds), "label")
    drawn = chart.svg()
    places = [float(place) for place in re.findall(r' (?:cx|cy|x|y)="([^"]*)"', drawn)]
    assert all(0 <= place <= 480 for place in places)
    assert (drawn.count("<circle"), drawn.count("<polyline")) == (circles, lines)
    assert ("+∞" in [text for _, text in chart.y.ticks]) == any(map(math.isinf, thresholds))
