"""Other sections of a page: examples, what was spent, what sets mean."""

import warnings

import numpy as np
import pytest

import confide
from confide.reports.example import worked_example
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
    (table,) = worked_example(release).tables
    answers = [row[1] for row in table.rows]
    assert len(set(answers)) == len(answers) >= 2
    for _, answer, *cells in table.rows:
        members = [name for name, cell in zip("ABCDE", cells, strict=True) if cell.endswith(" ✓")]
        assert answer == ("{" + ", ".join(members) + "}" if members else "the empty set")
        for shown in cells:
            p = float(shown.removesuffix(" ✓"))
            assert score != "lac" or p in (0.0, 1.0) or shown.endswith("✓") == (p >= 1 - threshold)


def test_equal_sets_show_one_record():
    assert [row[1] for row in worked_example(released_at("top_k", 2.0)).tables[0].rows] == ["{A, B}"]


@pytest.mark.slow
def test_spending_of_data(tmp_path):
    ledger = confide.Ledger(tmp_path / "budget.db", limit=4.0, by="trial office")
    known, scores = {"ledger": ledger, "dataset": "patients"}, np.random.default_rng(0).random(3000)
    confide.calibrate(scores, 0.2, 0.75, score="lac", **known)
    released = confide.calibrate(scores, 0.1, 0.5, score="lac", **known)
    confide.calibrate(scores, 0.05, 0.25, score="lac", **known)
    levels = confide.calibrate(scores, [0.3, 0.15], 1.0, score="lac", **known)
    words = words_of(page_of(released, ledger=ledger))
    assert "by trial office." in words
    assert "Before this release With it By now epsilon spent, the losses added up 0.75 1.25 2.5 limit 4 4 4" in words
    assert "left for one more release 3.25 2.75 1.5 releases 1 release 2 releases 4 releases" in words
    several = words_of(page_of(levels, ledger=tmp_path / "budget.db"))
    assert "epsilon spent, the losses added up 1.5 2.5 2.5" in several
    assert "What the data have spent" not in words_of(page_of(released))
    with refused(confide.InputError, "ledger"):
        page_of(calibration(), ledger=ledger)


def test_text_about_intervals_of_one_width():
    said = words_of(page_of(released_at("absolute_residual", 1.0)))
    assert (
        "All of them have one width, or one within each part. It shows how far the model errs among all records" in said
    )
    assert "Short intervals mean that it is sure" not in said
    assert "Short intervals mean that it is sure" in words_of(page_of(released_at("normalised_residual", 1.0)))
    assert "No file can prove that the threshold was drawn with noise" in said
