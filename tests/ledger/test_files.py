"""Ledgers that cannot be used: full disks, read-only files, damage, newer schemas, restored copies."""

import copy
import logging
import os
import pickle
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import confide
from confide.errors import ConfideError, FormatError, InputError, LedgerError
from confide.ledger import Cost, Dataset, Ledger, file, request_digest
from confide.ledger.location import MissingRecordsError
from confide.ledger.schema import TABLES, guards, seal
from confide.support import LEDGER_ID
from tests.ledger.servers import JOBS, ServerLedger, new_database
from tests.refused import refused

COST = Cost(1.0, "add_remove", "slopes")
DIGEST = request_digest({"a": 1})


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "budget.db"
    ledger = Ledger(file, limit=100.0)
    for k in range(5):
        ledger.attach(ledger.charge("patients", COST, DIGEST), f"release {k}")
    return file


def execute(path, *statements):
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def test_a_charge_is_durable_by_construction(path):
    """WAL and synchronous=FULL make a commit survive a power cut, which killing cannot test."""
    with file.transaction(path, 1.0, write=True, by=None) as connection:
        assert connection.rows("PRAGMA journal_mode") == [{"journal_mode": "wal"}]
        assert connection.rows("PRAGMA synchronous") == [{"synchronous": 2}]


def test_only_the_process_that_creates_a_ledger_reports_it(tmp_path, monkeypatch, caplog):
    def created_by_another_process(temporary):
        monkeypatch.undo()
        Ledger(tmp_path / "new.db").set_limit("patients", 2.0)

    caplog.set_level(logging.INFO, "confide.ledger")
    monkeypatch.setattr(file, "to_disk", created_by_another_process)
    assert Ledger(tmp_path / "new.db").account("patients").limit == (2.0, 0.0)
    assert [record.message for record in caplog.records] == ["created file=new.db"]


CHARGE = """
import sys
from confide.errors import ConfideError
from confide.ledger import Cost, Ledger, request_digest
try:
    ledger = Ledger(sys.argv[1])
    for k in range(int(sys.argv[2])):
        token = ledger.charge("patients", Cost(1.0, "add_remove", "m"), request_digest({"k": k}))
        print("charged", flush=True)
        ledger.attach(token, "x" * 20000)
except ConfideError as error:
    print(error)
    print(len(Ledger(sys.argv[1], create=False).account("patients").entries))
"""


@pytest.mark.slow
def test_full_disk(path):
    """With a file limit of 64 KiB the ledger raises a one-line error, and earlier charges stay."""

    def small_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (2**16, 2**16))

    before = len(Ledger(path).account("patients").entries)
    done = subprocess.run(
        [sys.executable, "-c", CHARGE, str(path), "50"],
        capture_output=True,
        text=True,
        preexec_fn=small_files,
        check=True,
    )
    *charged, message, entries = done.stdout.splitlines()
    assert "full" in message
    assert "\n" not in message
    assert set(charged) == {"charged"}
    assert before + len(charged) == int(entries)
    assert done.stderr == ""
    Ledger(path).charge("patients", COST, DIGEST)  # with room again, all is well


@pytest.mark.slow
def test_read_only_file(path):
    """As an ordinary user, for whom file permissions hold: it can be read but not charged."""
    folder = Path(tempfile.mkdtemp())
    # What is imported late is imported before: the interpreter may lie where an ordinary user cannot read.
    dropped = "import os, urllib.parse\nif os.geteuid() == 0:\n    os.setuid(65534)\ntry:"
    as_nobody = CHARGE.replace("try:", dropped, 1)
    try:
        copy = folder / "budget.db"
        shutil.copy(path, copy)
        for mode in (0o555, 0o777):  # with and without a folder where SQLite may put files next to it
            copy.chmod(0o444)
            folder.chmod(mode)
            done = subprocess.run([sys.executable, "-c", as_nobody, str(copy), "1"], capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            message, entries = done.stdout.splitlines()
            assert "read-only" in message or "cannot be opened" in message
            assert int(entries) == 5
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


@pytest.mark.parametrize(
    "content",
    [b"", b"text", b"SQLite format 3\0", bytes(4096), os.urandom(4096)],
    ids=["nothing", "text", "header", "zeros", "noise"],
)
def test_files_that_are_no_database(tmp_path, content):
    file = tmp_path / "budget.db"
    file.write_bytes(content)
    with pytest.raises(FormatError):
        Ledger(file)
    assert file.read_bytes() == content


def test_foreign_database_is_left_alone(tmp_path):
    file = tmp_path / "other.db"
    execute(file, "PRAGMA journal_mode=WAL", "CREATE TABLE t (x)", "INSERT INTO t VALUES (1)")
    before = file.read_bytes()
    with pytest.raises(FormatError):
        Ledger(file)
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    "statement",
    [
        "PRAGMA user_version=4",
        "PRAGMA user_version=0",
        "CREATE TABLE extra (x)",
        "CREATE TRIGGER t AFTER INSERT ON charge BEGIN DELETE FROM charge; END",
        "DROP TRIGGER charge_delete",
        "DROP TABLE release",
        "DROP INDEX charge_cell",
    ],
)
def test_changed_schemas_are_refused(path, statement):
    execute(path, statement)
    with pytest.raises(FormatError):
        Ledger(path)


def tamper(path, statement):
    """Change rows without the triggers, which are there again afterwards."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for name in guards():
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute(statement)
        for trigger in guards().values():
            connection.execute(trigger)


CHANGES = {
    "the limit": "UPDATE dataset SET epsilon = 1000",
    "a later limit": "UPDATE bound SET epsilon = 1000",
    "an earlier limit": "DELETE FROM bound WHERE id = 1",
    "a charge": "UPDATE charge SET epsilon = 0.5 WHERE id = 3",
    "its totals": """UPDATE charge SET totals = replace(totals, '"5"', '"4"') WHERE id = 5""",
    "its time": "UPDATE charge SET made = '2020-01-01T00:00:00+00:00' WHERE id = 3",
    "its account": "UPDATE charge SET by = 'others' WHERE id = 3",
    "a release": "UPDATE release SET text = 'another' WHERE id = 3",
    "a missing release": "DELETE FROM release WHERE id = 3",
}


@pytest.mark.slow(unless=("a later limit", "its account", "the limit"))
@pytest.mark.parametrize("what", CHANGES)
def test_rows_cannot_be_changed_and_changes_are_found(path, what):
    for limit in (200.0, 300.0):
        Ledger(path).set_limit("patients", limit)
    with pytest.raises(sqlite3.IntegrityError):
        execute(path, CHANGES[what])
    tamper(path, CHANGES[what])
    with pytest.raises(FormatError):
        Ledger(path).accounts()


@pytest.mark.slow(unless="the limit")
@pytest.mark.parametrize("what", ["the limit", "a later limit", "its totals"])
def test_a_charge_finds_changes_of_what_it_depends_on(path, what):
    if what == "a later limit":
        Ledger(path).set_limit("patients", 200.0)
    tamper(path, CHANGES[what])
    with pytest.raises(FormatError):
        Ledger(path).charge("patients", COST, DIGEST)


@pytest.mark.long
def test_every_flipped_byte_is_found_or_harmless(path):
    """With flipped bytes anywhere, the ledger raises a one-line error or has exactly its earlier contents."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    good, output = path.read_bytes(), Ledger(path).export()
    rng, messages = np.random.default_rng(3), []
    for position in rng.choice(len(good), 400, replace=False):
        bad = bytearray(good)
        bad[position] ^= int(rng.integers(1, 256))
        path.write_bytes(bytes(bad))
        try:
            assert Ledger(path).export() == output
        except ConfideError as error:
            messages.append(str(error))
    assert len(messages) > 20
    assert not [message for message in messages if "\n" in message]


def test_a_page_that_nothing_uses_is_damage(path):
    """The records and their hashes are right; SQLite's own check of the whole file is not."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        size = connection.execute("PRAGMA page_size").fetchone()[0]
    content = bytearray(path.read_bytes())
    content[28:32] = (len(content) // size + 1).to_bytes(4)  # the number of pages
    path.write_bytes(content + bytes(size))
    with refused(FormatError, "ledger"):
        Ledger(path).accounts()


@pytest.mark.parametrize("keep", [100, 4096, 5000, 8192])
def test_cut_files_are_refused(path, keep):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ConfideError):
        Ledger(path)


def test_a_busy_ledger_says_so(path):
    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        with refused(LedgerError, "ledger"):
            Ledger(path, timeout=0.1).charge("patients", COST, DIGEST)
        assert Ledger(path, timeout=0.1).account("patients").spent().epsilon == 5.0  # readers are not kept waiting


NONSENSE = [
    {"epsilon": -1.0},
    {"mechanism": ""},
    {"rho": -1.0},
    {"division": "region", "cell": ""},
    {"totals": "[]"},
    {"totals": '{"sums": ["5", "5/2"], "kinds": {"calibration": 6}, "bare": 0, "concentrated": 0}'},
    {"dataset": "unknown"},
]


@pytest.mark.parametrize("changed", NONSENSE)
def test_sealed_nonsense_is_refused(path, changed):
    """A row with a correct seal that contradicts the others."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.row_factory = sqlite3.Row
        last = dict(connection.execute("SELECT * FROM charge ORDER BY id DESC").fetchone())
        row = {name: last[name] for name in TABLES["charge"]} | {"token": "0" * 32} | changed
        row |= {"made": last["made"], "seal": seal(last, [row[name] for name in TABLES["charge"]])}
        places = ", ".join("?" * len(row))
        connection.execute(f"INSERT INTO charge ({', '.join(row)}) VALUES ({places})", (*row.values(),))  # noqa: S608
    with pytest.raises(FormatError):
        Ledger(path).accounts()


OLD = "CREATE TABLE record (id INTEGER PRIMARY KEY AUTOINCREMENT, made TEXT, body TEXT, seal TEXT) STRICT"


@pytest.mark.parametrize("schema", [1, 2, 3])
def test_an_old_ledger_never_counts_as_empty(tmp_path, schema):
    """Those of 0.2 and 0.3 are refused before anything is read or charged, with the remedy, and stay as they are."""
    old = tmp_path / "old.db"
    pragmas = ("PRAGMA journal_mode=WAL", OLD, f"PRAGMA application_id={LEDGER_ID}", f"PRAGMA user_version={schema}")
    execute(old, *pragmas, "INSERT INTO record (made, body, seal) VALUES ('', '{}', '')")
    before = old.read_bytes()
    with refused(FormatError, "ledger.schema") as caught:
        confide.calibrate(np.full(9, 0.5), 0.1, 1.0, ledger=Ledger(old), dataset="patients")
    assert "confide ledger init --spent EPSILON" in caught.value.remedy
    assert old.read_bytes() == before


@pytest.fixture
def old(tmp_path):
    ledger = Ledger(tmp_path / "budget.db", limit=10.0, by="audit team")
    ledger.attach(ledger.charge("patients", COST, DIGEST), "release", b"seen")
    ledger.charge("others", COST, DIGEST)
    return ledger


def test_a_release_is_stored_once_for_a_token_that_was_charged(tmp_path):
    ledger = Ledger(tmp_path / "budget.db")
    token = ledger.charge("patients", COST, DIGEST)
    ledger.attach(token, "release")
    for known in (token, "0" * 32):
        with refused(InputError, "token"):
            ledger.attach(known, "another")
    assert ledger.entry(token).release == "release"


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
