"""Valid combinations: every pair of fields of a request is accepted, or rejected by a row that states the reason."""

import itertools
from dataclasses import fields
from fractions import Fraction

import numpy as np
import pytest

import confide
from confide.core import COMBINATIONS, REQUIREMENTS, ClassShift, Request, check_combinations, check_together
from confide.errors import InputError
from confide.mechanisms import Chosen
from tests.designs import terms
from tests.refused import refused

SAMPLES = {
    "alpha": [0.1],
    "epsilon": [1.0],
    "rho": [0.1],
    "by": ["level", "group", "class", "side"],
    "names": [("a", "b")],
    "shares": [("0.3", "0.7")],
    "loss": ["shortfall"],
    "bound": [2.0],
    "population": [ClassShift.of_weights({"a": 1, "b": 2})],
    "score": ["lac"],
    "classes": [3],
    "about": [{"model": "m"}],
    "candidates": [confide.Candidates.unit(10)],
    "unit": [3.0],
    "neighbors": ["replace_one", "add_remove"],
    "n_min": [50],
    "delta": [0.1],
    "records_per_person": [2],
    "mechanism": ["pps", "pps-laplace", "noisy-histogram", "none"],
    "renews": ["0" * 64],
    "chosen": [Chosen("a", ("a", "b"), Fraction(1, 5), 1.0)],
    "fingerprint": [confide.ModelFingerprint.of(np.arange(10.0))],
    "noise": [confide.Noise.discrete_laplace(2.0)],
    "n_noise": [20.0],
}
PAIRS = [
    {one: first, other: second}
    for one, other in itertools.combinations(SAMPLES, 2)
    for first, second in itertools.product(SAMPLES[one], SAMPLES[other])
]


def _named(field, value):
    """A field and its value, if the value is the same in every run."""
    return f"{field}={value}" if isinstance(value, str | int | float) else field


def _told(asked):
    """The fields that a row of the tables rejects."""
    found = {row.clash(asked) for row in COMBINATIONS} - {None}
    return found | {name for name, other, _ in REQUIREMENTS if name in asked and other not in asked}


def _completed(asked):
    """The fields with those that every request requires, and those that the given ones require."""
    full = dict(asked)
    full.setdefault("alpha", 0.1)
    if full.get("by") == "level":
        full["alpha"] = (0.1, 0.2)
    if full.get("by") in ("group", "class"):
        full.setdefault("names", ("a", "b"))
    method = full.get("mechanism")
    if "rho" not in full and method != "none":
        full.setdefault("epsilon", 1.0)
    if method == "pps-laplace":
        full.setdefault("neighbors", "replace_one")
    if "n_noise" in full:
        full.setdefault("noise", SAMPLES["noise"][0])
    if method == "pps" and full.get("neighbors") != "replace_one":
        full.setdefault("n_min", 50)
    return full


OF_VALUES = {"epsilon", "unit", "alpha", "candidates", "shares", "names", "rho"}
"""Rejected for their value, or for their effect in a score, and not because of another field."""


def _refused(asked):
    """The argument of the error about a request; None if the request is valid."""
    try:
        assert Request(**asked).terms
    except InputError as error:
        return error.argument
    return None


def test_every_field_has_a_sample():
    assert set(SAMPLES) == {one.name for one in fields(Request) if one.init}
    assert len(PAIRS) > 400


@pytest.mark.parametrize("asked", PAIRS, ids=lambda asked: "-".join(_named(*one) for one in asked.items()))
def test_every_pair_is_accepted_or_rejected_by_a_row(asked):
    full = _completed(asked)
    output, named = _told(full), _refused(full)
    assert (named is None) == (not output) or named in OF_VALUES, f"rows refuse {output}, the request {named}"
    assert named is None or named in output | OF_VALUES


@pytest.mark.parametrize("row", COMBINATIONS, ids=lambda row: f"{row.given}-{row.others[0]}")
def test_every_row_rejects_a_pair(row):
    """Every row rejects a pair, and its reason contains the value."""
    values = row.values or SAMPLES[row.given]
    for value, other in itertools.product(values, row.others):
        if other == "n":
            continue  # an argument of a call, not of a request
        given = [one for one in SAMPLES[other] if not row.allowed or one not in row.allowed]
        assert given, f"no sample of {other} is refused"
        assert row.clash({row.given: value, other: given[0]}) == other


def test_plans_and_requests_reject_the_same_combinations():
    for make in (lambda **o: terms(0.1, 10, 1.0, **o), lambda **o: Request(alpha=0.1, epsilon=1.0, **o)):
        with refused(InputError, "delta"):
            make(delta=0.1, mechanism="pps")
    with refused(InputError, "epsilon"):
        Request(alpha=0.1, epsilon=1.0, rho=0.1)
    with refused(InputError, "by"):
        check_together(by=None, groups=["a"])
    check_together(by="ward", groups=["a"])


def test_the_rejected_argument_may_be_a_default():
    """An error names a default that conflicts with a given argument as if it were given."""
    with refused(InputError, "neighbors"):
        check_combinations({"mechanism": "pps-laplace", "epsilon": 0.1})


@pytest.mark.parametrize("make", [np.array, list, tuple])
def test_names_and_shares_may_be_any_sequence(make):
    asked = Request(alpha=(0.1, 0.2), by="level", shares=make([0.25, 0.75]), epsilon=1.0, score="lac")
    assert [terms.epsilon for terms in asked.terms.values()] == [0.25, 0.75]
    with refused(InputError, "names"):
        Request(alpha=0.1, names=make(["a", "b"]), epsilon=1.0)
