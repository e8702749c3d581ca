"""Older copies of a ledger, and other ledgers: a checkpoint next to a key file records the ledger's latest state."""

import json
import os
import shutil
import sys

import numpy as np
import pytest

from confide import federated
from confide.candidates import Candidates
from confide.errors import FormatError, LedgerError
from confide.federated import Refusal
from confide.federated.keys import CHECKPOINT, SiloKeys
from confide.federated.silo_ledger import KIND, store_checkpoint
from confide.ledger import Checkpoint, Cost, Ledger, MissingRecordsError
from tests.federated.helpers import Federation, altered, content_of
from tests.refused import refused


@pytest.fixture
def three(tmp_path):
    """Silos whose keys are in files, so that a checkpoint is stored next to each."""
    silos = Federation.uniform(tmp_path, *[300] * 3)
    for i, keys in enumerate(silos.keys):
        keys.save(tmp_path / f"{i}.key")
        silos.keys[i] = SiloKeys.load(tmp_path / f"{i}.key")
        assert silos.keys[i] == keys
    return silos


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


@pytest.mark.long
def test_a_copy_that_went_on_and_another_ledger_answer_nothing(three, tmp_path):
    """The copy has more records than the checkpoint lists, and different ones; the other ledger has none."""
    shutil.copy(tmp_path / "0.db", tmp_path / "copy.db")
    plan = three.plan()
    three.answer(0, plan)
    for name, others in (("copy.db", 9), ("another.db", 0)):
        three.ledgers[0] = federated.SiloLedger(tmp_path / name)
        for _ in range(others):
            three.ledgers[0].ledger.charge("others", Cost(0.1, "add_remove", "m"), "0" * 64)
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


@pytest.mark.long
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
    _, seal = Ledger(tmp_path / "0.db").checkpoint(Checkpoint(), "")
    path = tmp_path / f"0.key{CHECKPOINT}"
    assert json.loads(path.read_text()) == {"kind": KIND, "schema": 1, "number": 1, "seal": seal}
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


@pytest.mark.slow
def test_the_keys_remember_before_anything_is_drawn(three, tmp_path, monkeypatch):
    """An interrupted draw leaves a checkpoint that contains its charge."""
    plan = three.plan()
    shutil.copy(tmp_path / "0.db", tmp_path / "copy.db")
    monkeypatch.setattr(sys.modules["confide.federated.answers"], "write_time", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        three.answer(0, plan)
    monkeypatch.undo()
    three.ledgers[0] = federated.SiloLedger(tmp_path / "copy.db")
    with refused(LedgerError, "ledger"):
        three.answer(0, plan)


# Two copies of one key file: the public file or the keys name one ledger, and only that ledger answers

FEW = Candidates.unit(11)


@pytest.fixture
def copies(tmp_path):
    """Create three silos; the first one's keys are in two folders, as for the command line and for Flower."""
    three = Federation(tmp_path, [np.linspace(0, 0.5, 200)] * 3)
    for name in ("command-line", "flower"):
        (tmp_path / name).mkdir()
        three.keys[0].save(tmp_path / name / "keys.json")
    return three


def answers_of_both(copies, tmp_path, plan):
    """Yield the answers of the two copies about different records, each with its own ledger."""
    for name, scores in (("command-line", copies.scores[0]), ("flower", 1 - copies.scores[0])):
        keys = federated.SiloKeys.load(tmp_path / name / "keys.json")
        ledger = federated.SiloLedger(tmp_path / name / "budget.db")
        yield federated.answer(plan, scores, keys, copies.policy, ledger)


@pytest.mark.slow
def test_without_a_name_two_ledgers_answer_under_one_mask(copies, tmp_path):
    """Two answers under one mask reveal the difference of the records, up to noise of scale 1."""
    plan = copies.plan(method="secure-sum", epsilon=8.0, candidates=FEW)
    one, two = (np.array(content_of(text)["sent"], dtype=np.uint32) for text in answers_of_both(copies, tmp_path, plan))
    difference = (one - two).view(np.int32)
    assert max(abs(int(value)) for value in difference) < 1000  # has probability below 1e-6 for 32 random bits


@pytest.mark.slow(unless="keys")
@pytest.mark.parametrize("stated_by", ["public file", "keys"])
def test_the_other_ledger_is_refused(copies, tmp_path, stated_by):
    """Keys that name a ledger keep to it for an older public file that names none, and in copies of the key file."""
    identity = federated.SiloLedger(tmp_path / "command-line" / "budget.db").identity
    if stated_by == "public file":
        copies.silos[0] = copies.keys[0].public(200, ledger=identity)
    else:
        path = tmp_path / "command-line" / "keys.json"
        federated.SiloKeys.load(path).name_ledger(path, identity)
        shutil.copy(path, tmp_path / "flower" / "keys.json")
    plan = copies.plan(method="secure-sum", epsilon=8.0, candidates=FEW)
    assert (federated.read_plan(plan).silos[0].ledger is None) == (stated_by == "keys")
    both = answers_of_both(copies, tmp_path, plan)
    first = next(both)
    with refused(Refusal, "not-invited"):
        next(both)
    assert federated.SiloLedger(tmp_path / "flower" / "budget.db").spent == 0
    made = federated.aggregate(plan, [first, *copies.answers(plan, [1, 2])], keys=copies.coordinator)
    assert federated.verify(type(made).from_json(made.to_json()), copies.coordinator.public()).holds


def test_a_ledger_keeps_its_identity(tmp_path):
    ledger = Ledger(tmp_path / "a.db")
    first = ledger.identity()
    ledger.set_limit("patients", 1.0)
    assert Ledger(tmp_path / "a.db").identity() == first
    assert Ledger(tmp_path / "c.db").identity() != first
    assert first not in str(ledger.export())


def test_a_public_file_states_its_ledger_or_none(tmp_path):
    keys = federated.SiloKeys.generate("north")
    plain, named = keys.public(300), keys.public(300, ledger="0" * 64)
    assert plain.ledger is None
    for silo in (plain, named):
        assert federated.Silo.from_json(silo.to_json()) == silo
        assert silo.identity == keys.public_keys().identity
    with refused(Refusal, "altered"):
        federated.Silo.from_json(altered(named.to_json(), ledger=None))


def test_issued_anew_the_ledger_stays_named(tmp_path, run):
    """The ledger stays named when the public file is issued again, by command line or Python, with another size."""
    key, public = tmp_path / "north.key", tmp_path / "north.json"

    def issued(*words):
        run("federated", "public", "--keys", key, "--out", public, "--force", *words)
        return federated.Silo.from_json(public.read_text()).ledger

    run("federated", "keygen", "north", "--keys", key, "--public", public, "--ledger", tmp_path / "north.db")
    north, south = (federated.SiloLedger(tmp_path / f"{name}.db").identity for name in ("north", "south"))
    assert federated.Silo.from_json(public.read_text()).ledger == north
    assert issued("--size", 300) == north
    assert federated.SiloKeys.load(key).public(299).ledger == north
    assert issued("--ledger", tmp_path / "south.db") == issued() == south
    assert key.stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in tmp_path.glob("north.*")) == ["north.db", "north.json", "north.key"]


def test_keys_without_a_ledger_do_not_state_one(tmp_path):
    keys = federated.SiloKeys.generate("north")
    keys.save(tmp_path / "north.key")
    assert set(json.loads((tmp_path / "north.key").read_text())) == {"kind", "schema", "name", "signing", "agreement"}
    (tmp_path / "damaged.key").write_text((tmp_path / "north.key").read_text().replace("}", ', "ledger": "ab"}'))
    with refused(Refusal, "malformed"):
        federated.SiloKeys.load(tmp_path / "damaged.key")


def test_copies_of_everything_are_noticed_by_the_coordinator(copies, tmp_path):
    """No silo can detect this, because each copy of keys, checkpoint and ledger is consistent (docs/federated.md)."""
    for name in ("command-line", "flower"):
        shutil.copy(copies.ledgers[0].path, tmp_path / name / "budget.db")
    plan = copies.plan(method="secure-sum", epsilon=8.0, candidates=FEW)
    both = list(answers_of_both(copies, tmp_path, plan))
    with refused(Refusal, "duplicate"):
        federated.aggregate(plan, [*both, *copies.answers(plan, [1, 2])])
