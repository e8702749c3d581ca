"""A ledger that has forgotten, or another one: keys from a file know what they have served."""

import os
import shutil
import sys
from functools import partial

import numpy as np
import pytest

from confide import federated
from confide.errors import LedgerError
from confide.federated.keys import ENDING, SiloKeys, remember, served
from confide.federated.silo_ledger import OPENINGS
from confide.ledger import Ledger
from tests.federated.helpers import Federation, forked


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
    with pytest.raises(LedgerError, match="that this open ledger remembers: a backup was put back"):
        three.answer(0, plan)
    three.ledgers[0] = federated.SiloLedger(tmp_path / "0.db")  # as the next process opens it
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


def read_only(monkeypatch, when=lambda call: True):
    """The list of sessions cannot be opened for writing, at the calls that `when` says."""
    real, calls = os.open, []

    def refuse(path, flags, *rest, **named):
        if str(path).endswith(ENDING):
            calls.append(path)
            if when(len(calls)):
                raise PermissionError(13, "Permission denied")
        return real(path, flags, *rest, **named)

    monkeypatch.setattr(os, "open", refuse)


def test_keys_beside_which_nothing_can_be_kept_sign_nothing_and_charge_nothing(three, monkeypatch):
    plan = three.plan()
    read_only(monkeypatch)
    with pytest.raises(
        federated.Refusal, match=r"^internal: .* cannot be written \(Permission denied\).*nothing was charged"
    ):
        three.answer(0, plan)
    assert three.ledgers[0].spent == 0
    monkeypatch.undo()
    first = three.answer(0, plan)
    read_only(monkeypatch)
    assert three.answer(0, plan) == first  # what has left may leave again


def test_a_session_that_cannot_be_kept_after_the_charge_leaves_no_answer(three, monkeypatch):
    plan = three.plan()
    read_only(monkeypatch, lambda call: call == 2)
    with pytest.raises(federated.Refusal, match=r"^internal: .*nothing was signed; what was charged stands"):
        three.answer(0, plan)
    assert three.ledgers[0].spent == 2.0
    with pytest.raises(federated.Refusal, match=r"^interrupted"):
        three.answer(0, plan)


def test_an_opener_beside_whose_keys_nothing_can_be_kept_opens_nothing(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    five = from_files(Federation(tmp_path, [rng.random(200) for _ in range(5)]), tmp_path)
    plan = five.plan(epsilon=5.0, method="secure-sum", dropouts=1)
    texts = federated.openings(plan, five.answers(plan), five.coordinator)
    read_only(monkeypatch)
    with pytest.raises(federated.Refusal, match=r"^internal: .* cannot be written"):
        federated.open_part(plan, texts["silo 0"], five.keys[0], five.policy, five.ledgers[0])
    assert not five.ledgers[0].has_opened(federated.FederatedPlan.read(plan)[0])


TORN = {
    "in the middle": "cc" * 16 + " dd",
    "in the token": "cc" * 8,
    "before its end": "cc" * 16 + " " + "dd" * 32,
    "to nothing but zeros": "\0" * 40,
}


@pytest.mark.parametrize("torn", TORN)
def test_a_torn_line_swallows_no_session(tmp_path, torn):
    """Power was lost while a line was written; what is remembered afterwards stands on a line of its own."""
    memory = tmp_path / f"north.key{ENDING}"
    remember(memory, "aa" * 16, "bb" * 32)
    with memory.open("a") as file:
        file.write(TORN[torn])
    remember(memory, "ee" * 16, "ff" * 32)
    whole = {"cc" * 16: "dd" * 32} if torn == "before its end" else {}
    assert served(memory) == {"aa" * 16: "bb" * 32, **whole, "ee" * 16: "ff" * 32}
    assert memory.read_text().splitlines()[-1] == "ee" * 16 + " " + "ff" * 32


def test_a_session_that_0_2_wrote_behind_a_torn_line_is_found(tmp_path):
    memory = tmp_path / f"north.key{ENDING}"
    memory.write_text("cc" * 16 + " dd" + "ee" * 16 + " " + "ff" * 32 + "\n")
    assert served(memory) == {"ee" * 16: "ff" * 32}


def test_an_opening_whose_line_was_torn_is_taken_up_again(tmp_path, monkeypatch):
    """The ledger knows the list; half a line beside the keys is no other list."""
    rng = np.random.default_rng(0)
    five = from_files(Federation(tmp_path, [rng.random(200) for _ in range(5)]), tmp_path)
    plan = five.plan(epsilon=5.0, method="secure-sum", dropouts=1)
    texts = federated.openings(plan, five.answers(plan), five.coordinator)
    memory = tmp_path / f"0.key{ENDING}"

    def torn(memory, token, request):
        with memory.open("a") as file:
            file.write(f"{token} {request[:10]}")
        raise KeyboardInterrupt

    monkeypatch.setattr(sys.modules["confide.federated.open_part"], "remember", torn)
    with pytest.raises(KeyboardInterrupt):
        federated.open_part(plan, texts["silo 0"], five.keys[0], five.policy, five.ledgers[0])
    monkeypatch.undo()
    part = federated.open_part(plan, texts["silo 0"], five.keys[0], five.policy, five.ledgers[0])
    assert federated.open_part(plan, texts["silo 0"], five.keys[0], five.policy, five.ledgers[0]) == part
    assert len(served(memory)) == 2


def test_sessions_are_on_disk_with_their_file(tmp_path, monkeypatch):
    """The line is synced, and then the folder, where the file may be new: in this order."""
    synced, real = [], os.fsync

    def fsync(handle):
        synced.append(os.fstat(handle).st_ino)
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    memory = tmp_path / f"north.key{ENDING}"
    remember(memory, "aa" * 16, "bb" * 32)
    assert synced == [memory.stat().st_ino, tmp_path.stat().st_ino]


def test_an_opener_with_a_restored_ledger_opens_no_second_list(tmp_path):
    rng = np.random.default_rng(0)
    five = from_files(Federation(tmp_path, [rng.random(200) for _ in range(5)]), tmp_path)
    plan = five.plan(epsilon=5.0, method="secure-sum", dropouts=1)
    answers = five.answers(plan)
    whole, part = (federated.openings(plan, some, five.coordinator) for some in (answers, answers[:4]))
    shutil.copy(tmp_path / "0.db", tmp_path / "copy.db")
    first = federated.open_part(plan, whole["silo 0"], five.keys[0], five.policy, five.ledgers[0])
    shutil.copy(tmp_path / "copy.db", tmp_path / "0.db")
    five.ledgers[0] = federated.SiloLedger(tmp_path / "0.db")  # as the next process opens it
    with forgotten():
        federated.open_part(plan, part["silo 0"], five.keys[0], five.policy, five.ledgers[0])
    assert federated.open_part(plan, whole["silo 0"], five.keys[0], five.policy, five.ledgers[0]) == first


@pytest.mark.slow_cases("one list")
@pytest.mark.parametrize("lists", ["two lists", "one list"])
def test_two_processes_open_at_once(tmp_path, lists):
    """Both have found that no list was opened: one of two lists is opened, and of one list both have the part."""
    rng = np.random.default_rng(0)
    five = from_files(Federation(tmp_path, [rng.random(200) for _ in range(5)]), tmp_path)
    plan = five.plan(epsilon=5.0, method="secure-sum", dropouts=1)
    answers = five.answers(plan)
    counted = (answers, answers[:4]) if lists == "two lists" else (answers, answers)
    texts = [federated.openings(plan, some, five.coordinator)["silo 0"] for some in counted]
    ready, tell = os.pipe()
    wait, go_on = os.pipe()

    def opened(text, path):
        def both_are_here(*_):
            os.write(tell, b"1")
            os.read(wait, 1)

        sys.modules["confide.federated.open_part"].refuse_forgotten = both_are_here
        try:
            path.write_text(federated.open_part(plan, text, five.keys[0], five.policy, five.ledgers[0]))
        except federated.Refusal as refusal:
            path.write_text(refusal.code)

    paths = [tmp_path / "first", tmp_path / "second"]
    children = [forked(partial(opened, text, path)) for text, path in zip(texts, paths, strict=True)]
    assert os.read(ready, 1) + os.read(ready, 1) == b"11"
    os.write(go_on, b"22")
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]
    found = [path.read_text() for path in paths]
    (entry,) = Ledger(five.ledgers[0].path).account(OPENINGS).entries
    if lists == "two lists":
        assert sorted(found, key=len) == ["session-used", entry.release]
    else:
        assert found == [entry.release, entry.release]
    assert len(served(tmp_path / f"0.key{ENDING}")) == 2  # the answer and the list
