"""What releases cost and who pays: an earlier release of the same request, or a charge before and a record after.

Whatever leaves for a cost is paid for here: thresholds, evaluations, looks. Each comes with its privacy statement, the
name of its mechanism, and everything public that was asked of it. Two requests are identical if all of that is, and
data set, group and fingerprint. Whether the data are the same is another question, which a keyed fingerprint of what
the mechanism sees decides.

1. What the ledger's limit does not allow is refused, before anybody looks at the data. All parts count together.
2. If the ledger has answered a request that looks identical, the data are looked at and compared with those of then, by
   a keyed fingerprint. The same data: the earlier release is the answer. Other data: refused. Nothing is charged yet.
3. All other parts are charged in one transaction and drawn, once; the ledger keeps them, in another transaction, before
   anything is said about them or they are returned.

What is made once, whatever is asked later, has a token of its own (`Once`): answers to federated plans, and parts of
opened sums. What the ledger keeps for the token is returned; a second process that asks waits for the first.
"""

import warnings
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from confide.errors import EarlierReleaseWarning, InputError, InputTypeError
from confide.ledger.account import Account, Entry, known
from confide.ledger.book import Ledger
from confide.ledger.cost import Cost
from confide.ledger.decisions import (
    Charge,
    as_dataset,
    check_binding,
    check_cells,
    check_limits,
    new_token,
    recognised,
)
from confide.ledger.identity import Dataset, request_digest
from confide.ledger.limit import Limit
from confide.mechanisms import PrivacyStatement
from confide.selection import check_sampler
from confide.support import outside, tell

Part = TypeVar("Part", bound=Hashable)
"""What tells the parts of one release apart, such as its thresholds."""

Seen = TypeVar("Seen")
"""What mechanisms see of the data."""

Drawn = TypeVar("Drawn")
"""A part that was drawn."""


@dataclass(frozen=True)
class Once:
    """A release that is made once, with a token of its own: a ledger charges a token once.

    Parameters
    ----------
    token
        As in `Ledger.charge`.
    kept
        What a charge with this token gives: the text of its release, or an error; or None to make what an interrupted
        process left. Only a text that is the same whenever it is made may be made again.
    """

    token: str
    kept: Callable[[Entry], str | None]


@dataclass(frozen=True)
class Payment:
    """Who pays what for which request: the price under the data set's relation, and the request's digest.

    With `again` earlier releases of the request are not looked at. `at_most` bounds all releases about the data set
    besides its own limit. With `once` there is one release for its token, whatever the data are later.
    """

    ledger: Ledger
    dataset: Dataset
    cost: Cost
    request: str
    again: bool = False
    at_most: Limit | None = None
    once: Once | None = None


@dataclass(frozen=True)
class Bill(Generic[Part]):
    """Payments for parts that are released together, from one ledger and about one data set.

    Parameters
    ----------
    payments
        By part.
    kept
        For parts whose request looks identical to earlier ones: their kept releases, newest first.
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
        state = first.ledger.snapshot()
        account = known(state.accounts, first.dataset.name)
        kept: dict[Part, tuple[Entry, ...]] = {}
        if account is not None and not first.again:
            check_binding(account, first.dataset)
            kept = {name: entries for name, one in payments.items() if (entries := account.answers(one.request))}
        return cls(payments, kept, account, state.key)

    def refuse_over_limit(self) -> None:
        """Refuse what the limit does not allow of everything that was not released before.

        Raises
        ------
        InputError
            If people may be in other cells that were charged (`check_cells`).
        BudgetError
            Nothing was charged, and the data were not touched.
        """
        new = [one for name, one in self.payments.items() if name not in self.kept]
        if not new:
            return
        account, first = self.account, new[0]
        if account is None:
            account = Account(first.dataset.name, first.cost.neighbors, None, None, ())
        check_cells(account, [one.dataset for one in new])
        costs = [one.cost for one in new]
        check_limits(account, costs, first.ledger.limit, first.at_most)

    def settle(
        self,
        look: Callable[[], Seen],
        marks: Callable[[Seen], Mapping[Part, bytes]],
        draw: Callable[[Seen, Iterable[Part]], Mapping[Part, Drawn]],
        write: Callable[[Drawn], str],
        *,
        charge_first: bool = False,
    ) -> tuple[Mapping[Part, Drawn], dict[Part, Entry]]:
        """Compare, charge, draw, keep: in this order (see the head of this file).

        Parameters
        ----------
        look
            Looks at the data, once.
        marks
            From what was seen, for each part: bytes that are the same for the same data. Their keyed fingerprint is
            kept, nothing else of them.
        draw
            Runs the mechanisms of these parts, each once.
        write
            The text of a part that was drawn, which the ledger keeps.
        charge_first
            Charge before `look` is called, because looking at the data tells somebody something, unless the ledger has
            answered a request that looks identical: then what it costs is known only after the data were compared.

        Returns
        -------
        drawn, earlier
            The parts that were drawn, and the entries of those that the ledger has answered before.

        Warns
        -----
        EarlierReleaseWarning
            If there are such.

        Raises
        ------
        OtherDataError
            If a request that looks identical was answered about other data; nothing was charged.
        BudgetError
            If the ledger's limit does not allow all of it together; nothing was charged.
        MissingExtraError
            If OpenDP, which draws, is not installed; nothing was charged.
        """
        self.refuse_over_limit()
        check_sampler()
        tokens = self.charge() if charge_first and not self.kept else None
        seen = look()
        marked = marks(seen)
        earlier = self.recall(marked)
        if tokens is None:
            tokens = self.charge(without=earlier)
        drawn = draw(seen, tokens)
        self.keep([(tokens[name], write(one), marked[name]) for name, one in drawn.items()])
        for one in earlier.values():
            tell("ledger", "answered before", made=one.made, epsilon=0)
        if earlier:
            _say_earlier(tuple(one.made for one in earlier.values()), len(self.payments))
        return drawn, earlier

    def keep(self, released: Iterable[tuple[str, str, bytes | None]]) -> None:
        """Record texts durably, by the tokens of their charges, with what was seen; only then may they be shown."""
        next(iter(self.payments.values())).ledger.attach_all(list(released))

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
        """Charge all other parts durably, all or none; only then may a mechanism run."""
        due = {name: one for name, one in self.payments.items() if name not in without}
        first = next(iter(self.payments.values()))
        charges = [
            Charge(one.dataset, one.cost, one.request, one.once.token if one.once else new_token())
            for one in due.values()
        ]
        return dict(zip(due, first.ledger.charge_all(charges, at_most=first.at_most, again=first.again), strict=True))


def make_payment(
    privacy: PrivacyStatement,
    mechanism: str,
    content: Mapping[str, Any],
    ledger: Ledger | None,
    dataset: str | Dataset | None,
    *,
    again: bool = False,
    accounts: Mapping[str, Account] | None = None,
) -> Payment:
    """The payment for something that was asked for and checked.

    Parameters
    ----------
    privacy
        What it costs.
    mechanism
        The name of what is drawn; those of evaluations and looks begin with the name of their kind (`Cost.kind`).
    content
        Everything public that was asked, as JSON values: equal contents about the same data are one request.
    ledger, dataset, again
        As in `calibrate`.
    accounts
        Those of the ledger, where it was read already.

    Raises
    ------
    InputError, InputTypeError
        If only one of ledger and dataset is given, or the data set is accounted under add_remove and n is public.
    """
    if ledger is None or dataset is None:
        raise InputError("ledger", "ledger and dataset must be given together: whose budget is charged, and where")
    if not isinstance(ledger, Ledger):
        raise InputTypeError("ledger", "must be a confide.Ledger", got=type(ledger).__name__)
    if not isinstance(again, bool):
        raise InputTypeError("again", "must be True or False", got=type(again).__name__)
    data = as_dataset(dataset)
    account = known(ledger.accounts() if accounts is None else accounts, data.name)
    if account is not None:
        data = replace(data, name=account.dataset)
    cost = Cost.of(privacy, mechanism, None if account is None else account.neighbors, data.group)
    about = {"dataset": [data.name, data.group, data.fingerprint]}
    return Payment(ledger, data, cost, request_digest({**content, **about}), again)


def pay(
    payment: Payment,
    look: Callable[[], Seen],
    mark: Callable[[Seen], bytes | None],
    draw: Callable[[Seen], str],
    *,
    charge_first: bool = False,
) -> str:
    """The text of one release that is paid for: drawn now and kept, or, for the same request and data, the earlier one.

    Arguments, warnings and errors are those of `Bill.settle`, for one part. A payment that is made `once` gives what
    the ledger keeps for its token; only if there is nothing, `look` is called. There `mark` may be None, for what needs
    no fingerprint.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger(Path(folder.name) / "budget.db")
    >>> privacy = PrivacyStatement("add_remove", 0.5, 1, 0.5, 1.0, None)
    >>> payment = make_payment(privacy, "look by discrete-laplace", {"week": 3}, ledger, "patients")
    >>> pay(payment, lambda: [4, 1], lambda counts: bytes(counts), lambda counts: "what is told of them")
    'what is told of them'
    >>> ledger.account("patients").entries[0].kind, ledger.account("patients").spent().epsilon
    ('look', 0.5)
    >>> folder.cleanup()
    """
    if payment.once is not None:
        return _pay_once(payment, payment.once, look, mark, draw)

    def marks_of(seen: Seen) -> dict[None, bytes]:
        marked = mark(seen)
        assert marked is not None  # else nothing would be found again
        return {None: marked}

    def drawn_of(seen: Seen, names: Iterable[None]) -> dict[None, str]:
        return {name: draw(seen) for name in names}

    bill = Bill.of({None: payment})
    drawn, earlier = bill.settle(look, marks_of, drawn_of, str, charge_first=charge_first)
    return earlier[None].text if earlier else drawn[None]


def _pay_once(
    payment: Payment,
    once: Once,
    look: Callable[[], Seen],
    mark: Callable[[Seen], bytes | None],
    draw: Callable[[Seen], str],
) -> str:
    """Charge, draw, keep: one process at a time, and for a token that the ledger does not know.

    Where processes cannot wait for each other (Windows), a charge or a release that is there meanwhile is found.
    """
    ledger, bill = payment.ledger, Bill({None: payment}, {}, None, None)

    def found() -> Entry | None:
        return ledger.snapshot().entry(once.token)

    entry = found()
    if entry is not None and entry.release is None:  # another process may be at it
        with ledger.held(once.token):
            entry = found()
    if entry is not None and (text := once.kept(entry)) is not None:
        return text
    seen = look()
    if payment.cost.epsilon > 0:
        check_sampler()
    with ledger.held(once.token):
        try:
            if (entry := found()) is None:
                bill.charge()
        except InputError:
            if (entry := found()) is None:
                raise
        if entry is not None and (text := once.kept(entry)) is not None:
            return text
        text = draw(seen)
        try:
            bill.keep([(once.token, text, mark(seen))])
        except InputError:
            entry = found()
            if entry is None or entry.release != text:
                raise
    return text


def _say_earlier(made: tuple[str, ...], parts: int) -> None:
    dates = " and ".join(sorted(set(made)))
    if len(made) == parts:
        text = f"earlier release of {dates} returned; nothing was charged"
    else:
        text = f"earlier release of {dates} returned for {len(made)} of {parts} thresholds; the others were charged"
    warnings.warn(EarlierReleaseWarning(text, made), stacklevel=outside())
