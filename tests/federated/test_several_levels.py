"""Several levels, and both sides of an interval, from one message of each silo."""

import copy
import itertools
from functools import lru_cache

import numpy as np
import pytest
from scipy import stats

from confide import federated
from confide.candidates import Candidates
from confide.core import Release
from confide.errors import FormatError, InputError
from confide.federated import Refusal
from confide.federated.messages import sign
from confide.scores import interval_score
from tests.exact import histograms, mechanism_law, replaced, worst_log_ratio
from tests.federated.exact_coverage import choice_laws, populations
from tests.federated.helpers import Federation, content_of
from tests.refused import refused

LEVELS = ["0.2", "0.1"]


RECORDS = [np.random.default_rng(i).random(160) for i in range(5)]


@pytest.fixture(scope="module")
def federation(tmp_path_factory):
    return Federation(tmp_path_factory.mktemp("several"), RECORDS)


@pytest.fixture
def five(federation, tmp_path):
    """Plans are made once."""
    return federation.renewed(tmp_path)


@lru_cache
def made(federation, epsilon=4.0, **options):
    options = {"method": "private-qq", "candidates": Candidates.unit(51), **options}
    return federated.plan(federation.silos, LEVELS, epsilon, **options)


def planned(federation, *args, **options):
    return made(federation, *args, **options).sign(federation.coordinator)


def test_levels_of_a_sum(five):
    """One sum serves all levels of noisy counts."""
    text = planned(five, 2.0, method="secure-sum", candidates=Candidates.unit(21))
    answers = five.answers(text)
    released = federated.aggregate(text, answers, keys=five.coordinator)
    assert released["0.1"].threshold >= released["0.2"].threshold
    assert released == copy.deepcopy(released)
    changed = content_of(released.to_json()) | {"refused": [["silo 0", "because"]]}  # a code that is none
    with pytest.raises(FormatError):
        Release.from_json(sign("release", changed, five.coordinator.signing))
    alone = released.at("0.1")
    assert (alone.threshold, alone.levels) == (released["0.1"].threshold, released.levels[1:])
    with refused(InputError, "calibration"):
        alone.to_json()
    with refused(Refusal, "missing"):
        federated.aggregate(text, answers[1:])


@pytest.mark.slow
def test_levels_of_a_sum_are_covered_as_one_threshold_is(five):
    """The guarantee of each level is that of a plan of this level alone, with the same noise."""
    several = made(five, 2.0, method="secure-sum", candidates=Candidates.unit(21))
    assert len(several.parts) == len(LEVELS)
    for level, part in several.parts.items():
        alone = federated.plan(five.silos, level, 2.0, method="secure-sum", candidates=Candidates.unit(21))
        assert (part.protocol, part.channel) == (alone.protocol, alone.channel)
        assert part.promises() == alone.promises()


@pytest.mark.long
def test_loss_of_a_message_about_two_levels_by_enumeration():
    """For all pairs of replies over all adjacent histograms the privacy loss is at most the ledger's charge."""
    silos = [federated.SiloKeys.generate(f"s{i}").public(7) for i in range(4)]
    several = federated.plan(
        silos, ["0.7", "0.6"], 3.0, shares=["1/3", "2/3"], method="private-qq", candidates=Candidates.unit(4)
    )
    mechanisms = [plan.protocol.mechanism(plan, 0) for plan in several.parts.values()]

    def joint(h):
        return np.outer(*(mechanism_law(mechanism, h) for mechanism in mechanisms)).ravel()

    worst = worst_log_ratio(joint, histograms(7, 4), replaced)
    single = max(plan.loss(0) for plan in several.parts.values())
    assert single < worst <= several.loss(0) + 1e-9  # a single level would understate the loss
    assert several.loss(0) <= 3.0


@pytest.mark.slow
def test_every_level_is_covered_as_promised_after_nesting():
    """Compute the exact joint distribution of both thresholds, over all histograms of two silos and all replies."""
    bins, sizes = 3, (6, 5)
    silos = [federated.SiloKeys.generate(f"s{i}").public(n) for i, n in enumerate(sizes)]
    several = federated.plan(silos, ["0.6", "0.5"], 6.0, method="private-qq", candidates=Candidates.unit(bins))
    plans = list(several.parts.values())
    certified = [plan.certify() for plan in plans]
    assert all(k <= 2 for k, _ in certified)
    pairs = list(itertools.product(range(bins), repeat=2))
    laws = []  # distribution of the threshold's index for every pair of histograms, one table per level
    for plan, (k, _) in zip(plans, certified, strict=True):
        a, b = (choice_laws(plan.protocol.mechanism(plan, i), n, bins) for i, n in enumerate(sizes))
        table = np.zeros((len(a), len(b), bins))
        for x, y in pairs:
            table[:, :, sorted((x, y))[k - 1]] += np.outer(a[:, x], b[:, y])
        laws.append(table)
    for population in populations(bins, 0.5):
        weights = [stats.multinomial.pmf(histograms(n, bins), n, population) for n in sizes]
        covers = np.cumsum(population)
        joint = np.einsum("a,b,abi,abj->ij", *weights, *laws)  # replies to the levels share only the records
        nested = np.array([[covers[max(i, j)] for j in range(bins)] for i in range(bins)])
        assert joint.sum() == pytest.approx(1)
        assert (joint.sum(axis=1) @ covers) >= certified[0][1].coverage - 1e-9
        assert (joint * nested).sum() >= max((joint.sum(axis=0) @ covers), certified[1][1].coverage) - 1e-9


SIDES = ("cqr_low", "cqr_high")
ENDS = np.tile([-1.0, 1.0], (200, 1))
TARGETS = [np.random.default_rng(i).normal(size=200) for i in range(5)]
BOTH_SIDES = [{side: interval_score(ENDS, truth, side) for side in SIDES} for truth in TARGETS]
FEW = Candidates.of(np.linspace(-2, 2, 41))


@pytest.fixture
def two_sided(tmp_path):
    made = Federation(tmp_path, [records["cqr_low"] for records in BOTH_SIDES], budget=99.0)
    made.scores = BOTH_SIDES
    return made


@pytest.mark.slow
def test_loss_of_a_message_about_both_sides_by_enumeration():
    """Test all pairs of replies over all histograms of pairs of scores that differ in one record."""
    silos = [federated.SiloKeys.generate(f"s{i}").public(3) for i in range(4)]
    several = federated.plan(silos, 0.9, 6.0, by="side", method="private-qq", candidates=Candidates.of([0.0, 1.0]))
    low, high = (part.protocol.mechanism(part, 0) for part in several.single_plans)

    def joint(pairs):
        cells = np.reshape(pairs, (3, 3))
        return np.outer(mechanism_law(low, cells.sum(axis=1)), mechanism_law(high, cells.sum(axis=0))).ravel()

    worst = worst_log_ratio(joint, histograms(3, 9), replaced)
    single = max(
        worst_log_ratio(lambda h, one=one: mechanism_law(one, h), histograms(3, 3), replaced) for one in (low, high)
    )
    assert single + 0.5 < worst <= several.loss(0) + 1e-9 <= 6.0 + 2e-9  # a single side would understate the loss


def test_what_a_silo_must_give(two_sided):
    text = federated.plan(two_sided.silos, 0.2, 8.0, by="side", candidates=FEW, method="private-qq").sign(
        two_sided.coordinator
    )
    for wrong in (BOTH_SIDES[0]["cqr_low"], {"cqr_low": BOTH_SIDES[0]["cqr_low"]}):
        with refused(InputError, "scores"):
            federated.answer(text, wrong, two_sided.keys[0], two_sided.policy, two_sided.ledgers[0])
    short = {**BOTH_SIDES[0], "cqr_high": BOTH_SIDES[0]["cqr_high"][:-1]}
    half = {side: scores[:100] for side, scores in BOTH_SIDES[0].items()}
    with refused(InputError, "scores"):
        federated.answer(text, short, two_sided.keys[0], two_sided.policy, two_sided.ledgers[0])
    with refused(Refusal, "size-differs"):
        federated.answer(text, half, two_sided.keys[0], two_sided.policy, two_sided.ledgers[0])
    assert two_sided.ledgers[0].spent == 0.0
    with refused(InputError, "score"):
        federated.plan(two_sided.silos, 0.2, 8.0, by="side", score="cqr")
