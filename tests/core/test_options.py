"""Arguments and valid combinations: each is used, or raises an error with its name; candidates; no records."""

import inspect
import itertools
import warnings
from dataclasses import fields
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import confide
from confide import tables
from confide.candidates import Spread
from confide.core import COMBINATIONS, REQUIREMENTS, ClassShift, Options, Request, candidates_of, check_combinations
from confide.counting import ScoreHistogram
from confide.errors import InputError, InputTypeError
from confide.mechanisms import Chosen
from confide.scores import score_kind
from tests.builders import slow
from tests.calibrations import suited
from tests.refused import refused

N = 600
SCORES, HALF = np.random.default_rng(0).random(N), np.arange(N) % 2
EDGES = confide.Candidates.unit(40)


def counts(scores):
    return ScoreHistogram.from_scores(scores, EDGES)


def halves(scores):
    return np.arange(len(scores)) % 2


def two_labels(scores):
    """Probabilities of two labels, and which of them are true."""
    return np.column_stack([scores, 1 - scores]), np.column_stack([scores > 0.2, scores < 0.9])


def images(scores):
    """An image of two pixels for each score."""
    return [(np.array([[s, 1 - s]]), np.array([[True, s < 0.9]])) for s in scores]


CALLS = {
    "calibrate": lambda s, **o: confide.calibrate(s, 0.2, **o),
    "calibrate of levels": lambda s, **o: confide.calibrate(s, [0.3, 0.2], **o),
    "calibrate of groups": lambda s, **o: confide.calibrate(s, 0.2, **{"groups": halves(s), "names": [0, 1]} | o),
    "calibrate_sides": lambda s, **o: confide.calibrate_sides(np.column_stack([s, s + 1]), s, 0.3, **o),
    "calibrate_histogram": lambda s, **o: confide.calibrate_histogram(counts(s), 0.2, **o),
    "calibrate_histogram of levels": lambda s, **o: confide.calibrate_histogram(counts(s), [0.3, 0.2], **o),
    "calibrate_histogram of groups": lambda s, **o: confide.calibrate_histogram({0: counts(s), 1: counts(s)}, 0.2, **o),
    "calibrate_false_negatives": lambda s, **o: confide.calibrate_false_negatives(*two_labels(s), 0.2, **o),
    "calibrate_losses": lambda s, **o: confide.calibrate_losses(
        np.clip(s[:, None] - EDGES.edges, 0, 1), EDGES, 0.2, loss="own", **o
    ),
    "calibrate_masks": lambda s, **o: confide.calibrate_masks(images(s), 0.2, **o),
    "calibrate_table": lambda s, **o: tables.calibrate_table(
        pa.table({"s": s, "g": halves(s)}), tables.ScoreColumn("s"), 0.2, **o
    ),
}
OPTIONS = {
    "score": "my score",
    "classes": ["no", "yes"],
    "about": {"model": "a model"},
    "fingerprint": confide.ModelFingerprint.of(SCORES),
    "candidates": 55,
    "unit": 3.0,
    "chosen": Chosen("a", ("a", "b"), Fraction(1, 5), 0.1),
    "rho": 0.3,
    "neighbors": "replace_one",
    "n_min": 100,
    "delta": 0.1,
    "records_per_person": 2,
    "mechanism": "noisy-histogram",
    "ledger": None,  # with `dataset`; see the test
    "dataset": None,
    "again": True,
    "class_weights": {0: 1, 1: 2},  # with `labels`
    "labels": HALF,
    "weights": SCORES,  # with `weight_bound`
    "weight_bound": 1.0,
    "groups": HALF,  # with `names`
    "names": [1, 0],
    "by": "class",
    "shares": ["0.3", "0.7"],
}
INTERNAL = {"n": 500, "accounts": {}, "parts": 2, "known_later": True, "partition": "x"}
TOGETHER = {
    "labels": "class_weights",
    "class_weights": "labels",
    "weights": "weight_bound",
    "weight_bound": "weights",
    "groups": "names",
    "names": "groups",
    "ledger": "dataset",
    "dataset": "ledger",
}


def called(name, scores=SCORES, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return CALLS[name](scores, **{"epsilon": 4.0, **options})


# --- arguments


def test_the_table_has_all_arguments():
    known = {
        name for name, one in inspect.signature(confide.calibrate).parameters.items() if one.kind is one.KEYWORD_ONLY
    }
    assert set(OPTIONS) == known | Options.__optional_keys__


def _check_refusal(error, name, option):
    """The error names the argument and the public call, and nothing inside the library."""
    said = str(error)
    assert option in said or TOGETHER.get(option, option) in said
    assert not any(word in said for word in ("price_", "suited_", "_terms"))
    assert isinstance(error, confide.ConfideError) or f"{name.split()[0]}()" in said
    assert name != "calibrate" or option in INTERNAL or option in ("again", "unit", "by", "shares")


@pytest.mark.parametrize("option", [*INTERNAL, *slow(OPTIONS)])
@pytest.mark.parametrize("name", CALLS)
def test_every_argument_is_used_or_raises_with_its_name(name, option, tmp_path):
    given = {**OPTIONS, **INTERNAL}
    given["weights"] = "s" if name == "calibrate_table" else SCORES  # for a table, the name of its column
    asked = {one: given[one] for one in (option, TOGETHER.get(option)) if one is not None}
    ledger = None
    if option in ("ledger", "dataset"):
        ledger = confide.Ledger(tmp_path / "ledger.db")
        asked = {"ledger": ledger, "dataset": "data"} | ({"partition": "half"} if "groups" in name else {})
        if name in ("calibrate_false_negatives", "calibrate_losses"):
            asked["u"] = np.linspace(0, 0.99, N)
    if option == "rho":
        asked["epsilon"] = None
    try:
        made = called(name, **asked)
    except (InputError, TypeError) as error:
        _check_refusal(error, name, option)
        return
    if ledger is not None:
        assert ledger.account("data").entries
        spent = ledger.account("data").spent()
        if name != "calibrate_masks":  # which draws a number for every image anew
            assert called(name, **asked) == made
            assert ledger.account("data").spent() == spent
    else:
        assert made.request != called(name).request, f"{name} swallows {option}"


def test_an_array_as_a_column_and_losses_without_a_list_raise():
    with refused(InputTypeError, "candidates"):
        confide.calibrate_losses(np.zeros((5, 4)), 5, 0.1, 1.0, loss="mine")
    with refused(InputTypeError, "weights"):
        CALLS["calibrate_table"](SCORES, epsilon=1.0, weights=SCORES, weight_bound=1.0)


# --- candidates

EVEN = confide.Candidates.unit(20)
LISTED = sorted(set(CALLS) - {"calibrate_losses"})  # losses belong to a list of candidates
IN_UNIT = [name for name in LISTED if not any(word in name for word in ("histogram", "sides", "table"))]


@pytest.mark.parametrize("candidates", [EVEN, 20, np.int64(20)], ids=["list", "int", "int64"])
@pytest.mark.parametrize("name", IN_UNIT)
def test_a_number_of_candidates_is_a_list_in_equal_steps(name, candidates):
    score = {} if name in ("calibrate_false_negatives", "calibrate_masks") else {"score": "lac"}
    made = called(name, candidates=candidates, **score)
    assert all(part.recipe == EVEN.recipe for part in made.values())


@pytest.mark.slow
def test_a_number_gives_default_candidates_of_other_scores():
    kinds = {"absolute_residual": "residual", "aps_deterministic": "mass", "cqr": "signed", None: "any"}
    for score, kind in kinds.items():
        planned = score_kind(score).choose_candidates(50)
        assert planned.recipe["of"] == kind
        assert planned.size <= 60
        assert suited(50, score, 0.1, 1.0) == planned
    assert confide.plan(0.1, 1.0, score="gamma", candidates=50, unit=2.0).candidates.recipe["unit"] == 2.0
    released = called("calibrate", score="gamma", candidates=50, unit=2.0, neighbors="replace_one")
    assert candidates_of(released) == score_kind("gamma").choose_candidates(50, 2.0)
    assert score_kind("aps_deterministic").choose_candidates(1) == confide.Candidates.unit(1)
    with refused(InputError, "unit"):
        confide.plan(0.1, 1.0, score="gamma", candidates=Spread("residual"), unit=2.0)


@pytest.mark.parametrize("wrong", [True, 0.5, [0.5], "20"], ids=repr)
@pytest.mark.parametrize("name", LISTED)
def test_candidates_of_another_type_raise(name, wrong):
    with refused(InputTypeError, "candidates"):
        called(name, candidates=wrong)


@pytest.mark.parametrize("number", [0, -1, 10**9])
def test_numbers_of_candidates_out_of_range_raise(number):
    with refused(InputError, "candidates"):
        called("calibrate", candidates=number)


# --- no records


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"mechanism": "noisy-histogram"}], ids=str)
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("n", [0, 1])
def test_no_record_and_one_record_are_released(name, n, options):
    classes = {"classes": 1} if name == "calibrate_masks" else {}
    released = called(name, np.full(n, 0.5), **options, **classes)
    assert confide.Release.from_json(released.to_json()) == released
    assert released.privacy.epsilon <= 4


@pytest.mark.parametrize("name", [name for name in CALLS if "groups" not in name])
def test_no_record_raises_if_n_is_public(name):
    classes = {"classes": 1} if name == "calibrate_masks" else {}
    with refused(InputError, {"calibrate_masks": "loader", "calibrate_table": "source"}.get(name, "n")):
        called(name, np.zeros(0), neighbors="replace_one", **classes)


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


def test_the_rejected_argument_may_be_a_default():
    """An error names a default that conflicts with a given argument as if it were given."""
    with refused(InputError, "neighbors"):
        check_combinations({"mechanism": "pps-laplace", "epsilon": 0.1})
