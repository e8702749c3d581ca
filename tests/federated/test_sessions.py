"""Older copies of a ledger, and other ledgers: a checkpoint next to a key file records the ledger's latest state."""

import json
import os
import shutil
import sys

import pytest

from confide import federated
from confide.errors import FormatError, LedgerError
from confide.federated import Refusal
from confide.federated.checkpoint import KIND, store_checkpoint
from confide.federated.keys import CHECKPOINT, SiloKeys
from confide.ledger import Cost, Ledger
from confide.ledger.location import MissingRecordsError
from tests.federated.helpers import Federation
from tests.refused import refused


def from_files(federation, folder):
    """Save and load the keys of all silos, so that a checkpoint is stored next to each key file."""
    for i, keys in enumerate(federation.keys):
        keys.save(folder / f"{i}.key")
        federation.keys[i] = SiloKeys.load(folder / f"{i}.key")
        assert federation.keys[i] == keys
    return federation


@pytest.fixture
def three(tmp_path):
    return from_files(Federation.uniform(tmp_path, *[300] * 3), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["private-qq", "secure-sum"])
def test_a_restored_ledger_answers_nothing(three, tmp_path, method):
    """A restored ledger refuses new plans, and lost ones, where a second message would use the same masks."""
    before = three.plan(method=method)
    kept = three.answer(0, before)
    shutil.copy(tmp_path / "0.db", tmp_path / "copy.db")
    plan = three.plan(method=method)
    first = three.answer(0, plan)
    assert three.answer(0, plan) == first
    newest = (tmp_path / "0.db").read_bytes()
    shutil.copy(tmp_path / "copy.db", tmp_path / "0.db")
    with refused(MissingRecordsError, "ledger"):
        three.answer(0, plan)
    three.ledgers[0] = federated.SiloLedger(tmp_path / "0.db")  # as the next process opens it
    scores, three.scores[0] = three.scores[0], 1 - three.scores[0] / 2
    for forgot_or_new in (plan, three.plan(method=method)):
        with refused(LedgerError, "ledger"):
            three.answer(0, forgot_or_new)
    assert three.ledgers[0].spent == 2.0  # as the copy states it: no new charge
    three.scores[0] = scores
    assert three.answer(0, before) == kept  # a stored answer may be returned again
    (tmp_path / "0.db").write_bytes(newest)
    three.ledgers[0] = federated.SiloLedger(tmp_path / "0.db")
    assert three.answer(0, plan) == first
    three.answer(0, three.plan(method=method))


@pytest.mark.slow
def test_a_copy_that_went_on_answers_nothing(three, tmp_path):
    """The copy has more records than the checkpoint lists, and different ones."""
    shutil.copy(tmp_path / "0.db", tmp_path / "copy.db")
    plan = three.plan()
    three.answer(0, plan)
    three.ledgers[0] = federated.SiloLedger(tmp_path / "copy.db")
    for _ in range(9):
        three.ledgers[0].ledger.charge("others", Cost(0.1, "add_remove", "m"), "0" * 64)
    with refused(LedgerError, "ledger"):
        three.answer(0, plan)
    assert three.ledgers[0].spent == 0


def test_another_ledger_answers_nothing(three, tmp_path):
    plan = three.plan()
    three.answer(0, plan)
    three.ledgers[0] = federated.SiloLedger(tmp_path / "another.db")
    with refused(LedgerError, "ledger"):
        three.answer(0, plan)
    assert three.ledgers[0].spent == 0


def test_two_ledgers_at_one_moment_sign_one_message(three, tmp_path, monkeypatch):
    """Two ledgers find no checkpoint and charge; one of them continues."""
    plan, charge, first = three.plan(method="secure-sum"), Ledger.charge_all, []
    other = federated.SiloLedger(tmp_path / "another.db")

    def both(self, *arguments, **options):
        if not first:
            first.append(None)
            first.append(federated.answer(plan, three.scores[0], three.keys[0], three.policy, other))
        return charge(self, *arguments, **options)

    monkeypatch.setattr(Ledger, "charge_all", both)
    with refused(LedgerError, "ledger"):
        three.answer(0, plan)
    monkeypatch.undo()
    assert other.ledger.entry(federated.read_plan(plan).session).release == first[1]
    assert three.ledgers[0].spent == 2.0  # charged, and nothing drawn
    with refused(Refusal, "interrupted"):
        three.answer(0, plan)


@pytest.mark.slow
def test_keys_and_ledger_restored_together_are_noticed_by_another_machine(three, tmp_path):
    """No file next to the keys can detect this; a later checkpoint on another machine can."""
    three.answer(0, three.plan())
    backup, there = tmp_path / "backup", tmp_path / "elsewhere.json"
    backup.mkdir()
    for name in ("0.db", "0.key", f"0.key{CHECKPOINT}"):
        shutil.copy(tmp_path / name, backup)
    plan = three.plan()
    three.answer(0, plan)
    store_checkpoint(Ledger(tmp_path / "0.db"), there)
    assert store_checkpoint(Ledger(tmp_path / "0.db"), tmp_path / f"0.key{CHECKPOINT}") == store_checkpoint(
        Ledger(tmp_path / "0.db"), there
    )
    for name in ("0.db", "0.key", f"0.key{CHECKPOINT}"):
        shutil.copy(backup / name, tmp_path)
    three.keys[0], three.ledgers[0] = SiloKeys.load(tmp_path / "0.key"), federated.SiloLedger(tmp_path / "0.db")
    with refused(MissingRecordsError, "ledger"):
        store_checkpoint(Ledger(tmp_path / "0.db"), there)
    three.answer(0, plan)  # a second message, which is why another machine should store a checkpoint
    assert three.ledgers[0].spent == 4.0


def test_the_checkpoint_is_no_secret(three, tmp_path):
    three.answer(0, three.plan())
    number, seal = Ledger(tmp_path / "0.db").checkpoint((0, ""), "")
    path = tmp_path / f"0.key{CHECKPOINT}"
    assert json.loads(path.read_text()) == {"kind": KIND, "schema": 1, "number": number, "seal": seal}
    assert number == 1
    path.write_text("damaged")
    with pytest.raises(FormatError):
        three.answer(0, three.plan())
    assert three.ledgers[0].spent == 2.0


def read_only(monkeypatch, when=lambda call: True):
    """Make writing next to the keys fail, at the calls that `when` selects."""
    real, calls = os.open, []

    def refuse(path, flags, *rest, **named):
        if str(path).endswith(f"{CHECKPOINT}.lock"):
            calls.append(path)
            if when(len(calls)):
                raise PermissionError(13, "Permission denied")
        return real(path, flags, *rest, **named)

    monkeypatch.setattr(os, "open", refuse)


def test_keys_in_an_unwritable_folder_sign_and_charge_nothing(three, monkeypatch):
    plan = three.plan()
    read_only(monkeypatch)
    with refused(Refusal, "internal"):
        three.answer(0, plan)
    assert three.ledgers[0].spent == 0
    monkeypatch.undo()
    first = three.answer(0, plan)
    read_only(monkeypatch)
    assert three.answer(0, plan) == first  # a stored answer may be returned again


def test_a_checkpoint_that_cannot_be_kept_after_the_charge_leaves_no_answer(three, monkeypatch):
    plan = three.plan()
    read_only(monkeypatch, lambda call: call == 2)
    with refused(Refusal, "internal"):
        three.answer(0, plan)
    assert three.ledgers[0].spent == 2.0
    with refused(Refusal, "interrupted"):
        three.answer(0, plan)


def test_a_checkpoint_is_on_disk_with_its_file(three, tmp_path, monkeypatch):
    """The new file is synced, then replaces the old one, and then the folder is synced, in this order."""
    synced, real = [], os.fsync

    def fsync(handle):
        synced.append(os.fstat(handle).st_ino)
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    store_checkpoint(three.ledgers[0].ledger, tmp_path / "north.key.checkpoint")
    assert synced == [(tmp_path / "north.key.checkpoint").stat().st_ino, tmp_path.stat().st_ino]


def test_the_keys_remember_before_anything_is_drawn(three, tmp_path, monkeypatch):
    """An interrupted draw leaves a checkpoint that contains its charge."""
    plan = three.plan()
    shutil.copy(tmp_path / "0.db", tmp_path / "copy.db")
    monkeypatch.setattr(sys.modules["confide.federated.answer"], "write_time", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        three.answer(0, plan)
    monkeypatch.undo()
    three.ledgers[0] = federated.SiloLedger(tmp_path / "copy.db")
    with refused(LedgerError, "ledger"):
        three.answer(0, plan)
