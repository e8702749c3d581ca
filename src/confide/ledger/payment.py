"""Payment: return the earlier release of an identical request, or charge a ledger, draw, and store the release.

Two requests are identical if privacy, mechanism, public contents, data set, group and fingerprint are equal. A keyed
fingerprint of the mechanism's input decides whether their data are. A release that must never be drawn twice, such as
an answer to a federated plan, has a token of its own (`pay_once`).
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
    ReleaseOfCharge,
    as_dataset,
    check_binding,
    check_cells,
    check_limits,
    find_same_data,
)
from confide.ledger.identity import Dataset, request_digest
from confide.ledger.ledger import Ledger, Lookup
from confide.mechanisms import PrivacyStatement
from confide.selection import check_sampler
from confide.support import caller_stacklevel, log_event, require

# Identifies one of the releases that are paid for together, such as one of several thresholds
Key = TypeVar("Key", bound=Hashable)

# The input of mechanisms, computed from the data
MechanismInput = TypeVar("MechanismInput")


@dataclass(frozen=True)
class Payment(Generic[Key]):
    """Charges in a ledger, about one data set, for releases that are drawn together.

    With `again` earlier releases of the requests are ignored.
    """

    ledger: Ledger
    charges: Mapping[Key, Charge]
    again: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.again, bool):
            raise InputTypeError("again", "must be True or False", got=type(self.again).__name__)

    @property
    def requests(self) -> list[str]:
        """The digests of the requests."""
        return [charge.request for charge in self.charges.values()]


@dataclass(frozen=True)
class Transaction(Generic[Key]):
    """A payment, and what its ledger contained about its data set and requests; with `again` no earlier charges."""

    payment: Payment[Key]
    lookup: Lookup

    @classmethod
    def of(cls, payment: Payment[Key]) -> "Transaction[Key]":
        """Read the ledger once for all charges."""
        datasets = [charge.dataset for charge in payment.charges.values()]
        lookup = payment.ledger.look_up(datasets, () if payment.again else payment.requests)
        if lookup.account is not None and not payment.again:
            for data in datasets:
                check_binding(lookup.account, data)
        return cls(payment, lookup)

    @classmethod
    @contextmanager
    def locked(cls, payment: Payment[Key]) -> "Iterator[Transaction[Key]]":
        """Wait for identical requests in progress, and let others wait; then read the ledger."""
        with nullcontext() if payment.again else payment.ledger.lock(*payment.requests):
            yield cls.of(payment)

    def charged(self, key: Key) -> tuple[Entry, ...]:
        """The earlier charges of requests that look identical, newest first."""
        return self.lookup.charges.get(self.payment.charges[key].request, ())

    @property
    def stored(self) -> Mapping[Key, tuple[Entry, ...]]:
        """The stored releases of requests that look identical to earlier ones, newest first."""
        stored = {}
        for key in self.payment.charges:
            if entries := tuple(entry for entry in self.charged(key) if entry.release is not None):
                stored[key] = entries
        return stored

    def check_limit(self) -> None:
        """Check the costs without an earlier release, together, against the limit, before the data are read."""
        stored = self.stored
        due = [charge for key, charge in self.payment.charges.items() if key not in stored]
        if not due:
            return
        account = self.lookup.account or Account(due[0].dataset.name, due[0].cost.neighbors)
        check_cells(account, [charge.dataset for charge in due])
        check_limits(account, [charge.cost for charge in due], self.payment.ledger.limit)

    def earlier_releases(self, inputs: Mapping[Key, bytes]) -> dict[Key, Entry]:
        """The earlier releases of requests that look identical, for the current inputs of their mechanisms.

        Raises `OtherDataError` if any of them was computed from other data.
        """
        return {
            key: find_same_data(self.payment.charges[key].dataset.name, entries, inputs[key], self.lookup.key)
            for key, entries in self.stored.items()
        }

    def charge(self, without: Collection[Key] = ()) -> dict[Key, str]:
        """Charge all except `without` durably, all or none; only then may a mechanism run."""
        charges = {key: charge for key, charge in self.payment.charges.items() if key not in without}
        self.payment.ledger.charge_all(list(charges.values()), again=self.payment.again)
        return {key: charge.token for key, charge in charges.items()}

    def store(self, releases: Iterable[ReleaseOfCharge]) -> None:
        """Store releases durably; only then may they be shown."""
        self.payment.ledger.attach_all(list(releases))

    def tell(self, earlier: Mapping[Key, Entry]) -> None:
        """Log and warn of earlier releases that are returned again."""
        dates = tuple(entry.charged_at for entry in earlier.values())
        for date in dates:
            log_event("ledger", "answered before", made=date, epsilon=0)
        if not dates:
            return
        charged = "; nothing was charged"
        if len(dates) < len(self.payment.charges):
            charged = f" for {len(dates)} of {len(self.payment.charges)} thresholds; the others were charged"
        text = f"earlier release of {' and '.join(sorted(set(dates)))} returned{charged}"
        warnings.warn(EarlierReleaseWarning(text, dates), stacklevel=caller_stacklevel())

    def tell_charged_again(self, keys: Collection[Key]) -> None:
        """Warn that earlier runs of these requests were charged, and ended before their release."""
        latest = [self.charged(key)[0] for key in keys if self.charged(key)]
        lost = [entry.charged_at for entry in latest if entry.release is None]
        if lost:
            run = f"an earlier run of this request was charged on {max(lost)} and ended before its release was stored"
            warnings.warn(ChargedAgainWarning(f"{run}: both are charged"), stacklevel=caller_stacklevel())


def check_stored(argument: str, length: int, remedy: str) -> None:
    """Raise, before anything is charged, if a release of this length is too long for a ledger."""
    must = f"must be fewer or shorter with a ledger, which stores at most {MOST_RELEASE:,} characters of a release"
    require(argument, length <= MOST_RELEASE, must, remedy=remedy)


def make_charge(
    privacy: PrivacyStatement,
    mechanism: str,
    content: Mapping[str, Any],
    ledger: Ledger | None,
    dataset: str | Dataset | None,
    *,
    account: Account | None = None,
) -> Charge:
    """The charge for a checked request, under the adjacency of its data set.

    Parameters
    ----------
    mechanism
        Its name; for evaluations and looks it begins with the name of their kind (`Cost.kind`).
    content
        The public contents of the request, as JSON values. Equal contents about the same data are one request.
    account
        The account of the data set, if it was read already.
    """
    if ledger is None or dataset is None:
        raise InputError("ledger", "ledger and dataset must be given together")
    if not isinstance(ledger, Ledger):
        raise InputTypeError("ledger", "must be a confide.Ledger", got=type(ledger).__name__)
    data = as_dataset(dataset)
    if (known := account or ledger.balance(data.name)) is not None:
        data = replace(data, name=known.dataset)
    cost = Cost.of(privacy, mechanism, None if known is None else known.neighbors, data.group)
    about = {"dataset": [data.name, data.group, data.fingerprint]}
    return Charge(data, cost, request_digest({**content, **about}))


def make_payment(
    privacy: PrivacyStatement,
    mechanism: str,
    content: Mapping[str, Any],
    ledger: Ledger | None,
    dataset: str | Dataset | None,
    *,
    again: bool = False,
) -> Payment[None]:
    """The payment for one release; arguments of `make_charge`."""
    charge = make_charge(privacy, mechanism, content, ledger, dataset)
    assert ledger is not None
    return Payment(ledger, {None: charge}, again)


def pay(
    payment: Payment[None],
    read: Callable[[], MechanismInput],
    fingerprint_bytes: Callable[[MechanismInput], bytes],
    draw: Callable[[MechanismInput], str],
    *,
    charge_first: bool = False,
) -> str:
    """Pay for one release and return its text: drawn and stored now, or the earlier one for the same request and data.

    The order is that of `confide.core.release`: an error about the limit, or about other data, comes before the charge.

    Parameters
    ----------
    read
        Reads the data and returns the input of the mechanism; called once.
    fingerprint_bytes
        Returns bytes of the input that are the same for the same data; only a keyed fingerprint of them is stored.
    draw
        Runs the mechanism once, and returns the text of the release, which the ledger stores.
    charge_first
        Charge before `read` is called, because reading the data can be observed. It has no effect if the ledger has a
        release for a request that looks identical: the cost is then clear only after the data were compared.

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
    # An identical request in progress, in another process or thread, is waited for
    with Transaction.locked(payment) as transaction:
        # What can fail fails before the data are read, and before anything is charged
        transaction.check_limit()
        check_sampler()
        tokens = transaction.charge() if charge_first and not transaction.stored else None

        # Read, and compare with the data of earlier releases
        mechanism_input = read()
        content = fingerprint_bytes(mechanism_input)
        earlier = transaction.earlier_releases({None: content})

        # Charge before anything is drawn, and store before anything is returned
        if tokens is None:
            tokens = transaction.charge(without=earlier)
        if not earlier:
            text = draw(mechanism_input)
            transaction.store([ReleaseOfCharge(tokens[None], text, content)])
    if earlier:
        transaction.tell(earlier)
        return earlier[None].text
    transaction.tell_charged_again(tokens)
    return text


def pay_once(
    ledger: Ledger,
    charge: Charge,
    read: Callable[[], MechanismInput],
    fingerprint_bytes: Callable[[MechanismInput], bytes],
    draw: Callable[[MechanismInput], str],
    *,
    reuse: Callable[[Entry], str],
    at_most: Limit | None = None,
) -> str:
    """Pay for a release that is drawn once for its token, whatever the data are later, and return its text.

    Parameters
    ----------
    read, fingerprint_bytes, draw
        Arguments of `pay`; `read` is called only if the ledger has no charge with this token.
    reuse
        Returns the text of the release of a charge with this token, or raises an error.
    at_most
        A limit of all releases about the data set, in addition to its own.
    """
    token = charge.token
    # A release in progress is waited for
    with ledger.lock(token):
        entry = ledger.entry(token)
    if entry is not None:
        return reuse(entry)

    # The data are read only if there is no release, and while no lock is held
    mechanism_input = read()
    content = fingerprint_bytes(mechanism_input)
    check_sampler()
    with ledger.lock(token):
        entry = ledger.entry(token)
        if entry is None:
            try:
                ledger.charge_all([charge], at_most=at_most)
            except InputError:
                # Without file locks (Windows) another process may have charged since
                if (entry := ledger.entry(token)) is None:
                    raise
        if entry is not None:
            return reuse(entry)
        text = draw(mechanism_input)
        ledger.attach(token, text, content)
    return text
