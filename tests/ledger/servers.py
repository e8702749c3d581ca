"""Ledgers on a PostgreSQL server: a database for each, copied from a template."""

import itertools
import secrets
from dataclasses import dataclass
from urllib.parse import urlsplit

from confide.ledger import make_server_ledger
from confide.ledger.schema import TABLES
from tests.tables.postgres_server import OWNER, PASSWORD, Server

JOBS, OTHER_JOBS, OFFICERS = "calibrating-jobs", "other-jobs", "privacy_officers"
_TEMPLATE = "ledger_template"
_NUMBERS = itertools.count()


@dataclass(frozen=True)
class ServerLedger:
    """The addresses of a ledger, by role."""

    server: Server
    database: str

    def url(self, role: str = OWNER) -> str:
        return url(self.server, role, self.database)

    def execute(self, statement: str, *values: object, role: str = OWNER) -> list[tuple]:
        """The result of a statement, run by a role in a transaction of its own."""
        import psycopg

        with psycopg.connect(self.url(role)) as connection:
            cursor = connection.execute(statement, values or None)
            return cursor.fetchall() if cursor.description else []

    def tamper(self, *statements: str) -> None:
        """Change rows by the owner, who switches the triggers off and on again."""
        import psycopg

        with psycopg.connect(self.url()) as connection:
            for word in ("DISABLE", "ENABLE"):
                for table in ("ledger", *TABLES):
                    connection.execute(f"ALTER TABLE confide.{table} {word} TRIGGER keep")
                if word == "DISABLE":
                    for statement in statements:
                        connection.execute(statement)


def url(server: Server, role: str, database: str) -> str:
    return urlsplit(server.url(role))._replace(path=f"/{database}").geturl()


def make_template(server: Server) -> None:
    """An empty ledger, and roles that may log in and charge, or read."""
    import psycopg

    with psycopg.connect(server.url(OWNER), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {_TEMPLATE}")
        for role in (JOBS, OTHER_JOBS, OFFICERS):
            connection.execute(f"CREATE ROLE \"{role}\" LOGIN PASSWORD '{PASSWORD}'")
    make(url(server, OWNER, _TEMPLATE))


def make(address: str) -> None:
    """An empty ledger that these roles may use."""
    make_server_ledger(address, charge_roles=(JOBS, OTHER_JOBS), read_roles=(OFFICERS,))


def new_database(server: Server, template: str = _TEMPLATE) -> str:
    """A database of its own: with an empty ledger, or, from template1, without."""
    import psycopg

    name = f"ledger_{next(_NUMBERS)}_{secrets.token_hex(4)}"
    with psycopg.connect(server.url(OWNER), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
    return name
