"""The five tables of a ledger: one schema for SQLite and PostgreSQL (docs/ledger-format.md).

`ledger` has one row with the schema and the key. Rows of the others are only added: triggers reject changes, and on a
server the rights of roles do as well.
"""

import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from confide.support import SCHEMA, checksum, json_number, require

# The columns of each table, with the types of both databases
_COLUMNS = {
    "dataset": "key TEXT NOT NULL UNIQUE, name TEXT NOT NULL, neighbors TEXT NOT NULL, fingerprint TEXT, "
    "epsilon {number}, dp_delta {number}",
    "bound": "dataset TEXT NOT NULL REFERENCES dataset (key), epsilon {number}, dp_delta {number}",
    "charge": "token TEXT NOT NULL UNIQUE, dataset TEXT NOT NULL REFERENCES dataset (key), request TEXT NOT NULL, "
    "mechanism TEXT NOT NULL, epsilon {number} NOT NULL, rho {number}, division TEXT, cell TEXT, totals TEXT NOT NULL",
    "release": "token TEXT NOT NULL UNIQUE REFERENCES charge (token), text TEXT NOT NULL, fingerprint TEXT",
}

# Their names; each table has also a number, a time, an account and a seal
TABLES: Mapping[str, Sequence[str]] = {
    table: [column.split()[0] for column in columns.split(", ")] for table, columns in _COLUMNS.items()
}

_ROW = "id {id}, {columns}, made TEXT NOT NULL {now}, by TEXT {who}, seal TEXT NOT NULL"
_INDEXES = {
    "charge_last": "CREATE INDEX charge_last ON charge (dataset, id)",
    "charge_request": "CREATE INDEX charge_request ON charge (dataset, request, id)",
    "charge_division": "CREATE INDEX charge_division ON charge (dataset, division, id) WHERE division IS NOT NULL",
    "charge_cell": "CREATE INDEX charge_cell ON charge (dataset, division, cell, id) WHERE division IS NOT NULL",
}
_IN_FILE = {"id": "INTEGER PRIMARY KEY", "number": "REAL", "now": "", "who": "", "strict": "STRICT"}
_ON_SERVER = {
    "id": "BIGINT PRIMARY KEY GENERATED ALWAYS AS IDENTITY",
    "number": "DOUBLE PRECISION",
    "now": """DEFAULT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"+00:00"')""",
    "who": "DEFAULT session_user",
    "strict": "",
}


def statements(*, server: bool) -> dict[str, str]:
    """The statements that create the tables and indexes, by name."""
    types = _ON_SERVER if server else _IN_FILE
    creating = {"ledger": f"CREATE TABLE ledger (schema INTEGER NOT NULL, key TEXT NOT NULL) {types['strict']}".strip()}
    for table, columns in _COLUMNS.items():
        row = _ROW.format(columns=columns.format(**types), **types)
        creating[table] = f"CREATE TABLE {table} ({row}) {types['strict']}".strip()
    return creating | _INDEXES


def guards() -> dict[str, str]:
    """The triggers of a file that reject changes, by name."""
    refused = "BEGIN SELECT RAISE(ABORT, 'append-only'); END"
    return {
        f"{table}_{change}": f"CREATE TRIGGER {table}_{change} BEFORE {change.upper()} ON {table} {refused}"
        for table in ("ledger", *TABLES)
        for change in ("update", "delete")
    }


def first_row() -> str:
    """The statement that adds the schema and a new key."""
    return f"INSERT INTO ledger (schema, key) VALUES ({SCHEMA}, '{secrets.token_hex(32)}')"


def seal(before: Mapping[str, Any] | None, values: Iterable[Any], salt: str | None = None) -> str:
    """The seal of a row: 16 random hexadecimal digits (`salt`, if a seal is compared), and 48 digits of a checksum.

    The checksum is that of a list: the 16 digits; seal, time and account of the row before, or three None; and the
    values of the row. Because of the random digits, two copies of a ledger differ as soon as both are written to.
    """
    digits = salt or secrets.token_hex(8)
    earlier = [None if before is None else before[name] for name in ("seal", "made", "by")]
    return digits + checksum([digits, *earlier, *map(json_number, values)])[:48]


_REFUSE = """CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN RAISE EXCEPTION 'append-only' USING ERRCODE = '42501'; END $$"""
_LOCK = """CREATE FUNCTION lock_ledger() RETURNS void LANGUAGE sql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp AS 'LOCK TABLE confide.charge IN EXCLUSIVE MODE'"""
_PATH = "SET LOCAL search_path = confide, pg_catalog, pg_temp"
# Compares with the charge in the name of the role that inserts, which may read it
_OWN_CHARGES = """CREATE POLICY of_own_charges ON release FOR INSERT WITH CHECK (EXISTS (
  SELECT FROM charge AS paid WHERE paid.token = release.token AND paid.by = session_user))"""


def create_on_server(connection: Any) -> None:
    """Create an empty ledger in the transaction of this connection; its role becomes the owner."""
    # Tables, and the functions that they need
    connection.execute("CREATE SCHEMA confide")
    connection.execute(_PATH)
    for statement in (*statements(server=True).values(), first_row(), _REFUSE, _LOCK):
        connection.execute(statement)
    for function in ("refuse", "lock_ledger"):
        connection.execute(f"REVOKE ALL ON FUNCTION {function}() FROM PUBLIC")
    # Rows are only added, also by the owner
    for table in ("ledger", *TABLES):
        change = f"BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} FOR EACH STATEMENT"
        connection.execute(f"CREATE TRIGGER keep {change} EXECUTE FUNCTION refuse()")
    # A role stores releases of its own charges only
    connection.execute("ALTER TABLE release ENABLE ROW LEVEL SECURITY")
    connection.execute("CREATE POLICY all_read ON release FOR SELECT USING (true)")
    connection.execute(_OWN_CHARGES)


def grant(connection: Any, charging: Iterable[str], reading: Iterable[str]) -> None:
    """Let roles charge, or read. A role that does not exist is created without login, for others to be members of."""
    # Rights, by columns: time, number and account of a row are the server's, and limits are the owner's
    reads = [f"SELECT ON confide.{table}" for table in TABLES]
    adds = [
        f"INSERT ({', '.join(columns)}, seal) ON confide.{table}"
        for table, columns in TABLES.items()
        if table != "bound"
    ]
    charges = ["SELECT ON confide.ledger", *reads, *adds, "EXECUTE ON FUNCTION confide.lock_ledger()"]
    for role in charging:
        _grant_role(connection, role, charges)
    for role in reading:
        _grant_role(connection, role, ["SELECT (schema) ON confide.ledger", *reads])


def _grant_role(connection: Any, role: str, rights: Sequence[str]) -> None:
    from psycopg import sql

    name = sql.Identifier(role)
    if connection.execute("SELECT FROM pg_roles WHERE rolname = %s", (role,)).fetchone() is None:
        connection.execute(sql.SQL("CREATE ROLE {} NOLOGIN").format(name))
    for right in ("USAGE ON SCHEMA confide", *rights):
        connection.execute(sql.SQL(f"GRANT {right} TO {{}}").format(name))


def check_role(role: str) -> None:
    """Check a role's name: letters, digits and _ - . within PostgreSQL's length limit."""
    is_name = re.fullmatch(r"[A-Za-z_][\w.-]{0,62}", role, re.ASCII)
    is_reserved = role.lower() == "public" or role.startswith("pg_")
    must = (
        "must be a name of 1 to 63 letters, digits, '_', '-' and '.' that begins with a letter or '_', other than "
        "'public' and 'pg_...'"
    )
    require("role", is_name and not is_reserved, must, got=repr(role))
