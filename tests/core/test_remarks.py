"""A threshold that is +inf, or nearly so, always causes a warning, which is true and contains only public numbers."""

import math
import re
import warnings

import numpy as np
import pytest

import confide
from confide.core import remarks
from confide.evaluation import evaluate_sets
from tests.calibrations import calibration_at, calibrations_at, changed, released
from tests.draws import always


def calibrated(scores, *arguments, **options):
    """The release, and the text of its warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = confide.calibrate(scores, *arguments, **options)
    return made, [str(one.message) for one in caught if issubclass(one.category, confide.CoverageWarning)]


SPREAD = confide.Candidates.spread
RESIDUALS = np.linspace(0.0, 1.0, 2000)
OLD = {"score": "absolute_residual", "candidates": SPREAD("residual", 500)}


@pytest.mark.slow
def test_residuals_beyond_the_candidates_have_another_reason_than_few_records():
    made, (note,) = calibrated(RESIDUALS * 1e30, 0.1, 1.0, neighbors="replace_one", **OLD)
    assert made.threshold == math.inf
    assert note.startswith(
        "the threshold is +inf: every interval is the whole line; there are 2000 calibration records,"
    )
    assert f"lie beyond the largest candidate, {OLD['candidates'].edges[-1]:.4g}: state a public typical size" in note
    assert "unit=" in note
    assert "are needed for a useful one" not in note


@pytest.mark.slow
@pytest.mark.parametrize("n", [60, 2000])
def test_a_secret_number_of_records_leaves_both_reasons(n):
    """One text for all records, so that it reveals nothing about their number."""
    _, (note,) = calibrated(RESIDUALS[:n] + 1e30, 0.1, 1.0, **OLD)
    assert "calibration records are needed for a useful one at alpha=0.1 and epsilon=1, and there may be" in note
    assert "or more than a share alpha of the scores lie beyond the largest candidate" in note
    assert f" {n} " not in note


@pytest.mark.slow
def test_scores_that_candidates_reach_have_one_reason():
    _, (note,) = calibrated([0.5] * 8, 0.1, 1.0, score="lac", neighbors="replace_one")
    assert note.startswith("the threshold is +inf: every label is in every set; about ")
    assert note.endswith("and there are 8: take more, or a larger epsilon or alpha")
    assert "unit" not in note
    untouched = released("too few records")
    assert untouched.mechanism is None
    (note,) = remarks(untouched)
    assert note.startswith("the threshold is +inf: nothing is excluded; about ")
    assert note.endswith("at alpha=0.1 and epsilon=0.001, and there are 1000: take more, or a larger epsilon or alpha")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("score", "candidates", "threshold", "word"),
    [
        ("absolute_residual", SPREAD("residual", 500), 3e6, "not a plausible size"),
        ("cqr", SPREAD("signed", 500), -3e6, "not a plausible size"),
            (None, SPREAD("any", 500), 5e6, "not a plausible size"),
            ("absolute_residual", SPREAD("residual", 500, unit=100.0), 2300.0, "not a plausible size"),
            ("absolute_residual", SPREAD("residual", 500, unit=1e7), 2.1e7, None),
            (None, SPREAD("any", 500), 0.9, None),
            ("lac", confide.Candidates.unit(), 0.9999, None),
    ],
)  # fmt: skip
def test_thresholds_in_the_outer_decades(score, candidates, threshold, word):
    made = changed(calibrated(RESIDUALS[1:], 0.1, 1.0, score=score, candidates=candidates)[0], threshold=threshold)
    notes = remarks(made)
    assert (word is None) == (not notes)
    assert all(word in note and "unit=" in note for note in notes)
    assert not any(f"{threshold:g}" in note for note in notes)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("unit", "threshold", "coarse"),
    [
        (None, 1.0, False),
        (None, 1e3, False),
        (None, -1, True),
        (25.0, 25.0, False),
        (25.0, 450.0, False),
        (25.0, -1, True),
    ],
)
def test_thresholds_in_coarse_ranges_of_spread_candidates(unit, threshold, coarse):
    """The last candidates of a list lie nearly a decade apart."""
    candidates = confide.Candidates.spread("residual", 480, unit)
    value = candidates.edges[-2] if threshold < 0 else candidates.edges[candidates.edges <= threshold][-1]
    made = calibrated(RESIDUALS[1:], 0.1, 1.0, score="absolute_residual", candidates=candidates)[0]
    made = changed(made, threshold=value)
    notes = remarks(made)
    assert coarse == bool(notes)
    assert all("not a plausible size" in note and "unit=" in note for note in notes)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e-12, 1e-6, 1.0, 1e5, 1e12])
def test_residuals_of_any_scale_get_a_threshold_without_a_unit(scale):
    """Scales above a million cause advice to state a unit."""
    rng = np.random.default_rng(0)
    residuals = np.abs(rng.normal(size=4000)) * scale
    made, notes = calibrated(residuals, 0.1, 1.0, score="absolute_residual")
    assert len(notes) == (scale > 1e6)
    assert all("exceeds 1,000,000, which is not a plausible size" in note and "unit=" in note for note in notes)
    plain = np.sort(residuals)[math.ceil(0.9 * 4001) - 1]
    assert 0.9 * plain < made.threshold < 1.5 * plain


@pytest.mark.parametrize(
    ("score", "threshold", "classes", "useless"),
    [
        ("lac", 1.0, None, True),
        ("lac", 1 - 1e-12, None, False),
        ("lac(temperature=4)", 1.0, 3, True),
        ("margin", 1.0, None, True),
        ("margin", 0.999, None, False),
        ("aps", 1.0, None, True),
        ("aps", 1 - 1e-9, None, False),
        ("raps(penalty=0.01,k_reg=1)", 1.04, 5, True),
        ("raps(penalty=0.01,k_reg=1)", 1.03, 5, False),
        ("saps(penalty=0.01)", 1.04, 5, True),
        ("top_k", 5.0, 5, True),
        ("top_k", 4.0, 5, False),
        ("top_k", 5.0, None, False),
        ("critical threshold of false_negative_rate", 1.0, 5, True),
        ("critical threshold of missed_area(background=0)", 1.0, 5, True),
        ("my own", 1.0, 5, False),
        ("absolute_residual", 1.0, None, False),
    ],
)
def test_the_largest_value_of_a_score_excludes_nothing(score, threshold, classes, useless):
    loss = re.fullmatch("critical threshold of (.*)", score)
    asked = {"score": score} if loss is None else {"score": None, "loss": loss[1]}
    made = calibration_at(threshold, classes=classes, **asked)
    assert made.excludes_nothing == useless
    notes = [note for note in remarks(made) if "the largest value of the score" in note]
    assert len(notes) == useless
    names_temperature = useless and score.startswith(("lac", "margin", "aps", "raps", "saps"))
    assert all(("temperature=" in note) == names_temperature for note in notes)


def test_a_saturated_class_is_counted_and_named_with_its_noisy_number():
    """Class b has probability 0 for a fifth of its records: its quantile is the largest score."""
    labels = np.repeat(["a", "b"], 2000)
    scores = np.concatenate([RESIDUALS / 2, np.where(np.arange(2000) % 5 == 0, 1.0, RESIDUALS / 2)])
    with pytest.warns(confide.CoverageWarning, match=r"for 1 of 2 classes: 'b'; every label is in every set"):
        made = confide.calibrate(scores, 0.1, 1.0, groups=labels, names=["a", "b"], by="class", score="lac")
    assert (made["b"].threshold, made.infinite) == (1.0, ("b",))
    assert "thresholds that exclude nothing: 1 of 2" in str(made)
    assert f"class 'b'  threshold 1 (every label is in every set), records: {made['b'].size}" in str(made)
    (note,) = remarks(made)
    assert "state a temperature, such as score 'lac' with temperature=4" in note
    assert "largest value of the score" in confide.report(made).html
    with pytest.warns(confide.CoverageWarning, match="largest value of the score"):
        confide.predict_set([[0.5, 0.5]], made, classes=["a", "b"])
    with pytest.warns(confide.CoverageWarning, match="largest value of the score"):
        evaluate_sets(made, np.full((4000, 2), 0.5), labels, ["a", "b"])


# --- sizes that are not plausible


@pytest.mark.slow
@pytest.mark.parametrize(
    ("unit", "threshold", "said"),
    [
        (100.0, 1.4873e10, True),
        (100.0, 2.1e3, True),
        (100.0, 1.9e3, False),
        (None, 1.4873e10, True),
        (None, 9e5, False),
    ],
)
@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
def test_a_threshold_beyond_plausible_sizes_causes_a_warning(draw_with, unit, threshold, said, neighbors):
    draw_with(noisy_number=always(1010))  # designs for few records have coarse candidates, which cause another warning
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = confide.calibrate([50.0] * 120, 0.1, 1.0, score="absolute_residual", unit=unit, neighbors=neighbors)
    notes = remarks(changed(made, threshold=threshold))
    assert bool(notes) == said
    if said:
        needed = confide.plan(0.1, 1.0, 120, score="absolute_residual", unit=unit, neighbors=neighbors).records_needed
        assert f"about {needed} calibration records are needed" in notes[0]
        assert "not a plausible size" in notes[0]
        public = confide.plan(0.1, 1.0, 1000, score="absolute_residual", unit=unit, neighbors="replace_one")
        advice = f"neighbors='replace_one', --neighbors replace_one), then about {public.records_needed} do"
        fewer = neighbors == "add_remove" and public.records_needed < needed
        assert (advice in notes[0]) == fewer


def _wide(threshold, score="absolute_residual"):
    """Candidates of the user, which cause no warning at the calibration."""
    return changed(calibration_at(threshold, score), recipe={"kind": "of", "size": 10}, candidates=10)


PREDICTIONS = np.linspace(100.0, 400.0, 50)
WARNED = pytest.warns(confide.CoverageWarning, match="the intervals are at least 1e[+]08 times as wide as")


def test_intervals_far_wider_than_the_spread_of_predictions():
    with WARNED as caught:
        confide.predict_interval(PREDICTIONS, _wide(1.5e10))
    assert [one.filename for one in caught] == [__file__]
    with WARNED:
        confide.predict_interval(np.column_stack([PREDICTIONS, PREDICTIONS]), _wide(1.5e10, "cqr"))
    sides = calibrations_at("side", {"low": 1.5e10, "high": 1.5e10})
    with WARNED:
        confide.predict_interval(np.column_stack([PREDICTIONS, PREDICTIONS]), sides)


def test_a_private_evaluation_does_not_warn_of_widths(recwarn):
    """The spread of predictions of private records is private."""
    asked = {"predictions": PREDICTIONS, "targets": PREDICTIONS, "epsilon": 1.0}
    confide.evaluate(_wide(1.5e10), **asked)
    assert not [one for one in recwarn if "wide" in str(one.message)]
