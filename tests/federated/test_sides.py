"""Both sides of an interval from one message of each silo: methods, channels, privacy loss, files and the command."""

import csv
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import confide
from confide import federated
from confide.candidates import Candidates
from confide.errors import InputError
from confide.federated import Refusal
from confide.releases import Release
from confide.scores import interval_score
from tests.exact import histograms, mechanism_law, replaced, worst_log_ratio
from tests.federated.by_files import Files
from tests.federated.helpers import Federation
from tests.files import write
from tests.refused import refused

SIDES = ("cqr_low", "cqr_high")
ENDS = np.tile([-1.0, 1.0], (200, 1))
TARGETS = [np.random.default_rng(i).normal(size=200) for i in range(5)]
RECORDS = [{side: interval_score(ENDS, truth, side) for side in SIDES} for truth in TARGETS]
FEW = Candidates.of(np.linspace(-2, 2, 41))
METHODS = [
    ("private-qq", 8.0, {}),
    ("private-qq", 8.0, {"dropouts": 1}),
    ("secure-sum", 4.0, {}),
    ("secure-sum", 4.0, {"dropouts": 1}),
    ("fedcp2-qq", 60.0, {}),
    ("fedcp2-qq-sum", 60.0, {}),
    ("fedcp2-qq-sum", 60.0, {"dropouts": 1}),
]


@pytest.fixture
def five(tmp_path):
    made = Federation(tmp_path, [records["cqr_low"] for records in RECORDS], budget=99.0)
    made.scores = RECORDS
    return made


@pytest.mark.parametrize(("method", "epsilon", "options"), METHODS)
def test_whole_way_and_back_from_a_file(five, tmp_path, method, epsilon, options):
    made = federated.plan_sides(five.silos, 0.2, epsilon, candidates=FEW, method=method, **options)
    text = made.sign(five.coordinator)
    read, _ = federated.read_plan(text)
    assert (read, list(read.parts)) == (made.__class__(read.by, read.neighbors, read.parts), list(SIDES))
    answers = five.answers(text, [0, 1, 3, 4] if options else None)
    released = federated.aggregate(text, answers, parts=five.parts(text, answers), keys=five.coordinator)
    assert isinstance(released, federated.FederatedSides)
    assert (released.alpha, released.promised) == (Fraction(1, 5), pytest.approx(0.8))
    assert released.privacy.epsilon == pytest.approx(epsilon)
    assert five.ledgers[0].spent == released.privacy.epsilon
    released.save(tmp_path / "released.json")
    again = Release.load(tmp_path / "released.json")
    assert again == released
    assert federated.verify(again, five.coordinator.public(), answers).holds
    found = confide.predict_interval(ENDS[:1], released)
    low, high = float(found.lower[0]), float(found.upper[0])
    assert (low, high) == pytest.approx((-1 - released.low.threshold, 1 + released.high.threshold))
    assert np.isfinite([low, high]).all()
    covered = [np.mean((-1 - released.low.threshold <= y) & (y <= 1 + released.high.threshold)) for y in TARGETS]
    assert np.mean(covered) > 0.7
    assert "privacy of both together" in str(released)


@pytest.mark.slow
def test_each_side_is_planned_as_a_separate_threshold(five):
    both = federated.plan_sides(five.silos, ("0.05", "0.15"), 8.0, candidates=FEW, method="private-qq", share_low="1/4")
    for side, level, epsilon in zip(SIDES, ("0.05", "0.15"), (2.0, 6.0), strict=True):
        alone = federated.plan(five.silos, level, epsilon, candidates=FEW, method="private-qq", score=side)
        assert both.parts[side].protocol == alone.protocol
        assert both.parts[side].promises() == alone.promises()
    assert both.privacy().epsilon == pytest.approx(8.0)
    halves = federated.plan_sides(
        five.silos, 0.2, 4.0, candidates=FEW, method="secure-sum", delta=0.2, population="common"
    )
    assert [part.delta for part in halves.single_plans] == [0.1, 0.1]
    assert [part.loss(0) for part in halves.single_plans] == [2.0, 2.0]  # two histograms, each with its own noise


def test_loss_of_a_message_about_both_sides_by_enumeration():
    """Test all pairs of replies over all histograms of pairs of scores that differ in one record."""
    silos = [federated.SiloKeys.generate(f"s{i}").public(3) for i in range(4)]
    several = federated.plan_sides(silos, 0.9, 6.0, method="private-qq", candidates=Candidates.of([0.0, 1.0]))
    low, high = (part.protocol.mechanism(part, 0) for part in several.single_plans)

    def joint(pairs):
        cells = np.reshape(pairs, (3, 3))
        return np.outer(mechanism_law(low, cells.sum(axis=1)), mechanism_law(high, cells.sum(axis=0))).ravel()

    worst = worst_log_ratio(joint, histograms(3, 9), replaced)
    single = max(
        worst_log_ratio(lambda h, one=one: mechanism_law(one, h), histograms(3, 3), replaced) for one in (low, high)
    )
    assert single + 0.5 < worst <= several.loss(0) + 1e-9 <= 6.0 + 2e-9  # a single side would understate the loss


def test_what_a_silo_must_give(five):
    text = federated.plan_sides(five.silos, 0.2, 8.0, candidates=FEW, method="private-qq").sign(five.coordinator)
    for wrong in (RECORDS[0]["cqr_low"], {"cqr_low": RECORDS[0]["cqr_low"]}):
        with refused(InputError, "scores"):
            federated.answer(text, wrong, five.keys[0], five.policy, five.ledgers[0])
    short = {**RECORDS[0], "cqr_high": RECORDS[0]["cqr_high"][:-1]}
    half = {side: scores[:100] for side, scores in RECORDS[0].items()}
    with refused(InputError, "scores"):
        federated.answer(text, short, five.keys[0], five.policy, five.ledgers[0])
    with refused(Refusal, "size-differs"):
        federated.answer(text, half, five.keys[0], five.policy, five.ledgers[0])
    assert five.ledgers[0].spent == 0.0
    with refused(InputError, "score"):
        federated.plan_sides(five.silos, 0.2, 8.0, score="cqr")


@pytest.mark.slow
def test_a_separate_share_of_each_side_and_the_comparison(five, tmp_path):
    text = federated.plan_sides(five.silos, 0.2, 8.0, candidates=FEW, method="private-qq").sign(five.coordinator)
    answers = five.answers(text)
    released = federated.aggregate(text, answers)
    replied = federated.read_answer(federated.read_plan(text)[0], answers[1]).reply
    for place, side in enumerate(SIDES):
        own = federated.own_share(released, answers[1], side)
        part = list(released.parts.values())[place]
        assert own.threshold == max(part.threshold, FEW.values[replied[place]])
        own.save(tmp_path / f"{side}.json")
        assert confide.load(tmp_path / f"{side}.json") == own
    with refused(InputError, "of"):
        federated.own_share(released, answers[1])
    compared = federated.compare(five.silos, 0.2, 4.0, by="side", candidates=FEW)
    assert {one.method for one in compared} == {"private-qq", "secure-sum"}
    (best,) = (one for one in compared if one.recommended)
    assert list(best.plan.parts) == list(SIDES)
    assert 0.9 <= best.expected <= 1.0
    with refused(InputError, "pilot"):
        federated.compare(five.silos, 0.2, 4.0, by="side", pilot=[0.1, 0.2])


@pytest.mark.slow
def test_by_the_command_line(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    asked = ("--alpha", 0.2, "--epsilon", 8, "--score", "cqr_sides")
    columns = ("--prediction", "q_low,q_high", "--target", "y")
    files = Files(run, dict.fromkeys(("north", "south", "east"), 200), asked=asked, columns=columns, budget=8)
    for name, truth in zip(files.names, TARGETS, strict=False):
        write(Path(f"{name}.csv"), {"q_low": ENDS[:, 0], "q_high": ENDS[:, 1], "y": truth})
    compared = run("federated", "plan", "--silo", "public", "--keys", "coordinator.key", *asked, "--compare")
    assert "-> private-qq, all 3 silos" in compared or "-> secure-sum, all 3 silos" in compared
    assert "cqr_low, 2 to 3 answers: coverage at least 0.9" in files.plan()
    assert "--score cqr_sides" in files.answer("north", "--score", "cqr", code=3)
    for name in files.names:
        files.answer(name, "--score", "cqr_sides")
    files.aggregate("--keys", "coordinator.key")
    released = Release.load("released.json")
    assert isinstance(released, federated.FederatedSides)
    assert "both sides together" in run("show", "plan.json")
    run("predict", "north.csv", "--calibration", "released.json", "--prediction", "q_low,q_high", "--out", "sets.csv")
    with (tmp_path / "sets.csv").open(newline="") as file:
        assert len(list(csv.reader(file))) == 201
    verified = run(
        "verify", "released.json", "--coordinator", "public/coordinator.json", "--answer", "north-answer.json"
    )
    assert "signed by 'coordinator'" in verified
    assert "the answer of 'north' counts" in verified
    conditions = ("--signed", "--coverage-at-least", 0.8, "--epsilon-at-most", 8)
    assert "signed by 'coordinator'" in run(
        "verify", "released.json", "--signer", "public/coordinator.json", *conditions
    )
