"""Renewal of a release: the same request with new records, and the checksum of the release that it renews."""

import hashlib
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import confide
from confide.candidates import Candidates, OwnCandidates
from confide.core import Release, Request, renewed
from confide.ledger import Ledger
from confide.tables import ScoreColumn, recalibrate_table
from tests.builders import slow
from tests.calibrations import KINDS, OPTIONS, SCORES, changed, of_kind, released
from tests.refused import refused

pytestmark = [
    pytest.mark.filterwarnings("ignore::confide.CoverageWarning"),  # +inf is drawn now and then
    pytest.mark.xdist_group("released"),
]

N = len(SCORES)
HALF = np.arange(N) % 2
WIDTH = np.tile([-0.5, 0.5], (N, 1))
P = np.random.default_rng(9).random((N, 3))
STEPS = np.tile(np.linspace(5, 0, 20), (N, 1))
FEW = Candidates.unit(20)


# --- the same request


RENEWABLE = [name for name in KINDS if name != "counts"]


@pytest.mark.parametrize("name", [*slow(OPTIONS, everyday=["replace_one", "own candidates"]), *RENEWABLE])
def test_a_renewal_repeats_the_request(name):
    """But for metadata and a private choice of the score; candidate values of your own are not in a release."""
    first = of_kind(name) if name in KINDS else released(name)
    again, read = renewed(first), Release.from_json(first.to_json())
    assert again == renewed(read) == replace(first.request, renews=first.checksum, about=None, chosen=None)
    assert again.terms == read.request.terms or first.chosen is not None


RECORDS = {
    "guess": ({}, SCORES), "levels, shares": ({}, SCORES), "groups by number": ({"groups": HALF + 1}, SCORES),
    "overlapping groups": ({"groups": {"sex": np.array(["f", "m"])[HALF], "site": HALF + 1}}, SCORES),
    "sides": ({"targets": SCORES}, WIDTH), "false negatives": ({"truth": P > 0.5}, P),
    "losses": ({"u": np.linspace(0, 0.99, N), "candidates": Candidates.of(np.arange(20.0))}, STEPS),
    "shares before and after": ({"labels": np.array(["a", "b"])[HALF]}, SCORES),
    "fingerprint": ({"about": {"date": "2026-11"}}, SCORES), "none": ({}, SCORES), "chosen": ({}, SCORES),
}  # fmt: skip
"""New records for releases of every kind."""


@pytest.mark.parametrize("name", slow(RECORDS, everyday=["levels, shares", "false negatives", "losses"]))
def test_a_renewal_has_the_same_keys_and_cost_and_states_what_it_renews(name):
    first, (given, scores) = of_kind(name), RECORDS[name]
    second = confide.recalibrate(first, scores, **given)
    assert second.keys() == first.keys()
    assert second.privacy.epsilon == pytest.approx(first.privacy.epsilon, rel=1e-9)
    assert (first.renews, second.renews) == (None, hashlib.sha256(first.to_json().encode()).hexdigest())
    assert (second.fingerprint, second.loss, second.bound) == (first.fingerprint, first.loss, first.bound)
    assert Release.from_json(second.to_json()) == second
    if first.fingerprint is not None:
        other = confide.ModelFingerprint.of([0.5, 0.75])
        assert confide.recalibrate(first, scores, fingerprint=other, **given).fingerprint == other


def test_a_renewal_depends_on_neither_threshold_nor_number():
    """Whatever was drawn, also +inf, the same is asked of new records."""
    first = of_kind("fingerprint")
    assert first.size is not None
    for other in (changed(first, threshold=np.inf), changed(first, size=None)):
        assert replace(renewed(other), renews=None) == replace(renewed(first), renews=None)


@pytest.mark.slow
def test_weights_of_a_table_are_those_of_the_release():
    first, labels = of_kind("shares before and after"), np.array(["a", "b"])[HALF]
    table = pa.table({"s": SCORES, "class": labels, "w": np.ones(N)})
    assert recalibrate_table(first, table, ScoreColumn("s"), by="class").population == first.population
    with refused(confide.errors.InputError, "weights"):
        recalibrate_table(first, table, ScoreColumn("s"), by="class", weights="w")


# --- other values


def test_another_budget_is_divided_by_the_same_shares():
    shares = of_kind("levels, shares")
    assert renewed(shares, epsilon=1.0).rho is None
    assert [terms.epsilon for terms in renewed(shares, epsilon=1.0).terms.values()] == [0.3, 0.7]
    assert [terms.epsilon for terms in renewed(of_kind("levels"), rho=0.5).terms.values()] == [
        terms.epsilon for terms in Request(alpha=(0.1, 0.2), by="level", rho=0.5, score="lac", delta=0.1).terms.values()
    ]


def test_other_candidates():
    first = released("geometric")
    assert renewed(first, candidates=FEW).candidates == FEW
    assert renewed(of_kind("guess"), candidates=Candidates.around(0.4)).candidates.around == 0.4
    assert renewed(of_kind("guess")).candidates.around == 0.9
    sized = confide.calibrate(SCORES, 0.1, 1.0, score="absolute_residual", unit=5.0)
    assert renewed(sized).candidates.unit == 5.0
    assert renewed(sized, candidates=50).candidates.recipe["unit"] == 5.0


def test_candidates_of_your_own_must_be_given_again():
    own, values = released("own candidates"), np.linspace(-1, 2, 77) ** 3
    assert isinstance(renewed(own).candidates, OwnCandidates)
    with refused(confide.errors.InputError, "candidates"):
        confide.recalibrate(own, SCORES)
    assert confide.recalibrate(own, SCORES, candidates=Candidates.of(values)).candidates == own.candidates
    with refused(confide.errors.InputError, "candidates"):
        confide.recalibrate(of_kind("losses"), STEPS)


@pytest.mark.slow
def test_a_ledger_charges_the_renewal_of_another_release(tmp_path):
    account = {"ledger": Ledger(tmp_path / "l.db"), "dataset": "a"}
    first = confide.calibrate(SCORES, 0.1, 1.0, score="lac", neighbors="replace_one", **account)
    second = confide.recalibrate(first, SCORES**2, **account)
    with pytest.warns(confide.errors.EarlierReleaseWarning):
        assert confide.recalibrate(first, SCORES**2, **account) == second
    assert account["ledger"].account("a").spent().epsilon == 2.0
    confide.recalibrate(second, SCORES**3, **account)
    assert account["ledger"].account("a").spent().epsilon == 3.0


# --- refusals


@pytest.mark.parametrize(
    ("name", "options", "error", "argument"),
    [
        ("groups", {}, confide.errors.InputError, "groups"),
        ("sides", {}, confide.errors.InputError, "targets"),
        ("shares before and after", {}, confide.errors.InputError, "labels"),
        ("guess", {"u": HALF}, confide.errors.InputError, "u"),
        ("guess", {"groups": HALF}, confide.errors.InputError, "groups"),
        ("guess", {"partition": "ward"}, confide.errors.InputError, "partition"),
        ("guess", {"alpha": 0.2}, confide.errors.InputTypeError, "alpha"),
        ("guess", {"candidates": [0.5]}, confide.errors.InputTypeError, "candidates"),
        ("none", {"epsilon": 1.0}, confide.errors.InputError, "epsilon"),
        ("counts", {}, confide.errors.InputTypeError, "previous"),
    ],
)
def test_arguments_that_exclude_a_renewal(name, options, error, argument):
    with refused(error, argument):
        confide.recalibrate(of_kind(name), SCORES, **options)


def test_only_releases_of_one_owner_are_renewed_with_the_same_score():
    first = of_kind("guess")
    federated = type("Federated", (Release,), {})(first.request, first.parts, first.versions)
    for previous in (0.5, first.only, federated):
        with refused(confide.errors.InputTypeError, "previous"):
            confide.recalibrate(previous, SCORES)
    with refused(confide.errors.InputError, "score"):
        confide.recalibrate(first, confide.margin_score(np.full((N, 2), 0.5), np.zeros(N, int)))
    with refused(confide.errors.InputError, "alpha"):
        renewed(first, alpha=0.2)


@pytest.mark.parametrize("renews", ["", "0" * 63, "A" * 64, "g" * 64, ["0" * 64], 1, "0" * 64 + "\n"])
def test_what_is_renewed_is_a_checksum(renews):
    with refused(confide.errors.InputError, "renews"):
        Request(alpha=0.1, epsilon=1.0, renews=renews)
