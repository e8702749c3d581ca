"""Both sides of an interval from one message of each silo: methods, channels, privacy loss, files and the command."""

import numpy as np
import pytest

from confide import federated
from confide.candidates import Candidates
from confide.errors import InputError
from confide.federated import Refusal
from confide.scores import interval_score
from tests.exact import histograms, mechanism_law, replaced, worst_log_ratio
from tests.federated.helpers import Federation
from tests.refused import refused

SIDES = ("cqr_low", "cqr_high")
ENDS = np.tile([-1.0, 1.0], (200, 1))
TARGETS = [np.random.default_rng(i).normal(size=200) for i in range(5)]
RECORDS = [{side: interval_score(ENDS, truth, side) for side in SIDES} for truth in TARGETS]
FEW = Candidates.of(np.linspace(-2, 2, 41))


@pytest.fixture
def five(tmp_path):
    made = Federation(tmp_path, [records["cqr_low"] for records in RECORDS], budget=99.0)
    made.scores = RECORDS
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


def test_what_a_silo_must_give(five):
    text = federated.plan(five.silos, 0.2, 8.0, by="side", candidates=FEW, method="private-qq").sign(five.coordinator)
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
        federated.plan(five.silos, 0.2, 8.0, by="side", score="cqr")
