"""Scalar arguments: out of range raises InputError, a wrong type InputTypeError, and both name the argument."""

import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

import confide
from confide.support import MOST_CANDIDATES, MOST_PER_PERSON, MOST_RECORDS
from tests.planted_values import planted_scores
from tests.refused import refused


def check_refused(kind, argument, got=None, **changed):
    """All entry points raise the same error, with the value if it is stated."""
    arguments = {"alpha": 0.1, "epsilon": 1.0, **changed}
    histogram = confide.ScoreHistogram.from_scores(planted_scores(), confide.Candidates.unit(10))
    doors = [
        confide.plan,
        partial(confide.calibrate, planted_scores()),
        partial(confide.calibrate_histogram, histogram),
    ]
    for call in doors[:1] if changed.keys() & {"n", "candidates"} else doors:
        with refused(kind, argument) as caught:
            call(**arguments)
        assert got in (None, caught.value.got)


@pytest.mark.parametrize(
    "value", [0, -1, 0.0, -0.0, math.nan, math.inf, -math.inf, 9e-7, 1.1e6, 1e300, 10**400, 5e-324]
)
@pytest.mark.parametrize("name", ["epsilon", "rho"])
def test_privacy_losses_out_of_range(name, value):
    check_refused(confide.errors.InputError, name, **{"epsilon": None, name: value})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("n", MOST_RECORDS),
        ("n_min", MOST_RECORDS),
        ("candidates", MOST_CANDIDATES),
        ("records_per_person", MOST_PER_PERSON),
    ],
)
def test_counts(name, most):
    for value in (0, -1, most + 1, 10**400):
        check_refused(confide.errors.InputError, name, str(value), **{name: value})
    for value in (True, 1.0, "1", [1], np.array([1]), 1j, math.nan):
        check_refused(confide.errors.InputTypeError, name, type(value).__name__, **{name: value})
    assert confide.plan(**{"alpha": 0.5, "epsilon": 9.0, name: np.int64(7)}).mechanism is not None


@pytest.mark.slow
def test_privacy_losses_never_exceed_the_request():
    """Rounding is downwards: neither the stated privacy loss per person nor rho exceeds the request by a digit."""
    rng = np.random.default_rng(0)
    for _ in range(60):
        k, loss = int(rng.integers(1, 60)), round(float(rng.uniform(0.01, 8)), 3)
        neighbors = ["add_remove", "replace_one"][int(rng.integers(2))]
        request = {"alpha": 0.1, "neighbors": neighbors, "n": 10**6, "records_per_person": k}
        for asked in ({"epsilon": loss}, {"rho": loss}):
            spent = confide.plan(**request, **asked).privacy
            assert getattr(spent, *asked) <= loss
            assert getattr(spent, *asked) >= loss * (1 - 1e-12)
            assert Fraction(spent.epsilon) * (1 + Fraction(1, 10**12)) >= k * Fraction(getattr(spent, neighbors))
