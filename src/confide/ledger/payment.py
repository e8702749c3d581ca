"""What thresholds cost and who pays: an earlier release of the same request, or a charge before and a record after.

Two requests are identical if everything public about them is: data set, group and fingerprint; alpha, losses,
relation and all other choices; the mechanism that follows from them; the candidates; and the score's name. Whether the
data are the same is another question, which a keyed fingerprint of what the mechanism sees decides.
"""

import math
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Generic, TypeVar

from confide.errors import BudgetError, InputError, InputTypeError
from confide.ledger.account import Account, Entry, known, replay
from confide.ledger.book import Charge, Ledger, as_dataset, check_binding, key_of, recognised, refusal
from confide.ledger.cost import Cost
from confide.ledger.identity import Dataset, request_digest
from confide.mechanisms import privacy_statement
from confide.planning import Request, mechanism_for
from confide.releases import Calibration

Part = TypeVar("Part", bound=Hashable)
"""What tells the thresholds of one release apart."""


@dataclass(frozen=True)
class Payment:
    """Who pays what for which request: the price under the data set's relation, and the request's digest.

    With `again` earlier releases of the request are not looked at.
    """

    ledger: Ledger
    dataset: Dataset
    cost: Cost
    request: str
    again: bool = False


@dataclass(frozen=True)
class Bill(Generic[Part]):
    """Payments for thresholds that are released together, from one ledger and about one data set.

    Parameters
    ----------
    payments
        By threshold.
    kept
        For thresholds whose request looks identical to earlier ones: their kept releases, newest first.
    account
        What the ledger knew when it was read; None if the data set is new.
    key
        The ledger's key then.
    """

    payments: Mapping[Part, Payment]
    kept: Mapping[Part, tuple[Entry, ...]]
    account: Account | None
    key: str | None

    @classmethod
    def of(cls, payments: Mapping[Part, Payment]) -> "Bill[Part]":
        """Look at the ledger once for all of them."""
        first = next(iter(payments.values()))
        records = first.ledger.records()
        account = known(replay(records), first.dataset.name)
        kept: dict[Part, tuple[Entry, ...]] = {}
        if account is not None and not first.again:
            check_binding(account, first.dataset)
            kept = {name: entries for name, one in payments.items() if (entries := account.answers(one.request))}
        return cls(payments, kept, account, key_of(records))

    def refuse_over_limit(self) -> None:
        """Refuse what the limit does not allow of everything that was not released before.

        Raises
        ------
        BudgetError
            Nothing was charged, and the data were not touched.
        """
        new = [one for name, one in self.payments.items() if name not in self.kept]
        if not new:
            return
        account = self.account
        if account is None:
            first = new[0]
            account = Account(first.dataset.name, first.cost.neighbors, None, first.ledger.limit, ())
        costs = [one.cost for one in new]
        if not account.allows(*costs):
            raise BudgetError(refusal(account, *costs))

    def keep(self, released: Iterable[tuple[str, Calibration, bytes]]) -> None:
        """Record releases durably, by the tokens of their charges, with what was seen; only then may they be shown."""
        ledger = next(iter(self.payments.values())).ledger
        ledger.attach_all([(token, one.to_json(), seen) for token, one, seen in released])

    def recall(self, seen: Mapping[Part, bytes]) -> dict[Part, Entry]:
        """The earlier releases of requests that look identical, from what their mechanisms would see now.

        Raises
        ------
        OtherDataError
            If one of them was made from other data; nothing was charged.
        """
        name = "" if self.account is None else self.account.dataset
        return {part: recognised(name, entries, seen[part], self.key) for part, entries in self.kept.items()}

    def charge(self, without: Collection[Part] = ()) -> dict[Part, str]:
        """Charge all other thresholds durably, all or none; only then may a mechanism run."""
        due = {name: one for name, one in self.payments.items() if name not in without}
        first = next(iter(self.payments.values()))
        charges = [Charge(one.dataset, one.cost, one.request) for one in due.values()]
        return dict(zip(due, first.ledger.charge_all(charges, again=first.again), strict=True))


def make_payment(
    request: Request,
    score: str | None,
    ledger: Ledger | None,
    dataset: str | Dataset | None,
    *,
    again: bool = False,
    accounts: Mapping[str, Account] | None = None,
) -> Payment:
    """The payment for a checked request; `accounts` are those of the ledger, where it was read already.

    Raises
    ------
    InputError, InputTypeError
        If only one of ledger and dataset is given, or the data set is accounted under add_remove and n is public.
    """
    if ledger is None or dataset is None:
        raise InputError("ledger and dataset must be given together: whose budget is charged, and where")
    if not isinstance(ledger, Ledger):
        raise InputTypeError(f"ledger must be a confide.Ledger; found {type(ledger).__name__}")
    if not isinstance(again, bool):
        raise InputTypeError(f"again must be True or False; found {type(again).__name__}")
    data = as_dataset(dataset)
    account = known(ledger.accounts() if accounts is None else accounts, data.name)
    if account is not None:
        data = replace(data, name=account.dataset)
    mechanism = mechanism_for(request)
    privacy = privacy_statement(mechanism, request.neighbors, request.records_per_person, request.selector)
    cost = Cost.of(privacy, request.mechanism, None if account is None else account.neighbors, data.group)
    content: dict[str, Any] = {
        "dataset": [data.name, data.group, data.fingerprint],
        "request": _stated(request),
        "mechanism": None if mechanism is None else repr(mechanism),
        "candidates": request.candidates.digest,
        "score": score,
    }
    return Payment(ledger, data, cost, request_digest(content), again)


def _stated(request: Request) -> dict[str, Any]:
    """The choices of a request as plain values; as version 0.1 stated them where it knew all of them."""
    stated = {field.name: _plain(getattr(request, field.name)) for field in fields(request)} | {"candidates": request.m}
    return {name: value for name, value in stated.items() if name != "rise" or value is not None}


def _plain(value: Any) -> Any:
    if value == math.inf:
        return "+inf"
    return value if value is None or isinstance(value, int | float | str) else str(value)
