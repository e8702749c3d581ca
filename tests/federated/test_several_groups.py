"""A threshold for each group or class from one message of each silo, which keeps the group sizes secret."""

import itertools
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest

import confide
from confide import federated
from confide.candidates import Candidates
from confide.core import Release
from confide.errors import InputError
from confide.federated.reply_laws import any_size_reply
from confide.mechanisms import slopes_for
from tests.exact import added, histograms, mechanism_law
from tests.federated.exact_coverage import coverage, populations, reply_law
from tests.federated.helpers import Federation, kth_reply
from tests.refused import refused

NAMES = ("women", "men", "unknown")
RNG = np.random.default_rng(5)
RECORDS = [RNG.random(400) for _ in range(3)]
GROUPS = [np.array(["women"] * 200 + ["men"] * 200)[RNG.permutation(400)] for _ in range(3)]


@pytest.fixture(scope="module")
def federation(tmp_path_factory):
    return Federation(tmp_path_factory.mktemp("groups"), RECORDS, secret=True, budget=50.0)


@pytest.fixture
def three(federation, tmp_path):
    """Plans are made once."""
    return federation.renewed(tmp_path)


@lru_cache
def made(federation, epsilon=20.0, names=NAMES, **options):
    options = {"candidates": Candidates.unit(21), "n_typical": 150, **options}
    return federated.plan(federation.silos, 0.2, epsilon, by="group", names=names, **options)


def answers(federation, text, who=(0, 1, 2)):
    return [federation.answer(i, text, groups=GROUPS[i]) for i in who]


@pytest.mark.long
def test_whole_way_and_back_from_a_file(three, tmp_path):
    text = made(three).sign(three.coordinator)
    sent = answers(three, text)
    assert answers(three, text) == sent
    released = federated.aggregate(text, sent)
    assert released.privacy.neighbors == "add_remove"
    assert three.ledgers[0].spent == released.privacy.epsilon <= 20.0
    assert 0.7 < released["women"].threshold < 1
    released.save(tmp_path / "released.json")
    again = Release.load(tmp_path / "released.json")
    assert again == released
    with pytest.warns(confide.CoverageWarning):
        sets = confide.predict_set([[0.9, 0.1]] * 3, again, score="lac", groups=["men", "women", "unknown"])
    assert sets.sizes[2] == 2  # +inf: see below
    assert "unknown" in str(confide.report(released).html)


@pytest.mark.long
def test_an_empty_group_gets_infinity(three):
    """A reply without records is finite with probability at most 1e-6, by its exact distribution."""
    several = made(three)
    plan = several.first
    k, _ = plan.certify()
    finite = 1 - mechanism_law(plan.protocol.mechanism(plan, 0), (0,) * 21)[-1]
    assert 3 * finite ** (4 - k) < 1e-6 or k == 3
    assert 3 * finite**k < 1e-6
    text = several.sign(three.coordinator)
    released = federated.aggregate(text, answers(three, text))
    assert released.infinite == ("unknown",)


def test_what_groups_cannot_be_planned_with(three):
    public = [keys.public(300) for keys in three.keys]
    with refused(InputError, "silos"):
        federated.plan(public, 0.2, 4.0, by="group", names=NAMES)
    with refused(InputError, "method"):
        federated.plan(three.silos, 0.2, 4.0, by="group", names=NAMES, method="secure-sum")
    with refused(InputError, "names"):
        federated.plan(three.silos, 0.2, 4.0, by="group", names=["a", "a"])


@pytest.mark.long
@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
def test_loss_of_a_message_about_two_groups_by_enumeration(neighbors):
    """Test every pair of histograms, with every record added, replaced in its group, or moved to the other one."""
    silos = [federated.SiloKeys.generate(f"s{i}").public() for i in range(4)]
    several = federated.plan(
        silos, 0.5, 3.0, by="group", names=["a", "b"], neighbors=neighbors, candidates=Candidates.unit(3), n_typical=6
    )
    mechanism = several.first.protocol.mechanism(several.first, 0)
    logs = {h: np.log(mechanism_law(mechanism, h)) for n in range(6) for h in histograms(n, 3)}
    small = [h for h in logs if sum(h) < 5]
    one = max(np.abs(logs[h] - logs[g]).max() for h in small for g in added(h))
    pairs = list(itertools.product(small[:: 1 if len(small) < 40 else 2], repeat=2))
    moved = 0.0
    for kept, left in pairs:  # a record leaves group b (a histogram of `added(left)`) and enters group a
        into = max(float((logs[g] - logs[kept]).max()) for g in added(kept))
        out = max(float((logs[left] - logs[g]).max()) for g in added(left))
        moved = max(moved, into + out)
    assert one <= several.first.loss(0) + 1e-9
    if neighbors == "add_remove":
        assert one <= several.loss(0) + 1e-9
        assert several.privacy().replace_one >= moved - 1e-9
    assert one < moved <= several.privacy().replace_one + 1e-9  # a move costs more than adding or removing one record
    if neighbors == "replace_one":
        assert moved <= several.loss(0) + 1e-9
        assert several.loss(0) <= 3.0


@pytest.mark.long
def test_every_group_is_covered_whatever_silos_have_of_it():
    """Compute the exact distribution of a group's threshold for all its sizes in three silos, including 0."""
    bins = 4
    silos = [federated.SiloKeys.generate(f"s{i}").public() for i in range(3)]
    several = federated.plan(
        silos, 0.4, 5.0, by="group", names=["a", "b"], candidates=Candidates.unit(bins), n_typical=8
    )
    plan = several.first
    k, guarantee = plan.certify()
    assert k <= 3
    mechanism = plan.protocol.mechanism(plan, 0)
    index = np.array([kth_reply(list(replies), k, bins) for replies in np.ndindex(bins, bins, bins)])
    worst = 1.0
    for population in populations(bins, 0.6):
        law = {n: reply_law(mechanism, n, population) for n in (0, 1, 2, 6, 11)}
        for sizes in itertools.combinations_with_replacement(law, 3):
            joint = np.multiply.outer(np.multiply.outer(law[sizes[0]], law[sizes[1]]), law[sizes[2]])
            worst = min(worst, coverage(np.bincount(index, joint.ravel(), minlength=bins), population))
    assert guarantee.coverage - 1e-9 <= worst < 0.95


@pytest.mark.slow
def test_the_reply_without_records_is_part_of_the_certificate(three):
    """At low scores a silo without records replies with a higher probability than the certificate of other silos."""
    mechanism = slopes_for(Fraction(37, 40), Fraction(9, 2), 14, 2, "add_remove", 1.0)
    empty = mechanism.rank_law(0, 50)[2]
    low = np.array([1e-3])
    some, none = (any_size_reply(mechanism, 50, n_min, Fraction(9, 10)) for n_min in (1, 0))
    assert some.below(low)[0] < empty == none.below(low)[0]
    assert 0 < 1 - mechanism_law(mechanism, (0,) * 40)[-1] <= empty
    plan = made(three).first
    assert plan.protocol.n_min == 0
    assert "for every number of records, also none" in str(plan.certify()[1])
