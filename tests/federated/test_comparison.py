"""Comparison of the methods for given silos before any charge, and the default method."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import confide
from confide import federated
from confide.candidates import Candidates
from confide.core import Pilot
from confide.errors import InputError
from confide.federated.protocols.secure_sum import noise_law
from tests.federated.by_files import Files
from tests.federated.test_many_silos import roster
from tests.refused import refused

SCHOOLS = np.random.default_rng(2).integers(20, 160, 40).tolist()


def test_impossible_guarantees_are_refused_with_the_reason():
    with refused(InputError, "silos"):
        federated.plan(roster([3, 3]), 0.1, 1.0)
    comparison = federated.compare(roster([3, 3]), 0.1, 1.0)
    assert comparison.recommended is None
    assert [line.split(":")[:2] for line in str(comparison).splitlines()] == [
        ["private-qq", " no plan"],
        ["secure-sum", " no plan"],
    ]
    with refused(InputError, "method"):
        _ = comparison.plan


def test_a_comparison_is_one_table():
    comparison = federated.compare(roster([200] * 5), 0.1, 1.0, candidates=Candidates.unit(100))
    _, heads, private, summed, *notes = str(comparison).splitlines()
    assert [head in heads for head in ("Method", "Uniform scores", "Gaussian scores", "A silo reveals")] == [True] * 4
    assert private.split()[:2] == ["private-qq", f"{comparison.alternatives[0].expected:.4f}"]
    assert "to the coordinator and every reader" in private
    assert summed.split()[:3] == ["secure-sum", "(recommended)", f"{comparison.recommended.expected:.4f}"]
    assert "only the sum of all silos" in summed
    assert ["pay again" in note for note in notes] == [False, False, True]
    secret = federated.compare(roster([None] * 3), 0.1, 5.0, candidates=Candidates.unit(50))
    assert "sizes are secret" in str(secret)


@pytest.mark.slow
def test_the_default_method_is_the_recommended_one():
    """A sum serves both levels at one price, and private-qq divides the loss: one level alone would have it instead."""
    silos, few = roster([200] * 5), Candidates.unit(100)
    assert federated.compare(silos, [0.2, 0.1], 4.0, candidates=few).recommended.method == "secure-sum"
    assert federated.plan(silos, [0.2, 0.1], 4.0, candidates=few).method == "secure-sum"
    assert federated.plan(silos, 0.2, 4.0, candidates=few).method == "private-qq"


@pytest.mark.slow
def test_a_pilot_says_how_large_sets_will_be():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(6), 3000)
    labels = np.array([rng.choice(6, p=row) for row in p[:500]])
    pilot = Pilot(confide.lac_score(p[:500], labels), confide.all_scores(p))
    comparison = federated.compare(roster(SCHOOLS), 0.1, 1.0, score="lac", pilot=pilot)
    found = comparison.alternatives
    assert "Classes in a set" in str(comparison)
    sizes = {each.method: each.on_pilot.size for each in found}
    assert sizes["secure-sum"] < sizes["private-qq"]
    for one in found:
        assert 1 < one.on_pilot.plain_size < one.on_pilot.size < 6
    alone = federated.compare(roster([300] * 3), 0.1, 2.0, score="lac", pilot=pilot.scores)
    assert all(one.on_pilot.size is None and one.on_pilot.records == 500 for one in alone.alternatives)


@pytest.mark.slow
def test_the_command_takes_what_is_recommended(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    schools = {f"school {i}": 30 + 9 * i for i in range(12)}
    files = Files(run, schools, asked=("--alpha", 0.1, "--epsilon", 1, "--score", "lac"))
    files.plan()
    files.plan("--compare", out="compared.json")
    planned, compared = (federated.read_plan(Path(f"{name}.json").read_text()) for name in ("plan", "compared"))
    assert planned.method == "secure-sum"
    assert compared.protocol == planned.protocol


@pytest.mark.slow
def test_two_certificates_for_byzantine_silos():
    """The guarantee of private-qq for 20 silos of 200 records with 3 Byzantine silos, where Rob-FCP has none."""
    made = federated.plan(roster([200] * 20), 0.1, 1.0, candidates=Candidates.unit(100), liars=3)
    assert made.method == "private-qq"
    assert made.certify()[1].coverage == 0.9
    assert {made.promises()[answers].infinite for answers in (17, 20)} == {"never"}


def test_the_noise_of_a_sum_is_expected_as_it_is():
    """With all records in one bin, the last candidate is chosen if its noise exceeds n - T (exact distribution)."""
    made = federated.plan(roster([100] * 3), 0.1, 1.0, method="secure-sum", candidates=Candidates.unit(3))
    made = replace(made.first, protocol=replace(made.protocol, target=297))
    law = made.protocol.answer_law(made, np.array([0.0, 1.0, 1.0]))
    noise = noise_law(made.protocol.scale, 3 / made.protocol.honest)
    exact = noise[len(noise) // 2 + 4 :].sum()
    assert 0.05 < exact < 0.3
    assert law[0] == 0
    assert abs(law[2] - exact) < 5 * np.sqrt(exact * (1 - exact) / 1000)
