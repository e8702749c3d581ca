"""Releases from counts: by group, by class, for several levels and for two sides, as from the scores."""

import numpy as np
import pytest

import confide
from confide.candidates import Candidates
from confide.counting import ScoreHistogram
from confide.errors import InputError, InputTypeError
from tests.refused import refused

CANDIDATES = Candidates.unit(50)
SCORES = np.random.default_rng(0).random(3000)
COUNTS = ScoreHistogram.from_scores(SCORES, CANDIDATES)


@pytest.mark.slow
def test_the_kind_of_release_follows_from_the_arguments():
    groups = confide.calibrate_histogram({"a": COUNTS, "b": COUNTS}, 0.1, 1.0, score="lac")
    assert (groups.by, list(groups.parts)) == ("group", ["a", "b"])
    classes = confide.calibrate_histogram({0: COUNTS, 1: COUNTS}, 0.1, 1.0, score="lac", by="class")
    assert (classes.by, list(classes.parts)) == ("class", [0, 1])
    levels = confide.calibrate_histogram(COUNTS, [0.1, 0.2], 1.0, neighbors="replace_one")
    assert (levels.by, levels.privacy.epsilon) == ("level", 1)
    sides = {name: ScoreHistogram.from_scores(SCORES, CANDIDATES) for name in ("cqr_low", "cqr_high")}
    both = confide.calibrate_histogram(sides, 0.1, 1.0, score="cqr_sides", neighbors="replace_one")
    assert (both.by, both["low"].n) == ("side", 3000)


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
