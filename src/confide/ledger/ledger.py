"""`Ledger`: records the privacy budget spent on each data set, and charges before anything is released.

A charge is on disk before its mechanism runs, and a release before it is returned. There is no release without a
charge, and no charge is ever taken back: if a process dies in between, the charge stands without a release.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from confide.ledger.account import Account, Entry
from confide.ledger.composition import Limit, Totals
from confide.ledger.cost import Cost, check_name
from confide.ledger.database import (
    add_charge,
    add_limit,
    lock,
    open_account,
    open_ledger,
    read_account,
    read_accounts,
    read_entries,
    read_entry,
    read_key,
    seal_of_charge,
    transaction,
)
from confide.ledger.decimals import decimal_form
from confide.ledger.decisions import (
    Charge,
    LimitLike,
    ReleaseOfCharge,
    as_dataset,
    check_binding,
    check_cells,
    check_limit,
    check_limits,
    check_relation,
    check_release,
    new_token,
)
from confide.ledger.identity import Dataset, keyed_digest
from confide.ledger.location import NotWrittenError, Server, parse_location
from confide.ledger.names import name_key
from confide.ledger.rows import Checkpoint, Connection, Heads, missing
from confide.ledger.server import waits_for_server
from confide.mechanisms import NEIGHBORS, Neighbors
from confide.support import SCHEMA, Described, Section, listening, log_event, one_of, positive_number, require

# What the key of a ledger signs for its public identifier
_IDENTITY = b"confide/ledger/identity/1"

Result = TypeVar("Result")


class Lookup(NamedTuple):
    """The account without its entries, the charges by request, newest first, and the ledger's key."""

    account: Account | None
    charges: Mapping[str, tuple[Entry, ...]]
    key: str


class _LastReading:
    """The last row of each table at the last reading: the only part of a `Ledger` that changes."""

    def __init__(self) -> None:
        self.heads: Heads = {}


@dataclass(frozen=True, repr=False)
class Ledger(Described):
    """A privacy-budget ledger, in one SQLite file or on a PostgreSQL server.

    Several threads and processes can use a ledger at once. The file of a ledger must be on a local disk, because
    network file systems do not lock it reliably. Several machines can use a ledger on a PostgreSQL server.

    Parameters
    ----------
    path
        The file, which is created if it does not exist and `create` is true. Or `postgresql://role@host/database`,
        where `confide ledger init` has created a ledger; the attribute is then a `Server`, whose text has no password.
    create
        Create a missing file.
    limit
        Limit of data sets when they are first charged: a number (pure epsilon) or (epsilon, dp_delta); None for no
        limit. Existing data sets keep their limit. For an existing data set without a limit, every charge through this
        `Ledger` must fit this limit, which the file does not record.
    timeout
        Seconds to wait while another process charges, and for a server; positive. If an identical request is in
        progress, the ledger waits until it has ended, however long that takes.
    by
        Who charges: a public name of 1 to 200 printable characters, which a file stores with charges and limits; None
        stores nothing. On a server it must be left out, because the server stores the role.

    Raises
    ------
    LedgerError, FormatError
        If the file cannot be created or read, or the server cannot be used. If the ledger is damaged, of another
        program, or of a newer schema.

    Examples
    --------
    >>> import confide, numpy as np, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = confide.Ledger(Path(folder.name) / "budget.db", limit=2.0)
    >>> scores = np.random.default_rng(0).random(2000)
    >>> first = confide.calibrate(scores, alpha=0.1, epsilon=1.5, ledger=ledger, dataset="patients")
    >>> first.epsilon, ledger.account("patients").remaining()
    (1.5, 0.5)
    >>> confide.calibrate(scores, alpha=0.2, epsilon=1.0, ledger=ledger, dataset="patients")
    Traceback (most recent call last):
        ...
    confide.errors.BudgetError: dataset: 'patients' has 0.5 left of its limit epsilon = 2, and this release costs ...
    >>> folder.cleanup()
    """

    path: Path | Server
    create: bool = True
    limit: Limit | None = None
    timeout: float = 30.0
    by: str | None = None
    _last: _LastReading = field(init=False, repr=False, compare=False)

    def __init__(
        self,
        path: str | Path | Server,
        *,
        create: bool = True,
        limit: LimitLike | None = None,
        timeout: float = 30.0,
        by: str | None = None,
    ) -> None:
        # The fields of a frozen value cannot be set one by one
        vars(self).update(
            path=parse_location(path),
            create=create,
            limit=None if limit is None else check_limit(limit),
            timeout=positive_number("timeout", timeout),
            by=None if by is None else check_name("by", by),
            _last=_LastReading(),
        )
        on_server = isinstance(self.path, Server)
        require("by", by is None or not on_server, "must be left out: a server stores the role that charges")
        open_ledger(self.path, create=create, timeout=self.timeout)
        self._read(lambda connection: None)

    def _section(self) -> Section:
        spent = tuple((account.dataset, account.summary) for account in self.accounts().values())
        return Section(repr(self), "" if spent else "no data sets", spent)

    def _brief(self) -> str:
        limit = "" if self.limit is None else f", limit {decimal_form(self.limit.epsilon)} for data sets without one"
        return f"{str(self.path)!r}{limit}"

    def accounts(self) -> dict[str, Account]:
        """The accounts by data set, in the order of their opening. Every row of the ledger is read and checked."""
        return self._read(read_accounts)

    def account(self, dataset: str) -> Account:
        """The account of one data set.

        Raises
        ------
        InputError
            If the ledger has no such data set.
        """
        accounts = {name_key(name): account for name, account in self.accounts().items()}
        others = "1 other" if len(accounts) == 1 else f"{len(accounts)} others"
        is_known = name_key(dataset) in accounts
        require("dataset", is_known, f"{dataset!r} is not in the ledger, which contains {others}")
        return accounts[name_key(dataset)]

    def set_limit(self, dataset: str, limit: LimitLike | None, *, neighbors: Neighbors = "add_remove") -> Account:
        """Set or remove (None) the limit of a data set, which is opened under `neighbors` if it is new.

        A limit may be below the budget already spent; then nothing more can be released. Old limits stay on record.

        Returns
        -------
        account
            The account with the new limit.

        Raises
        ------
        InputError
            If the data set is accounted under the other adjacency.
        """
        check_name("dataset", dataset)
        new = None if limit is None else check_limit(limit)
        relation = one_of("neighbors", neighbors, NEIGHBORS)

        def write(connection: Connection) -> Account:
            account = open_account(connection, Dataset(dataset), relation, None)
            check_relation(account, relation)
            add_limit(connection, dataset, new)
            entries = read_entries(connection, dataset=name_key(dataset))
            return replace(account, limit=new, entries=entries, totals=Totals.of(entry.cost for entry in entries))

        return self._write(write)

    def balance(self, dataset: str) -> Account | None:
        """The account of a data set without its entries; None if it is new. This is fast for any number of charges."""
        return self._read(lambda connection: read_account(connection, dataset))

    def relation(self, dataset: str) -> Neighbors | None:
        """The adjacency under which a data set is accounted; None if it is new."""
        account = self.balance(dataset)
        return None if account is None else account.neighbors

    def entry(self, token: str) -> Entry | None:
        """The charge with this token; None if there is none."""
        return self._read(lambda connection: read_entry(connection, token))

    def is_about(self, entry: Entry, mechanism_input: bytes) -> bool:
        """Whether a stored release was computed from these data; false if it has no fingerprint of them."""
        return entry.fingerprint == keyed_digest(self._read(read_key), mechanism_input)

    def look_up(self, datasets: Sequence[Dataset], requests: Iterable[str]) -> Lookup:
        """The account of one data set with these cells, and all charges of these requests, in one reading."""
        name = datasets[0].name

        def read(connection: Connection) -> Lookup:
            account = read_account(connection, name, [data.group for data in datasets if data.group])
            key = name_key(name)
            charges = {request: read_entries(connection, dataset=key, request=request)[::-1] for request in requests}
            return Lookup(account, charges, read_key(connection))

        return self._read(read)

    def charge(
        self,
        dataset: str | Dataset,
        cost: Cost,
        request: str,
        *,
        token: str | None = None,
        at_most: LimitLike | None = None,
        again: bool = False,
    ) -> str:
        """Charge a release before it is drawn. When this returns, the charge is on disk.

        Parameters
        ----------
        dataset
            The data set, which is opened under the cost's adjacency if it is new.
        cost
            The cost; its group must be that of the data set.
        request
            Digest of the request (`request_digest`), 64 hexadecimal digits.
        token
            32 to 64 hexadecimal digits that no charge in this ledger has had; by default random.
        at_most
            A limit in addition to the data set's own.
        again
            True for the same people with new records or a new model: a binding to earlier data is not checked.

        Returns
        -------
        token
            Pass it to `attach` with the release.

        Warns
        -----
        SimilarNameWarning
            If the data set is new, and its name is similar to an existing one.

        Raises
        ------
        BudgetError
            If the limit does not allow it; then nothing was charged.
        InputError
            If the data set is accounted under the other adjacency, or bound to other data, or the token was used.
        LedgerError
            If the ledger cannot be written. Then release nothing.

        Examples
        --------
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> ledger = Ledger(Path(folder.name) / "budget.db")
        >>> token = ledger.charge("patients", Cost(1.0, "add_remove", "slopes"), "0" * 64)
        >>> ledger.attach(token, "text of the release", b"input of the mechanism")
        >>> ledger.entry(token).release
        'text of the release'
        >>> folder.cleanup()
        """
        charge = Charge(as_dataset(dataset), cost, request, new_token() if token is None else token)
        return self.charge_all([charge], at_most=at_most, again=again)[0]

    def charge_all(
        self, charges: Sequence[Charge], *, at_most: LimitLike | None = None, again: bool = False
    ) -> list[str]:
        """Charge several releases about one data set in one transaction, all or none; arguments of `charge`."""
        if not charges:
            return []
        extra_limit = None if at_most is None else check_limit(at_most)
        datasets = {(charge.dataset.name, charge.dataset.fingerprint) for charge in charges}
        require("charges", len(datasets) == 1, "must be about one data set", got="several")

        def write(connection: Connection) -> Account:
            return _add_charges(connection, charges, self.limit, extra_limit, again=again)

        after = self._write(write)
        if listening("ledger"):
            _log_charges(charges, after)
        return [charge.token for charge in charges]

    def lock(self, *names: str) -> AbstractContextManager[None]:
        """Lock names, such as a token or a request, while the block runs; other processes and threads wait for its end.

        If a charge has no release although you hold its lock, the process that charged was interrupted. A lock is
        released when its process ends. On a system without file locks (Windows) nothing is locked.

        Raises
        ------
        LedgerError
            If the lock cannot be taken: the folder of a file is read-only, or the server is lost.

        Examples
        --------
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     ledger = Ledger(Path(folder) / "budget.db")
        ...     with ledger.lock("ab" * 16):
        ...         token = ledger.charge("patients", Cost(1.0, "add_remove", "slopes"), "0" * 64, token="ab" * 16)
        ...         ledger.attach(token, "text of the release")
        """
        return lock(self.path, names, self.timeout)

    def attach(self, token: str, release: str, mechanism_input: bytes | None = None) -> None:
        """Store the release of a charge. When this returns, it is on disk and may be published.

        Parameters
        ----------
        token
            From `charge`.
        release
            Its text.
        mechanism_input
            The mechanism's input, as bytes that are the same for the same data. Only a keyed fingerprint of them is
            stored. If left out, an identical request never returns this release.

        Raises
        ------
        InputError
            If the token is unknown or already has its release.
        """
        self.attach_all([ReleaseOfCharge(token, release, mechanism_input)])

    def attach_all(self, releases: Sequence[ReleaseOfCharge]) -> None:
        """Store several releases in one transaction, all or none."""
        if not releases:
            return
        for release in releases:
            check_release(release.text)

        def write(connection: Connection) -> None:
            key = read_key(connection)
            for release in releases:
                entry = read_entry(connection, release.token)
                is_due = entry is not None and entry.release is None
                require("token", is_due, "must be that of a charge without a release", got="none")
                # The data themselves are never stored
                mark = None if release.mechanism_input is None else keyed_digest(key, release.mechanism_input)
                connection.add("release", token=release.token, text=release.text, fingerprint=mark)

        self._write(write)

    def export(self) -> dict[str, Any]:
        """The contents of the ledger as plain data for JSON, without key and fingerprints.

        Infinite losses are the text `"+inf"`.

        Examples
        --------
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Ledger(Path(folder) / "budget.db").export()
        {'kind': 'confide/ledger', 'schema': 1, 'datasets': []}
        """
        accounts = self.accounts().values()
        return {"kind": "confide/ledger", "schema": SCHEMA, "datasets": [account.as_json() for account in accounts]}

    def identity(self) -> str:
        """Public identifier of this ledger and its copies, 64 hexadecimal digits that reveal nothing of the contents.

        A ledger that was restored from a backup has the same identifier.
        """
        return keyed_digest(self._read(read_key), _IDENTITY)

    def checkpoint(self, known: Checkpoint, who: str) -> Checkpoint:
        """The last charge, after a check that the ledger still has the last charge that `who` knows.

        Raises
        ------
        MissingRecordsError
            If the ledger lacks that charge: an older copy of the ledger was put back, or it is another ledger.
        """
        seal = self._read(lambda connection: seal_of_charge(connection, known.number))
        if known.number and seal != known.seal:
            raise missing(self.path, "charge", known.number, who)
        last = self._last.heads.get("charge")
        return Checkpoint() if last is None else Checkpoint(last["id"], last["seal"])

    def _read(self, work: Callable[[Connection], Result]) -> Result:
        """Read in one transaction, after a check that the ledger has every row that was read before."""
        # Before the transaction begins, because other threads may write and remember more
        known = self._last.heads
        with transaction(self.path, self.timeout) as connection:
            heads = connection.heads(self.path, known)
            result = work(connection)
        self._last.heads = heads
        return result

    def _write(self, work: Callable[[Connection], Result]) -> Result:
        """Write in one transaction that no other process interleaves, on disk when this returns."""
        # Repeated until the timeout, while a lost server has certainly written nothing
        end = time.monotonic() + self.timeout
        while True:
            known = self._last.heads
            try:
                with transaction(self.path, self.timeout, write=True, by=self.by) as connection:
                    connection.heads(self.path, known)
                    result = work(connection)
                    heads = connection.heads(self.path, {})
            except NotWrittenError:
                if not waits_for_server(end, after="write"):
                    raise
            else:
                # Only now are the rows on disk
                self._last.heads = heads
                return result


def _add_charges(
    connection: Connection, charges: Sequence[Charge], standard: Limit | None, at_most: Limit | None, *, again: bool
) -> Account:
    """Check charges about one data set, and add them; the account after them."""
    # A token is charged once
    for charge in charges:
        is_new = read_entry(connection, charge.token) is None
        require("token", is_new, "must be new", remedy="The ledger has a charge with this token")

    # Check all charges before the first is added; an error takes back the opening of the data set
    data = charges[0].dataset
    groups = [charge.dataset.group for charge in charges if charge.dataset.group]
    account = open_account(connection, data, charges[0].cost.neighbors, standard, groups)
    for charge in charges:
        check_relation(account, charge.cost.neighbors)
    if not again:
        check_binding(account, data)
    check_cells(account, [charge.dataset for charge in charges])
    check_limits(account, [charge.cost for charge in charges], standard, at_most)

    # Each row has the totals after it
    for charge in charges:
        account = add_charge(connection, account, charge)
    return account


def _log_charges(charges: Sequence[Charge], after: Account) -> None:
    """Log charges, with what is left after all of them."""
    for cost in [charge.cost for charge in charges]:
        about = {"neighbors": cost.neighbors, "mechanism": cost.mechanism}
        if cost.group is not None:
            about |= cost.group._asdict()
        left = after.remaining(cost.group)
        log_event("ledger", "charged", dataset=after.dataset, epsilon=cost.epsilon, left=left, **about)
