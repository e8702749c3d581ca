"""Moving a ledger: an interruption at any step leaves at most one ledger that can be charged."""

import copy
import itertools
import json
import pickle
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import confide
from confide.errors import ConfideError, FormatError, InputError, LedgerError
from confide.ledger import Cost, Ledger, check_head, move, postgres_store, request_digest, store
from confide.ledger import stores as storing
from confide.ledger.state import MissingRecordsError
from confide.ledger.store import Store
from confide.support import OutputExistsError
from tests.ledger.servers import JOBS, OFFICERS, OTHER_JOBS
from tests.ledger.test_server import FORBIDDEN
from tests.refused import refused

COST = Cost(1.0, "add_remove", "slopes")
DIGEST = request_digest({"a": 1})
SCORES = np.random.default_rng(0).random(1000)
SAMPLE = Path(__file__).parent / "samples" / "0.2" / "budget.ledger"


@pytest.fixture
def old(tmp_path):
    ledger = Ledger(tmp_path / "budget.db", limit=10.0, by="audit team")
    ledger.attach(ledger.charge("patients", COST, DIGEST), "release", b"seen")
    ledger.charge("others", COST, DIGEST)
    return ledger


def test_to_a_server_and_back(old, on_server, tmp_path):
    """Times, charges, releases, key and seals are the same; each place but the last is closed, and can be read."""
    output, key, seals = old.export(), old.snapshot().key, old.hashes()
    assert move(old.path, on_server.url(), charge_roles=[JOBS]) == len(seals)
    there = Ledger(on_server.url(JOBS))
    assert (there.export(), there.snapshot().key, there.hashes()) == (output, key, seals)
    assert old.moved_to() == str(Ledger(on_server.url()).path)
    assert old.export() == output
    with refused(LedgerError, "ledger"):
        old.charge("patients", COST, DIGEST)
    assert there.find("patients", DIGEST, b"seen").release == "release"
    there.charge("patients", COST, DIGEST)

    back = tmp_path / "back.db"
    assert move(on_server.url(), back) == len(seals) + 1
    for role in (JOBS, None):
        with refused(LedgerError, "ledger"):
            Ledger(on_server.url(*filter(None, [role]))).charge("patients", COST, DIGEST)
    new = Ledger(back)
    assert new.hashes()[: len(seals)] == seals
    assert [entry.by for entry in new.account("patients").entries] == ["audit team", JOBS]
    new.charge("patients", COST, DIGEST)
    assert Ledger(on_server.url(OFFICERS)).moved_to() == str(back)


def test_a_ledger_of_0_2_moves(on_server, tmp_path):
    old = shutil.copy(SAMPLE, tmp_path)
    output = Ledger(old).export()
    move(old, on_server.url())
    assert Ledger(on_server.url()).export() == output
    Ledger(on_server.url()).charge("patients", Cost(0.0, "add_remove", "slopes"), DIGEST)


def test_the_same_data_are_known_in_the_new_place(old, on_server):
    first = confide.calibrate(SCORES, 0.1, 1.0, ledger=old, dataset="patients")
    move(old.path, on_server.url())
    with pytest.warns(confide.EarlierReleaseWarning):
        assert confide.calibrate(SCORES, 0.1, 1.0, ledger=Ledger(on_server.url()), dataset="patients") == first


def test_moves_that_are_refused(old, tmp_path):
    full = Ledger(tmp_path / "full.db")
    full.charge("patients", COST, DIGEST)
    with refused(OutputExistsError, "output"):
        move(old.path, full.path)
    with refused(InputError, "target"):
        move(old.path, old.path)
    with refused(InputError, "charge_roles"):
        move(old.path, tmp_path / "new.db", charge_roles=["jobs"])
    with refused(LedgerError, "ledger"):
        move(old.path, tmp_path / "none" / "new.db")
    old.charge("patients", COST, DIGEST)  # none of that closed it
    move(old.path, tmp_path / "new.db")
    with refused(LedgerError, "ledger"):
        move(old.path, tmp_path / "newer.db")
    assert move(old.path, tmp_path / "new.db") == len(old.hashes()) - 1  # it is there already


def test_servers_that_are_refused(old, on_server):
    Ledger(on_server.url(JOBS)).charge("patients", COST, DIGEST)
    with refused(InputError, "ledger"):
        move(old.path, on_server.url())
    with refused(LedgerError, "ledger"):
        move(old.path, on_server.url(OTHER_JOBS))
    for role, _says in ((OFFICERS, "may read and not charge"), (JOBS, "moves are the owner's")):
        with refused(LedgerError, "ledger"):
            move(on_server.url(role), old.path.with_name("new.db"))
    assert not old.path.with_name("new.db").exists()
    old.charge("patients", COST, DIGEST)


class StopError(Exception):
    pass


def stop_at(monkeypatch, step):
    """Stop before the given step of a move: where a row is put, the source is closed or committed, the target ends."""
    steps = itertools.count()

    def counted(owner, name):
        whole = getattr(owner, name)

        def run(*arguments, **options):
            if next(steps) == step:
                raise StopError
            return whole(*arguments, **options)

        monkeypatch.setattr(owner, name, run)

    counted(storing, "_filled")
    counted(store, "_fill")
    counted(store, "to_disk")
    counted(store.Writer, "append")
    counted(postgres_store.Writer, "append")
    counted(postgres_store, "commit_ledger")
    return steps


def test_a_target_that_is_lost_is_filled_again(old, tmp_path):
    target = tmp_path / "moved.db"
    number = move(old.path, target)
    target.unlink()
    assert move(old.path, target) == number
    assert Ledger(target).accounts().keys() == {"patients", "others"}


@pytest.mark.parametrize("to_server", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_interrupted_at_every_step(old, to_server, request, tmp_path, monkeypatch):
    """At every step at most one of the two can be charged, and repeating the move completes it."""
    new_server = request.getfixturevalue("new_server_ledger") if to_server else None
    for step in itertools.count():
        source = tmp_path / f"{step}.db"
        shutil.copy(old.path, source)
        target = new_server().url() if to_server else tmp_path / f"{step}-moved.db"
        with monkeypatch.context() as patch:
            stop_at(patch, step)
            try:
                move(source, target)
                ended = True
            except StopError:
                ended = False
        live = [place for place in (source, target) if can_charge(place)]
        assert len(live) <= 1
        assert len(live) == 1 or not ended
        if live == [source]:
            assert Ledger(source).account("patients").spent().epsilon == 2.0
        move(source, target)
        assert not can_charge(source)
        assert Ledger(target).account("patients").spent().epsilon == (2.0 if live else 1.0)
        if ended:
            break
    assert step >= 3


def can_charge(place):
    """Whether a ledger with these accounts takes another charge."""
    try:
        ledger = Ledger(place, create=False)
        if not ledger.accounts():  # a server's empty ledger is not this one
            return False
        ledger.charge("patients", COST, DIGEST)
    except ConfideError:
        return False
    return True


def test_missing_charges_are_detected(old, tmp_path):
    """A restored backup is a valid ledger; a later stored head detects it."""
    head, backup = tmp_path / "head.json", tmp_path / "backup.db"
    assert check_head(old, head).number == len(old.hashes())
    shutil.copy(old.path, backup)
    old.charge("patients", COST, DIGEST)
    assert check_head(old, head) == (len(old.hashes()), old.hashes()[-1])
    assert json.loads(head.read_text())["seal"] == old.hashes()[-1]
    kept = head.read_text()
    shutil.copy(backup, old.path)
    anew = Ledger(old.path)
    with refused(MissingRecordsError, "ledger"):
        check_head(anew, head)
    anew.charge("patients", COST, DIGEST)  # as many records as before, and others
    anew.attach(anew.charge("patients", COST, DIGEST), "release")
    with refused(MissingRecordsError, "ledger"):
        check_head(anew, head)
    assert head.read_text() == kept


USES = {
    "an account": lambda ledger: ledger.account("patients"),
    "a charge": lambda ledger: ledger.charge("patients", COST, DIGEST),
    "a limit": lambda ledger: ledger.set_limit("patients", 1.0),
    "the release": lambda ledger: ledger.attach(ledger.token, "release"),
    "the page": str,
}


@pytest.mark.parametrize("since", ["nothing", "as many records"])
@pytest.mark.parametrize("use", USES)
def test_a_copy_that_is_put_back_under_an_open_ledger_is_refused(old, tmp_path, use, since):
    """An open ledger has its last record at every use, or raises an error."""
    shutil.copy(old.path, tmp_path / "backup.db")
    token = old.charge("patients", COST, DIGEST)
    object.__setattr__(old, "token", token)
    shutil.copy(tmp_path / "backup.db", old.path)
    if since == "as many records":
        Ledger(old.path).charge("patients", COST, DIGEST, token=token)
    for _ in range(2):
        with refused(MissingRecordsError, "ledger"):
            USES[use](old)
    assert len(Ledger(old.path).account("patients").entries) == (1 if since == "nothing" else 2)


def test_a_pickled_ledger_remembers_how_far_it_reached_and_nothing_else(old, tmp_path):
    shutil.copy(old.path, tmp_path / "backup.db")
    old.attach(old.charge("patients", COST, DIGEST), "what was released", b"seen")
    pickled = pickle.dumps(old)
    assert old.snapshot().key.encode() not in pickled
    assert b"what was released" not in pickled
    again = pickle.loads(pickled)  # noqa: S301
    assert again.accounts() == copy.deepcopy(again).accounts() == old.accounts()
    shutil.copy(tmp_path / "backup.db", old.path)
    for one in (again, copy.deepcopy(old)):
        with refused(MissingRecordsError, "ledger"):
            one.charge("patients", COST, DIGEST)


def test_only_new_entries_are_read_including_those_of_others(old, monkeypatch):
    read = []
    since = Store.since
    monkeypatch.setattr(Store, "since", lambda store, number: [read.append(number), since(store, number)][1])
    other = Ledger(old.path)
    old.charge("patients", COST, DIGEST)
    here = old.snapshot().head.number
    other.set_limit("patients", 9.0)
    assert other.accounts() == old.accounts() == Ledger(old.path).accounts()
    assert read[-3:] == [here, 0, here + 1]


def test_what_a_ledger_hands_out_is_not_what_it_remembers(old):
    before = old.accounts()
    old.records().clear()
    old.hashes().clear()
    old.charge("others", COST, DIGEST)
    assert old.accounts()["patients"] == before["patients"]
    assert old.records() == Ledger(old.path).records()


def test_what_was_read_under_others_writing_is_no_copy_of_before(old):
    """Threads that read and charge with one open ledger never cause errors."""
    with ThreadPoolExecutor(4) as pool:
        done = [pool.submit(old.charge, "patients", Cost(0.1, "add_remove", "m"), DIGEST) for _ in range(12)]
        read = [pool.submit(old.account, "patients") for _ in range(12)]
        for one in (*done, *read):
            one.result()
    assert len(old.account("patients").entries) == 13


@pytest.mark.parametrize(
    "content",
    [
        "{}", "text", '{"kind": "confide.ledger-head", "schema": 1, "number": -1, "seal": ""}',
        '{"kind": "confide.ledger-head", "schema": 1, "number": 2, "seal": "00"}',
        '{"kind": "confide.ledger-head", "schema": 2, "number": 0, "seal": ""}',
        '{"kind": "confide.ledger-head", "schema": 1, "number": 0, "seal": "", "more": 1}',
    ],
)  # fmt: skip
def test_heads_that_are_none(old, tmp_path, content):
    (tmp_path / "head.json").write_text(content)
    with pytest.raises(FormatError):
        check_head(old, tmp_path / "head.json")


def test_a_restored_server_is_found(on_server, tmp_path):
    """The owner removes the last charges, as on a standby that missed them."""
    ledger = Ledger(on_server.url(JOBS))
    ledger.charge("patients", COST, DIGEST)
    ledger.charge("patients", COST, DIGEST)
    check_head(Ledger(on_server.url(OFFICERS)), tmp_path / "head.json")
    off, on = (f"ALTER TABLE confide.record {word} TRIGGER keep" for word in ("DISABLE", "ENABLE ALWAYS"))
    on_server.execute(f"{off}; {FORBIDDEN['delete the last']}; {on}")
    assert Ledger(on_server.url(JOBS)).account("patients").spent().epsilon == 1.0  # the chain alone tells nothing
    with refused(MissingRecordsError, "ledger"):
        ledger.account("patients")
    with refused(MissingRecordsError, "ledger"):
        check_head(Ledger(on_server.url(OFFICERS)), tmp_path / "head.json")
