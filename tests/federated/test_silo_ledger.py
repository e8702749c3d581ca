"""A silo's budget ledger charges first, never twice and never too little, also after interruptions."""

import dataclasses
import math
import os
import signal
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import confide
from confide import federated
from confide.errors import InputError
from confide.federated import Refusal
from confide.federated.answers import answer
from confide.ledger import Cost, Ledger
from tests.builders import slow
from tests.federated.helpers import PAID_STEPS, Federation, forked, killed
from tests.refused import refused


@pytest.fixture
def three(tmp_path):
    return Federation.uniform(tmp_path, *[200] * 3, budget=5.0)


@pytest.mark.long
def test_other_releases_about_the_same_records_count(three):
    """`confide.calibrate` and answers share one account and its limit."""
    silo = three.ledgers[0]
    ledger = Ledger(silo.path, limit=5.0)
    confide.calibrate(three.scores[0], 0.1, 4.0, neighbors="replace_one", ledger=ledger, dataset=silo.dataset)
    with refused(Refusal, "budget-spent"):
        three.answer(0, three.plan(epsilon=2.0))
    three.answer(0, three.plan(epsilon=1.0))
    assert silo.spent == 5.0
    with pytest.raises(confide.BudgetError):
        confide.calibrate(three.scores[0], 0.2, 0.5, neighbors="replace_one", ledger=ledger, dataset=silo.dataset)


@pytest.mark.slow
def test_the_budget_of_a_policy_is_the_policys(three):
    """A new budget holds from the next answer on; the ledger's own limit is separate."""

    def budget(most):
        three.policy = dataclasses.replace(three.policy, budget=most, per_plan=most)

    budget(2.0)
    three.answer(0, three.plan(epsilon=2.0))
    assert Ledger(three.ledgers[0].path).account("calibration records").limit is None
    with refused(Refusal, "budget-spent"):
        three.answer(0, three.plan(epsilon=1.0))
    budget(10.0)
    three.answer(0, three.plan(epsilon=2.0))
    budget(3.0)
    with refused(Refusal, "budget-spent"):
        three.answer(0, three.plan(epsilon=1.0))
    Ledger(three.ledgers[0].path).set_limit("calibration records", 4.5, neighbors="replace_one")
    budget(10.0)
    with refused(Refusal, "budget-spent"):
        three.answer(0, three.plan(epsilon=1.0))
    assert three.ledgers[0].spent == 4.0


RELATIONS = {
    "secret sizes, replace_one": (True, "replace_one"),
    "secret sizes, add_remove": (True, "add_remove"),
    "secret sizes, a new account": (True, None),
    "public sizes, replace_one": (False, "replace_one"),
    "public sizes, a new account": (False, None),
}


@pytest.mark.parametrize("case", ["public sizes, a new account", *slow(list(RELATIONS)[:-1])])
def test_the_policy_allows_what_will_be_charged(tmp_path, case):
    """`per_plan` bounds the charge under the ledger's relation: an equal charge is allowed, a larger one refused."""
    secret, relation = RELATIONS[case]
    silos = Federation(tmp_path, [np.linspace(0, 1, 200)] * 3, secret=secret)
    plan = silos.plan(epsilon=2.0, **({"n_min": 50, "n_typical": 400} if secret else {}))
    read = federated.read_plan(plan)
    larger = secret and relation == "replace_one"
    charged = read.first.mechanism(0).replace_one if larger else read.loss(0)
    assert (charged > read.loss(0)) == larger
    if relation is not None:
        Ledger(silos.ledgers[0].path).set_limit("calibration records", 9.0, neighbors=relation)
    silos.policy = dataclasses.replace(silos.policy, per_plan=math.nextafter(charged, 0))
    with refused(Refusal, "not-allowed"):
        silos.answer(0, plan)
    assert silos.ledgers[0].spent == 0
    silos.policy = dataclasses.replace(silos.policy, per_plan=charged)
    silos.answer(0, plan)
    assert silos.ledgers[0].spent == charged
    (entry,) = Ledger(silos.ledgers[0].path).account("calibration records").entries
    assert (entry.cost.mechanism, entry.cost.neighbors) == (
        "private-qq", relation or ("add_remove" if secret else "replace_one"),
    )  # fmt: skip


def test_an_unauthorised_client_learns_nothing_about_the_account(three):
    """The signer is checked before the account's relation, so that only a pinned coordinator can learn the relation."""
    Ledger(three.ledgers[0].path).set_limit("calibration records", 9.0, neighbors="add_remove")
    three.coordinator = federated.SiloKeys.generate("stranger")
    with refused(Refusal, "coordinator-unknown"):
        three.answer(0, three.plan())


def test_public_sizes_are_refused_on_an_account_that_keeps_them_secret(three):
    Ledger(three.ledgers[0].path).set_limit("calibration records", 9.0, neighbors="add_remove")
    with refused(InputError, "neighbors"):
        three.answer(0, three.plan())
    assert three.ledgers[0].spent == 0


def test_session_is_never_used_twice(three):
    plan = federated.read_plan(three.plan(method="secure-sum"))
    three.answer(0, plan.sign(three.coordinator))
    twin = dataclasses.replace(plan, closes="2031-01-01T00:00:00Z").sign(three.coordinator)
    with refused(Refusal, "session-used"):
        three.answer(0, twin)
    other = federated.SiloLedger(three.ledgers[0].path, "other records")  # nor for other records of the ledger
    with refused(Refusal, "session-used"):
        answer(twin, three.scores[0], three.keys[0], three.policy, other)
    assert three.ledgers[0].spent == pytest.approx(2.0)


def test_a_repeated_request_with_other_data_is_reported(three):
    plan = three.plan()
    first = three.answer(0, plan)
    Ledger(three.ledgers[0].path).set_limit("calibration records", 1.0, neighbors="replace_one")  # which is spent
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert three.answer(0, plan) == first
        assert answer(plan, three.scores[0][::-1], three.keys[0], three.policy, three.ledgers[0]) == first
    others = 1 - three.scores[0] / 2
    for scores in (others, others[:5], [np.nan], ["a"]):
        with pytest.warns(confide.errors.OtherDataWarning) as caught:
            assert answer(plan, scores, three.keys[0], three.policy, three.ledgers[0]) == first
        assert caught[0].filename == __file__
    assert three.ledgers[0].spent == pytest.approx(2.0)


def test_a_token_is_taken_once(tmp_path):
    ledger, cost = Ledger(tmp_path / "budget.db"), Cost(1.0, "replace_one", "any")
    ledger.charge("a", cost, "0" * 64, token="ab" * 16)
    for dataset in ("a", "b"):
        with refused(InputError, "token"):
            ledger.charge(dataset, cost, "1" * 64, token="ab" * 16)
    with refused(InputError, "token"):
        ledger.charge("a", cost, "1" * 64, token="a name")  # noqa: S106
    with pytest.raises(confide.BudgetError):
        ledger.charge("a", cost, "1" * 64, at_most=1.5)
    assert ledger.account("a").spent().epsilon == 1.0


def test_a_second_request_waits_for_the_first(three, monkeypatch):
    """Send a second request while the first one has charged and not answered: one message, one charge."""
    plan = three.plan()
    charged, found = threading.Event(), threading.Event()
    keep, hold = Ledger.attach_all, Ledger.lock

    def wait(self, *arguments):
        charged.set()
        assert found.wait(60)
        keep(self, *arguments)

    def look(self, token):
        if charged.is_set():
            found.set()
        return hold(self, token)

    monkeypatch.setattr(Ledger, "attach_all", wait)
    monkeypatch.setattr(Ledger, "lock", look)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(three.answer, 0, plan)
        try:
            assert charged.wait(60)
            second = three.answer(0, plan)
        finally:
            found.set()
    assert second == first.result()
    assert three.ledgers[0].spent == 2.0


@pytest.mark.slow
def test_a_second_process_is_notified_when_the_first_one_dies(three, monkeypatch):
    """A process is killed while another waits for it: its charge stays and has no answer."""
    plan = three.plan()
    three.answer(1, plan)  # load everything before the fork
    output, tell = os.pipe()
    hold = Ledger.lock

    def wait(*_):
        os.write(tell, b"1")
        threading.Event().wait(60)

    def answer_slowly():
        Ledger.attach_all = wait
        three.answer(0, plan)

    def look(self, token):
        monkeypatch.undo()
        os.kill(child, signal.SIGKILL)
        return hold(self, token)

    child = forked(answer_slowly)
    assert os.read(output, 1) == b"1"
    monkeypatch.setattr(Ledger, "lock", look)
    with refused(Refusal, "interrupted"):
        three.answer(0, plan)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
    assert three.ledgers[0].spent == 2.0


def test_where_there_are_no_file_locks_a_faster_process_is_noticed_by_its_charge(three, monkeypatch):
    """Two processes find no charge without a working lock; the ledger accepts the session once."""
    monkeypatch.setitem(sys.modules, "fcntl", None)
    plan, first, charge = three.plan(), [], Ledger.charge_all

    def slow(self, *arguments, **options):
        if not first:
            first.append(None)
            first.append(three.answer(0, plan))
        return charge(self, *arguments, **options)

    monkeypatch.setattr(Ledger, "charge_all", slow)
    assert three.answer(0, plan) == first[1]
    assert three.ledgers[0].spent == 2.0


@pytest.mark.slow
@pytest.mark.parametrize("step", ["made, not kept", *slow(step for step in PAID_STEPS if step != "made, not kept")])
def test_killed_between_charge_and_answer(three, step):
    """After SIGKILL in a separate process each draw has been charged, and is never repeated."""
    plan = three.plan()
    three.answer(1, plan)  # load everything before the fork
    killed(PAID_STEPS[step], lambda: three.answer(0, plan))
    silo = three.ledgers[0]
    paid = step not in ("before the charge", "charge written, not committed")
    assert silo.spent == (2.0 if paid else 0.0)
    entry = silo.ledger.entry(federated.read_plan(plan).session)
    kept = None if entry is None else entry.release
    assert (kept is not None) == (step == "kept, not returned")
    if paid and kept is None:
        with refused(Refusal, "interrupted"):
            three.answer(0, plan)
    else:
        assert three.answer(0, plan) == three.answer(0, plan)
        assert kept in (None, three.answer(0, plan))
    assert silo.spent == 2.0


@pytest.mark.slow
def test_secure_sum_with_a_missing_silo_goes_on_in_a_fresh_session(three):
    """No sum is revealed.

    The others answer a new plan at a new charge, because a late message would still reveal the old sum.
    """
    plan = three.plan(method="secure-sum")
    first = three.answers(plan, [0, 1])
    with refused(Refusal, "missing"):
        federated.aggregate(plan, first)
    old = federated.read_plan(plan)
    fresh = federated.plan(three.silos[:2], 0.1, 2.0, method="secure-sum", candidates=old.candidates)
    assert fresh.session != old.session
    reused = dataclasses.replace(fresh, session=old.session).sign(three.coordinator)
    with refused(Refusal, "session-used"):
        three.answer(0, reused)
    text = fresh.sign(three.coordinator)
    released = federated.aggregate(text, three.answers(text, [0, 1]))
    assert released.answered == ("silo 0", "silo 1")
    assert released.coverage >= 0.9
    assert [silo.spent for silo in three.ledgers] == pytest.approx([4.0, 4.0, 0.0])
    late = federated.aggregate(plan, [*first, three.answer(2, plan)])
    assert len(late.answered) == 3
