"""The statements of a plan about a pilot sample hold for records like it; nothing else depends on the sample."""

import math

import numpy as np
import pytest

import confide
from confide.core import Pilot
from tests.refused import refused
from tests.threshold_laws import Law, outcome, size_ratio, threshold_ratio


def probabilities(seed=0, n=3000):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(6) / 3, n)
    return p, (np.cumsum(p, axis=1) < rng.random((n, 1))).sum(axis=1).clip(0, 5)


def plan(n=1000, **options):
    return confide.plan(0.1, 1.0, n, **{"neighbors": "replace_one", **options})


@pytest.mark.parametrize(("score", "n"), [("lac", 1000), ("lac", 300), ("aps_deterministic", 1000)])
def test_set_sizes_match_samples_of_the_pilot(score, n):
    """Compared with forty samples of n records, exactly over the noise: within 2 %, also the non-private size."""
    p, y = probabilities()
    scores, every = confide.class_score(p, y, score), confide.all_scores(p, score)
    made, rng = plan(n, score=score, pilot=Pilot(scores, every)), np.random.default_rng(1)
    found, ordered = made.on_pilot, np.sort(every, axis=None)
    sizes = np.mean([size_ratio(made, ordered, rng.choice(scores, n)) for _ in range(40)], axis=0) / len(p)
    np.testing.assert_allclose([found.size, found.plain_size], sizes, rtol=0.02)
    assert found.ratio == found.size / found.plain_size
    assert 1 < found.ratio < 1.2


@pytest.mark.slow
def test_widths_and_probabilities_match_samples_of_the_pilot():
    residuals = np.abs(np.random.default_rng(2).normal(size=4000)) * 30
    again = Law(
        lambda g, n: g.choice(residuals, n), lambda v: np.searchsorted(np.sort(residuals), v, side="right") / 4000
    )
    for n, score in ((1000, "absolute_residual"), (200, "normalised_residual")):
        made = plan(n, score=score, pilot=residuals)
        assert abs(made.on_pilot.ratio - threshold_ratio(made, again, 40)) < 0.05
        assert made.on_pilot.size is None
        assert made.on_pilot.chance_beyond <= outcome(made, again, 40).beyond + 0.01


@pytest.mark.slow
def test_the_non_private_threshold_is_that_of_n_records():
    scores = np.arange(1, 1001) / 1000
    assert plan(1000, pilot=scores).on_pilot.plain_threshold == 0.901  # the 901st of 1000
    assert plan(100, pilot=scores).on_pilot.plain_threshold == 0.91  # the 91st of 100
    nothing = plan(5, pilot=Pilot(scores, np.ones((10, 3)))).on_pilot
    assert (nothing.plain_threshold, nothing.chance_of_all, nothing.chance_beyond) == (math.inf, 1.0, 1.0)
    assert (nothing.size, nothing.ratio) == (3.0, None)


@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
def test_nothing_else_depends_on_the_pilot(neighbors):
    scores = np.random.default_rng(4).random(500)
    without, tried = (plan(neighbors=neighbors, pilot=pilot) for pilot in (None, scores))
    assert tried.mechanism == without.mechanism
    assert tried.design == without.design
    assert tried.guarantee == without.guarantee
    assert tried.privacy == without.privacy
    assert without.on_pilot is None
    assert str(tried).startswith(str(without))
    assert hash(tried) is not None
    assert repr(scores[0]) not in repr(tried)


@pytest.mark.parametrize(
    ("pilot", "argument", "got"),
    [
        ([], "pilot", "no values"),
        ([0.5, np.nan], "pilot", "1"),
        ([[0.5, 0.6]], "pilot", "shape (1, 2)"),
        ([0.5, 3.0], "scores", "0 NaN and 1 outside, the first at position 1"),
    ],
)
def test_invalid_pilot_samples(pilot, argument, got):
    with refused(confide.errors.InputError, argument) as caught:
        plan(pilot=pilot)
    assert caught.value.got == got
    with refused(confide.errors.InputError, "class_scores"):
        Pilot([0.5], [0.5, 0.6])
    with refused(confide.errors.InputError, "score"):
        plan(pilot=confide.aps_score([[0.5, 0.5]], [0]))
