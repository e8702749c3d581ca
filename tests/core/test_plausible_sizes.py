"""A threshold of implausible size causes a warning: for every recipe, when it is made and when it is used."""

import warnings

import numpy as np
import pytest

import confide
from confide.core import remarks
from tests.calibrations import calibration_at, calibrations_at, changed
from tests.draws import always


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
