"""A ledger on a PostgreSQL server: an append-only table, the triggers that guard it, and its roles.

The triggers run as the ledger's owner. One links every new record to the last: it numbers, dates and hashes the record,
and checks the role that writes it. The other rejects changes, deletions and truncation, also by the owner. A role that
may charge can therefore append records that follow the existing ones, and nothing else:

    owner       everything that the triggers allow: limits, other roles
    charging    reads records; inserts records that open a data set, charge it, or store its own releases
    reading     reads records, but not the ledger's key
"""

import re
from collections.abc import Iterable
from typing import Any

from confide.errors import InputError
from confide.support import SCHEMA

MARK = f"confide/ledger {SCHEMA}"
"""The comment of the table: kind and schema."""

_APPEND = """
DECLARE
  before confide.record;
  content jsonb := new.body::jsonb;
  owns boolean := pg_has_role(session_user, current_user, 'MEMBER');
BEGIN
  LOCK TABLE confide.record IN EXCLUSIVE MODE;
  SELECT * INTO before FROM confide.record ORDER BY id DESC LIMIT 1;
  IF before.id IS NULL THEN
    before.id := 0;
    before.seal := repeat('0', 64);
  END IF;
  new.kind := content ->> 'kind';
  new.token := content ->> 'token';
  IF num_nonnulls(new.id, new.made, new.seal) > 0 THEN
    RAISE EXCEPTION 'the server numbers, dates and hashes records' USING ERRCODE = '42501';
  END IF;
  IF new.kind IN ('charged', 'limited') AND content ->> 'by' IS DISTINCT FROM session_user::text THEN
    RAISE EXCEPTION 'charges and limits name the role that sets them' USING ERRCODE = '42501';
  END IF;
  new.made := to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"+00:00"');
  IF NOT coalesce(owns OR new.kind IN ('opened', 'keyed', 'charged')
      OR (new.kind = 'limited' AND before.kind = 'opened'
          AND before.body::jsonb ->> 'dataset' = content ->> 'dataset')
      OR (new.kind = 'released' AND EXISTS (
          SELECT FROM confide.record AS paid WHERE paid.kind = 'charged' AND paid.token = new.token
          AND paid.body::jsonb ->> 'by' = session_user::text)), false) THEN
    RAISE EXCEPTION 'only the owner may do that' USING ERRCODE = '42501';
  END IF;
  new.id := before.id + 1;
  new.seal := encode(sha256(convert_to(before.seal || E'\\n' || new.made || E'\\n' || new.body, 'UTF8')), 'hex');
  RETURN new;
END
"""

_REFUSE = """
BEGIN
  RAISE EXCEPTION 'append-only' USING ERRCODE = '42501';
END
"""

_LOCK = """
BEGIN
  LOCK TABLE confide.record IN EXCLUSIVE MODE;
END
"""

FUNCTIONS = {"append": ("trigger", _APPEND), "refuse": ("trigger", _REFUSE), "lock_ledger": ("void", _LOCK)}
TRIGGERS = {
    "append": ("append", "BEFORE INSERT", "ROW"),
    "keep": ("refuse", "BEFORE UPDATE OR DELETE OR TRUNCATE", "STATEMENT"),
}

_TABLES = """
CREATE SCHEMA confide;
CREATE TABLE confide.record (
  id bigint PRIMARY KEY,
  made text NOT NULL,
  body text NOT NULL,
  seal text NOT NULL,
  kind text,
  token text
);
CREATE UNIQUE INDEX once ON confide.record (kind, token) WHERE kind IN ('charged', 'released');
CREATE UNIQUE INDEX one_key ON confide.record (kind) WHERE kind = 'keyed';
CREATE VIEW confide.shown AS
  SELECT id, made, CASE WHEN kind = 'keyed' THEN NULL ELSE body END AS body, seal FROM confide.record;
"""

STATE = """
SELECT session_user::text, obj_description(r.oid, 'pg_class'),
  current_setting('server_version_num')::int, current_setting('fsync'), current_setting('full_page_writes'),
  has_table_privilege(r.oid, 'SELECT'), pg_has_role(session_user, r.relowner, 'MEMBER'),
  r.relhasrules OR r.relrowsecurity,
  (SELECT json_object_agg(t.tgname, json_build_array(p.proname, t.tgenabled, t.tgtype))
     FROM pg_trigger AS t JOIN pg_proc AS p ON p.oid = t.tgfoid WHERE t.tgrelid = r.oid AND NOT t.tgisinternal),
  (SELECT json_object_agg(p.proname, json_build_array(p.prosrc, p.prosecdef, p.proconfig, p.proowner = r.relowner))
     FROM pg_proc AS p WHERE p.pronamespace = r.relnamespace)
FROM pg_class AS r JOIN pg_namespace AS n ON n.oid = r.relnamespace
WHERE n.nspname = 'confide' AND r.relname = 'record' AND r.relkind = 'r'
"""
"""The state of a ledger's triggers, as visible to a role; no row if there is no ledger."""

_PATH = "search_path=pg_catalog, pg_temp"
_TYPES = {"append": 7, "keep": 58}
"""PostgreSQL's type numbers of these triggers."""


_MAY_CHARGE = (
    "USAGE ON SCHEMA confide",
    "SELECT, INSERT (body) ON confide.record",
    "EXECUTE ON FUNCTION confide.lock_ledger()",
)
_MAY_READ = ("USAGE ON SCHEMA confide", "SELECT ON confide.shown")


def guards_unchanged(triggers: dict[str, list[Any]], functions: dict[str, list[Any]]) -> bool:
    """Whether triggers and functions are unchanged since `create`, and enabled."""
    on = {name: [function, "A", _TYPES[name]] for name, (function, _, _) in TRIGGERS.items()}
    own = {name: [body, True, [_PATH], True] for name, (_, body) in FUNCTIONS.items()}
    return triggers == on and functions == own


def create(connection: Any) -> None:
    """Create an empty ledger in the transaction of this connection; its role becomes the owner."""
    connection.execute(_TABLES)
    for name, (gives, body) in FUNCTIONS.items():
        connection.execute(
            f"CREATE FUNCTION confide.{name}() RETURNS {gives} LANGUAGE plpgsql SECURITY DEFINER "
            f"SET search_path = pg_catalog, pg_temp AS $code${body}$code$"
        )
        connection.execute(f"REVOKE ALL ON FUNCTION confide.{name}() FROM PUBLIC")
    for name, (function, when, each) in TRIGGERS.items():
        connection.execute(
            f"CREATE TRIGGER {name} {when} ON confide.record FOR EACH {each} EXECUTE FUNCTION confide.{function}()"
        )
        connection.execute(f"ALTER TABLE confide.record ENABLE ALWAYS TRIGGER {name}")
    connection.execute(f"COMMENT ON TABLE confide.record IS '{MARK}'")


def grant(connection: Any, charging: Iterable[str], reading: Iterable[str]) -> None:
    """Let roles charge, or read. A role that does not exist is created without login, for others to be members of."""
    from psycopg import sql

    rights = ((charging, _MAY_CHARGE), (reading, _MAY_READ))
    for roles, granted in rights:
        for role in roles:
            check_role(role)
            if connection.execute("SELECT FROM pg_roles WHERE rolname = %s", (role,)).fetchone() is None:
                connection.execute(sql.SQL("CREATE ROLE {} NOLOGIN").format(sql.Identifier(role)))
            for right in granted:
                connection.execute(sql.SQL(f"GRANT {right} TO {{}}").format(sql.Identifier(role)))


def check_role(role: str) -> str:
    """Check a role's name: letters, digits and _ - . within PostgreSQL's length limit.

    Examples
    --------
    >>> check_role("calibrating-jobs")
    'calibrating-jobs'
    """
    if not re.fullmatch(r"[A-Za-z_][\w.-]{0,62}", role, re.ASCII) or role.lower() == "public" or role.startswith("pg_"):
        raise InputError("role", "must be a name of 1 to 63 letters, digits, '_', '-' and '.'", got=repr(role))
    return role
