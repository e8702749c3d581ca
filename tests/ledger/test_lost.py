"""The server is lost at every message of a paid release: one charge and one release, or an error and no release."""

import copy
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Timer

import pytest

from confide.errors import LedgerError
from confide.ledger import Cost, Ledger, Server, request_digest
from confide.ledger.database import transaction
from confide.ledger.location import NotWrittenError, StandbyError
from tests.ledger.servers import JOBS, ServerLedger, make_template, new_database
from tests.refused import refused
from tests.tables.postgres_server import needs_postgres, running

_GOODBYE = b"X\0\0\0\4"
"""The last message of a client, which has no answer."""


@dataclass
class Proxy:
    """Counts the client's messages, and cuts the connection before or after message `cut_at`."""

    port: int
    server: tuple[str, int]
    cut_at: int | None = None
    answered: bool = False
    for_good: bool = False
    count: int = 0
    cuts: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def serve(self, client: socket.socket) -> None:
        with suppress(OSError), client, socket.create_connection(self.server) as server:
            if self.for_good and self.cuts:
                return  # as if the server were gone
            client.settimeout(60)
            server.settimeout(60)
            back = threading.Thread(target=self.back, args=(server, client), daemon=True)
            back.start()
            while message := client.recv(2**16):
                if message == _GOODBYE:
                    server.sendall(message)
                    continue
                with self.lock:
                    self.count += 1
                    cut = self.cut_at is not None and (self.count == self.cut_at or (self.for_good and self.cuts))
                    self.cuts += cut
                if cut:
                    if self.answered:
                        client.shutdown(socket.SHUT_WR)  # the answer does not come through
                        server.sendall(message)
                        server.shutdown(socket.SHUT_WR)  # the server answers, reads the end, and goes
                        back.join(30)
                    break
                server.sendall(message)
            for one in (client, server):
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)  # to close it alone would leave it open for the other thread

    @staticmethod
    def back(server: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while answer := server.recv(2**16):
                with suppress(OSError):
                    client.sendall(answer)


@contextmanager
def proxy(server: tuple[str, int]) -> Iterator[Proxy]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        made = Proxy(listening.getsockname()[1], server)

        def accept() -> None:
            with suppress(OSError):
                while True:
                    threading.Thread(target=made.serve, args=(listening.accept()[0],), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield made
        with suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)


COST = Cost(1.0, "add_remove", "slopes")
DIGEST = request_digest({"a": 1})
OPENED = {"key": "x", "name": "x", "neighbors": "add_remove", "fingerprint": None, "epsilon": None, "dp_delta": None}


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


@pytest.mark.long
@pytest.mark.parametrize("answered", [False, True])
def test_lost_at_every_message(through_proxy, answered):
    """Wherever the connection is cut, the operation continues with exactly one more charge and its release.

    The last messages are a commit that does not arrive, or whose acknowledgement does not.
    """
    on_server, between, ledger, total = through_proxy
    assert total > 15
    direct = Ledger(on_server.url(JOBS))
    for message in range(1, total + 1):
        before = len(direct.account("patients").entries)
        between.count, between.cuts, between.cut_at, between.answered = 0, 0, message, answered
        spend(ledger)
        assert between.cuts == 1, message
        between.cut_at = None
        entries = direct.account("patients").entries
        assert len(entries) == before + 1, message
        assert all(entry.release == "release" for entry in entries), message


@pytest.mark.long
@pytest.mark.parametrize("answered", [False, True])
def test_lost_for_good_at_every_message(through_proxy, answered):
    """The server never comes back: an error, and at most the charge stands; no release without a charge."""
    on_server, between, ledger, total = through_proxy
    direct, charged, impatient = Ledger(on_server.url(JOBS)), [], copy.copy(ledger)
    object.__setattr__(impatient, "timeout", 0.3)  # without a request to the server
    for message in range(1, total + 1):
        before = len(direct.account("patients").entries)
        between.count, between.cuts, between.cut_at, between.answered = 0, 0, message, answered
        between.for_good = True
        with pytest.raises(LedgerError):
            spend(impatient)
        between.cut_at, between.cuts, between.for_good = None, 0, False
        entries = direct.account("patients").entries
        charged.append(len(entries) - before)
    assert charged == sorted(charged)
    assert set(charged) == {0, 1}


@pytest.mark.slow
def test_a_terminated_session_has_charged_nothing(on_server):
    """An administrator ends it between look and charge."""
    Ledger(on_server.url()).set_limit("patients", 10.0)

    def cut():
        with transaction(Server(on_server.url(JOBS)), 5.0, write=True) as connection:
            on_server.execute("SELECT pg_terminate_backend(%s)", connection._raw.info.backend_pid)
            connection.add("dataset", **OPENED)

    with refused(NotWrittenError, "ledger"):
        cut()
    ledger = Ledger(on_server.url(JOBS))
    assert ledger.account("patients").entries == ()
    spend(ledger)


WAITING = "FROM pg_stat_activity WHERE wait_event = 'SyncRep'"


@contextmanager
def without_its_standby(server):
    """A server that must wait for a missing standby, from the first commit in the block on."""
    import psycopg

    with psycopg.connect(server.url(), autocommit=True) as connection:
        said = []
        connection.add_notice_handler(lambda notice: said.append(notice.severity_nonlocalized))
        connection.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        connection.execute("SELECT pg_reload_conf()")
        while "WARNING" not in said:  # that a commit was not confirmed
            output = Timer(0.1, connection.cancel)
            output.start()
            with suppress(psycopg.errors.QueryCanceled):  # it was cancelled too late, or before it waited
                connection.execute("SELECT pg_logical_emit_message(true, 'probe', '')")
            output.join()
    try:
        yield
    finally:
        with psycopg.connect(server.url(), autocommit=True) as connection:
            connection.execute("ALTER SYSTEM RESET synchronous_standby_names")
            connection.execute("SELECT pg_reload_conf()")


def to_the_one_that_waits(server, do, *, after=0):
    """Act on the waiting process, by its number, `after` another one waits."""
    import psycopg

    for _ in range(600):
        with suppress(psycopg.OperationalError):  # a server that comes back
            if found := server.execute(f"SELECT pid {WAITING} AND pid <> %s", after):
                do(found[0][0])
                return found[0][0]
        time.sleep(0.05)
    raise TimeoutError


@pytest.mark.slow
def test_a_standby_that_does_not_confirm(on_server):
    """Configured not to wait, the server commits alone and only warns: nothing may be released for it."""
    Ledger(on_server.url()).set_limit("patients", 10.0)
    ledger = Ledger(on_server.url(JOBS))
    with without_its_standby(on_server), ThreadPoolExecutor(1) as pool:
        output = pool.submit(
            to_the_one_that_waits, on_server, lambda pid: on_server.execute("SELECT pg_cancel_backend(%s)", pid)
        )
        with refused(StandbyError, "ledger"):
            ledger.charge("patients", COST, DIGEST)
        output.result()
        assert len(ledger.account("patients").entries) == 1


@pytest.fixture
def own_server():
    """A ledger on a server that a test may bring down."""
    needs_postgres()
    with running() as server:
        make_template(server)
        yield ServerLedger(server, new_database(server))


@pytest.mark.long
@pytest.mark.parametrize("lost", ["session", "server"])
def test_a_charge_that_no_standby_has_is_not_acknowledged(request, lost):
    """The waiting process is ended, or its server crashes and restarts: a repeated request waits as well.

    The record is there to be read, on this server alone.
    """
    server = request.getfixturevalue("on_server" if lost == "session" else "own_server")
    Ledger(server.url()).set_limit("patients", 10.0)
    ledger = Ledger(server.url(JOBS))

    def end(pid):
        if lost == "session":
            server.execute("SELECT pg_terminate_backend(%s)", pid)
        else:
            os.kill(pid, signal.SIGKILL)  # then the server ends all others, and recovers from its log

    def end_and_tell_not_to_wait():
        ended = to_the_one_that_waits(server, end)
        to_the_one_that_waits(server, lambda pid: server.execute("SELECT pg_cancel_backend(%s)", pid), after=ended)

    with without_its_standby(server), ThreadPoolExecutor(1) as pool:
        ended = pool.submit(end_and_tell_not_to_wait)
        with refused(StandbyError, "ledger"):
            ledger.charge("patients", COST, DIGEST)
        ended.result()
        assert len(ledger.account("patients").entries) == 1  # it counts


@pytest.mark.slow
def test_a_charge_whose_session_was_ended_goes_on_when_the_standby_has_it(on_server):
    """Or, as here, when no standby is required any more."""
    Ledger(on_server.url()).set_limit("patients", 10.0)
    ledger = Ledger(on_server.url(JOBS))
    with ThreadPoolExecutor(1) as pool:
        with without_its_standby(on_server):
            charged = pool.submit(ledger.charge, "patients", COST, DIGEST)
            ended = to_the_one_that_waits(
                on_server, lambda pid: on_server.execute("SELECT pg_terminate_backend(%s)", pid)
            )
            to_the_one_that_waits(on_server, lambda pid: None, after=ended)
            assert not charged.done()
        token = charged.result()
    ledger.attach(token, "release")
    assert [entry.release for entry in ledger.account("patients").entries] == ["release"]


def test_a_client_that_falls_silent_gives_the_lock_back(on_server):
    """Its network is gone and its connection stands: the server ends the transaction, and others go on."""
    Ledger(on_server.url()).set_limit("patients", 10.0)

    def fall_silent():
        with transaction(Server(on_server.url(JOBS)), 5.0, write=True) as connection:
            asked = connection._raw.execute("SHOW idle_in_transaction_session_timeout").fetchone()
            assert asked == ("65s",)
            connection._raw.execute("SET LOCAL idle_in_transaction_session_timeout = 200")
            with ThreadPoolExecutor(1) as pool:
                pool.submit(spend, Ledger(on_server.url(JOBS))).result(timeout=20)  # waits for the lock
            connection.add("dataset", **OPENED)

    with refused(NotWrittenError, "ledger"):
        fall_silent()
    assert len(Ledger(on_server.url(JOBS)).account("patients").entries) == 1
