"""A ledger that was restored from a copy is found by those who had it open, and nothing else is remembered."""

import copy
import pickle
import shutil

import pytest

from confide.ledger import Cost, Dataset, Ledger, request_digest
from confide.ledger.location import MissingRecordsError
from tests.ledger.servers import JOBS, ServerLedger, new_database
from tests.refused import refused

COST = Cost(1.0, "add_remove", "slopes")
DIGEST = request_digest({"a": 1})


@pytest.fixture
def old(tmp_path):
    ledger = Ledger(tmp_path / "budget.db", limit=10.0, by="audit team")
    ledger.attach(ledger.charge("patients", COST, DIGEST), "release", b"seen")
    ledger.charge("others", COST, DIGEST)
    return ledger


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
    assert old.look_up([Dataset("patients")], []).key.encode() not in pickled
    assert b"what was released" not in pickled
    again = pickle.loads(pickled)  # noqa: S301
    assert again.accounts() == copy.deepcopy(again).accounts() == old.accounts()
    shutil.copy(tmp_path / "backup.db", old.path)
    for one in (again, copy.deepcopy(old)):
        with refused(MissingRecordsError, "ledger"):
            one.charge("patients", COST, DIGEST)


def test_a_restored_server_is_found(on_server):
    """The owner removes the last charges, as on a standby that missed them."""
    ledger = Ledger(on_server.url(JOBS))
    ledger.charge("patients", COST, DIGEST)
    ledger.charge("patients", COST, DIGEST)
    on_server.tamper("DELETE FROM confide.charge WHERE id = (SELECT max(id) FROM confide.charge)")
    assert Ledger(on_server.url(JOBS)).account("patients").spent().epsilon == 1.0  # the chain alone tells nothing
    with refused(MissingRecordsError, "ledger"):
        ledger.account("patients")


@pytest.mark.slow
def test_failover_to_a_restored_backup(new_server_ledger):
    """A standby with missing commits charges again what was spent; a ledger that was open detects it."""
    today = new_server_ledger()
    Ledger(today.url()).set_limit("patients", 2.0)
    charge = (Cost(1.0, "add_remove", "m"), request_digest({"a": 1}))
    Ledger(today.url(JOBS)).charge("patients", *charge)
    backup = ServerLedger(today.server, new_database(today.server, today.database))
    opened = Ledger(today.url(JOBS))
    opened.charge("patients", *charge)
    object.__setattr__(opened, "path", Ledger(backup.url(JOBS)).path)  # the same name leads to the standby
    assert Ledger(backup.url(JOBS)).account("patients").remaining() == 1.0
    with refused(MissingRecordsError, "ledger"):
        opened.accounts()
    Ledger(backup.url(JOBS)).charge("patients", *charge)  # as many records as before the failover
    with refused(MissingRecordsError, "ledger"):
        opened.charge("patients", *charge)
