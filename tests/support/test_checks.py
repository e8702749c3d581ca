"""Scalar arguments: out of range raises InputError, a wrong type InputTypeError, and both name the argument."""

import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

import confide
from confide.support import MOST_CANDIDATES, MOST_PER_PERSON, MOST_RECORDS
from confide.support.checks import one_of, positive_integer, positive_number
from tests.builders import slow
from tests.planted_values import PLANTED, planted_scores
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
    check_refused(confide.InputError, name, **{"epsilon": None, name: value})


@pytest.mark.parametrize("value", [True, False, "1", "abc", 1j, [1.0], np.array(1.0), b"1", object()])
@pytest.mark.parametrize("name", ["epsilon", "rho"])
def test_privacy_losses_of_the_wrong_type(name, value):
    check_refused(confide.InputTypeError, name, type(value).__name__, **{"epsilon": None, name: value})


def test_exactly_one_privacy_loss_is_given():
    check_refused(confide.InputError, "epsilon", epsilon=1.0, rho=1.0)
    check_refused(confide.InputError, "epsilon", epsilon=None)


@pytest.mark.parametrize("value", [1, 1.0, np.float32(1), np.float64(1), np.int16(1), Fraction(1)])
def test_privacy_losses_of_any_real_type(value):
    assert confide.plan(alpha=0.1, epsilon=value) == confide.plan(alpha=0.1, epsilon=1.0)


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("n", MOST_RECORDS),
        *slow(
            [
                ("n_min", MOST_RECORDS),
                ("n_typical", MOST_RECORDS),
                ("candidates", MOST_CANDIDATES),
                ("records_per_person", MOST_PER_PERSON),
            ]
        ),
    ],
)
def test_counts(name, most):
    for value in (0, -1, most + 1, 10**400):
        check_refused(confide.InputError, name, str(value), **{name: value})
    for value in (True, 1.0, "1", [1], np.array([1]), 1j, math.nan):
        check_refused(confide.InputTypeError, name, type(value).__name__, **{name: value})
    assert confide.plan(**{"alpha": 0.1, "epsilon": 1.0, name: np.int64(7)}).mechanism is not None


def test_every_record_gets_a_privacy_loss():
    check_refused(confide.InputError, "records_per_person", epsilon=0.001, records_per_person=1001)
    assert confide.plan(alpha=0.1, epsilon=0.001, records_per_person=1000).mechanism is not None


@pytest.mark.parametrize("name", ["neighbors"])
def test_words(name):
    for value in ("replace-one", "ADD_REMOVE", "", "add_remove "):
        check_refused(confide.InputError, name, repr(value), **{name: value})
    for value in (1, 0.5, ["add_remove"], np.array(["a", "b"]), np.array(PLANTED)):
        check_refused(confide.InputTypeError, name, type(value).__name__, **{name: value})


@pytest.mark.parametrize("score", ["", "x" * 201, "a\nb", "\ud800", "\x00"])
def test_score_names(score):
    with refused(confide.InputError, "score"):
        confide.calibrate([0.5], alpha=0.1, epsilon=1.0, score=score)


@pytest.mark.parametrize("score", [5, 0.5, b"lac", ["lac"], np.array(PLANTED)])
def test_score_names_are_texts(score):
    with refused(confide.InputTypeError, "score"):
        confide.calibrate([0.5], alpha=0.1, epsilon=1.0, score=score)


@pytest.mark.parametrize("candidates", [True, [0.1, 0.2], np.array([0.1]), "unit", confide.Candidates])
def test_candidates_are_candidates(candidates):
    with refused(confide.InputTypeError, "candidates"):
        confide.calibrate([0.5], alpha=0.1, epsilon=1.0, candidates=candidates)


def test_histograms_are_histograms():
    for histogram in (None, [1, 2], np.array([1, 2])):
        with refused(confide.InputTypeError, "histogram"):
            confide.calibrate_histogram(histogram, alpha=0.1, epsilon=1.0)


def test_the_checks_themselves():
    assert positive_number("a", np.float16(0.5)) == 0.5
    assert positive_integer("a", np.uint8(200), most=200) == 200
    assert one_of("a", "x", ("y", "x")) == "x"


@pytest.mark.slow
def test_privacy_losses_never_exceed_the_request():
    """Rounding is downwards: neither the stated privacy loss per person nor rho exceeds the request by a digit."""
    rng = np.random.default_rng(0)
    for _ in range(60):
        k, loss = int(rng.integers(1, 60)), round(float(rng.uniform(0.01, 8)), 3)
        neighbors = ["add_remove", "replace_one"][int(rng.integers(2))]
        request = {
            "alpha": 0.1,
            "neighbors": neighbors,
            "n": 10**6,
            "records_per_person": k,
        }
        for asked in ({"epsilon": loss}, {"rho": loss}):
            plan = confide.plan(**request, **asked)
            spent = confide.mechanisms.privacy.privacy_statement(plan.mechanism, neighbors, k)
            assert getattr(spent, *asked) <= loss
            assert getattr(spent, *asked) >= loss * (1 - 1e-12)
            assert Fraction(spent.epsilon) >= k * Fraction(getattr(spent, neighbors))
