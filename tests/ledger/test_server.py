"""A ledger on a PostgreSQL server: roles, checks on reading, and required server settings."""

# ruff: noqa: S608 - statements that must be refused

import json
import pickle
from contextlib import nullcontext
from itertools import product

import numpy as np
import pytest
from confide.ledger.events import LimitedEvent, OpenedEvent, ReleasedEvent, write_event

import confide
from confide.errors import ConfideError, FormatError, InputError, LedgerError
from confide.ledger import Cost, Ledger, Server, request_digest
from tests.builders import slow
from tests.ledger.servers import JOBS, OFFICERS, OTHER_JOBS
from tests.refused import refused
from tests.tables.postgres_server import PASSWORD

COST = Cost(1.0, "add_remove", "slopes")
DIGEST = request_digest({"a": 1})
TOKEN = "0" * 32


@pytest.fixture
def charged(on_server):
    """A ledger with a limit, two charges of one role, and one release."""
    Ledger(on_server.url()).set_limit("patients", 100.0)
    ledger = Ledger(on_server.url(JOBS))
    ledger.attach(ledger.charge("patients", COST, DIGEST), "release", b"seen")
    ledger.charge("patients", COST, DIGEST, token=TOKEN)
    return on_server


@pytest.mark.slow
def test_jobs_charge_and_the_server_says_who_and_when(charged):
    ledger = Ledger(charged.url(JOBS))
    scores = np.random.default_rng(0).random(1000)
    released = confide.calibrate(scores, 0.1, 1.0, ledger=ledger, dataset="patients")
    with pytest.warns(confide.EarlierReleaseWarning):
        assert confide.calibrate(scores, 0.1, 1.0, ledger=ledger, dataset="patients") == released
    entries = ledger.account("patients").entries
    assert [entry.by for entry in entries] == [JOBS] * 3
    assert (
        entries[0].charged_at
        == charged.execute("SELECT made FROM confide.record WHERE kind = 'charged' ORDER BY id")[0][0]
    )
    assert ledger.export()["datasets"][0]["entries"][0]["by"] == JOBS


def test_limits_are_the_owners_and_new_data_sets_begin_with_one(charged):
    jobs = Ledger(charged.url(JOBS), limit=2.0)
    with refused(LedgerError, "ledger"):
        jobs.set_limit("patients", 1000.0)
    jobs.charge("new", COST, DIGEST)
    assert jobs.account("new").limit == (2.0, 0.0)
    assert jobs.account("patients").limit == (100.0, 0.0)


ANOTHER_GUARD = """CREATE OR REPLACE FUNCTION confide.refuse() RETURNS trigger LANGUAGE plpgsql
    AS 'BEGIN RETURN new; END'"""
OPENED, RAISED = write_event(OpenedEvent("x", "add_remove", None)), LimitedEvent("patients", 1e9, 0.0, JOBS)
FORBIDDEN = {
    "delete": "DELETE FROM confide.record",
    "delete the last": "DELETE FROM confide.record WHERE id = (SELECT max(id) FROM confide.record)",
    "update": "UPDATE confide.record SET body = body",
    "truncate": "TRUNCATE confide.record",
    "merge": "MERGE INTO confide.record USING (SELECT 1) AS one ON true WHEN MATCHED THEN DELETE",
    "upsert": "INSERT INTO confide.record (body) VALUES ('{}') ON CONFLICT (id) DO UPDATE SET body = '{}'",
    "drop": "DROP TABLE confide.record",
    "drop the schema": "DROP SCHEMA confide CASCADE",
    "drop a guard": "DROP TRIGGER keep ON confide.record",
    "drop a function": "DROP FUNCTION confide.append() CASCADE",
    "disable guards": "ALTER TABLE confide.record DISABLE TRIGGER ALL",
    "disable a guard": "ALTER TABLE confide.record DISABLE TRIGGER append",
    "replication": "SET session_replication_role = replica",
    "add a column": "ALTER TABLE confide.record ADD COLUMN x int",
    "rename": "ALTER TABLE confide.record RENAME TO other",
    "own": f'ALTER TABLE confide.record OWNER TO "{JOBS}"',
    "a trigger": "CREATE TRIGGER mine BEFORE INSERT ON confide.record EXECUTE FUNCTION confide.refuse()",
    "a rule": "CREATE RULE mine AS ON INSERT TO confide.record DO INSTEAD NOTHING",
    "a policy": "CREATE POLICY mine ON confide.record USING (false)",
    "a function": "CREATE FUNCTION confide.sha256(bytea) RETURNS bytea LANGUAGE sql AS 'SELECT $1'",
    "another guard": ANOTHER_GUARD,
    "alter a guard": "ALTER FUNCTION confide.append() SECURITY INVOKER",
    "a table": "CREATE TABLE confide.other (x int)",
    "the view": "CREATE OR REPLACE VIEW confide.shown AS SELECT * FROM confide.record",
    "through the view": "DELETE FROM confide.shown",
    "become the owner": "SET ROLE owner",
    "the owner's session": "SET SESSION AUTHORIZATION owner",
    "give rights away": f'GRANT ALL ON confide.record TO "{OTHER_JOBS}"',
    "hold everybody up": "LOCK TABLE confide.record IN ACCESS EXCLUSIVE MODE",
    "lock rows": "SELECT * FROM confide.record FOR UPDATE",
    "a broken chain": "INSERT INTO confide.record (body, seal) VALUES ('{}', repeat('0', 64))",
    "another number": f"INSERT INTO confide.record (id, body) VALUES (1000, '{OPENED}')",
    "another time": f"INSERT INTO confide.record (made, body) VALUES ('2020-01-01', '{OPENED}')",
    "another kind": f"""INSERT INTO confide.record (kind, body) VALUES ('limited', '{OPENED}')""",
    "by copying": "COPY confide.record FROM STDIN",
    "raise the limit": f"INSERT INTO confide.record (body) VALUES ('{write_event(RAISED)}')",
    "no JSON": "INSERT INTO confide.record (body) VALUES ('x')",
    "no object": "INSERT INTO confide.record (body) VALUES ('[]')",
    "no kind": "INSERT INTO confide.record (body) VALUES ('{}')",
    "an unknown kind": """INSERT INTO confide.record (body) VALUES ('{"kind": "erased"}')""",
    "close the ledger": """INSERT INTO confide.record (body) VALUES ('{"kind": "moved", "to": "mine"}')""",
    "a second key": """INSERT INTO confide.record (body) VALUES ('{"kind": "keyed", "key": "00"}')""",
    "in another's name": f"""INSERT INTO confide.record (body)
        SELECT replace(body, '{JOBS}', '{OTHER_JOBS}') FROM confide.record WHERE kind = 'charged'""",
    "in nobody's name": """INSERT INTO confide.record (body) VALUES ('{"kind": "charged", "token": "00"}')""",
    "the same charge": "INSERT INTO confide.record (body) SELECT body FROM confide.record WHERE kind = 'charged'",
    "the same release": "INSERT INTO confide.record (body) SELECT body FROM confide.record WHERE kind = 'released'",
    "a release of nobody's charge": f"""INSERT INTO confide.record (body)
        VALUES ('{write_event(ReleasedEvent("1" * 32, "text"))}')""",
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("what", FORBIDDEN)
def test_a_charging_role_may_only_add(charged, what):
    """The attempt changes nothing, and the ledger still works."""
    assert_nothing_changes(charged, FORBIDDEN[what], JOBS)


@pytest.mark.parametrize(
    "what", ["delete", "drop a guard", *slow(["update", "truncate", "another time", "raise the limit"])]
)
def test_a_charging_role_may_not_erase(charged, what):
    assert_nothing_changes(charged, FORBIDDEN[what], JOBS)


_GUARDS = """SELECT r.relname, r.relacl::text, r.relowner, t.tgname, t.tgenabled, p.prosrc, p.prosecdef
    FROM pg_class AS r LEFT JOIN pg_trigger AS t ON t.tgrelid = r.oid LEFT JOIN pg_proc AS p ON p.oid = t.tgfoid
    WHERE r.relnamespace = 'confide'::regnamespace ORDER BY 1, 4"""


def assert_nothing_changes(charged, statement, role):
    import psycopg

    before = charged.execute("SELECT * FROM confide.record ORDER BY id")
    guards = charged.execute(_GUARDS)
    only_warned = statement.startswith("GRANT")  # of a right that one may not give away
    with nullcontext() if only_warned else pytest.raises(psycopg.Error):
        charged.execute(statement, role=role)
    assert charged.execute("SELECT * FROM confide.record ORDER BY id") == before
    assert charged.execute(_GUARDS) == guards
    Ledger(charged.url(JOBS)).charge("patients", COST, DIGEST)


def test_a_release_belongs_to_the_role_that_paid(charged):
    with refused(LedgerError, "ledger"):
        Ledger(charged.url(OTHER_JOBS)).attach(TOKEN, "a false release")
    Ledger(charged.url(JOBS)).attach(TOKEN, "the true one")


def test_names_in_temporary_schemas_are_not_looked_up(charged):
    """Functions with the same names by another role do not replace those that the triggers call."""
    import psycopg

    charged.execute("GRANT TEMPORARY ON DATABASE " + charged.database + " TO PUBLIC")
    body = write_event(OpenedEvent("new", "add_remove", None))
    with psycopg.connect(charged.url(JOBS), autocommit=True) as connection:
        connection.execute("CREATE TEMP TABLE record (id int)")
        for made in (
            "pg_temp.pg_has_role(name, name, text) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
            "pg_temp.sha256(bytea) RETURNS bytea LANGUAGE sql AS 'SELECT $1'",
        ):
            connection.execute(f"CREATE FUNCTION {made}")
        connection.execute("SET search_path = pg_temp, confide, pg_catalog")
        connection.execute("INSERT INTO confide.record (body) VALUES (%s)", (body,))
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("INSERT INTO confide.record (body) VALUES (%s)", (write_event(RAISED),))
    assert "new" in Ledger(charged.url(JOBS)).accounts()


def test_what_others_put_into_the_public_schema_is_not_run(charged):
    """Before PostgreSQL 15 every role may create functions there, and the best match of arguments is called."""
    charged.execute("GRANT CREATE ON SCHEMA public TO PUBLIC")
    made = """public.json_build_array(name, "char", smallint) RETURNS json LANGUAGE plpgsql AS $$ BEGIN
        ALTER TABLE confide.record DISABLE TRIGGER keep;
        DELETE FROM confide.record WHERE kind = 'charged';
        RETURN '[]'; END $$"""
    charged.execute(f"CREATE FUNCTION {made}", role=JOBS)
    assert len(Ledger(charged.url()).account("patients").entries) == 2
    charged.execute('DROP FUNCTION public.json_build_array(name, "char", smallint)')


@pytest.mark.slow
@pytest.mark.parametrize("body", ['{"kind": "opened"}', write_event(OpenedEvent("patients", "add_remove", None))])
def test_the_owner_takes_out_a_record_that_cannot_be_read(charged, body):
    """The worst record by a charging role: the ledger raises errors, and a repair loses no charge."""
    charged.execute("INSERT INTO confide.record (body) VALUES (%s)", body, role=JOBS)
    for role in (JOBS, OFFICERS):
        with pytest.raises(FormatError):
            Ledger(charged.url(role)).accounts()
    charged.execute(
        "ALTER TABLE confide.record DISABLE TRIGGER keep;"
        "DELETE FROM confide.record WHERE id >= (SELECT max(id) FROM confide.record);"
        "ALTER TABLE confide.record ENABLE ALWAYS TRIGGER keep"
    )
    Ledger(charged.url(JOBS)).charge("patients", COST, DIGEST)
    assert len(Ledger(charged.url()).account("patients").entries) == 3


def test_readers_see_everything_but_the_key(charged):
    import psycopg

    ledger = Ledger(charged.url(OFFICERS))
    assert ledger.export() == Ledger(charged.url(JOBS)).export()
    assert ledger.snapshot().key is None
    key = Ledger(charged.url(JOBS)).snapshot().key
    assert key is not None
    assert key not in str(charged.execute("SELECT * FROM confide.shown", role=OFFICERS))
    with refused(LedgerError, "ledger"):
        ledger.charge("patients", COST, DIGEST)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        charged.execute("SELECT * FROM confide.record", role=OFFICERS)


def test_the_owner_erases_nothing_by_accident(charged):
    import psycopg

    for what in ("delete", "update", "truncate"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            charged.execute(FORBIDDEN[what])


ALTERATIONS = [
    "UPDATE confide.record SET body = replace(body, '100.0', '900.0') WHERE id = 2",
    "UPDATE confide.record SET made = '2020-01-01T00:00:00+00:00' WHERE id = 4",
    "DELETE FROM confide.record WHERE id = 4",
]


@pytest.mark.parametrize(
    ("change", "role"),
    slow(product(ALTERATIONS, [None, OFFICERS]), everyday=[(ALTERATIONS[0], None), (ALTERATIONS[1], OFFICERS)]),
)
def test_altered_records_are_found_on_reading(charged, change, role):
    """By a role that may switch the triggers off, and switches them on again."""
    off, on = (f"ALTER TABLE confide.record {word} TRIGGER keep" for word in ("DISABLE", "ENABLE ALWAYS"))
    charged.execute(f"{off}; {change}; {on}")
    with pytest.raises(FormatError):
        Ledger(charged.url(role or JOBS))


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE confide.record DISABLE TRIGGER keep",
        "ALTER TABLE confide.record ENABLE ROW LEVEL SECURITY",
        *slow(
            [
                "ALTER TABLE confide.record ENABLE TRIGGER append",
                "DROP TRIGGER append ON confide.record",
                "CREATE RULE mine AS ON INSERT TO confide.record DO INSTEAD NOTHING",
                "CREATE TRIGGER more BEFORE INSERT ON confide.record EXECUTE FUNCTION confide.refuse()",
                ANOTHER_GUARD,
                "ALTER FUNCTION confide.append() SECURITY INVOKER",
            ]
        ),
    ],
)
def test_changed_guards_are_found(charged, change):
    charged.execute(change)
    with refused(FormatError, "ledger"):
        Ledger(charged.url(JOBS))


def test_a_server_that_forgets_is_refused(charged):
    """Its settings are read before every charge; reading goes on."""
    import psycopg

    def switch(word: str) -> None:
        with psycopg.connect(charged.url(), autocommit=True) as connection:
            connection.execute(f"ALTER SYSTEM SET fsync = {word}")
            connection.execute("SELECT pg_reload_conf()")

    ledger = Ledger(charged.url(JOBS))
    switch("off")
    try:
        for _ in range(100):
            if charged.execute("SHOW fsync") == [("off",)]:
                break
        with refused(LedgerError, "ledger"):
            ledger.charge("patients", COST, DIGEST)
        assert ledger.account("patients").spent().epsilon == 2.0
    finally:
        switch("on")
        for _ in range(100):
            if charged.execute("SHOW fsync") == [("on",)]:
                break


def test_a_charge_is_on_disk_whatever_the_role_prefers(charged):
    """Under synchronous_commit = off a commit could be forgotten; the transaction that charges sets it on."""
    from confide.ledger.stores import open_log

    address = charged.url(JOBS) + "?options=-csynchronous_commit%3Doff"
    with open_log(Server(address), create=False, timeout=5.0).writing(0) as writer:
        assert writer._connection.execute("SHOW synchronous_commit").fetchone() == ("on",)
        assert writer._connection.execute("SHOW transaction_isolation").fetchone() == ("read committed",)
        (locks,) = charged.execute(
            "SELECT count(*) FROM pg_locks WHERE relation = 'confide.record'::regclass AND mode = 'ExclusiveLock'"
        )
        assert locks == (1,)


def test_a_busy_ledger_says_so_and_readers_do_not_wait(charged):
    import psycopg

    with psycopg.connect(charged.url(JOBS)) as holder:
        holder.execute("SELECT confide.lock_ledger()")
        with refused(LedgerError, "ledger"):
            Ledger(charged.url(JOBS), timeout=0.2).charge("patients", COST, DIGEST)
        assert Ledger(charged.url(OFFICERS)).account("patients").spent().epsilon == 2.0
    assert len(Ledger(charged.url(JOBS)).account("patients").entries) == 2


def test_passwords_are_nowhere(charged, monkeypatch):
    """The password is neither in a ledger's texts nor in an error."""
    ledger = Ledger(charged.url(JOBS))
    assert pickle.loads(pickle.dumps(ledger)) == ledger  # noqa: S301
    shown = [repr(ledger), str(ledger.path), json.dumps(ledger.export(), default=str)]
    broken = charged.url(JOBS).replace("127.0.0.1", "127.0.0.1:x")
    addresses = [
        charged.url("unknown"), broken, charged.url(JOBS) + "?nonsense=1", charged.url(JOBS).replace("@", "@@"),
        f"postgresql://127.0.0.1:1/x?password={PASSWORD}", f"postgresql://{PASSWORD}/{PASSWORD}@h:1/x",
        f"postgresql://me:{PASSWORD}?{PASSWORD}@127.0.0.1:1/x",
    ]  # fmt: skip
    for address in addresses:
        with pytest.raises(ConfideError) as caught:
            Ledger(address, timeout=1.0)
        error = caught.value
        while error is not None:
            shown += [str(error), repr(error)]
            error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    assert PASSWORD not in "\n".join(shown)


def test_a_server_keeps_who_charges_itself(on_server, tmp_path):
    with refused(InputError, "by"):
        Ledger(on_server.url(), by="me")
    ledger = Ledger(tmp_path / "budget.db", by="audit team")
    ledger.charge("patients", COST, DIGEST)
    assert ledger.account("patients").entries[0].by == "audit team"
