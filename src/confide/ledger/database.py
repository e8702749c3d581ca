"""Transactions on a ledger, by the drivers of SQLite and PostgreSQL.

A writer holds the ledger from before it reads until its transaction ends, so that no other process charges between its
check and its charge. The transaction is on disk when the block ends without an error.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

from confide.errors import FormatError
from confide.ledger import file, server
from confide.ledger.location import RESTORE, MissingRecordsError, Server
from confide.ledger.schema import TABLES, seal

Row: TypeAlias = dict[str, Any]
# The number, seal, time and account of the last row of each table
Heads: TypeAlias = Mapping[str, Row]


class Connection:
    """A transaction on the driver's connection `raw`; `?` stands for a value in its statements.

    `by` is the account of new rows in a file; a server states the role.
    """

    def __init__(self, raw: Any, *, on_server: bool, by: str | None = None) -> None:
        self._raw, self._on_server, self._by = raw, on_server, by
        # Table, number and seal of the last new row
        self.added: tuple[str, int, str] | None = None

    def rows(self, statement: str, *values: Any) -> list[Row]:
        """The rows of a statement, by column."""
        cursor = self._raw.execute(statement.replace("?", "%s") if self._on_server else statement, values)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def last(self, table: str, where: str = "", *values: Any) -> Row | None:
        """The last row that fits, after its seal was checked; None if there is none."""
        last = f"SELECT max(id) FROM {table} {where}"
        rows = self.rows(f"SELECT * FROM {table} WHERE id <= ({last}) ORDER BY id DESC LIMIT 2", *values)
        if not rows:
            return None
        check_seals(table, rows[:1], *rows[1:])
        return rows[0]

    def add(self, table: str, **values: Any) -> None:
        """Add a row with its seal."""
        sealed = seal(self.last(table), [values[name] for name in TABLES[table]])
        stated = {} if self._on_server else {"made": datetime.now(UTC).isoformat(timespec="seconds"), "by": self._by}
        row = values | stated | {"seal": sealed}
        places = ", ".join("?" * len(row))
        new = self.rows(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({places}) RETURNING id", *row.values())
        self.added = (table, new[0]["id"], sealed)

    def check_whole(self) -> None:
        """Check all pages of a file; a server checks its own."""
        if not self._on_server:
            file.check_whole(self._raw)

    def heads(self, place: Path | Server, known: Heads) -> Heads:
        """The last rows now.

        Raises
        ------
        MissingRecordsError
            If a row of an earlier reading is missing.
        """
        of_table = "SELECT '{0}' AS name, id, seal, made, by FROM {0} WHERE id IN (?, (SELECT max(id) FROM {0}))"
        numbers = [known[table]["id"] if table in known else 0 for table in TABLES]
        rows = self.rows(" UNION ALL ".join(map(of_table.format, TABLES)), *numbers)
        for table, row in known.items():
            if row not in rows:
                raise missing(place, table, row["id"], "this open ledger")
        # Of the known row and the last one, the last
        return {row["name"]: row for row in sorted(rows, key=lambda row: int(row["id"]))}


def missing(place: Path | Server, table: str, number: int, who: str) -> MissingRecordsError:
    """The error for a ledger without a row that `who` remembers."""
    return MissingRecordsError(
        "ledger",
        f"{str(place)!r} lacks {table} {number} of {who}: a backup was put back, or it is another ledger; later "
        "charges are missing",
        remedy="Charge nothing before you put the newest ledger back, or add the missing charges up",
    )


def check_seals(table: str, rows: Sequence[Row], before: Row | None = None) -> None:
    """Check the seals of consecutive rows after the row `before`, or from the first one of the table.

    Raises
    ------
    FormatError
        If a row was changed, or one before it was taken out.
    """
    for row in rows:
        if row["seal"] != seal(before, [row[name] for name in TABLES[table]], row["seal"][:16]):
            must = "must have the seal of its content: the ledger was altered or damaged"
            raise FormatError(f"{table} {row['id']}", must, remedy=RESTORE)
        before = row


def open_ledger(place: Path | Server, *, create: bool, timeout: float) -> None:
    """Create a missing file if `create` is true, and check that a file or a server has a ledger of this version."""
    if isinstance(place, Server):
        server.check(place, timeout)
    else:
        file.check(place, create=create)


@contextmanager
def transaction(
    place: Path | Server, timeout: float, *, write: bool = False, by: str | None = None
) -> Iterator[Connection]:
    """A transaction that reads one state, or that also writes; `timeout` in seconds, for others and for the server."""
    if isinstance(place, Server):
        with server.transaction(place, timeout, write=write) as (raw, added):
            connection = Connection(raw, on_server=True)
            yield connection
            added.append(connection.added)
    else:
        with file.transaction(place, timeout, write=write) as raw:
            yield Connection(raw, on_server=False, by=by)


def lock(place: Path | Server, names: Sequence[str], timeout: float) -> AbstractContextManager[None]:
    """Lock names, one process at a time; others wait as long as it lasts."""
    return server.lock(place, names, timeout) if isinstance(place, Server) else file.lock(place, names, timeout)
