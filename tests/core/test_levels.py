"""Several levels from one noisy histogram: its law, its price, every further level, files and ledgers."""

import json
import math
import warnings
from fractions import Fraction

import numpy as np
import pytest

import confide
from confide.core import records_needed
from confide.errors import InputError
from tests.files import signed
from tests.refused import refused

LEVELS = [0.2, 0.1, 0.05]
SCORES = np.random.default_rng(0).random(3000)
RELATIONS = ["add_remove", "replace_one"]


@pytest.fixture(scope="module", params=RELATIONS)
def released(request):
    return confide.calibrate(SCORES, LEVELS, 1.0, score="lac", neighbors=request.param)


def last_rule(counts, limit):
    """The first candidate from which on at most `limit` noisy records lie beyond each, by a plain loop."""
    chosen, beyond = len(counts) - 1, 0
    for place in range(len(counts) - 1, 0, -1):
        beyond += counts[place]
        if beyond > limit:
            break
        chosen = place - 1
    return chosen


def limit_of(release, alpha):
    """floor(alpha (n + 1) - 1 - c), from the numbers that the release states (Theorems W3, W3b)."""
    first = release[0.1]
    n, scale = (release.n, 2.0) if release.n is not None else (first.size.counted, 1 / (1 - 1 / first.size.scale))
    return math.floor(alpha * (n + 1) - 1 - 1 / (1 - math.exp(-1 / scale)))


def test_every_threshold_follows_from_the_released_counts(released):
    candidates = confide.Candidates.from_recipe(released[0.1].recipe).values
    assert len({part.noisy_counts for part in released.values()}) == 1
    for alpha, part in released.items():
        assert part.threshold == candidates[last_rule(part.noisy_counts, limit_of(released, float(alpha)))]
        assert part.coverage >= float(1 - alpha)
    thresholds = [released[alpha].threshold for alpha in LEVELS]
    assert thresholds == sorted(thresholds)
    assert max(thresholds) < 1


def test_all_levels_cost_as_much_as_one(released):
    neighbors = "add_remove" if released.n is None else "replace_one"
    alone = confide.calibrate(SCORES, 0.1, 1.0, score="lac", mechanism="noisy-histogram", neighbors=neighbors)
    assert released.privacy == alone.privacy
    assert released.privacy.epsilon == 1.0
    assert all(part.privacy.epsilon == 1.0 for part in released.values())


def test_every_other_level_follows_as_well(released):
    candidates = confide.Candidates.from_recipe(released[0.1].recipe).values
    for alpha in ("0.15", "1/7", "0.075", 0.5, "0.99"):
        another = released.at(alpha)
        counts, level = released[0.1].noisy_counts, float(Fraction(alpha))
        assert another.threshold == candidates[last_rule(counts, limit_of(released, level))]
        assert another.coverage >= float(1 - Fraction(alpha))
        assert another.privacy == released.privacy
        assert confide.Release.from_json(another.to_json()) == another
    assert released.at(0.1).threshold == released[0.1].threshold
    assert released[0.2].threshold < released.at(0.15).threshold < released[0.1].threshold
    again = confide.Release.from_json(released.to_json())
    assert again.at(0.15) == released.at(0.15)
    assert released.at(0.3).at(0.15) == released.at(0.15)


def test_a_level_that_is_not_resolved(released):
    with pytest.warns(confide.CoverageWarning, match=r"for alpha=0.0001 excludes nothing: every label is in every set"):
        useless = released.at(0.0001)
    assert useless.threshold == math.inf
    assert confide.Release.from_json(useless.to_json()) == useless
    with refused(InputError, "alpha"):
        released.at(0)
    with refused(InputError, "alpha"):
        released.at(1.5)
    with refused(InputError, "alpha"):
        released.at(None)
    with refused(InputError, "alpha"):  # a page, `limits` and sets know the stated levels
        released[0.15]
    with refused(InputError, "alpha"):
        released.level_of(0.15)


@pytest.mark.slow
@pytest.mark.parametrize(
    "asked",
    [
        {"rho": 0.1, "score": "lac"},
        {"epsilon": 1.0, "score": "lac", "delta": 0.1},
        {"epsilon": 1.0, "score": "lac", "shares": [0.2, 0.3, 0.5]},
        {"epsilon": 1.0, "score": "absolute_residual"},
        {"epsilon": 1.0},
    ],
    ids=["rho", "delta", "shares", "no unit", "no name"],
)
def test_levels_that_divide_the_budget_know_the_stated_ones_only(asked):
    released = confide.calibrate(SCORES, LEVELS, **asked)
    assert all(part.noisy_counts is None and part.mechanism.name == "slopes" for part in released.values())
    assert released.at(0.1).threshold == released[0.1].threshold
    with refused(InputError, "alpha"):
        released.at(0.15)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"unit": 1.0}, {"candidates": confide.Candidates.around(1.0)}])
def test_residuals_with_a_unit_or_a_guess_have_one_histogram(options):
    released = confide.calibrate(SCORES, LEVELS, 1.0, score="absolute_residual", **options)
    assert released.at(0.15).threshold > released[0.2].threshold
    assert confide.Release.from_json(released.to_json()) == released


@pytest.mark.slow
def test_one_histogram_of_one_level_or_of_groups_answers_others_too():
    asked = {"score": "lac", "mechanism": "noisy-histogram"}
    single = confide.calibrate(SCORES, 0.1, 1.0, **asked)
    assert single.at(0.2).threshold < single.at(0.1).threshold == single.threshold
    ward = np.arange(3000) % 2
    groups = confide.calibrate(SCORES, 0.1, 1.0, groups=ward, names=[0, 1], **asked)
    assert groups[0].noisy_counts != groups[1].noisy_counts
    assert all(groups.at(0.2)[name].threshold < groups[name].threshold for name in (0, 1))
    assert confide.Release.from_json(groups.to_json()).at(0.2) == groups.at(0.2)
    slopes = confide.calibrate(SCORES, 0.1, 1.0, score="lac")
    with refused(InputError, "alpha"):
        slopes.at(0.2)


def test_candidates_of_your_own_are_known_to_the_maker_alone():
    own = confide.Candidates.of(np.linspace(0.01, 1, 100))
    released = confide.calibrate(SCORES, LEVELS, 1.0, score="lac", candidates=own)
    assert confide.Release.from_json(released.to_json()) == released
    with refused(InputError, "alpha"):
        released.at(0.15)


# --- files and ledgers


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content["thresholds"][0]["counts"].__setitem__(-1, 3000),
        lambda content: content["thresholds"][0]["counts"].__setitem__(-1, 2**63),
        lambda content: content["thresholds"][0]["counts"].pop(),
        lambda content: content["thresholds"][0].pop("counts"),
        lambda content: content["thresholds"][1].__setitem__("counts", content["thresholds"][0]["counts"]),
        lambda content: content["thresholds"][1].__setitem__("threshold", content["thresholds"][0]["threshold"]),
        lambda content: content["thresholds"][1]["mechanism"].__setitem__("beyond", 400),
    ],
    ids=["another count", "too large", "one missing", "all missing", "twice", "another threshold", "another limit"],
)
def test_a_file_whose_thresholds_do_not_follow_is_refused(released, change):
    content = json.loads(released.to_json())
    change(content)
    with pytest.raises(confide.errors.FormatError):
        confide.Release.from_json(signed(content))


def test_the_counts_stand_once_in_a_file(released):
    stored = json.loads(released.to_json())["thresholds"]
    assert ["counts" in part for part in stored] == [True, False, False]


# --- what it costs


@pytest.mark.long
def test_records_needed_make_useless_thresholds_rare():
    """At the stated number about 1 in 100 calibrations is useless: at most 30 of 1000 (by chance 1e-7 if it is 1 %)."""
    needed = records_needed(confide.calibrate(SCORES, [0.3, 0.1], 1.0, score="lac"))
    rng, useless = np.random.default_rng(1), 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", confide.CoverageWarning)
        for _ in range(1000):
            scores = rng.random(needed)
            useless += confide.calibrate(scores, [0.3, 0.1], 1.0, score="lac")[0.1].threshold > scores.max()
    assert useless <= 30
