"""A threshold that is +inf, or nearly so, always causes a warning, which is true and contains only public numbers.

Every use of a release warns; a release is examined once.
"""

import math
import re
import sys
import warnings

import numpy as np
import pytest

import confide
from confide.core import remarks, warn_about
from tests.calibrations import calibration_at, calibrations_at, changed
from tests.draws import always


def calibrated(scores, *arguments, **options):
    """The release, and the text of its warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = confide.calibrate(scores, *arguments, **options)
    return made, [str(one.message) for one in caught if issubclass(one.category, confide.CoverageWarning)]


SPREAD = confide.Candidates.spread
RESIDUALS = np.linspace(0.0, 1.0, 2000)
PLAIN, SIZED = SPREAD("residual", 480), SPREAD("residual", 480, 25.0)
OLD = {"score": "absolute_residual", "candidates": SPREAD("residual", 500)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "words"),
    [
        (60, r"records are needed for a useful one at alpha=0.1 and epsilon=1, and there are about \d+: .* or "),
        (
            2000,
            r"there are about \d+ calibration records, where about \d+ are needed at alpha=0.1 and epsilon=1, so that ",
        ),
    ],
)
def test_the_noisy_number_of_records_decides_between_both_reasons(n, words):
    """It is in the release; its noise exceeds 100 with a probability below 1e-8."""
    _, (note,) = calibrated(RESIDUALS[:n] + 1e30, 0.1, 1.0, **OLD)
    assert re.search(words + "more than a share alpha of the scores lie beyond the largest candidate", note), note


@pytest.mark.slow
@pytest.mark.parametrize("size", [{}, {"neighbors": "replace_one"}], ids=["secret", "public"])
def test_no_threshold_beyond_all_residuals_is_silent(size, noisy_number):
    """Candidates have every size, so the noisy or public number of records is compared with what is needed."""
    needed = confide.plan(0.1, 1.0, score="absolute_residual", **size).records_needed
    for n in (needed // 2, 8 * needed):
        made, notes = calibrated(RESIDUALS[:n] + 1.0, 0.1, 1.0, score="absolute_residual", **size)
        assert bool(notes) == (n < needed)
        assert made.threshold == math.inf or notes == list(remarks(made))
    assert made.threshold < 10
    made, (note,) = calibrated(RESIDUALS[: needed // 2] + 1.0, 0.1, 1.0, score="absolute_residual", **size)
    if math.isfinite(made.threshold) and made.threshold < 100:
        assert note.startswith("the threshold may lie far beyond all scores: there are ")
        assert f"with fewer than about {needed} at alpha=0.1 and epsilon=1 more than 1 threshold in 100 does" in note


@pytest.mark.slow
def test_scores_that_candidates_reach_have_one_reason():
    _, (note,) = calibrated([0.5] * 8, 0.1, 1.0, score="lac", neighbors="replace_one")
    assert note.startswith("the threshold is +inf: every label is in every set; about ")
    assert note.endswith("and there are 8: take more, or a larger epsilon or alpha")
    assert "unit" not in note


@pytest.mark.slow
@pytest.mark.parametrize(
    ("score", "candidates", "threshold", "said"),
    [
        ("absolute_residual", SPREAD("residual", 500), 3e6, True),
        ("cqr", SPREAD("signed", 500), -3e6, True),
        (None, SPREAD("any", 500), 5e6, True),
        ("absolute_residual", SPREAD("residual", 500, unit=100.0), 2300.0, True),
        ("absolute_residual", SPREAD("residual", 500, unit=1e7), 2.1e7, False),
        (None, SPREAD("any", 500), 0.9, False),
        ("lac", confide.Candidates.unit(), 0.9999, False),
        # The last candidates of a list lie nearly a decade apart.
        *(
            ("absolute_residual", listed, float(listed.edges[listed.edges <= most][-1]), False)
            for listed, most in (*((PLAIN, most) for most in (1.0, 1e3)), *((SIZED, most) for most in (25.0, 450.0)))
        ),
        *(("absolute_residual", listed, float(listed.edges[-2]), True) for listed in (PLAIN, SIZED)),
    ],
)
def test_thresholds_in_the_outer_decades_and_coarse_ranges(score, candidates, threshold, said):
    made = changed(calibrated(RESIDUALS[1:], 0.1, 1.0, score=score, candidates=candidates)[0], threshold=threshold)
    notes = remarks(made)
    assert said == bool(notes)
    assert all("not a plausible size" in note and "unit=" in note for note in notes)
    assert not any(f"{threshold:g}" in note for note in notes)


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
        ("critical threshold of missed_area of mine", 1.0, 5, False),
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
    assert ("exceeds" in "".join(notes)) == said
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


# --- every use


P = np.array([[0.75, 0.25], [0.5, 0.5]])
LABELS = "every label is in every set"


NAMED = {
    "1 of 2 groups: 1; every label": lambda: calibrations_at("group", {0: 0.5, 1: math.inf}),
    "1 of 2 classes: 1; every label": lambda: calibrations_at("class", {0: 0.5, 1: math.inf}),
    "for alpha 0.1; every label": lambda: calibrations_at("level", {"1/5": 0.5, "1/10": math.inf}),
    "upper side": lambda: calibrations_at("side", {"low": 0.5, "high": math.inf}),
    "every interval is the whole line": lambda: calibration_at(math.inf, score="absolute_residual"),
    "nothing is excluded": lambda: calibration_at(math.inf, score=None, loss=confide.core.FALSE_NEGATIVES),
    LABELS: lambda: calibration_at(math.inf),
}


@pytest.mark.parametrize("words", NAMED)
def test_remarks_name_the_thresholds_that_exclude_nothing(words):
    """Every use of a release gives its remarks: tests/core/test_fingerprint.py."""
    (note,) = remarks(NAMED[words]())
    assert words in note


def test_a_release_is_examined_once_and_does_not_change(monkeypatch):
    looked = []

    def counted(release):
        looked.append(release)
        return remarks(release)

    monkeypatch.setattr(sys.modules[warn_about.__module__], "remarks", counted)
    one = calibration_at(math.inf)
    before = hash(one), one.to_json(), repr(one)
    for _ in range(3):
        with pytest.warns(confide.CoverageWarning, match=LABELS) as said:
            confide.predict_set(P, one)
        assert [warning.filename for warning in said] == [__file__]
    assert looked == [one]
    assert (hash(one), one.to_json(), repr(one)) == before
    other = changed(one, threshold=0.5)
    assert not confide.predict_set([[0.9, 0.1]], other).mask.all()
    assert looked == [one, other]


def test_infinite_scores_are_the_reason_where_records_suffice():
    """A noisy number is public: with enough records labels that are no class are the probable reason."""
    scores = np.where(np.arange(4000) % 4 == 0, np.inf, 0.5)
    with pytest.warns(
        confide.CoverageWarning, match=r"about \d+ calibration records, where about 162 .*: check their names"
    ):
        assert confide.calibrate(scores, 0.1, 1.0, score="lac").threshold == np.inf
