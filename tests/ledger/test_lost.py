"""The server is lost at every message of a paid release: one charge and one release, or an error and no release."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from confide.errors import LedgerError
from confide.ledger import Cost, Ledger, request_digest
from confide.ledger.stores import Server, open_store
from tests.ledger.proxy import proxy
from tests.ledger.servers import JOBS

COST = Cost(1.0, "add_remove", "slopes")
DIGEST = request_digest({"a": 1})


def spend(ledger):
    ledger.attach(ledger.charge("patients", COST, DIGEST), "release")


@pytest.fixture
def through_proxy(on_server):
    """A ledger behind a proxy, and how many messages a charge with its release takes."""
    Ledger(on_server.url()).set_limit("patients", 1e9)
    with proxy(("127.0.0.1", on_server.server.port)) as between:
        address = on_server.url(JOBS).replace(f":{on_server.server.port}/", f":{between.port}/") + "?sslmode=disable"
        ledger = Ledger(address, timeout=20.0)
        spend(ledger)  # the first charge makes the key
        before = between.count
        spend(ledger)
        yield on_server, between, ledger, between.count - before


def check_cuts(through_proxy, messages, *, answered):
    on_server, between, ledger, _ = through_proxy
    direct = Ledger(on_server.url(JOBS))
    for message in messages:
        before = len(direct.account("patients").entries)
        between.count, between.cuts, between.cut_at, between.answered = 0, 0, message, answered
        spend(ledger)
        assert between.cuts == 1, message
        between.cut_at = None
        entries = direct.account("patients").entries
        assert len(entries) == before + 1, message
        assert all(entry.release == "release" for entry in entries), message


@pytest.mark.parametrize("answered", [False, True])
def test_lost_while_committing(through_proxy, answered):
    """The last messages of a transaction: the commit does not arrive, or its acknowledgement does not."""
    total = through_proxy[3]
    check_cuts(through_proxy, [total - 1, total], answered=answered)


@pytest.mark.slow
@pytest.mark.parametrize("answered", [False, True])
def test_lost_at_every_message(through_proxy, answered):
    """Whatever was cut: it goes on by itself, with exactly one more charge, and its release."""
    total = through_proxy[3]
    assert total > 15
    check_cuts(through_proxy, range(1, total + 1), answered=answered)


@pytest.mark.slow
@pytest.mark.parametrize("answered", [False, True])
def test_lost_for_good_at_every_message(through_proxy, answered):
    """The server never comes back: an error, and what stands is at most the charge; no release without one."""
    on_server, between, ledger, total = through_proxy
    direct, charged = Ledger(on_server.url(JOBS)), []
    for message in range(1, total + 1):
        before = len(direct.account("patients").entries)
        between.count, between.cuts, between.cut_at, between.answered = 0, 0, message, answered
        between.for_good = True
        with pytest.raises(LedgerError, match=r"cannot be reached|connection was lost"):
            spend(impatient(ledger))
        between.cut_at, between.cuts, between.for_good = None, 0, False
        entries = direct.account("patients").entries
        charged.append(len(entries) - before)
    assert charged == sorted(charged)
    assert set(charged) == {0, 1}


def impatient(ledger):
    """The same ledger with a short patience, without asking the server."""
    made = object.__new__(Ledger)
    for name in ("path", "create", "limit", "by"):
        object.__setattr__(made, name, getattr(ledger, name))
    object.__setattr__(made, "timeout", 0.3)
    return made


def test_a_commit_that_nobody_can_ask_about_is_said_to_be_unknown(through_proxy):
    on_server, between, ledger, total = through_proxy
    token = Ledger(on_server.url(JOBS)).charge("patients", COST, DIGEST)
    between.count, between.cuts, between.for_good = 0, 0, True
    probe = impatient(ledger)
    between.cut_at, between.answered = total // 2, True
    with pytest.raises(LedgerError, match="not known whether the last records were written: count them as charged"):
        probe.attach(token, "release")
    between.cut_at, between.for_good = None, False
    assert Ledger(on_server.url(JOBS)).account("patients").entries[-1].release == "release"  # it was


def test_a_terminated_session_has_charged_nothing(on_server):
    """An administrator ends it between look and charge."""
    Ledger(on_server.url()).set_limit("patients", 10.0)
    store = open_store(Server(on_server.url(JOBS)), create=False, timeout=5.0)

    def cut():
        with store.writing() as writer:
            on_server.execute("SELECT pg_terminate_backend(%s)", writer._connection.info.backend_pid)
            writer.append(writer.records[0][1])

    with pytest.raises(LedgerError, match="the connection was lost, and nothing was charged"):
        cut()
    ledger = Ledger(on_server.url(JOBS))
    assert ledger.account("patients").entries == ()
    spend(ledger)


def test_a_standby_that_does_not_confirm(on_server):
    """Told not to wait, the server commits alone and says so in a warning only: nothing may be released for it."""
    import psycopg

    def standby(statement):
        with psycopg.connect(on_server.url(), autocommit=True) as connection:
            connection.execute(statement)
            connection.execute("SELECT pg_reload_conf()")

    def told_not_to_wait():
        for _ in range(200):
            waiting = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
            if on_server.execute(waiting):
                return
            time.sleep(0.05)

    Ledger(on_server.url()).set_limit("patients", 10.0)
    ledger = Ledger(on_server.url(JOBS))
    standby("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
    try:
        with ThreadPoolExecutor(1) as pool:
            told = pool.submit(told_not_to_wait)
            with pytest.raises(LedgerError, match="told not to wait for its standby"):
                ledger.charge("patients", COST, DIGEST)
            told.result()
        assert len(ledger.account("patients").entries) == 1
    finally:
        standby("ALTER SYSTEM RESET synchronous_standby_names")


def test_a_client_that_falls_silent_gives_the_lock_back(on_server):
    """Its network is gone and its connection stands: the server ends the transaction, and others go on."""
    Ledger(on_server.url()).set_limit("patients", 10.0)
    store = open_store(Server(on_server.url(JOBS)), create=False, timeout=5.0)

    def fall_silent():
        with store.writing() as writer:
            asked = writer._connection.execute("SHOW idle_in_transaction_session_timeout").fetchone()
            assert asked == ("65s",)
            writer._connection.execute("SET LOCAL idle_in_transaction_session_timeout = 200")
            with ThreadPoolExecutor(1) as pool:
                pool.submit(spend, Ledger(on_server.url(JOBS))).result(timeout=20)  # waits for the lock
            writer.append(writer.records[0][1])

    with pytest.raises(LedgerError, match="connection was lost"):
        fall_silent()
    assert len(Ledger(on_server.url(JOBS)).account("patients").entries) == 1
