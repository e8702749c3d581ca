"""Payment: return the earlier release of an identical request, or charge a ledger, draw, and store the release.

All releases with a cost are paid for here: thresholds, evaluations, batches of a monitor. A release has a privacy
statement, the name of its mechanism, and the public contents of its request. Two requests are identical if all of these
are equal, and also data set, group and fingerprint. A keyed fingerprint of the mechanism's input decides whether the
data are the same.

0. If a request that looks identical is in progress, in another process or thread, this one waits for it.
1. Costs beyond the ledger's limit raise an error before the data are read. All parts count together.
2. If the ledger has a release for a request that looks identical, the data are read and compared by a keyed
fingerprint.
   For the same data the earlier release is returned, for other data an error is raised. Nothing is charged yet.
3. All other parts are charged in one transaction and drawn once. The ledger stores them in another transaction, before
   they are printed or returned. If an earlier run of the request was charged and ended before its release was stored,
   a warning says so.

A release that exists once whatever is requested later has a token of its own (`SingleRelease`): answers to federated
plans, and parts of reconstructed sums. The ledger returns the release stored for the token. A second process waits for
the first.
"""

import warnings
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from confide.errors import ChargedAgainWarning, EarlierReleaseWarning, InputError, InputTypeError
from confide.ledger.account import Account, Entry
from confide.ledger.composition import Limit
from confide.ledger.cost import Cost
from confide.ledger.decisions import (
    MOST_RELEASE,
    Charge,
    as_dataset,
    check_binding,
    check_cells,
    check_limits,
    find_same_data,
    new_token,
)
from confide.ledger.identity import Dataset, request_digest
from confide.ledger.ledger import Ledger
from confide.mechanisms import PrivacyStatement
from confide.selection import check_sampler
from confide.support import caller_stacklevel, log_event

# Identifies a part of a release, such as one of its thresholds
Part = TypeVar("Part", bound=Hashable)

# The input of mechanisms, computed from the data
MechanismInput = TypeVar("MechanismInput")


@dataclass(frozen=True)
class SingleRelease:
    """A release that is drawn once, with a token of its own. A ledger charges a token once.

    Parameters
    ----------
    token
        As in `Ledger.charge`.
    kept
        Returns the text of the release of a charge with this token, or raises an error. It returns None to continue
        after an interrupted process; only a deterministic text may be computed again.
    """

    token: str
    kept: Callable[[Entry], str | None]


@dataclass(frozen=True)
class Payment:
    """A ledger, a data set, a cost under the data set's adjacency, and a request's digest.

    With `again` earlier releases of the request are ignored. `at_most` bounds all releases about the data set in
    addition to its own limit. With `once` there is one release for its token, whatever the data are later.
    """

    ledger: Ledger
    dataset: Dataset
    cost: Cost
    request: str
    again: bool = False
    at_most: Limit | None = None
    once: SingleRelease | None = None


@dataclass(frozen=True)
class Transaction(Generic[Part]):
    """Payments for parts released together, from one ledger and about one data set.

    Parameters
    ----------
    payments
        The payments by part.
    charged
        The earlier charges of requests that look identical, newest first; empty for a part that is drawn `again`.
    account
        The account of the data set when the ledger was read, without its entries; None if it is new.
    key
        The ledger's key.
    """

    payments: Mapping[Part, Payment]
    charged: Mapping[Part, tuple[Entry, ...]]
    account: Account | None
    key: str

    @classmethod
    def of(cls, payments: Mapping[Part, Payment]) -> "Transaction[Part]":
        """Read the ledger once for all payments."""
        first = next(iter(payments.values()))
        requests = () if first.again else [one.request for one in payments.values()]
        account, charges, key = first.ledger.look_up([one.dataset for one in payments.values()], requests)
        if account is not None and not first.again:
            check_binding(account, first.dataset)
        return cls(payments, {part: charges.get(one.request, ()) for part, one in payments.items()}, account, key)

    @classmethod
    @contextmanager
    def alone(cls, payments: Mapping[Part, Payment]) -> "Iterator[Transaction[Part]]":
        """Wait for identical requests in progress, and let others wait; then read the ledger."""
        first = next(iter(payments.values()))
        requests = [one.request for one in payments.values()]
        with nullcontext() if first.again else first.ledger.lock(*requests):
            yield cls.of(payments)

    @property
    def kept(self) -> Mapping[Part, tuple[Entry, ...]]:
        """The stored releases of parts whose request looks identical to earlier ones, newest first."""
        stored = {part: tuple(one for one in some if one.release is not None) for part, some in self.charged.items()}
        return {part: entries for part, entries in stored.items() if entries}

    def check_limit(self) -> None:
        """Check the costs of all parts without an earlier release against the limit.

        Raises
        ------
        InputError
            If people may be in other cells that were charged (`check_cells`).
        BudgetError
            If they exceed it. Nothing was charged, and the data were not read.
        """
        new = [one for name, one in self.payments.items() if name not in self.kept]
        if not new:
            return
        first = new[0]
        account = self.account or Account(first.dataset.name, first.cost.neighbors)
        check_cells(account, [one.dataset for one in new])
        check_limits(account, [one.cost for one in new], first.ledger.limit, first.at_most)

    def tell(self, earlier: Mapping[Part, Entry]) -> None:
        """Log and warn that parts have an earlier release, if some do."""
        for entry in earlier.values():
            log_event("ledger", "answered before", made=entry.charged_at, epsilon=0)
        if earlier:
            _say_earlier(tuple(entry.charged_at for entry in earlier.values()), len(self.payments))

    def store(self, released: Iterable[tuple[str, str, bytes | None]]) -> None:
        """Store (token, text, input) of releases durably; only then may they be shown."""
        next(iter(self.payments.values())).ledger.attach_all(list(released))

    def tell_charged_again(self, parts: Collection[Part]) -> None:
        """Warn that earlier runs of the requests of these parts were charged, and ended before their release."""
        latest = {part: self.charged[part][0] for part in parts if self.charged[part]}
        lost = [entry.charged_at for entry in latest.values() if entry.release is None]
        if lost:
            text = (
                f"an earlier run of this request was charged on {max(lost)} and ended before its release was stored: "
                "both are charged"
            )
            warnings.warn(ChargedAgainWarning(text), stacklevel=caller_stacklevel())

    def earlier_releases(self, seen: Mapping[Part, bytes]) -> dict[Part, Entry]:
        """The earlier releases of requests that look identical, for the current inputs of their mechanisms.

        Raises
        ------
        OtherDataError
            If one of them was computed from other data; nothing was charged.
        """
        name = "" if self.account is None else self.account.dataset
        return {part: find_same_data(name, entries, seen[part], self.key) for part, entries in self.kept.items()}

    def charge(self, without: Collection[Part] = ()) -> dict[Part, str]:
        """Charge all parts except `without` durably, all or none; only then may a mechanism run."""
        due = {name: one for name, one in self.payments.items() if name not in without}
        first = next(iter(self.payments.values()))
        charges = [
            Charge(one.dataset, one.cost, one.request, one.once.token if one.once else new_token())
            for one in due.values()
        ]
        return dict(zip(due, first.ledger.charge_all(charges, at_most=first.at_most, again=first.again), strict=True))


def check_stored(argument: str, length: int, remedy: str) -> None:
    """Raise, before anything is charged, if a release of this length is too long for a ledger.

    Examples
    --------
    >>> check_stored("classes", 1_000_001, "State their number")
    Traceback (most recent call last):
        ...
    confide.errors.InputError: classes: must be fewer or shorter with a ledger, which stores at most 1,000,000 ...
    """
    if length > MOST_RELEASE:
        must = f"must be fewer or shorter with a ledger, which stores at most {MOST_RELEASE:,} characters of a release"
        raise InputError(argument, must, remedy=remedy)


def make_payment(
    privacy: PrivacyStatement,
    mechanism: str,
    content: Mapping[str, Any],
    ledger: Ledger | None,
    dataset: str | Dataset | None,
    *,
    again: bool = False,
    account: Account | None = None,
) -> Payment:
    """Build the payment for a checked request.

    Parameters
    ----------
    privacy
        The privacy statement of the release.
    mechanism
        The name of the mechanism; for evaluations and looks it begins with the name of their kind (`Cost.kind`).
    content
        The public contents of the request, as JSON values. Equal contents about the same data are one request.
    ledger, dataset, again
        As in `calibrate`.
    account
        The account of the data set, if it was read already.

    Raises
    ------
    InputError, InputTypeError
        If only one of ledger and dataset is given, or the data set is accounted under add_remove and n is public.
    """
    if ledger is None or dataset is None:
        raise InputError("ledger", "ledger and dataset must be given together")
    if not isinstance(ledger, Ledger):
        raise InputTypeError("ledger", "must be a confide.Ledger", got=type(ledger).__name__)
    if not isinstance(again, bool):
        raise InputTypeError("again", "must be True or False", got=type(again).__name__)
    data = as_dataset(dataset)
    if (known := account or ledger.balance(data.name)) is not None:
        data = replace(data, name=known.dataset)
    cost = Cost.of(privacy, mechanism, None if known is None else known.neighbors, data.group)
    about = {"dataset": [data.name, data.group, data.fingerprint]}
    return Payment(ledger, data, cost, request_digest({**content, **about}), again)


def pay(
    payment: Payment,
    read: Callable[[], MechanismInput],
    fingerprint_bytes: Callable[[MechanismInput], bytes | None],
    draw: Callable[[MechanismInput], str],
    *,
    charge_first: bool = False,
) -> str:
    """Pay for one release and return its text: drawn and stored now, or the earlier one for the same request and data.

    The order is that of `confide.core.release`: check the limit, read, compare, charge, draw and store. A payment with
    `once` returns the release stored for its token, and calls `read` only if there is none.

    Parameters
    ----------
    read
        Reads the data and returns the input of the mechanism; called once.
    fingerprint_bytes
        Returns bytes of the input that are the same for the same data; only a keyed fingerprint of them is stored. With
        `once` it may return None, if no fingerprint is needed.
    draw
        Runs the mechanism once, and returns the text of the release, which the ledger stores.
    charge_first
        Charge before `read` is called, because reading the data can be observed. It has no effect if the ledger has a
        release for a request that looks identical: the cost is then clear only after the data were compared.

    Warns
    -----
    EarlierReleaseWarning
        If there is an earlier release.

    Raises
    ------
    OtherDataError
        If a request that looks identical has a release about other data; nothing was charged.
    BudgetError
        If the ledger's limit does not allow it; nothing was charged.
    MissingExtraError
        If OpenDP is not installed; nothing was charged.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger(Path(folder.name) / "budget.db")
    >>> privacy = PrivacyStatement("add_remove", 0.5, 1, 0.5, 1.0, None)
    >>> payment = make_payment(privacy, "look by discrete-laplace", {"week": 3}, ledger, "patients")
    >>> pay(payment, lambda: [4, 1], lambda counts: bytes(counts), lambda counts: "text of the release")
    'text of the release'
    >>> ledger.account("patients").entries[0].kind, ledger.account("patients").spent().epsilon
    ('look', 0.5)
    >>> folder.cleanup()
    """
    if payment.once is not None:
        return _pay_once(payment, payment.once, read, fingerprint_bytes, draw)

    with Transaction.alone({None: payment}) as transaction:
        transaction.check_limit()
        check_sampler()
        tokens = transaction.charge() if charge_first and not transaction.kept else None
        seen = read()
        marked = fingerprint_bytes(seen)
        assert marked is not None  # without it, no identical request could be recognised
        earlier = transaction.earlier_releases({None: marked})
        if tokens is None:
            tokens = transaction.charge(without=earlier)
        if not earlier:
            text = draw(seen)
            transaction.store([(tokens[None], text, marked)])
    if earlier:
        transaction.tell(earlier)
        return earlier[None].text
    transaction.tell_charged_again(tokens)
    return text


def _pay_once(
    payment: Payment,
    once: SingleRelease,
    read: Callable[[], MechanismInput],
    fingerprint_bytes: Callable[[MechanismInput], bytes | None],
    draw: Callable[[MechanismInput], str],
) -> str:
    """Charge, draw and store for a token that the ledger does not have, one process at a time.

    On a system without file locks (Windows), a charge or a release that appeared in the meantime is found.
    """
    ledger, transaction = payment.ledger, Transaction({None: payment}, {}, None, "")
    with ledger.lock(once.token):  # an answer in progress is waited for
        entry = ledger.entry(once.token)
    if entry is not None and (text := once.kept(entry)) is not None:
        return text
    seen = read()
    if payment.cost.epsilon > 0:
        check_sampler()
    with ledger.lock(once.token):
        try:
            if (entry := ledger.entry(once.token)) is None:
                transaction.charge()
        except InputError:
            if (entry := ledger.entry(once.token)) is None:
                raise
        if entry is not None and (text := once.kept(entry)) is not None:
            return text
        text = draw(seen)
        try:
            transaction.store([(once.token, text, fingerprint_bytes(seen))])
        except InputError:
            entry = ledger.entry(once.token)
            if entry is None or entry.release != text:
                raise
    return text


def _say_earlier(made: tuple[str, ...], parts: int) -> None:
    dates = " and ".join(sorted(set(made)))
    if len(made) == parts:
        text = f"earlier release of {dates} returned; nothing was charged"
    else:
        text = f"earlier release of {dates} returned for {len(made)} of {parts} thresholds; the others were charged"
    warnings.warn(EarlierReleaseWarning(text, made), stacklevel=caller_stacklevel())
