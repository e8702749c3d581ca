"""Several levels from one message of each silo: one signature, one charge, nested thresholds, all guarantees valid."""

import copy
import dataclasses
import itertools
import json
from functools import lru_cache

import numpy as np
import pytest
from scipy import stats

import confide
from confide import federated
from confide.candidates import Candidates
from confide.errors import FormatError, InputError
from confide.federated import Refusal
from confide.federated.envelope import sign_message
from confide.federated.protocols import FedCP2QQ
from confide.federated.several_plans import SeveralPlans
from confide.ledger import Ledger
from confide.releases import LevelCalibration, Release
from confide.support import Form
from tests.builders import slow
from tests.exact import histograms, mechanism_law, replaced, worst_log_ratio
from tests.federated.exact_coverage import choice_laws, populations
from tests.federated.helpers import Federation
from tests.refused import refused

FILE = Form("confide/federated.several", "release", indent=1)

LEVELS = ["0.2", "0.1"]


RECORDS = [np.random.default_rng(i).random(160) for i in range(5)]


@pytest.fixture(scope="module")
def federation(tmp_path_factory):
    return Federation(tmp_path_factory.mktemp("several"), RECORDS)


@pytest.fixture
def five(federation, tmp_path):
    """Return the same silos with new ledgers, because plans are made once."""
    federation.ledgers = [federated.SiloLedger(tmp_path / f"{i}.db") for i in range(5)]
    return federation


@lru_cache
def made(federation, epsilon=4.0, **options):
    options = {"method": "private-qq", "candidates": Candidates.unit(51), **options}
    return federated.plan_levels(federation.silos, LEVELS, epsilon, **options)


def planned(federation, *args, **options):
    return made(federation, *args, **options).sign(federation.coordinator)


METHODS = [
    ("secure-sum", 2.0, {}),
    *slow([("private-qq", 4.0, {}), ("private-qq", 6.0, {"delta": 0.2, "shares": (0.25, 0.75)})]),
]


@pytest.mark.slow
@pytest.mark.parametrize(("method", "epsilon", "options"), METHODS)
def test_whole_way_and_back_from_a_file(five, tmp_path, method, epsilon, options):
    text = planned(five, epsilon, method=method, **options)
    released = federated.aggregate(text, five.answers(text))
    assert isinstance(released, LevelCalibration)
    assert released["0.1"].threshold >= released["0.2"].threshold
    for level, part in released.parts.items():
        assert isinstance(part, federated.FederatedCalibration)
        assert part.coverage >= float(1 - level)
        assert part.guarantee.delta == (None if "delta" not in options else options["delta"] / 2)
        assert federated.FederatedCalibration.from_json(part.to_json()) == part
    assert released.privacy.epsilon == epsilon == five.ledgers[0].spent
    released.save(tmp_path / "released.json")
    assert Release.load(tmp_path / "released.json") == released
    sets = confide.predict_set([[0.85, 0.15]], released["0.1"], score="lac")
    assert len(sets) == 1
    assert f"method: {method}, 5 of 5 silos answered" in str(released)
    assert "privacy of all together" in str(released)
    assert "silos that may be missing" in str(confide.report(released).html)


@pytest.mark.slow
def test_shares_of_the_budget_are_the_requested_ones(five):
    several = made(five, 6.0, method="private-qq", delta=0.2, shares=(0.25, 0.75))
    losses = {float(level): part.loss(0) for level, part in several.parts.items()}
    assert losses[0.2] == pytest.approx(1.5, abs=1e-9)
    assert losses[0.1] == pytest.approx(4.5, abs=1e-9)
    assert several.loss(0) <= 6.0
    with refused(InputError, "shares"):
        federated.plan_levels(five.silos, LEVELS, 4.0, shares=["1/2", "1/2"], method="secure-sum")
    with refused(InputError, "alphas"):
        federated.plan_levels(five.silos, ["0.1", "1/10"], 4.0)


@pytest.mark.slow
def test_default_candidates_are_the_same_for_all_levels(five):
    several = federated.plan_levels(
        five.silos[:2], [0.5, 0.4], 4.0, method="private-qq", score="absolute_residual", unit=2.0
    )
    assert len({part.candidates for part in several.parts.values()}) == 1
    assert several.first.candidates.recipe["unit"] == 2.0


@pytest.mark.slow
def test_a_repeated_request_gets_the_same_message_for_one_charge(five):
    text = planned(five)
    first = five.answer(0, text)
    assert five.answer(0, text) == first
    account = Ledger(five.ledgers[0].path).account("calibration records")
    assert [entry.cost.epsilon for entry in account.entries] == [4.0]
    content = json.loads(first)["content"]
    assert len(content["replies"]) == 2
    assert content["plan"] == SeveralPlans.read(text)[0].digest
    with refused(InputError, "groups"):
        five.answer(1, text, groups=["a"] * 160)
    # One of its parts, sent alone, belongs to a session that has been used.
    alone = json.dumps(json.loads(text)["content"]["plans"][0])
    with refused(Refusal, "session-used"):
        five.answer(0, alone)


@pytest.mark.slow
def test_the_policy_weighs_the_whole(five):
    """Every level costs 2; a silo that allows 3 for a plan refuses both together."""
    careful = dataclasses.replace(five.policy, per_plan=3.0)
    with refused(Refusal, "not-allowed"):
        federated.answer(planned(five), five.scores[0], five.keys[0], careful, five.ledgers[0])
    five.answer(0, planned(five, method="secure-sum"))
    poor = dataclasses.replace(five.policy, budget=7.0)
    with refused(Refusal, "budget-spent"):
        federated.answer(planned(five), five.scores[0], five.keys[0], poor, five.ledgers[0])


SUMS = [
    ("secure-sum", 2.0, {}),
    ("secure-sum", 2.0, {"dropouts": 1}),
    ("fedcp2-qq-sum", 10.0, {}),
    ("fedcp2-qq-sum", 10.0, {"dropouts": 1}),
]


@pytest.mark.parametrize(("method", "epsilon", "options"), SUMS)
def test_levels_of_a_sum_with_and_without_share_holders(five, method, epsilon, options):
    """One survivor set and one part of each share holder serve all levels.

    The release contains the parts, and a reader verifies them.
    """
    text = planned(five, epsilon, method=method, candidates=Candidates.unit(21), **options)
    answers = five.answers(text)
    there = answers[1:] if options else answers
    parts = five.parts(text, there)
    released = federated.aggregate(text, there, parts=parts, keys=five.coordinator)
    assert released["0.1"].threshold >= released["0.2"].threshold
    assert (released.privacy.epsilon, five.ledgers[0].spent) == (epsilon, epsilon)
    assert len(released["0.1"].answered) == len(there)
    again = Release.from_json(released.to_json())
    assert again == released == copy.deepcopy(released)
    assert federated.verify(again, five.coordinator.public(), there).holds
    if options:
        assert not federated.verify(again, five.coordinator.public(), answers[:1]).holds
        with refused(InputError, "calibration"):
            released["0.1"].to_json()
        with refused(Refusal, "missing"):
            federated.aggregate(text, there, parts=parts[:3])
        content = json.loads(released.to_json())["content"]
        with pytest.raises(FormatError):
            Release.from_json(sign_message("several", content | {"thresholds": [0.05, 1.0]}, five.coordinator.signing))
    else:
        with refused(Refusal, "missing"):
            federated.aggregate(text, answers[1:])


@pytest.mark.parametrize("options", [{}, {"dropouts": 1, "colluding": 1}])
def test_each_level_is_the_reply_of_a_separate_draw(five, monkeypatch, options):
    """The vectors of a sum of replies are concatenated; each level is sorted by itself, then the levels are nested."""
    drawn = iter([3, 9] * 5)
    monkeypatch.setattr(FedCP2QQ, "reply", lambda self, terms, own, counts: next(drawn))
    few = Candidates.unit(21)
    text = planned(five, 10.0, method="fedcp2-qq-sum", candidates=few, **options)
    answers = five.answers(text)
    released = federated.aggregate(text, answers, parts=five.parts(text, answers))
    assert [part.threshold for part in released.parts.values()] == [few.values[3], few.values[9]]


@pytest.mark.slow
def test_a_separate_share_of_each_level(five, tmp_path):
    text = planned(five)
    answers = five.answers(text)
    released = federated.aggregate(text, answers, keys=five.coordinator)
    read, _ = federated.read_plan(text)
    for place, level in enumerate(LEVELS):
        own = federated.own_share(released, answers[3], level)
        replied = read.single_plans[place].candidates.values[federated.read_answer(read, answers[3]).reply[place]]
        assert own.threshold == max(released[level].threshold, replied)
        assert own.guarantee.kind == "marginal"
        own.save(tmp_path / "own.json", overwrite=True)
        assert federated.OwnShare.load(tmp_path / "own.json") == own
    with refused(InputError, "of"):
        federated.own_share(released, answers[3], "0.3")
    with refused(InputError, "of"):
        federated.own_share(released["0.1"], answers[3], "0.1")


@pytest.mark.slow
def test_levels_are_compared_as_they_are_planned(five):
    """The expected value of several thresholds is their mean; each method divides the loss as in its own plans."""
    compared = federated.compare(five.silos, LEVELS, 2.0, by="level", candidates=Candidates.unit(51))
    found = {one.method: one for one in compared if not one.left_out}
    assert found["secure-sum"].recommended
    assert [part.loss(0) for part in found["secure-sum"].plan.single_plans] == [2.0, 2.0]
    each = [federated.compare(five.silos, level, 2.0, candidates=Candidates.unit(51))[1].expected for level in LEVELS]
    assert found["secure-sum"].expected == pytest.approx(np.mean(each))
    assert found["secure-sum"].missed == pytest.approx(0.15)


@pytest.mark.slow
@pytest.mark.parametrize("dropouts", [0, 1])
def test_levels_of_a_sum_are_covered_as_one_threshold_is(five, dropouts):
    """The guarantee of each level is that of a plan of this level alone, with the same noise."""
    several = made(five, 2.0, method="secure-sum", candidates=Candidates.unit(21), dropouts=dropouts)
    assert len(several.parts) == len(LEVELS)
    for level, part in several.parts.items():
        alone = federated.plan(
            five.silos, level, 2.0, method="secure-sum", candidates=Candidates.unit(21), dropouts=dropouts
        )
        assert (part.protocol, part.channel) == (alone.protocol, alone.channel)
        assert part.promises() == alone.promises()


def test_loss_of_a_message_about_two_levels_by_enumeration():
    """For all pairs of replies over all adjacent histograms the privacy loss is at most the ledger's charge."""
    silos = [federated.SiloKeys.generate(f"s{i}").public(7) for i in range(4)]
    several = federated.plan_levels(
        silos, ["0.5", "0.4"], 3.0, shares=["1/3", "2/3"], method="private-qq", candidates=Candidates.unit(4)
    )
    mechanisms = [plan.protocol.mechanism(plan, 0) for plan in several.parts.values()]

    def joint(h):
        return np.outer(*(mechanism_law(mechanism, h) for mechanism in mechanisms)).ravel()

    worst = worst_log_ratio(joint, histograms(7, 4), replaced)
    single = max(plan.loss(0) for plan in several.parts.values())
    assert single < worst <= several.loss(0) + 1e-9  # a single level would understate the loss
    assert several.loss(0) <= 3.0


def test_every_level_is_covered_as_promised_after_nesting():
    """Compute the exact joint distribution of both thresholds, over all histograms of two silos and all replies."""
    bins, sizes = 3, (6, 5)
    silos = [federated.SiloKeys.generate(f"s{i}").public(n) for i, n in enumerate(sizes)]
    several = federated.plan_levels(silos, ["0.6", "0.5"], 6.0, method="private-qq", candidates=Candidates.unit(bins))
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


@pytest.mark.slow
def test_what_is_altered_or_put_together_by_another_is_refused(five):
    text = planned(five)
    message = json.loads(text)
    stranger = federated.SiloKeys.generate("stranger")
    with refused(Refusal, "altered"):
        five.answer(0, sign_message("plans", message["content"], stranger.signing))  # the coordinator signs the parts
    with refused(Refusal, "altered"):
        five.answer(0, text.replace('"level"', '"class"'))
    swapped = {**message["content"], "plans": message["content"]["plans"][::-1]}
    with refused(Refusal, "malformed"):
        five.answer(0, sign_message("plans", swapped, five.coordinator.signing))
    session = "0" * 32
    parts = {level: dataclasses.replace(part, session=session) for level, part in made(five).parts.items()}
    other = json.loads(SeveralPlans("level", "replace_one", parts).sign(five.coordinator))["content"]["plans"]
    mixed = {**message["content"], "plans": [message["content"]["plans"][0], other[1]]}  # two sessions
    with refused(Refusal, "malformed"):
        five.answer(0, sign_message("plans", mixed, five.coordinator.signing))
    doubled = {**message["content"], "plans": [message["content"]["plans"][0]] * 2}
    with refused(Refusal, "malformed"):
        five.answer(0, sign_message("plans", doubled, five.coordinator.signing))
    assert five.ledgers[0].spent == 0


@pytest.mark.slow
@pytest.mark.parametrize("method", ["private-qq", "secure-sum"])
def test_a_signed_release_tells_what_it_was_made_from(five, method):
    text = planned(five, 4.0, **({} if method == "private-qq" else {"method": method}))
    answers = five.answers(text)
    released = federated.aggregate(text, answers, keys=five.coordinator)
    again = Release.from_json(released.to_json())
    assert again == released
    face = five.coordinator.public()
    assert federated.verify(again, face, answers).holds
    made_again = "recomputed from 5 signed answers" in " ".join(federated.verify(again).statements)
    assert made_again == (method == "private-qq")
    assert not federated.verify(again, five.keys[0].public(), answers).holds
    assert not federated.verify(federated.aggregate(text, answers), face).holds
    content = json.loads(released.to_json())["content"]
    other = {**content, "thresholds": [0.02, 0.98]}
    with pytest.raises(FormatError):
        Release.from_json(json.dumps({**json.loads(released.to_json()), "content": other}))
    with pytest.raises(FormatError):
        Release.from_json(sign_message("several", content, five.keys[0].signing))
    if method == "private-qq":  # not even the plan's coordinator can state other ones
        with pytest.raises(FormatError):
            Release.from_json(sign_message("several", other, five.coordinator.signing))


def test_claims_that_do_not_follow_are_refused_on_reading(five):
    text = planned(five, 2.0, method="secure-sum")
    released = federated.aggregate(text, five.answers(text))
    document = json.loads(released.to_json())
    content = {name: value for name, value in document.items() if name not in ("kind", "schema", "sha256")}
    assert Release.from_json(FILE.write(content)) == released
    for change in (
        {"epsilon": 1.0},
        {"coverage": [0.8, 0.95]},
        {"thresholds": content["thresholds"][::-1]},
        {"thresholds": [0.8211, 0.93]},
        {"thresholds": content["thresholds"][:1]},
        {"answered": []},
        {"answered": ["silo 0"] * 5},
        {"refused": [["silo 0", "because"]]},
        {"refused": [["silo 0", ["late"]]]},
    ):
        with pytest.raises(FormatError):
            Release.from_json(FILE.write({**content, **change}))
    with pytest.raises(FormatError):
        Release.from_json(released.to_json().replace("silo 1", "silo 7"))


@pytest.mark.slow
def test_a_page_shows_the_silos_of_several_thresholds(five):
    text = planned(five)
    released = federated.aggregate(text, five.answers(text, [0, 1, 2, 4]), keys=five.coordinator)
    page = confide.report(released).html
    assert "The silos of the plan" in page
    assert "4 of 5 silos answered" in page
    assert "If a person has records in several silos" in page
    with pytest.raises(InputError):
        confide.report(released, answers=five.answers(text, [0]))
