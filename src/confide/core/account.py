"""Who pays for a release: the budget of a data set in a ledger, or nothing.

`release` opens an account, which waits for an identical request in progress, and then calls its methods in their order:
check the limit, find earlier releases of the same request and records, charge, store.
"""

import hashlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from confide.core.request import Request
from confide.core.threshold import Threshold
from confide.core.thresholds import Key
from confide.errors import InputError, InputTypeError
from confide.mechanisms import PrivacyStatement
from confide.support import library_versions

if TYPE_CHECKING:
    from confide.core.release import Release
    from confide.ledger import Dataset, Entry, Ledger, Payment, Transaction


class Bill(NamedTuple):
    """The price of a draw, whatever is drawn, and what identifies its request in a ledger: public JSON values."""

    price: PrivacyStatement
    method: str
    identity: Mapping[str, Any]


# The thresholds that one draw decided, by key.
Drawn: TypeAlias = Mapping[Key, Threshold]


class Answer(NamedTuple):
    """The thresholds of an earlier draw, and the versions of the libraries that made it."""

    thresholds: Drawn
    versions: Mapping[str, str]


@dataclass(frozen=True)
class Account:
    """The account of a request without a ledger: nothing is charged or stored, and every request is new."""

    request: Request

    @property
    def has_earlier(self) -> bool:
        """Whether an earlier release may be the answer: then the records are compared before anything is charged."""
        return False

    def check_limit(self) -> None:
        """Raise `BudgetError` if the limit does not allow the charge; nothing is charged."""

    def earlier_releases(self, marks: "Mapping[Key, bytes]") -> "Mapping[Key, Entry]":
        """The earlier releases of these requests; raises `OtherDataError` if one was answered about other records."""
        return {}

    def charge(self, without: Collection[Key] = ()) -> Mapping[Key, str]:
        """Charge all draws but some, durably, all or none: a token for each."""
        return dict.fromkeys(self.request.draws, "")

    def store(self, tokens: Mapping[Key, str], drawn: Mapping[Key, Drawn], marks: Mapping[Key, bytes]) -> None:
        """Store the thresholds of every draw under the token of its charge, durably, before they are returned."""

    def answers(self, earlier: "Mapping[Key, Entry]", n: int | None) -> Mapping[Key, Answer]:
        """The thresholds of earlier releases, for a public number of records n, with an `EarlierReleaseWarning`."""
        return {}


@dataclass(frozen=True)
class _LedgerAccount(Account):
    """The account of a request whose draws a ledger charges, in one transaction about one data set."""

    transaction: "Transaction[Key]"

    @property
    def has_earlier(self) -> bool:
        return bool(self.transaction.stored)

    def check_limit(self) -> None:
        self.transaction.check_limit()

    def earlier_releases(self, marks: "Mapping[Key, bytes]") -> "Mapping[Key, Entry]":
        return self.transaction.earlier_releases(marks)

    def charge(self, without: Collection[Key] = ()) -> Mapping[Key, str]:
        return self.transaction.charge(without)

    def store(self, tokens: Mapping[Key, str], drawn: Mapping[Key, Drawn], marks: Mapping[Key, bytes]) -> None:
        from confide.core.files import entry_text
        from confide.ledger import ReleaseOfCharge

        versions = library_versions()
        texts = {key: entry_text(self.request, thresholds, versions) for key, thresholds in drawn.items()}
        self.transaction.store(ReleaseOfCharge(tokens[key], text, marks[key]) for key, text in texts.items())
        self.transaction.tell_charged_again(texts)

    def answers(self, earlier: "Mapping[Key, Entry]", n: int | None) -> Mapping[Key, Answer]:
        from confide.core.files import read_entry

        self.transaction.tell(earlier)
        keys = self.request.draws
        return {key: Answer(*read_entry(self.request, keys[key], n, entry.text)) for key, entry in earlier.items()}


@contextmanager
def open_account(request: Request, payment: "Payment[Key] | None") -> Iterator[Account]:
    """The account while no other process answers the same request; one in progress is waited for.

    The payment is for all draws; None without a ledger.
    """
    if payment is None:
        yield Account(request)
        return
    from confide.ledger import Transaction

    with Transaction.locked(payment) as transaction:
        yield _LedgerAccount(request, transaction)


@dataclass(frozen=True)
class Payer:
    """The budget that is charged: a data set of a ledger, and for groups the public name of their division.

    It is not part of a request. If groups overlap, each column is the partition "name: column".
    """

    ledger: "Ledger | None" = None
    dataset: "str | Dataset | None" = None
    partition: str | None = None
    again: bool = False

    @property
    def has_ledger(self) -> bool:
        """Whether a ledger is charged."""
        return self.ledger is not None

    def check(self, *, divided: bool) -> None:
        """Check that what pays for groups, or for other releases, is stated together."""
        if self.again and self.ledger is None and self.dataset is None and self.partition is None:
            raise InputError("again", "must be left out without a ledger: no request is stored, and every call is new")
        check_payer(self.ledger, self.dataset, self.partition, divided=divided)

    def payment(self, request: Request, bills: Mapping[Key, Bill]) -> "Payment[Key] | None":
        """The payment for these draws: groups are cells of one partition of the data set; None without a ledger."""
        shares = self._shares(request)
        if not shares:
            return None
        from confide.ledger import Ledger, Payment, as_dataset, make_charge

        # Groups share an account, which is read once.
        balance = None
        if request.disjoint and isinstance(self.ledger, Ledger) and self.dataset is not None:
            balance = self.ledger.balance(as_dataset(self.dataset).name)
        charges = {key: make_charge(*bill, self.ledger, shares[key], account=balance) for key, bill in bills.items()}
        assert self.ledger is not None
        return Payment(self.ledger, charges, self.again)

    def _shares(self, request: Request) -> "dict[Key, str | Dataset | None]":
        """The data set, or its cell, that pays for each draw; empty without a ledger."""
        self.check(divided=request.disjoint)
        if self.ledger is None and self.dataset is None:
            return {}
        if not request.disjoint:
            return dict.fromkeys(request.draws, self.dataset)
        from confide.ledger import Group

        # Groups divide the whole data set.
        assert self.dataset is not None
        assert self.partition is not None
        whole = undivided(self.dataset, "The groups of the release are charged by their names")
        if request.overlap is None:
            return {key: replace(whole, group=Group(self.partition, str(key))) for key in request.terms}

        # Each column of groups that overlap divides the records, and is a partition of its own.
        columns = [("names", column) for column in request.overlap.columns]
        for argument, name in (("partition", self.partition), *columns):
            if ": " in name:
                raise InputError(argument, "must be without ': ', which joins partition and column", got=repr(name))
        return {
            key: replace(whole, group=Group(f"{self.partition}: {column}", value))
            for key, (column, value) in request.overlap.cells.items()
        }


def undivided(dataset: "str | Dataset", remedy: str) -> "Dataset":
    """A data set whose groups will be charged; raises an error if it is one of its own groups."""
    from confide.ledger import as_dataset

    whole = as_dataset(dataset)
    if whole.group is not None:
        raise InputError("dataset", "must be a data set without a group", remedy=remedy)
    return whole


def check_payer(ledger: object, dataset: object, partition: object, *, divided: bool) -> None:
    """Check that what pays for groups, or for other releases, is stated together; a ledger may be its address."""
    if partition is not None and not isinstance(partition, str):
        raise InputTypeError("partition", "must be str", got=type(partition).__name__)
    given = {"partition": partition, "ledger": ledger, "dataset": dataset}
    if not divided and partition is not None:
        raise InputError("partition", "must be left out: the release has no groups")
    missing = [name for name, value in given.items() if value is None]
    if divided and 0 < len(missing) < len(given):
        must = "must be given: ledger, dataset and partition pay for groups together"
        remedy = (
            "partition is a public name for the division into groups, such as 'hospital' (--set partition=hospital)"
        )
        raise InputError(missing[0], must, remedy=remedy)


# The payer if there is no ledger.
NO_PAYER = Payer()


def entry_checksums(release: "Release") -> set[str]:
    """The SHA-256 of the texts with which a ledger stores the thresholds of a release; empty for one of silos."""
    from confide.core.files import entry_text

    if not isinstance(release.request, Request):
        return set()
    request = release.request
    draws = [{key: release.parts[key] for key in keys} for keys in request.draws.values()]
    texts = (entry_text(request, drawn, release.versions) for drawn in draws)
    return {hashlib.sha256(text.encode()).hexdigest() for text in texts}
