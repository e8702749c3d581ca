"""Transactions on a ledger in a file or on a server, and its rows as accounts and charges (docs/ledger-format.md).

A writer holds the ledger from before it reads until its transaction ends, so that no other process charges between its
check and its charge. The transaction is on disk when the block ends without an error.

The row of a charge contains the exact totals of its data set after this charge. A decision reads the last rows alone.
"""

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from confide.errors import ConfideError, FormatError
from confide.ledger import file, server
from confide.ledger.account import Account, Entry
from confide.ledger.composition import Limit, Sums, Totals
from confide.ledger.cost import Cost, Group
from confide.ledger.decisions import Charge
from confide.ledger.identity import Dataset
from confide.ledger.location import RESTORE, Server
from confide.ledger.names import name_key, warn_of_similar_names
from confide.ledger.rows import Connection, Row, check_seals
from confide.ledger.schema import TABLES
from confide.mechanisms import Neighbors

# Transactions


def open_ledger(place: Path | Server, *, create: bool, timeout: float) -> None:
    """Create a missing file if `create` is true, and check that a file or a server has a ledger of this version."""
    if isinstance(place, Server):
        server.check(place, timeout)
    else:
        file.check(place, create=create)


def transaction(
    place: Path | Server, timeout: float, *, write: bool = False, by: str | None = None
) -> AbstractContextManager[Connection]:
    """A transaction that reads one state, or that also writes; `timeout` in seconds, for others and for the server."""
    if isinstance(place, Server):
        return server.transaction(place, timeout, write=write)
    return file.transaction(place, timeout, write=write, by=by)


def lock(place: Path | Server, names: Sequence[str], timeout: float) -> AbstractContextManager[None]:
    """Lock names, one process at a time; others wait as long as it lasts."""
    return server.lock(place, names, timeout) if isinstance(place, Server) else file.lock(place, names, timeout)


# Accounts and charges

_ENTRIES = """SELECT charge.*, dataset.neighbors, release.text, release.fingerprint FROM charge
  JOIN dataset ON dataset.key = charge.dataset LEFT JOIN release ON release.token = charge.token
  WHERE {} ORDER BY charge.id"""


def read_key(connection: Connection) -> str:
    """The ledger's key."""
    (row,) = connection.rows("SELECT key FROM ledger")
    return str(row["key"])


def open_account(
    connection: Connection, data: Dataset, neighbors: Neighbors, limit: Limit | None, groups: Sequence[Group] = ()
) -> Account:
    """The account of a data set, which is opened with this limit if it is new."""
    if (account := read_account(connection, data.name, groups)) is not None:
        return account
    warn_of_similar_names(data.name, [row["name"] for row in connection.rows("SELECT name FROM dataset ORDER BY id")])
    opening = {"key": name_key(data.name), "name": data.name, "neighbors": neighbors, "fingerprint": data.fingerprint}
    connection.add("dataset", **opening, **_limit_columns(limit))
    return Account(data.name, neighbors, data.fingerprint, limit)


def add_limit(connection: Connection, dataset: str, limit: Limit | None) -> None:
    """Add the row of a limit, or of its removal."""
    connection.add("bound", dataset=name_key(dataset), **_limit_columns(limit))


def _limit_columns(limit: Limit | None) -> dict[str, float | None]:
    return {"epsilon": None, "dp_delta": None} if limit is None else limit._asdict()


def read_account(connection: Connection, name: str, groups: Sequence[Group] = ()) -> Account | None:
    """The account of a data set without its entries, with the sums of these cells; None if it is new."""
    key = name_key(name)
    # The last rows of the data set, of its limits, and of its charges
    if (row := connection.last("dataset", "WHERE key = ?", key)) is None:
        return None
    limit = connection.last("bound", "WHERE dataset = ?", key) or row
    newest = connection.last("charge", "WHERE dataset = ?", key)
    totals = Totals() if newest is None else _totals(newest)

    # The last rows of each cell and of its partition
    cells: dict[Group, Sums] = {}
    partitions: dict[str, Sums] = {}
    shared: set[str] = set()
    where = "WHERE dataset = ? AND division = ?"
    for group in groups:
        of_partition = connection.last("charge", where, key, group.partition)
        if of_partition is not None:
            partitions[group.partition] = _totals(of_partition).partitions[group.partition]
        of_cell = connection.last("charge", f"{where} AND cell = ?", key, *group)
        if of_cell is not None:
            cells[group] = _totals(of_cell).cells[group]
        if group.partition not in shared and _has_other_cell(connection, key, group.partition, groups):
            shared.add(group.partition)
    totals = replace(totals, cells=cells, partitions=partitions)
    return _account(row, limit, totals=totals, shared=frozenset(shared))


def _has_other_cell(connection: Connection, key: str, partition: str, groups: Sequence[Group]) -> bool:
    """Whether a cell of a partition was charged that is none of these."""
    # One look-up for each of these cells, however many charges there are
    after = ""
    next_cell = """SELECT min(cell) AS cell FROM charge WHERE dataset = ? AND division = ? AND cell > ?
      AND epsilon > 0"""
    while (cell := connection.rows(next_cell, key, partition, after)[0]["cell"]) is not None:
        if Group(partition, cell) not in groups:
            return True
        after = cell
    return False


def add_charge(connection: Connection, account: Account, charge: Charge) -> Account:
    """Add the row of a charge; the account after it."""
    cost = charge.cost
    after = account.after(cost)
    partition, cell = cost.group or (None, None)
    connection.add(
        "charge",
        token=charge.token,
        dataset=name_key(account.dataset),
        request=charge.request,
        mechanism=cost.mechanism,
        epsilon=cost.epsilon,
        rho=cost.rho,
        division=partition,
        cell=cell,
        totals=_written(after.totals, cost.group),
    )
    return after


def read_entries(connection: Connection, **columns: str) -> tuple[Entry, ...]:
    """The charges with these values of columns, oldest first, with their releases."""
    where = " AND ".join(f"charge.{name} = ?" for name in columns)
    return tuple(_entry(row) for row in connection.rows(_ENTRIES.format(where), *columns.values()))


def read_entry(connection: Connection, token: str) -> Entry | None:
    """The charge with this token; None if there is none."""
    entries = read_entries(connection, token=token)
    return entries[0] if entries else None


def seal_of_charge(connection: Connection, number: int) -> str | None:
    """The seal of the charge with this number; None if there is none."""
    rows = connection.rows("SELECT seal FROM charge WHERE id = ?", number)
    return rows[0]["seal"] if rows else None


def read_accounts(connection: Connection) -> dict[str, Account]:
    """All accounts, after a check of every seal and of every total."""
    # No page is damaged, no row changed or missing
    connection.check_whole()
    rows = {table: connection.rows(f"SELECT * FROM {table} ORDER BY id") for table in TABLES}
    for table, table_rows in rows.items():
        check_seals(table, table_rows)

    # The totals of each charge are those of the charges up to it
    totals = {row["key"]: Totals() for row in rows["dataset"]}
    entries: dict[str, list[Entry]] = {key: [] for key in totals}
    for row in connection.rows(_ENTRIES.format("true")):
        entry = _entry(row)
        key = row["dataset"]
        totals[key] = totals[key].plus(entry.cost)
        if row["totals"] != _written(totals[key], entry.cost.group):
            raise contradiction(f"charge {row['id']}")
        entries[key].append(entry)
    if sum(map(len, entries.values())) != len(rows["charge"]):
        raise contradiction("charge")

    # The last limit of a data set holds
    limits = {row["key"]: row for row in rows["dataset"]} | {row["dataset"]: row for row in rows["bound"]}
    accounts = {}
    for row in rows["dataset"]:
        key = row["key"]
        accounts[row["name"]] = _account(row, limits[key], entries=tuple(entries[key]), totals=totals[key])
    return accounts


def contradiction(place: str) -> FormatError:
    """The error for rows that cannot be together."""
    return FormatError(place, "must not contradict the other rows of the ledger", remedy=RESTORE)


def _account(row: Row, limit: Row, **charges: Any) -> Account:
    """The account of a data set's row; `limit` is the row of its last limit, or its own."""
    return Account(row["name"], row["neighbors"], row["fingerprint"], _limit(limit), **charges)


def _group(row: Row) -> Group | None:
    return None if row["division"] is None else Group(row["division"], row["cell"])


def _entry(row: Row) -> Entry:
    try:
        cost = Cost(row["epsilon"], row["neighbors"], row["mechanism"], row["rho"], _group(row))
    except ConfideError:
        raise contradiction(f"charge {row['id']}") from None
    return Entry(row["token"], row["made"], row["request"], cost, row["text"], row["fingerprint"], row["by"])


def _limit(row: Row) -> Limit | None:
    return None if row["epsilon"] is None else Limit(row["epsilon"], row["dp_delta"])


def _written(totals: Totals, group: Group | None) -> str:
    """The totals after a charge as JSON."""
    content: dict[str, Any] = {
        "sums": list(map(str, totals.sums)),
        "kinds": dict(sorted(totals.kinds.items())),
        "bare": totals.bare,
        "concentrated": totals.concentrated,
    }
    if group is not None:
        content["cell"] = list(map(str, totals.cells[group]))
        content["largest"] = list(map(str, totals.partitions[group.partition]))
    return json.dumps(content)


def _totals(row: Row) -> Totals:
    """The totals of the row of a charge, with those of its own cell and partition."""
    try:
        content = json.loads(row["totals"])
        sums = {name: Sums(*map(Fraction, content[name])) for name in ("sums", "cell", "largest") if name in content}
        totals = Totals(sums["sums"], content["kinds"], content["bare"], content["concentrated"])
        if (group := _group(row)) is None:
            return totals
        return replace(totals, cells={group: sums["cell"]}, partitions={group.partition: sums["largest"]})
    except (ValueError, TypeError, KeyError, ArithmeticError):
        raise contradiction(f"charge {row['id']}") from None
