"""Releases from counts: by group, by class, for several levels and for two sides, as from the scores."""

import math
import warnings

import numpy as np
import pytest

import confide
from confide.candidates import Candidates
from confide.counting import ScoreHistogram
from confide.errors import InputError, InputTypeError
from confide.releases import GroupCalibration, LevelCalibration, SidesCalibration
from tests.refused import refused

CANDIDATES = Candidates.unit(50)
SCORES = np.random.default_rng(0).random(3000)
COUNTS = ScoreHistogram.from_scores(SCORES, CANDIDATES)


@pytest.mark.slow
def test_the_kind_of_release_follows_from_the_arguments():
    groups = confide.calibrate_histogram({"a": COUNTS, "b": COUNTS}, 0.1, 1.0, score="lac", n_typical=3000)
    assert isinstance(groups, GroupCalibration)
    assert (groups.by, list(groups.parts)) == ("group", ["a", "b"])
    classes = confide.calibrate_histogram({0: COUNTS, 1: COUNTS}, 0.1, 1.0, score="lac", by="class", n_typical=3000)
    assert (classes.by, list(classes.parts)) == ("class", [0, 1])
    levels = confide.calibrate_histogram(COUNTS, [0.1, 0.2], 1.0, neighbors="replace_one")
    assert isinstance(levels, LevelCalibration)
    assert levels.privacy.epsilon == 1
    sides = {name: ScoreHistogram.from_scores(SCORES, CANDIDATES) for name in ("cqr_low", "cqr_high")}
    both = confide.calibrate_histogram(sides, 0.1, 1.0, score="cqr_sides", neighbors="replace_one")
    assert isinstance(both, SidesCalibration)
    assert both.low.n == 3000


def test_a_group_without_records_gets_infinity():
    counts = {"a": COUNTS, "b": ScoreHistogram.empty(CANDIDATES)}
    infinite = 0
    for _ in range(12):  # each time with probability 0.9
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            released = confide.calibrate_histogram(counts, 0.1, 20.0, score="lac", n_typical=3000)
        assert len(caught) == math.isinf(released.parts["b"].threshold)
        infinite += len(caught)
    assert infinite


def test_a_ledger_identifies_counts_with_scores(tmp_path):
    """Scores and counts of the same groups are one request with the same records."""
    ledger, groups = confide.Ledger(tmp_path / "budget.db"), np.arange(3000) % 2
    asked = {"score": "lac", "ledger": ledger, "dataset": "clinic", "partition": "ward", "n_typical": 3000}
    first = confide.calibrate_groups(SCORES, groups, [0, 1], 0.1, 1.0, candidates=CANDIDATES, **asked)
    counts = {name: ScoreHistogram.from_scores(SCORES[groups == name], CANDIDATES) for name in (0, 1)}
    with pytest.warns(confide.EarlierReleaseWarning):
        assert confide.calibrate_histogram(counts, 0.1, 1.0, **asked) == first


@pytest.mark.parametrize(
    ("histogram", "more", "error", "argument"),
    [
        ({}, {}, InputError, "histogram"),
        ({"a": 3}, {}, InputTypeError, "histogram"),
        ({"a": COUNTS, "b": ScoreHistogram.empty(Candidates.unit(3))}, {}, InputError, "histogram"),
        ({"a": COUNTS}, {"alpha": [0.1, 0.2]}, InputError, "alpha"),
        ({"cqr_low": COUNTS}, {"score": "cqr_sides"}, InputError, "histogram"),
        (
            {"cqr_low": COUNTS, "cqr_high": ScoreHistogram.empty(CANDIDATES)},
            {"score": "cqr_sides"},
            InputError,
            "histogram",
        ),
        ({"a": COUNTS, 1: COUNTS, "1": COUNTS}, {}, InputError, "names"),
    ],
)
def test_inconsistent_counts_raise(histogram, more, error, argument):
    with refused(error, argument):
        confide.calibrate_histogram(histogram, **{"alpha": 0.1, "epsilon": 1.0, **more})
