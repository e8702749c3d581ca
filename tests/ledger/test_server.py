"""A ledger on a PostgreSQL server: roles, checks on reading, and required server settings."""

# ruff: noqa: S608 - statements that must be refused

import json
import pickle
from contextlib import nullcontext

import numpy as np
import pytest

import confide
from confide.cli import main
from confide.errors import ConfideError, FormatError, InputError, LedgerError
from confide.ledger import Cost, Ledger, Server, make_server_ledger, request_digest
from confide.ledger.database import transaction
from confide.ledger.schema import TABLES
from tests.files import class_table, write
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
    with pytest.warns(confide.errors.EarlierReleaseWarning):
        assert confide.calibrate(scores, 0.1, 1.0, ledger=ledger, dataset="patients") == released
    entries = ledger.account("patients").entries
    assert [entry.by for entry in entries] == [JOBS] * 3
    assert entries[0].charged_at == charged.execute("SELECT made FROM confide.charge ORDER BY id")[0][0]
    assert ledger.export()["datasets"][0]["entries"][0]["by"] == JOBS


def test_limits_are_the_owners_and_new_data_sets_begin_with_one(charged):
    jobs = Ledger(charged.url(JOBS), limit=2.0)
    with refused(LedgerError, "ledger"):
        jobs.set_limit("patients", 1000.0)
    jobs.charge("new", COST, DIGEST)
    assert jobs.account("new").limit == (2.0, 0.0)
    assert jobs.account("patients").limit == (100.0, 0.0)


COLUMNS = ", ".join(TABLES["charge"])
ROW = f"INSERT INTO confide.charge ({COLUMNS}, seal) SELECT md5(token)"
REST = f"{COLUMNS.removeprefix('token')}, seal FROM confide.charge"
FORBIDDEN = {
    "delete": "DELETE FROM confide.charge",
    "delete the last": "DELETE FROM confide.charge WHERE id = (SELECT max(id) FROM confide.charge)",
    "delete a release": "DELETE FROM confide.release",
    "update": "UPDATE confide.charge SET epsilon = 0",
    "truncate": "TRUNCATE confide.release",
    "merge": "MERGE INTO confide.charge USING (SELECT 1) AS one ON true WHEN MATCHED THEN DELETE",
    "upsert": f"{ROW}{REST} ON CONFLICT (id) DO UPDATE SET epsilon = 0",
    "drop": "DROP TABLE confide.release",
    "drop the schema": "DROP SCHEMA confide CASCADE",
    "drop a guard": "DROP TRIGGER keep ON confide.charge",
    "drop a function": "DROP FUNCTION confide.refuse() CASCADE",
    "disable guards": "ALTER TABLE confide.charge DISABLE TRIGGER ALL",
    "replication": "SET session_replication_role = replica",
    "no policies": "ALTER TABLE confide.release DISABLE ROW LEVEL SECURITY",
    "add a column": "ALTER TABLE confide.charge ADD COLUMN x int",
    "rename": "ALTER TABLE confide.charge RENAME TO other",
    "own": f'ALTER TABLE confide.charge OWNER TO "{JOBS}"',
    "a trigger": "CREATE TRIGGER mine BEFORE INSERT ON confide.charge EXECUTE FUNCTION confide.refuse()",
    "a rule": "CREATE RULE mine AS ON INSERT TO confide.charge DO INSTEAD NOTHING",
    "a policy": "CREATE POLICY mine ON confide.release USING (true)",
    "a function": "CREATE FUNCTION confide.sha256(bytea) RETURNS bytea LANGUAGE sql AS 'SELECT $1'",
    "another lock": """CREATE OR REPLACE FUNCTION confide.lock_ledger() RETURNS void LANGUAGE sql AS 'SELECT'""",
    "a table": "CREATE TABLE confide.other (x int)",
    "become the owner": "SET ROLE owner",
    "the owner's session": "SET SESSION AUTHORIZATION owner",
    "give rights away": f'GRANT ALL ON confide.charge TO "{OTHER_JOBS}"',
    "hold everybody up": "LOCK TABLE confide.charge IN ACCESS EXCLUSIVE MODE",
    "lock rows": "SELECT * FROM confide.charge FOR UPDATE",
    "another number": f"INSERT INTO confide.charge (id, {COLUMNS}, seal) SELECT 1000, md5(token){REST}",
    "another time": f"INSERT INTO confide.charge ({COLUMNS}, made, seal) SELECT md5(token)"
    f"{REST.replace(', seal', ', made, seal')}",
    "in another's name": f"INSERT INTO confide.charge ({COLUMNS}, by, seal) SELECT md5(token)"
    f"{REST.replace(', seal', ', by, seal')}",
    "by copying": "COPY confide.charge FROM STDIN",
    "raise the limit": "INSERT INTO confide.bound (dataset, epsilon, dp_delta, seal) VALUES ('patients', 1e9, 0, '')",
    "another key": "UPDATE confide.ledger SET key = ''",
    "a second key": "INSERT INTO confide.ledger (schema, key) VALUES (1, '')",
    "a second account": """INSERT INTO confide.dataset (key, name, neighbors, seal)
        VALUES ('patients', 'p', 'add_remove', '')""",
    "the same charge": f"INSERT INTO confide.charge ({COLUMNS}, seal) SELECT {COLUMNS}, seal FROM confide.charge",
    "the same release": "INSERT INTO confide.release (token, text, seal) SELECT token, text, seal FROM confide.release",
    "a release of nobody's charge": f"INSERT INTO confide.release (token, text, seal) VALUES ('{'1' * 32}', '', '')",
}  # fmt: skip


_GUARDS = """SELECT r.relname, r.relacl::text, r.relowner, r.relrowsecurity, t.tgname, t.tgenabled, p.prosrc
    FROM pg_class AS r LEFT JOIN pg_trigger AS t ON t.tgrelid = r.oid LEFT JOIN pg_proc AS p ON p.oid = t.tgfoid
    WHERE r.relnamespace = 'confide'::regnamespace ORDER BY 1, 5"""


def rows(charged):
    return {table: charged.execute(f"SELECT * FROM confide.{table} ORDER BY 1") for table in ("ledger", *TABLES)}


@pytest.mark.slow
@pytest.mark.parametrize("what", FORBIDDEN)
def test_a_charging_role_may_only_add(charged, what):
    """The attempt changes nothing, and the ledger still works."""
    import psycopg

    before, guards = rows(charged), charged.execute(_GUARDS)
    only_warned = FORBIDDEN[what].startswith("GRANT")  # of a right that one may not give away
    with nullcontext() if only_warned else pytest.raises(psycopg.Error):
        charged.execute(FORBIDDEN[what], role=JOBS)
    assert rows(charged) == before
    assert charged.execute(_GUARDS) == guards
    Ledger(charged.url(JOBS)).charge("patients", COST, DIGEST)


@pytest.mark.slow
def test_a_release_belongs_to_the_role_that_paid(charged):
    with refused(LedgerError, "ledger"):
        Ledger(charged.url(OTHER_JOBS)).attach(TOKEN, "a false release")
    Ledger(charged.url(JOBS)).attach(TOKEN, "the true one")


@pytest.mark.slow
def test_names_in_temporary_schemas_are_not_looked_up(charged):
    """A table or a function with the same name by another role does not replace those that the ledger uses."""
    import psycopg

    charged.execute("GRANT TEMPORARY ON DATABASE " + charged.database + " TO PUBLIC")
    with psycopg.connect(charged.url(JOBS), autocommit=True) as connection:
        connection.execute("CREATE TEMP TABLE charge (token text, by text)")
        connection.execute(f"INSERT INTO charge VALUES ('{TOKEN}', '{OTHER_JOBS}')")
        connection.execute("SET search_path = pg_temp, confide, pg_catalog")
        connection.execute("SELECT confide.lock_ledger()")
        stored = f"INSERT INTO confide.release (token, text, seal) VALUES ('{TOKEN}', 'false', '')"
        with psycopg.connect(charged.url(OTHER_JOBS), autocommit=True) as other:
            other.execute("SET search_path = pg_temp, confide, pg_catalog")
            other.execute("CREATE TEMP TABLE charge (token text, by text)")
            other.execute(f"INSERT INTO charge VALUES ('{TOKEN}', '{OTHER_JOBS}')")
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                other.execute(stored)


@pytest.mark.slow
def test_what_others_put_into_the_public_schema_is_not_run(charged):
    """Before PostgreSQL 15 every role may create functions there, and the best match of arguments is called."""
    charged.execute("GRANT CREATE ON SCHEMA public TO PUBLIC")
    made = """public.current_setting(text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN
        DELETE FROM confide.charge; RETURN 'on'; END $$"""
    charged.execute(f"CREATE FUNCTION {made}", role=JOBS)
    Ledger(charged.url()).charge("patients", COST, DIGEST)
    assert len(Ledger(charged.url()).account("patients").entries) == 3
    charged.execute("DROP FUNCTION public.current_setting(text)")


NONSENSE = {
    "a false seal": "INSERT INTO confide.dataset (key, name, neighbors, seal) VALUES ('x', 'x', 'add_remove', '')",
    "a false charge": f"{ROW}{REST} LIMIT 1",
}


@pytest.mark.slow
@pytest.mark.parametrize("what", NONSENSE)
def test_the_owner_takes_out_a_row_that_contradicts_the_others(charged, what):
    """The worst row by a charging role: the ledger raises errors, and a repair loses no charge."""
    charged.execute(NONSENSE[what], role=JOBS)
    for role in (JOBS, OFFICERS):
        with pytest.raises(FormatError):
            Ledger(charged.url(role)).accounts()
    table = "dataset" if "dataset" in NONSENSE[what].split("(")[0] else "charge"
    charged.tamper(f"DELETE FROM confide.{table} WHERE id = (SELECT max(id) FROM confide.{table})")
    Ledger(charged.url(JOBS)).charge("patients", COST, DIGEST)
    assert len(Ledger(charged.url()).account("patients").entries) == 3


@pytest.mark.slow
def test_readers_see_everything_but_the_key(charged):
    import psycopg

    ledger = Ledger(charged.url(OFFICERS))
    assert ledger.export() == Ledger(charged.url(JOBS)).export()
    with refused(LedgerError, "ledger"):
        ledger.charge("patients", COST, DIGEST)
    for column in ("key", "*"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            charged.execute(f"SELECT {column} FROM confide.ledger", role=OFFICERS)


@pytest.mark.slow
def test_the_owner_erases_nothing_by_accident(charged):
    import psycopg

    for what in ("delete", "delete a release", "update", "truncate", "another key"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            charged.execute(FORBIDDEN[what])


@pytest.mark.slow
def test_altered_rows_are_found_on_reading(charged):
    """By a role that may switch the triggers off, and switches them on again; all changes of rows: test_files.py."""
    charged.tamper("UPDATE confide.charge SET made = '2020-01-01T00:00:00+00:00' WHERE id = 1")
    for role in (JOBS, OFFICERS):
        with pytest.raises(FormatError):
            Ledger(charged.url(role)).accounts()


@pytest.mark.parametrize(
    "kept", ["CREATE TABLE confide.record (id bigint)", "ALTER TABLE confide.charge RENAME TO other"]
)
def test_a_ledger_of_an_earlier_version_never_counts_as_empty(on_server, kept):
    """Refused before anything is read or charged, with the remedy; also for the owner who would create a new one."""
    on_server.execute(kept)
    scores = np.full(9, 0.5)
    for open_it in (
        lambda: confide.calibrate(scores, 0.1, 1.0, ledger=Ledger(on_server.url(JOBS)), dataset="patients"),
        lambda: make_server_ledger(on_server.url()),
    ):
        with refused(FormatError, "ledger") as caught:
            open_it()
        assert "confide ledger init --spent EPSILON" in str(caught.value)


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


@pytest.mark.slow
def test_a_charge_is_on_disk_whatever_the_role_prefers(charged):
    """Under synchronous_commit = off a commit could be forgotten; the transaction that charges sets it on."""
    address = charged.url(JOBS) + "?options=-csynchronous_commit%3Doff"
    with transaction(Server(address), 5.0, write=True) as connection:
        assert connection.rows("SHOW synchronous_commit") == [{"synchronous_commit": "on"}]
        assert connection.rows("SHOW transaction_isolation") == [{"transaction_isolation": "read committed"}]
        (locks,) = charged.execute(
            "SELECT count(*) FROM pg_locks WHERE relation = 'confide.charge'::regclass AND mode = 'ExclusiveLock'"
        )
        assert locks == (1,)


@pytest.mark.slow
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


# The command line

ASK = ("--probabilities", "p_*", "--label", "name", "--alpha", "0.1", "--epsilon", "1")


@pytest.fixture
def said(capfd, monkeypatch):
    """Runs commands with the password in the environment; at the end all their output is searched for it."""
    printed = []
    monkeypatch.setenv("PGPASSWORD", PASSWORD)

    def run(*arguments: object) -> tuple[int, str]:
        code = main([str(one).replace(f":{PASSWORD}@", "@") for one in arguments])
        out, err = capfd.readouterr()
        printed.append(out + err)
        return code, printed[-1]

    yield run
    assert PASSWORD not in "".join(printed)


@pytest.mark.slow
def test_the_commands_of_a_ledger(on_server, said, tmp_path):
    """Jobs charge up to the limit; the owner sets limits; auditors read; passwords are in no output and no file."""
    owner, jobs, officers = on_server.url(), on_server.url(JOBS), on_server.url(OFFICERS)
    records = write(tmp_path / "records.parquet", class_table())
    paid = ("calibrate", records, *ASK, "--ledger", jobs, "--dataset", "patients", "--out")
    assert said("ledger", "init", owner, "--charge-role", JOBS, "--read-role", OFFICERS)[0] == 0
    assert said("ledger", "limit", owner, "patients", 1.5)[0] == 0
    assert said(*paid, tmp_path / "one.json")[0] == 0
    code, out = said(*paid, tmp_path / "two.json")
    assert code == 0
    assert "nothing was charged" in out
    code, out = said(*paid, tmp_path / "three.json", "--set", "n_min=2")
    assert code == 3
    assert "0.5 left of its limit epsilon = 1.5" in out
    code, out = said("ledger", "limit", jobs, "patients", 100)
    assert code == 3
    assert "limits are the owner's" in out
    code, out = said("ledger", "show", officers, "patients")
    assert JOBS in out
    assert "limit 1.5, 0.5 left" in said("ledger", "list", officers)[1]
    for command, out in (("export", "export.json"), ("show", "report.html")):
        assert said("ledger", command, officers, "--out", tmp_path / out)[0] == 0
    for address in (jobs.replace(PASSWORD, "wrong"), jobs.replace("127.0.0.1:", "127.0.0.1:x"), jobs + "?x=1"):
        assert said("ledger", "list", address)[0] == 3
    for file in tmp_path.iterdir():
        assert PASSWORD.encode() not in file.read_bytes()
