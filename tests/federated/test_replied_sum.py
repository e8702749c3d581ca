"""fedcp2-qq-sum: what the sum of one-hot replies reveals, its privacy, its cost, and the effect of a Byzantine silo."""

import itertools

import numpy as np
import pytest

from confide import federated
from confide.candidates import Candidates
from confide.errors import InputError
from confide.federated import FederatedRelease, Refusal
from confide.federated.protocols import FedCP2QQ
from confide.federated.protocols.channels import open_sum
from tests.federated.helpers import Federation, kth_reply
from tests.refused import Refused, refused

FEW = Candidates.unit(11)
SUM = {"alpha": 0.2, "epsilon": 10.0, "method": "fedcp2-qq-sum", "candidates": FEW}


@pytest.fixture
def five(tmp_path):
    return Federation.uniform(tmp_path, *[60] * 5, seed=1, budget=100.0)


def reading(text):
    return federated.read_plan(text)


def says(value):
    """Replace the draw: every silo replies with the candidate of this index."""
    return lambda self, terms, own, counts: value if isinstance(value, int) else value[own]


def test_from_plan_to_verified_calibration(five):
    text = five.plan(**SUM)
    plan, alone = reading(text), reading(five.plan(**SUM | {"method": "fedcp2-qq"}))
    assert plan.protocol.targets == alone.protocol.targets  # the same ranks, the same k, the same guarantee
    assert plan.certify() == alone.certify()
    assert plan.promises()[5] == alone.promises()[5]
    assert list(plan.promises()) == [5]
    assert plan.loss(0) == plan.privacy().epsilon == 10.0
    answers = five.answers(text)
    released = federated.aggregate(text, answers, keys=five.coordinator)
    assert (released.coverage, released.privacy.epsilon, released[None].k) == (0.8, 10.0, plan.protocol.published_k)
    assert released.threshold in plan.candidates.values
    back = FederatedRelease.from_json(released.to_json())
    assert back == released
    assert federated.verify(back, five.coordinator.public(), answers).holds
    assert all(isinstance(output, str) for output in back.sent.values())  # digests hide which silo replied what
    assert federated.replies(text, answers) == {}
    with refused(InputError, "plan"):
        federated.own_share(released, answers[0])
    assert five.ledgers[0].ledger.entry(plan.session).release == five.answer(0, text) == answers[0]
    assert five.ledgers[0].spent == 10.0


@pytest.mark.slow
def test_what_opens_is_how_many_replied_what(five, monkeypatch):
    monkeypatch.setattr(FedCP2QQ, "reply", says([3, 9, 3, 10, 7]))
    text = five.plan(**SUM)
    plan, answers = reading(text), five.answers(text)
    vectors = [federated.read_answer(plan, one).reply for one in answers]
    assert open_sum(vectors, 32).tolist() == [0, 0, 0, 2, 0, 0, 0, 1, 0, 1, 1]
    assert open_sum(vectors[:4], 32).tolist() != [0, 0, 0, 2, 0, 0, 0, 0, 0, 1, 1]  # one is missing: no sum
    released = federated.aggregate(text, answers)
    assert released.threshold == FEW.values[[3, 3, 7, 9, 10][released[None].k - 1]]


def test_every_histogram_gives_the_kth_smallest_reply(five):
    few = Candidates.unit(4)
    made = federated.plan(five.silos, 0.3, 12.0, method="fedcp2-qq-sum", candidates=few)
    k = made.certify()[0]
    assert 1 <= k <= 5
    for replies in itertools.combinations_with_replacement(range(4), 5):
        total = np.bincount(replies, minlength=4)
        made.protocol.check_total(made.first, range(5), total)
        assert made.protocol.read_off(made, total, k) == few.values[kth_reply(replies, k, 4)]


@pytest.mark.slow(unless="lie1")
@pytest.mark.parametrize("lie", [[1, 1], [0, 0], [2, -1], [-5, 6], [900, -899]])
def test_a_vector_that_is_no_reply(five, monkeypatch, lie):
    """A negative count that another silo's reply offsets is not detected, as the documentation states."""
    honest = FedCP2QQ.draw

    def draw(self, terms, own, counts):
        return np.array([*lie, *[0] * 9]) if own == 0 else honest(self, terms, own, counts)

    monkeypatch.setattr(FedCP2QQ, "draw", draw)
    monkeypatch.setattr(FedCP2QQ, "reply", says([0, 1, 3, 3, 3]))
    text = five.plan(**SUM)
    answers = five.answers(text)
    if lie == [2, -1]:  # cancels the reply of silo 1
        assert federated.aggregate(text, answers).threshold in FEW.values[[0, 3]]
        return
    with refused(Refusal, "implausible"):
        federated.aggregate(text, answers)


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"liars": 1}, "liars"),
        ({"epsilon": 0.2}, "silos"),
        ({"population": "mixture"}, "population"),
        ({"method": "private-qq", "colluding": 1}, "colluding"),
        ({"dropouts": 1, "colluding": 1}, "dropouts"),
    ],
)
def test_what_cannot_be_kept_is_refused(five, options, argument):
    with refused(InputError, argument):
        five.plan(**SUM | options)


def test_a_policy_does_not_allow_it_by_default(five):
    signer, allowed = five.coordinator.public().signing, ("fedcp2-qq-sum",)
    good = {"plan": five.plan(**SUM), "scores": five.scores[0], "keys": five.keys[0], "ledger": five.ledgers[0]}
    for policy in (
        federated.Policy(signer, 99.0, 99.0),
        federated.Policy(signer, 99.0, 99.0, methods=allowed),  # the policy pins no peers
        federated.Policy(signer, 99.0, 9.0, methods=allowed, peers=five.policy.peers),
    ):
        Refused(federated.answer, good, {"policy": policy}, "not-allowed", kind=Refusal).check()
    assert five.ledgers[0].spent == 0.0
