"""`Ledger`: what has been spent on which data, charged before anything is released.

The order is always the same, and each step is on disk before the next begins:

    1. the cost is charged, if the limit allows it      2. the mechanism runs      3. the release is kept
                                                                                   4. the release is returned

A process that dies after 1 has paid for nothing; one that dies after 3 finds its release again. There is no release
without a charge, and no charge is ever taken back.

With a release the ledger keeps a fingerprint of what the mechanism saw, under a key of its own, so that it can tell
whether a request that looks identical is about the same data.
"""

import json
import math
import secrets
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from confide.errors import BudgetError, InputError, InputTypeError, OtherDataError, SimilarNameWarning
from confide.ledger.account import Account, Entry, known, replay
from confide.ledger.chain import Chain, Head, moved_to
from confide.ledger.composition import check_delta, worst
from confide.ledger.cost import Cost, check_name, decimal_above, decimal_form, unbounded
from confide.ledger.events import Charged, Event, Followed, Keyed, Limited, Opened, Released, check_release
from confide.ledger.identity import Dataset, is_hexadecimal, keyed_digest
from confide.ledger.limit import Limit
from confide.ledger.names import similar
from confide.ledger.place import Server, place_of
from confide.ledger.schedule import Schedule
from confide.ledger.stores import Store, Writer, open_store, tried_again
from confide.mechanisms import NEIGHBORS, Neighbors
from confide.support import Shown, html_table, listening, one_of, outside, positive_number, tell


@dataclass(frozen=True, repr=False)
class Ledger(Shown):
    """A privacy-budget ledger, in one SQLite file or on a PostgreSQL server.

    Safe to use from several threads and processes at once; a file on a local disk (not on a network file system), a
    server from several machines.

    Parameters
    ----------
    path
        The file; it is made if it does not exist and `create` is true. Or `postgresql://role@host/database`, where
        `confide ledger init` made a ledger; it is then kept as a `Server`, whose text has no password.
    create
        Whether a missing file is made.
    limit
        Limit that data sets get when they are first charged: a number (pure epsilon) or (epsilon, dp_delta); None for
        no limit. Known data sets keep the limit that they have; one without a limit is held to this one by every charge
        through this `Ledger`, and the file does not record it.
    timeout
        Seconds to wait for other processes, and for a server, positive.
    by
        Who charges: a public name, 1 to 200 printable characters, kept with charges and limits in a file; None keeps
        nothing. On a server it must be left out: the server keeps the role.

    Raises
    ------
    LedgerError, FormatError
        If the file cannot be made or read, or the server not used; if the ledger is damaged, of another program, or
        of a newer schema.

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
    confide.errors.BudgetError: dataset 'patients' has 0.5 left of its limit epsilon = 2, and this release costs 1; ...
    >>> folder.cleanup()
    """

    path: Path | Server
    create: bool = True
    limit: Limit | None = None
    timeout: float = 30.0
    by: str | None = None
    _known: Head = field(init=False, repr=False, compare=False)
    """How far it reached when it was last read: a copy of before, put back under an open ledger, is noticed."""

    def __init__(
        self,
        path: str | Path | Server,
        *,
        create: bool = True,
        limit: float | tuple[float, float] | Limit | None = None,
        timeout: float = 30.0,
        by: str | None = None,
    ) -> None:
        object.__setattr__(self, "path", place_of(path))
        object.__setattr__(self, "create", create)
        object.__setattr__(self, "limit", None if limit is None else check_limit(limit))
        object.__setattr__(self, "timeout", positive_number("timeout", timeout))
        object.__setattr__(self, "by", None if by is None else check_name("by", by))
        if by is not None and isinstance(self.path, Server):
            raise InputError("by must be left out: a server keeps the role that charges")
        object.__setattr__(self, "_known", open_store(self.path, create=create, timeout=self.timeout).chain().head)

    def __str__(self) -> str:
        return str(self.snapshot())

    def _brief(self) -> str:
        limit = "" if self.limit is None else f", limit {decimal_form(self.limit.epsilon)} for data sets without one"
        return f"{str(self.path)!r}{limit}"

    def _repr_html_(self) -> str:
        """What was spent on each data set and what is left, for notebooks; the ledger is read."""
        found = self.snapshot()
        rows = [(name, *account.summary.split("; ", 1)) for name, account in found.accounts.items()]
        moved = [] if found.moved_to is None else [str(found).splitlines()[-1]]
        return html_table(repr(self), ("data set", "spent", "limit"), rows or [("no data sets",)], moved)

    def accounts(self) -> dict[str, Account]:
        """What was spent, by data set, in the order of their opening."""
        return replay(self.records())

    def account(self, dataset: str) -> Account:
        """What was spent on one data set.

        Raises
        ------
        InputError
            If the ledger does not know it.
        """
        accounts = self.accounts()
        if (account := known(accounts, dataset)) is None:
            others = "1 other" if len(accounts) == 1 else f"{len(accounts)} others"
            raise InputError(f"dataset {dataset!r} is not in the ledger; it holds {others}")
        return account

    @tried_again
    def set_limit(
        self,
        dataset: str,
        limit: float | tuple[float, float] | Limit | None,
        *,
        neighbors: Neighbors = "add_remove",
    ) -> Account:
        """Set or lift (None) the limit of a data set, which is opened under `neighbors` if it is new.

        A limit may be set below what was spent already: then nothing more is released. Old limits stay on record.

        Raises
        ------
        InputError
            If the data set is known under the other relation.
        """
        check_name("dataset", dataset)
        new = None if limit is None else check_limit(limit)
        with self._writing() as writer:
            accounts = replay(writer.records)
            account = known(accounts, dataset)
            if account is None:
                _point_out(dataset, accounts)
                writer.append(Opened(dataset, one_of("neighbors", neighbors, NEIGHBORS), None))
            elif account.neighbors != neighbors:
                raise _other_relation(account, neighbors)
            name = dataset if account is None else account.dataset
            writer.append(Limited(name, new.epsilon if new else None, new.dp_delta if new else 0.0, self._who(writer)))
            return replay(writer.records)[name]

    @tried_again
    def follow(self, dataset: str, schedule: Schedule) -> Account:
        """Let charges to a data set follow a schedule from now on.

        A charge must then be of a kind of the schedule, within its count and not dearer than planned; others are
        refused (`BudgetError`). The data set is opened if it is new; without a limit it gets the schedule's. A later
        schedule replaces an earlier one.

        Parameters
        ----------
        dataset
            Its name.
        schedule
            From `budget_plan` or `Schedule.load`.

        Raises
        ------
        BudgetError
            If what was spent and all of the schedule together do not fit the limit, or a delta would be spent twice.
        InputError, InputTypeError
            If it is no schedule, or spends more than it says.

        Examples
        --------
        >>> import tempfile
        >>> from confide.ledger import budget_plan
        >>> year = budget_plan(3.0, releases=12, looks=52, looks_per_person=1, dp_delta=0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Ledger(Path(folder) / "budget.db").follow("patients", year).left
        {'calibration': 12, 'look': 52}
        """
        check_name("dataset", dataset)
        if not isinstance(schedule, Schedule):
            raise InputTypeError(f"schedule must be a confide.Schedule; found {type(schedule).__name__}")
        schedule.check()
        with self._writing() as writer:
            accounts = replay(writer.records)
            account = known(accounts, dataset)
            if account is None:
                _point_out(dataset, accounts)
                account = self._opened(writer, Dataset(dataset), schedule.neighbors)
            if (why := account.unfit(schedule)) is not None:
                raise BudgetError(f"dataset {account.dataset!r} {why}")
            if account.limit is None:
                writer.append(Limited(account.dataset, schedule.epsilon, schedule.dp_delta, self._who(writer)))
            writer.append(Followed(account.dataset, schedule))
            return replay(writer.records)[account.dataset]

    def relation(self, dataset: str) -> Neighbors | None:
        """The neighbouring relation that a data set is accounted under; None if it is new."""
        account = known(self.accounts(), dataset)
        return account.neighbors if account else None

    def find(self, dataset: str | Dataset, request: str, seen: bytes) -> Entry | None:
        """The newest kept release that answered an identical request about the same data; None if there is no request.

        Parameters
        ----------
        dataset
            The data set.
        request
            Digest of what is asked (`request_digest`).
        seen
            What the mechanism would see, in bytes that are the same for the same data; see `attach`.

        Raises
        ------
        OtherDataError
            If the request was answered about other data only, or the data set is bound to others.
        """
        data, records = as_dataset(dataset), self.records()
        account = known(replay(records), data.name)
        if account is None:
            return None
        check_binding(account, data)
        entries = account.answers(request)
        return recognised(account.dataset, entries, seen, key_of(records)) if entries else None

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
        """Charge a release that is about to be made. When this returns, the charge is on disk.

        Parameters
        ----------
        dataset
            The data set; opened under the cost's relation if it is new.
        cost
            The price; its group must be that of the data set.
        request
            Digest of what is asked (`request_digest`), 64 hexadecimal digits.
        token
            32 to 64 hexadecimal digits that no charge in this ledger has had; by default random ones.
        at_most
            A limit besides the data set's own.
        again
            These are the same people with new records or a new model: a binding to earlier data does not refuse them.

        Returns
        -------
        token
            To `attach` the release to this charge.

        Warns
        -----
        SimilarNameWarning
            If the data set is new, and its name looks like a known one.

        Raises
        ------
        BudgetError
            If the limit does not allow it; then nothing was charged.
        InputError
            If the data set is accounted under the other relation, or bound to other data, or the token was used.
        LedgerError
            If the ledger cannot be written; then do not release.

        Examples
        --------
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> ledger = Ledger(Path(folder.name) / "budget.db")
        >>> token = ledger.charge("patients", Cost(1.0, "add_remove", "slopes"), "0" * 64)
        >>> ledger.attach(token, "what was released", b"what the mechanism saw")
        >>> ledger.find("patients", "0" * 64, b"what the mechanism saw").release
        'what was released'
        >>> folder.cleanup()
        """
        token = secrets.token_hex(16) if token is None else token
        return self.charge_all([Charge(as_dataset(dataset), cost, request, token)], at_most=at_most, again=again)[0]

    @tried_again
    def charge_all(
        self,
        charges: Sequence["Charge"],
        *,
        at_most: float | tuple[float, float] | Limit | None = None,
        again: bool = False,
    ) -> list[str]:
        """Charge several releases about one data set in one transaction: all or none; as `charge`."""
        if not charges:
            return []
        data, costs = charges[0].dataset, [one.cost for one in charges]
        if any((one.dataset.name, one.dataset.fingerprint) != (data.name, data.fingerprint) for one in charges):
            raise InputError("charges must be about one data set; found several")
        with self._writing() as writer:
            before = replay(writer.records)
            used = {entry.token for account in before.values() for entry in account.entries}
            if used & {one.token for one in charges}:
                raise InputError("token must be new; the ledger has a charge with this one")
            account = known(before, data.name)
            if account is None:
                _point_out(data.name, before)
                account = self._opened(writer, data, costs[0].neighbors)
            for cost in costs:
                if account.neighbors != cost.neighbors:
                    raise _other_relation(account, cost.neighbors)
            if not again:
                check_binding(account, data)
            check_cells(account, [one.dataset for one in charges])
            besides = account if at_most is None else replace(account, limit=check_limit(at_most))
            for bounded in (self.limited(account), besides):
                if not bounded.allows(*costs):
                    raise BudgetError(refusal(bounded, *costs))
            _key(writer)
            for place, one in enumerate(charges):
                joined = place > 0 and account.schedule is not None
                writer.append(Charged(account.dataset, one.token, one.request, one.cost, joined, self._who(writer)))
            after = replay(writer.records)[account.dataset] if listening("ledger") else None
        if after is not None:
            for one in charges:
                price, left = one.cost, after.remaining(one.cost.group)
                of = {"neighbors": price.neighbors, "mechanism": price.mechanism}
                of |= {} if price.group is None else price.group._asdict()
                tell("ledger", "charged", dataset=after.dataset, epsilon=price.epsilon, left=left, **of)
        return [one.token for one in charges]

    def limited(self, account: Account) -> Account:
        """The account, under this ledger's limit if it has none of its own."""
        return replace(account, limit=self.limit) if account.limit is None else account

    def _opened(self, writer: Writer, data: Dataset, neighbors: Neighbors) -> Account:
        """A new account, with the limit that data sets get."""
        writer.append(Opened(data.name, neighbors, data.fingerprint))
        if self.limit is not None:
            writer.append(Limited(data.name, self.limit.epsilon, self.limit.dp_delta, self._who(writer)))
        return replay(writer.records)[data.name]

    def held(self, token: str) -> AbstractContextManager[None]:
        """Hold a token from before its charge until its release is kept: others who want to hold it wait.

        Under the hold a charge without a release is one that was interrupted. The hold ends with its process. A file
        is held whole, one token at a time; on a system without file locks (Windows) nothing is held.

        Raises
        ------
        LedgerError
            If another process holds it for longer than the ledger's timeout.

        Examples
        --------
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     ledger = Ledger(Path(folder) / "budget.db")
        ...     with ledger.held("ab" * 16):
        ...         token = ledger.charge("patients", Cost(1.0, "add_remove", "slopes"), "0" * 64, token="ab" * 16)
        ...         ledger.attach(token, "what was released")
        """
        return self._store().held(token)

    def attach(self, token: str, release: str, seen: bytes | None = None) -> None:
        """Keep the release that a charge paid for. When this returns, it is on disk, and may be published.

        Parameters
        ----------
        token
            From `charge`.
        release
            Its text.
        seen
            What the mechanism saw, in bytes that are the same for the same data; a keyed fingerprint of them is kept,
            nothing else. Without it the release is never found for an identical request.

        Raises
        ------
        InputError
            If the token is unknown or has its release already.
        """
        self.attach_all([(token, release, seen)])

    @tried_again
    def attach_all(self, releases: Sequence[tuple[str, str, bytes | None]]) -> None:
        """Keep several releases in one transaction: all or none; token, text and what was seen as in `attach`."""
        if not releases:
            return
        for _, text, _ in releases:
            check_release(text)
        with self._writing() as writer:
            entries = (entry for account in replay(writer.records).values() for entry in account.entries)
            waiting, key = {entry.token for entry in entries if entry.release is None}, key_of(writer.records)
            for token, text, seen in releases:
                if token not in waiting:
                    raise InputError("token must be that of a charge without a release; found none")
                waiting.remove(token)
                writer.append(Released(token, text, keyed_digest(key, seen) if key and seen is not None else None))

    def export(self) -> dict[str, Any]:
        """Everything in the ledger as plain data, for JSON.

        Infinite losses, which 0.1 did not know, are the text `"+inf"`; with one of them the schema is 2, and 3 with a
        schedule.

        Examples
        --------
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Ledger(Path(folder) / "budget.db").export()
        {'kind': 'confide.ledger', 'schema': 1, 'datasets': []}
        """
        accounts = self.accounts().values()
        finite = all(cost.private for account in accounts for cost in account.costs)
        schema = 3 if any(account.follows for account in accounts) else 1 if finite else 2
        return {"kind": "confide.ledger", "schema": schema, "datasets": list(map(plain, accounts))}

    def records(self) -> list[tuple[str, Event]]:
        """All records with their times. They hold the ledger's key: not for publication."""
        return self._chain().records

    def moved_to(self) -> str | None:
        """Where the ledger was moved to; None if it was not. A moved ledger can be read and not be charged."""
        return self.snapshot().moved_to

    def seals(self) -> list[str]:
        """The seals of all records, oldest first: the last one stands for all of them."""
        return self.snapshot().seals

    def identity(self) -> str:
        """Tell this ledger from every other one but its copies, by 64 hexadecimal digits; they are public.

        They are a digest under the ledger's own key, so nothing in it follows from them. A ledger that was moved, or
        restored from a backup, keeps them.
        """
        with self._writing() as writer:
            return keyed_digest(_key(writer), _IDENTITY)

    def snapshot(self) -> "Snapshot":
        """Everything that is known at one moment."""
        chain = self._chain()
        return Snapshot(replay(chain.records), chain.seals, moved_to(chain.records))

    def _chain(self) -> Chain:
        """All records, of a ledger that has at least those that were read from it before."""
        chain = self._store().chain(self._known)
        object.__setattr__(self, "_known", chain.head)
        return chain

    @contextmanager
    def _writing(self) -> Iterator[Writer]:
        """A transaction of the store, likewise."""
        with self._store().writing(self._known) as writer:
            yield writer
        object.__setattr__(self, "_known", writer.head)

    def _store(self) -> Store:
        return open_store(self.path, create=False, timeout=self.timeout)

    def _who(self, writer: Writer) -> str | None:
        """Who charges: the server's role, or what a file's user says."""
        return writer.by or self.by


class Snapshot(NamedTuple):
    """A ledger at one moment: accounts by data set, the seals of all records, and where it was moved to, or None."""

    accounts: dict[str, Account]
    seals: list[str]
    moved_to: str | None

    def __str__(self) -> str:
        lines = [f"{account.dataset}: {account.summary}" for account in self.accounts.values()] or ["no data sets"]
        return "\n".join(lines + ([] if self.moved_to is None else [f"moved to {self.moved_to}: charged there only"]))


@dataclass(frozen=True)
class Charge:
    """A release that is to be paid for: about which data, at what price, for which request; see `Ledger.charge`."""

    dataset: Dataset
    cost: Cost
    request: str
    token: str = field(default_factory=lambda: secrets.token_hex(16))

    def __post_init__(self) -> None:
        if self.cost.group != self.dataset.group:
            raise InputError("cost must be stated for the group of the data set; found another")
        if not is_hexadecimal(self.request, least=64):
            raise InputError("request must be a digest of 64 hexadecimal digits, as `request_digest` makes them")
        if not is_hexadecimal(self.token):
            raise InputError("token must have 32 to 64 hexadecimal digits")


def plain(account: Account) -> dict[str, Any]:
    """An account as plain data."""
    limit, schedule, bound = account.limit, account.schedule, account.under_schedule
    followed = {
        "schedule": None if schedule is None else {**schedule.fields, "left": account.left},
        "under_schedule": None if bound is None else vars(bound),
    }
    return {
        "dataset": account.dataset,
        "neighbors": account.neighbors,
        "bound": account.fingerprint is not None,
        "limit": None if limit is None else {"epsilon": limit.epsilon, "dp_delta": limit.dp_delta},
        "spent": _finite(account.spent().epsilon),
        "remaining": account.remaining(),
        **(followed if schedule else {}),
        "entries": [
            {
                "token": entry.token,
                "made": entry.made,
                "kind": entry.kind,
                "request": entry.request,
                "mechanism": entry.cost.mechanism,
                "epsilon": _finite(entry.cost.epsilon),
                "rho": entry.cost.rho,
                "group": None if entry.cost.group is None else "=".join(entry.cost.group),
                "release": _as_json(entry.release),
            }
            | ({} if entry.by is None else {"by": entry.by})
            for entry in account.entries
        ],
    }


def refusal(account: Account, *costs: Cost) -> str:
    """Why a schedule or a limit refuses one release, or several together, and what remains."""
    if (why := account.stages[-1].refusal(costs)) is not None:
        then = "ask for what is planned, or replace the schedule with `confide ledger follow`"
        return f"dataset {account.dataset!r} {why}; {then}"
    assert account.limit is not None
    group = costs[0].group if len({cost.group for cost in costs}) == 1 else None
    limit, bound, left = account.limit, decimal_form(account.limit.epsilon), account.remaining(group)
    assert left is not None
    at = f" at dp_delta = {limit.dp_delta:g}" if limit.dp_delta else ""
    if not all(cost.private for cost in account.costs):
        lacks = "without privacy" if unbounded(account.costs) == "not private" else "with zCDP alone and no epsilon"
        return (
            f"dataset {account.dataset!r} has nothing left of its limit epsilon = {bound}{at}: a release "
            f"{lacks} was made from it, which no limit can hold; use other people's records"
        )
    if not all(cost.private for cost in costs):
        if unbounded(costs) == "zCDP alone":
            return (
                f"dataset {account.dataset!r} has the limit epsilon = {bound}{at}, and this release has zCDP alone: no "
                "limit in epsilon can hold it; use a mechanism that has an epsilon"
            )
        return (
            f"dataset {account.dataset!r} has the limit epsilon = {bound}{at}, and this release is not "
            "private: its loss is infinite; use a private mechanism"
        )
    asked = decimal_above(worst(costs, lambda one: one.exact))
    return (
        f"dataset {account.dataset!r} has {decimal_form(left)} left of its limit epsilon = {bound}{at}, and "
        f"this release costs {decimal_form(asked)}; ask for less, use an earlier release, or raise the limit with "
        "`confide ledger limit`"
    )


def key_of(records: Iterable[tuple[str, Event]]) -> str | None:
    """The ledger's own key; None if nothing was fingerprinted yet, as in ledgers of 0.1."""
    return next((event.key for _, event in records if isinstance(event, Keyed)), None)


_IDENTITY = b"confide/ledger/identity/1"


def _key(writer: Writer) -> str:
    """The ledger's own key, made if it has none."""
    if (key := key_of(writer.records)) is None:
        writer.append(Keyed(key := secrets.token_hex(32)))
    return key


def recognised(dataset: str, entries: Sequence[Entry], seen: bytes, key: str | None) -> Entry:
    """The newest of these kept releases that was made from the same data.

    Raises
    ------
    OtherDataError
        If there is none.
    """
    mark = None if key is None else keyed_digest(key, seen)
    for entry in entries:
        if entry.fingerprint is not None and entry.fingerprint == mark:
            return entry
    if any(entry.fingerprint for entry in entries):
        found = "from other data than these"
    else:
        found = "by an earlier version, which kept nothing to tell whether the data are the same"
    raise OtherDataError(
        f"dataset {dataset!r} has a release for this very request, of {entries[0].made}, made {found}; nothing was "
        f"charged. {THREE_WAYS}"
    )


THREE_WAYS = (
    "If these are the same people with new records, a new model or new random numbers, give again=True, which charges "
    "a new release; if they are other people, give them a name of their own; otherwise this is probably the wrong file"
)
"""What to do about data that are not those of an earlier release."""


def as_dataset(dataset: str | Dataset) -> Dataset:
    """A name or a `Dataset`, as a `Dataset`."""
    return dataset if isinstance(dataset, Dataset) else Dataset(dataset)


def check_limit(limit: float | tuple[float, float] | Limit) -> Limit:
    """A limit from a number or a pair (epsilon, dp_delta)."""
    pair = limit if isinstance(limit, tuple) else (limit, 0.0)
    if len(pair) != 2:
        raise InputTypeError("limit must be epsilon, or a pair (epsilon, dp_delta)")
    epsilon = pair[0]
    if isinstance(epsilon, bool) or not isinstance(epsilon, int | float):
        raise InputTypeError(f"limit must be a number; found {type(epsilon).__name__}")
    if not (math.isfinite(epsilon) and 0 <= epsilon <= 1e12):
        raise InputError(f"limit must be a number between 0 and 1e12; found {epsilon!r}")
    return Limit(float(epsilon), check_delta(pair[1]))


def check_binding(account: Account, data: Dataset) -> None:
    """Refuse data that are not those that a name is bound to."""
    if account.fingerprint is not None and account.fingerprint != data.fingerprint:
        what = "no fingerprint was given" if data.fingerprint is None else "these data are others, or the key is"
        raise OtherDataError(
            f"dataset {account.dataset!r} is bound to a fingerprint, and {what}; nothing was charged. {THREE_WAYS}"
        )


def check_cells(account: Account, datasets: Iterable[Dataset]) -> None:
    """Refuse cells whose people may be in other cells that were charged: whoever is in both would lose the sum."""
    cells = {data.group for data in datasets if data.group is not None and data.one_cell is False}
    partitions = {group.partition for group in cells}
    charged = {cost.group for cost in account.costs if cost.group is not None and cost.epsilon > 0}
    if any(group.partition in partitions for group in charged - cells):
        raise InputError(
            f"dataset {account.dataset!r} was charged for other cells of the partition {min(partitions)!r}, and the "
            "records of a person are bounded in this table alone: whoever is in two cells would lose the sum, and the "
            "larger would be charged. If each person is in one cell, give one_cell=True; otherwise give this release "
            "a partition of its own, which adds up"
        )


def _point_out(name: str, accounts: Iterable[str]) -> None:
    """Warn if a name that is new looks like known ones."""
    if alike := similar(name, accounts):
        shown = ", ".join(map(repr, alike[:3]))
        text = f"dataset {name!r} is new to the ledger and looks like {shown}; the same people must keep one name"
        warnings.warn(SimilarNameWarning(text), stacklevel=outside())


def _other_relation(account: Account, neighbors: Neighbors) -> InputError:
    return InputError(
        f"dataset {account.dataset!r} is accounted under {account.neighbors!r}, and this is stated for {neighbors!r}; "
        f"use neighbors={account.neighbors!r}"
    )


def _finite(loss: float) -> float | str:
    """A loss as a JSON value: an infinite one is a text."""
    return loss if math.isfinite(loss) else "+inf"


def _as_json(release: str | None) -> Any:
    try:
        return None if release is None else json.loads(release)
    except ValueError:
        return release
