"""The rows of a ledger in one transaction, in a file or on a server; each has a seal of its content.

A ledger that lacks a row that was read before is an older copy: a backup that was put back.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from confide.errors import FormatError
from confide.ledger.location import RESTORE, MissingRecordsError, Server
from confide.ledger.schema import TABLES, seal

Row: TypeAlias = dict[str, Any]
# The number, seal, time and account of the last row of each table
Heads: TypeAlias = Mapping[str, Row]


class Checkpoint(NamedTuple):
    """The last charge of a ledger at some time: its number from 1 (0 if there is none), and its seal."""

    number: int = 0
    seal: str = ""


class AddedRow(NamedTuple):
    """The place and the seal of a new row."""

    table: str
    number: int
    seal: str


class Connection:
    """A transaction on the driver's connection `raw`; `?` stands for a value in its statements.

    `by` is the account of new rows in a file; a server states the role.
    """

    def __init__(self, raw: Any, *, on_server: bool, by: str | None = None) -> None:
        self._raw = raw
        self._on_server = on_server
        self._by = by
        self.added: AddedRow | None = None  # the last new row

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
        self.added = AddedRow(table, new[0]["id"], sealed)

    def check_whole(self) -> None:
        """SQLite's own check of all pages of a file; a server checks its own."""
        if not self._on_server and self._raw.execute("PRAGMA integrity_check(1)").fetchone()[0] != "ok":
            raise FormatError("ledger", "must pass SQLite's integrity check: it is damaged", remedy=RESTORE)

    def heads(self, place: Path | Server, known: Heads) -> Heads:
        """The last rows now; raises `MissingRecordsError` if a row of an earlier reading is missing."""
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
    """Check the seals of consecutive rows after the row `before`, or from the first one of the table."""
    for row in rows:
        if row["seal"] != seal(before, [row[name] for name in TABLES[table]], row["seal"][:16]):
            must = "must have the seal of its content: the ledger was altered or damaged"
            raise FormatError(f"{table} {row['id']}", must, remedy=RESTORE)
        before = row
