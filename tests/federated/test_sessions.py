"""A ledger that has forgotten, or another one: keys from a file know what they have served."""

import os
import shutil

import numpy as np
import pytest

from confide import federated
from confide.federated.keys import SiloKeys
from confide.federated.sessions import ENDING
from tests.federated.helpers import Federation


def from_files(federation, folder):
    """The same federation, whose silos read their keys from files."""
    for i, keys in enumerate(federation.keys):
        keys.save(folder / f"{i}.key")
        federation.keys[i] = SiloKeys.load(folder / f"{i}.key")
        assert federation.keys[i] == keys
    return federation


@pytest.fixture
def three(tmp_path):
    rng = np.random.default_rng(0)
    return from_files(Federation(tmp_path, [rng.random(300) for _ in range(3)]), tmp_path)


def forgotten():
    return pytest.raises(federated.Refusal, match=r"^session-used: these keys have served this session")


@pytest.mark.some(1)
@pytest.mark.parametrize("method", ["private-qq", "secure-sum"])
def test_a_restored_ledger_asks_for_a_new_plan(three, tmp_path, method):
    three.answer(0, three.plan(method=method))
    shutil.copy(tmp_path / "0.db", tmp_path / "copy.db")
    plan = three.plan(method=method)
    first = three.answer(0, plan)
    assert three.answer(0, plan) == first
    shutil.copy(tmp_path / "copy.db", tmp_path / "0.db")
    three.scores[0] = 1 - three.scores[0] / 2
    with forgotten():
        three.answer(0, plan)
    assert three.ledgers[0].spent == 2.0  # as the copy has it: nothing new was charged
    three.ledgers[0] = federated.SiloLedger(tmp_path / "another.db")
    with forgotten():
        three.answer(0, plan)
    three.answer(0, three.plan(method=method))  # a new session is served


def test_a_charge_that_is_refused_is_no_session(three, tmp_path):
    plan = three.plan(epsilon=11.0)
    with pytest.raises(federated.Refusal, match=r"not-allowed|budget-spent"):
        three.answer(0, plan)
    assert not (tmp_path / f"0.key{ENDING}").exists()


def test_the_list_is_no_secret_and_its_owners(three, tmp_path):
    plan = three.plan()
    three.answer(0, plan)
    read, _ = federated.FederatedPlan.read(plan)
    path = tmp_path / f"0.key{ENDING}"
    assert path.read_text() == f"{read.session} {read.digest}\n"
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(federated.Refusal, match=r"^internal"):
        three.answer(0, three.plan())
    assert three.ledgers[0].spent == 2.0


def test_keys_that_cannot_be_written_beside_say_so(three, tmp_path, monkeypatch):
    real = os.open

    def read_only(path, flags, *rest, **named):
        if str(path).endswith(ENDING):
            raise PermissionError(13, "Permission denied")
        return real(path, flags, *rest, **named)

    monkeypatch.setattr(os, "open", read_only)
    with pytest.warns(UserWarning, match="a restored ledger would not be noticed"):
        three.answer(0, three.plan())


def test_an_opener_with_a_restored_ledger_opens_no_second_list(tmp_path):
    rng = np.random.default_rng(0)
    five = from_files(Federation(tmp_path, [rng.random(200) for _ in range(5)]), tmp_path)
    plan = five.plan(epsilon=5.0, method="secure-sum", dropouts=1)
    answers = five.answers(plan)
    whole, part = (federated.openings(plan, some, five.coordinator) for some in (answers, answers[:4]))
    shutil.copy(tmp_path / "0.db", tmp_path / "copy.db")
    first = federated.open_part(plan, whole["silo 0"], five.keys[0], five.policy, five.ledgers[0])
    shutil.copy(tmp_path / "copy.db", tmp_path / "0.db")
    with forgotten():
        federated.open_part(plan, part["silo 0"], five.keys[0], five.policy, five.ledgers[0])
    assert federated.open_part(plan, whole["silo 0"], five.keys[0], five.policy, five.ledgers[0]) == first
