"""`Ledger`: records the privacy budget spent on each data set, and charges before anything is released.

The order is fixed, and each step is on disk before the next begins:

    1. charge the cost, if the limit allows it      2. run the mechanism      3. store the release
                                                                              4. return the release

If a process dies after step 1, its charge stands without a release. If it dies after step 3, the release can be read
again. There is no release without a charge, and no charge is ever taken back.

With a release the ledger stores a fingerprint of the mechanism's input, under a key of its own. It compares these
fingerprints to decide whether a request that looks identical is about the same data.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from confide.errors import InputError
from confide.ledger import decisions
from confide.ledger.account import Account, Entry, account_as_json, find_account
from confide.ledger.composition import Limit
from confide.ledger.cost import Cost, check_name, decimal_form
from confide.ledger.decisions import Charge, Decision, as_dataset, check_binding, check_limit, find_same_data, new_token
from confide.ledger.events import ChargedEvent, Event, LimitedEvent
from confide.ledger.identity import Dataset, keyed_digest
from confide.ledger.log import Log, Server, parse_location
from confide.ledger.state import State
from confide.ledger.stores import open_log, retried
from confide.mechanisms import NEIGHBORS, Neighbors
from confide.support import SCHEMA, Described, Section, describe, listening, log_event, one_of, positive_number

_IDENTITY = b"confide/ledger/identity/1"


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
        Seconds to wait for other processes, and for a server, positive.
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
    _known: State = field(init=False, repr=False, compare=False)
    """The state at the last reading."""

    def __init__(
        self,
        path: str | Path | Server,
        *,
        create: bool = True,
        limit: float | tuple[float, float] | Limit | None = None,
        timeout: float = 30.0,
        by: str | None = None,
    ) -> None:
        object.__setattr__(self, "path", parse_location(path))
        object.__setattr__(self, "create", create)
        object.__setattr__(self, "limit", None if limit is None else check_limit(limit))
        object.__setattr__(self, "timeout", positive_number("timeout", timeout))
        object.__setattr__(self, "by", None if by is None else check_name("by", by))
        if by is not None and isinstance(self.path, Server):
            raise InputError("by", "must be left out: a server stores the role that charges")
        object.__setattr__(self, "_known", State())
        open_log(self.path, create=create, timeout=self.timeout)
        self.snapshot()

    def _section(self) -> Section:
        return replace(describe(self.snapshot()), title=repr(self))

    def _brief(self) -> str:
        limit = "" if self.limit is None else f", limit {decimal_form(self.limit.epsilon)} for data sets without one"
        return f"{str(self.path)!r}{limit}"

    def accounts(self) -> dict[str, Account]:
        """The accounts by data set, in the order of their opening."""
        return dict(self.snapshot().accounts)

    def account(self, dataset: str) -> Account:
        """The account of one data set.

        Raises
        ------
        InputError
            If the ledger has no such data set.
        """
        accounts = self.accounts()
        if (account := find_account(accounts, dataset)) is None:
            others = "1 other" if len(accounts) == 1 else f"{len(accounts)} others"
            raise InputError("dataset", f"{dataset!r} is not in the ledger, which contains {others}")
        return account

    @retried
    def set_limit(
        self,
        dataset: str,
        limit: float | tuple[float, float] | Limit | None,
        *,
        neighbors: Neighbors = "add_remove",
    ) -> Account:
        """Set or remove (None) the limit of a data set, which is opened under `neighbors` if it is new.

        A limit may be below the budget already spent; then nothing more can be released. Old limits stay on record.

        Raises
        ------
        InputError
            If the data set is accounted under the other adjacency.
        """
        check_name("dataset", dataset)
        new = None if limit is None else check_limit(limit)
        relation = one_of("neighbors", neighbors, NEIGHBORS)
        return self._account_after(dataset, decisions.set_limit(dataset, new, relation))

    def relation(self, dataset: str) -> Neighbors | None:
        """The adjacency under which a data set is accounted; None if it is new."""
        account = find_account(self.accounts(), dataset)
        return account.neighbors if account else None

    def find(self, dataset: str | Dataset, request: str, mechanism_input: bytes) -> Entry | None:
        """Find the newest stored release of an identical request about the same data; None without such a request.

        Parameters
        ----------
        dataset
            The data set.
        request
            Digest of the request (`request_digest`).
        mechanism_input
            The mechanism's input, as bytes that are the same for the same data; see `attach`.

        Raises
        ------
        OtherDataError
            If there are stored releases of this request about other data only, or the data set is bound to other data.
        """
        data, state = as_dataset(dataset), self.snapshot()
        account = find_account(state.accounts, data.name)
        if account is None:
            return None
        check_binding(account, data)
        entries = account.answers(request)
        return find_same_data(account.dataset, entries, mechanism_input, state.key) if entries else None

    def charge(
        self,
        dataset: str | Dataset,
        cost: Cost,
        request: str,
        *,
        token: str | None = None,
        at_most: float | tuple[float, float] | Limit | None = None,
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
        >>> ledger.find("patients", "0" * 64, b"input of the mechanism").release
        'text of the release'
        >>> folder.cleanup()
        """
        one = Charge(as_dataset(dataset), cost, request, new_token() if token is None else token)
        return self.charge_all([one], at_most=at_most, again=again)[0]

    @retried
    def charge_all(
        self,
        charges: Sequence["Charge"],
        *,
        at_most: float | tuple[float, float] | Limit | None = None,
        again: bool = False,
    ) -> list[str]:
        """Charge several releases about one data set in one transaction, all or none; otherwise as `charge`."""
        if not charges:
            return []
        most = None if at_most is None else check_limit(at_most)
        state = self._decided(decisions.charge_all(charges, self.limit, most, again=again))
        if listening("ledger"):
            after = find_account(state.accounts, charges[0].dataset.name)
            assert after is not None
            for one in charges:
                price, left = one.cost, after.remaining(one.cost.group)
                of = {"neighbors": price.neighbors, "mechanism": price.mechanism}
                of |= {} if price.group is None else price.group._asdict()
                log_event("ledger", "charged", dataset=after.dataset, epsilon=price.epsilon, left=left, **of)
        return [one.token for one in charges]

    def lock(self, token: str) -> AbstractContextManager[None]:
        """Lock a token from before its charge until its release is stored; other processes wait for the lock.

        Under the lock a charge without a release was interrupted. The lock ends with its process. A file is locked as a
        whole, one token at a time. On a system without file locks (Windows) nothing is locked.

        Raises
        ------
        LedgerError
            If another process holds it for longer than the ledger's timeout.

        Examples
        --------
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     ledger = Ledger(Path(folder) / "budget.db")
        ...     with ledger.lock("ab" * 16):
        ...         token = ledger.charge("patients", Cost(1.0, "add_remove", "slopes"), "0" * 64, token="ab" * 16)
        ...         ledger.attach(token, "text of the release")
        """
        return self._log().lock(token)

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
            stored. Without it the release is never found for an identical request.

        Raises
        ------
        InputError
            If the token is unknown or already has its release.
        """
        self.attach_all([(token, release, mechanism_input)])

    @retried
    def attach_all(self, releases: Sequence[tuple[str, str, bytes | None]]) -> None:
        """Store several releases in one transaction, all or none; each is (token, text, input) as in `attach`."""
        if not releases:
            return
        self._decided(decisions.keep_all(releases))

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
        return {"kind": "confide/ledger", "schema": SCHEMA, "datasets": list(map(account_as_json, accounts))}

    def records(self) -> list[tuple[str, Event]]:
        """All records with their times. They contain the ledger's key: not for publication."""
        return list(self.snapshot().records)

    def hashes(self) -> list[str]:
        """The hashes of all records, oldest first. The last one depends on all records."""
        return list(self.snapshot().hashes)

    def identity(self) -> str:
        """Public identifier of this ledger and its copies, 64 hexadecimal digits.

        It is a digest under the ledger's own key, so that it reveals nothing about the contents. A ledger that was
        restored from a backup has the same identifier.
        """
        key = self._decided(decisions.make_key).key
        assert key is not None
        return keyed_digest(key, _IDENTITY)

    def snapshot(self) -> State:
        """Read the ledger at one moment, and check that it still has every record read before."""
        log, known = self._log(), self._known
        return self._remember(known.caught_up(log.since(known.head.number), lambda: log.since(0), self.path))

    def _decided(self, decide: Decision) -> State:
        """The state after a decision that no other process interleaves; its records are on disk when this returns."""
        log, known = self._log(), self._known
        with log.writing(known.head.number) as writing:
            state = known.caught_up(list(writing.rows), lambda: log.since(0), self.path)
            rows = [writing.append(_signed(event, writing.by or self.by)) for event in decide(state)]
        return self._remember(state.after(rows))

    def _account_after(self, dataset: str, decide: Decision) -> Account:
        account = find_account(self._decided(decide).accounts, dataset)
        assert account is not None
        return account

    def _remember(self, state: State) -> State:
        object.__setattr__(self, "_known", state)
        return state

    def _log(self) -> Log:
        return open_log(self.path, create=False, timeout=self.timeout)


def _signed(event: Event, by: str | None) -> Event:
    """The record with the account that charged or set a limit: the server's role, or the text of `by`."""
    return replace(event, by=by) if isinstance(event, ChargedEvent | LimitedEvent) else event
