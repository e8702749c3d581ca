"""Comparison of the methods for given silos before any charge, and the default method."""

from dataclasses import replace

import numpy as np
import pytest

import confide
from confide import federated
from confide.candidates import Candidates
from confide.cli import main
from confide.core import Pilot
from confide.errors import InputError
from confide.federated.keys import SiloKeys
from confide.federated.planning import reference_laws
from confide.federated.protocols import PrivateQQ
from confide.federated.sharing import noise_law
from tests.federated.test_many_silos import roster
from tests.refused import refused

SCHOOLS = np.random.default_rng(2).integers(20, 160, 40).tolist()


def test_impossible_guarantees_are_refused_with_the_reason():
    with refused(InputError, "silos"):
        federated.plan(roster([3, 3]), 0.1, 1.0)
    assert not any(one.recommended for one in federated.compare(roster([3, 3]), 0.1, 1.0))


def simulated(made, below, rounds=100):
    """Return mean and standard error of coverage by the installed mechanisms, for scores with this distribution."""
    rng, covered = np.random.default_rng(1), []
    k, _ = made.certify()
    for _ in range(rounds):
        counts = [rng.multinomial(silo.size, np.diff(below, prepend=0.0)) for silo in made.silos]
        if isinstance(made.protocol, PrivateQQ):
            replies = [made.protocol.mechanism(made.first, i).choose(row) for i, row in enumerate(counts)]
            covered.append(below[sorted(replies)[k - 1]])
        else:
            scale, honest = made.protocol.scale, made.protocol.honest
            from confide.federated.sharing import noise_share
            from confide.guarantee import chosen_by_last_rule

            total = sum(row + noise_share(len(row), scale, honest) for row in counts)
            target = made.protocol.target
            covered.append(below[chosen_by_last_rule(total, made.first.size - target)])
    return np.mean(covered), np.std(covered) / np.sqrt(rounds)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["private-qq", "secure-sum"])
def test_what_is_expected_is_what_is_drawn(method):
    """Allow 6 standard errors of 100 rounds, and 0.003 for the draws of the comparison itself."""
    silos = roster([60, 90, 90, 150, 200, 80])
    found = federated.compare(silos, 0.1, 2.0, candidates=Candidates.unit(40))
    one = next(one for one in found if one.method == method)
    for law, expected in (("even", one.expected), ("bell", one.expected_gaussian)):
        mean, error = simulated(one.plan, reference_laws(40)[law])
        assert abs(mean - expected) < 6 * error + 0.003


@pytest.mark.slow
def test_a_pilot_says_how_large_sets_will_be():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(6), 3000)
    labels = np.array([rng.choice(6, p=row) for row in p[:500]])
    pilot = Pilot(confide.lac_score(p[:500], labels), confide.all_scores(p))
    found = federated.compare(roster(SCHOOLS), 0.1, 1.0, score="lac", pilot=pilot)
    sizes = {each.method: each.on_pilot.size for each in found}
    assert sizes["secure-sum"] < sizes["private-qq"]
    assert ["the reply of each silo" in each.reveals for each in found] == [True, False]
    assert ["pay again" in each.reveals for each in found] == [False, True]
    for one in found:
        assert 1 < one.on_pilot.plain_size < one.on_pilot.size < 6
    alone = federated.compare(roster([300] * 3), 0.1, 2.0, score="lac", pilot=pilot.scores)
    assert all(one.on_pilot.size is None and one.on_pilot.records == 500 for one in alone)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Public files of twelve unequal silos, the coordinator's keys, and a public pilot table."""
    made = tmp_path_factory.mktemp("roster")
    (made / "silos").mkdir()
    for i in range(12):
        own = SiloKeys.generate(f"school {i}")
        (made / "silos" / f"{i}.json").write_text(own.public(30 + 9 * i).to_json())
    SiloKeys.generate("coordinator").save(made / "c.key")
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), 200)
    rows = [",".join([*map(str, row), str(rng.choice(3, p=row))]) for row in p.tolist()]
    (made / "pilot.csv").write_text("p_0,p_1,p_2,y\n" + "\n".join(rows) + "\n")
    return made


def command(folder, *options):
    words = ("plan", "--silo", folder / "silos", "--keys", folder / "c.key", "--alpha", 0.1, "--epsilon", 1, *options)
    return main(["federated", *(str(word) for word in words)])


@pytest.mark.slow
def test_the_command_takes_what_is_recommended(folder, capsys):
    assert command(folder, "--score", "lac", "--out", folder / "plan.json") == 0
    assert "method: secure-sum" in capsys.readouterr().out
    made = federated.read_plan((folder / "plan.json").read_text())
    assert made.method == "secure-sum"
    assert command(folder, "--score", "lac", "--compare", "--out", folder / "compared.json") == 0
    compared = federated.read_plan((folder / "compared.json").read_text())
    assert compared.protocol == made.protocol


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
    law = made.protocol.answer_law(made, np.array([0.0, 1.0, 1.0]), np.random.default_rng(0))
    noise = noise_law(made.protocol.scale, 3 / made.protocol.honest)
    exact = noise[len(noise) // 2 + 4 :].sum()
    assert 0.05 < exact < 0.3
    assert law[0] == 0
    assert abs(law[2] - exact) < 5 * np.sqrt(exact * (1 - exact) / 1000)
