"""The random numbers of records: new by default, or fixed to the record; seeded only by an explicit class."""

import random

import numpy as np
import pytest

import confide
from confide.arrays import fresh_uniforms
from confide.core.risk import critical_thresholds, false_negative_thresholds
from confide.scores.class_sets import set_mask
from tests.calibrations import calibration_at
from tests.refused import numbers, refused

P, Y = np.full((400, 4), 0.25), np.zeros(400, dtype=int)
GRID = confide.Candidates.unit(101)
LOSSES = np.clip(np.linspace(0.2, 0.9, 400)[:, None] - GRID.edges, 0, 1)
SETS = calibration_at(0.5, score="aps")

CALLS = {
    "class_score": lambda **u: confide.class_score(P, Y, "aps", **u),
    "all_scores": lambda **u: confide.all_scores(P, "raps(penalty=0.1,k_reg=1)", **u),
    "aps_score": lambda **u: confide.aps_score(P, Y, **u),
    "raps_score": lambda **u: confide.raps_score(P, Y, 0.1, 1, **u),
    "saps_score": lambda **u: confide.saps_score(P, Y, 0.1, **u),
    "set_mask": lambda **u: set_mask(P, "aps", 0.5, **u),
    "predict_set": lambda **u: confide.predict_set(P, SETS, **u).mask,
    "evaluate_sets": lambda **u: np.array(confide.evaluation.evaluate_sets(SETS, P, Y, **u).mean_size),
    "false_negative_thresholds": lambda **u: false_negative_thresholds(P * np.arange(1, 5) / 4, P > 0, **u),
    "critical_thresholds": lambda **u: critical_thresholds(LOSSES, GRID, **u),
}


class Functions:
    """A generator of another library."""

    def random(self, n):
        return np.zeros(n)


@pytest.mark.parametrize("name", CALLS)
def test_two_ordinary_calls_use_different_numbers(name):
    """For every seed in the process. Equal with probability below 1e-100; twelve mean sizes, below 1e-15."""
    drawn = []
    for _ in range(2 if name != "evaluate_sets" else 12):
        np.random.seed(0)  # noqa: NPY002 - what others may do
        random.seed(0)
        drawn.append(CALLS[name]())
    assert any(not np.array_equal(drawn[0], other) for other in drawn[1:])
    seeded = [CALLS[name](u=confide.ExperimentalUniforms(5)) for _ in range(2)]
    np.testing.assert_array_equal(*seeded)
    np.testing.assert_array_equal(seeded[0], CALLS[name](u=np.random.default_rng(5).random(400)))


@pytest.mark.parametrize("name", [*CALLS, "calibrate_false_negatives", "calibrate_losses"])
def test_generators_are_refused_in_every_ordinary_call(name):
    calls = CALLS | {
        "calibrate_false_negatives": lambda u: confide.calibrate_false_negatives(P, P > 0, 0.1, 1.0, u=u),
        "calibrate_losses": lambda u: confide.calibrate_losses(LOSSES, GRID, 0.1, 1.0, u=u, loss="own"),
    }
    for u in (np.random.default_rng(0), np.random.RandomState(0), random.Random(0), Functions(), np.random.rand):
        with refused(confide.errors.InputTypeError, "u"):
            calls[name](u=u)


def test_new_random_numbers_are_uniform():
    """Kolmogorov and Smirnov's statistic of 1e5 draws exceeds 0.0087 with probability 3e-7 (2 exp(-2 n d^2))."""
    drawn = np.sort(fresh_uniforms(100_000))
    assert 0 <= drawn[0] <= drawn[-1] < 1
    assert np.abs(drawn - (np.arange(100_000) + 0.5) / 100_000).max() < 0.0087
    assert fresh_uniforms(0).shape == (0,)


def test_given_random_numbers_are_checked():
    with refused(confide.errors.InputError, "u") as caught:
        confide.class_score(P, Y, "aps", u=[0.5] * 3)
    assert numbers(caught) == [3, 400]
