"""Both sides of an interval from one message of each silo: methods, channels, privacy loss, files and the command."""

from fractions import Fraction

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
from tests.federated.helpers import Federation
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


@pytest.mark.slow
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
