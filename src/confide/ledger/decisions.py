"""Decisions of a ledger: pure functions from a state and a request to new records, or to an error.

A decision is a function of a state. The ledger runs it while no other process can write, and appends its result.
"""

import math
import secrets
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from confide.errors import BudgetError, InputError, InputTypeError, OtherDataError, SimilarNameWarning
from confide.ledger.account import Account, Entry, find_account
from confide.ledger.composition import Limit, check_delta, largest_sum
from confide.ledger.cost import Cost, decimal_above, decimal_form, unbounded
from confide.ledger.events import (
    ChargedEvent,
    Event,
    KeyedEvent,
    LimitedEvent,
    OpenedEvent,
    ReleasedEvent,
    check_release,
)
from confide.ledger.identity import Dataset, is_hexadecimal, keyed_digest, similar
from confide.ledger.state import State
from confide.mechanisms import Neighbors
from confide.support import caller_stacklevel

Decision: TypeAlias = Callable[[State], Sequence[Event]]
"""The records to append to a ledger in this state; an error appends nothing."""


def new_token() -> str:
    """A random token."""
    return secrets.token_hex(16)


@dataclass(frozen=True)
class Charge:
    """One charge: data set, cost, digest of the request and token, as in `Ledger.charge`."""

    dataset: Dataset
    cost: Cost
    request: str
    token: str = field(default_factory=new_token)

    def __post_init__(self) -> None:
        if self.cost.group != self.dataset.group:
            raise InputError("cost", "must be stated for the group of the data set", got="another")
        if not is_hexadecimal(self.request, least=64):
            raise InputError("request", "must be a digest of 64 hexadecimal digits, as returned by `request_digest`")
        if not is_hexadecimal(self.token):
            raise InputError("token", "must have 32 to 64 hexadecimal digits")


def set_limit(dataset: str, limit: Limit | None, neighbors: Neighbors) -> Decision:
    """Set or remove the limit of a data set, which is opened if it is new."""

    def decide(state: State) -> list[Event]:
        account = find_account(state.accounts, dataset)
        if account is not None:
            _check_relation(account, neighbors)
            return [_limited(account.dataset, limit)]
        _warn_of_similar_names(dataset, state.accounts)
        return [OpenedEvent(dataset, neighbors, None), _limited(dataset, limit)]

    return decide


def charge_all(
    charges: Sequence[Charge], standard: Limit | None, at_most: Limit | None, *, again: bool = False
) -> Decision:
    """Charge all or none, about one data set; a data set that is new or has no limit has the standard limit."""
    data, costs = charges[0].dataset, [one.cost for one in charges]
    if any((one.dataset.name, one.dataset.fingerprint) != (data.name, data.fingerprint) for one in charges):
        raise InputError("charges", "must be about one data set", got="several")

    def decide(state: State) -> list[Event]:
        if any(state.entry(one.token) is not None for one in charges):
            raise InputError("token", "must be new", remedy="The ledger has a charge with this one")
        account, events = _opened(state, data, costs[0].neighbors, standard)
        for cost in costs:
            _check_relation(account, cost.neighbors)
        if not again:
            check_binding(account, data)
        check_cells(account, [one.dataset for one in charges])
        check_limits(account, costs, standard, at_most)
        charged = [ChargedEvent(account.dataset, one.token, one.request, one.cost) for one in charges]
        return [*events, *make_key(state), *charged]

    return decide


def keep_all(releases: Sequence[tuple[str, str, bytes | None]]) -> Decision:
    """Store the releases of charges: token, text, and the mechanism's input."""
    for _, text, _ in releases:
        check_release(text)

    def decide(state: State) -> list[Event]:
        kept: dict[str, Event] = {}
        for token, text, seen in releases:
            entry = state.entry(token)
            if entry is None or entry.release is not None or token in kept:
                raise InputError("token", "must be that of a charge without a release", got="none")
            mark = keyed_digest(state.key, seen) if state.key and seen is not None else None
            kept[token] = ReleasedEvent(token, text, mark)
        return list(kept.values())

    return decide


def make_key(state: State) -> Sequence[Event]:
    """Create the key of a ledger that has none."""
    return [] if state.key else [KeyedEvent(secrets.token_hex(32))]


def check_limits(account: Account, costs: Sequence[Cost], standard: Limit | None, at_most: Limit | None) -> None:
    """Check costs against the account's own limit, or else the standard one, and against `at_most`.

    Raises
    ------
    BudgetError
        With the budget left, if they exceed one of them.
    """
    own = replace(account, limit=standard) if account.limit is None else account
    for bounded in (own, *([] if at_most is None else [replace(account, limit=at_most)])):
        if not bounded.allows(*costs):
            raise budget_error(bounded, *costs)


def budget_error(account: Account, *costs: Cost) -> BudgetError:
    """The error for one release, or several together, beyond a limit, with the budget left."""
    name = repr(account.dataset)
    assert account.limit is not None
    group = costs[0].group if len({cost.group for cost in costs}) == 1 else None
    limit, bound, left = account.limit, decimal_form(account.limit.epsilon), account.remaining(group)
    assert left is not None
    at = f" at dp_delta = {limit.dp_delta:g}" if limit.dp_delta else ""
    if not all(cost.private for cost in account.costs):
        lacks = "without privacy" if unbounded(account.costs) == "not private" else "with zCDP alone and no epsilon"
        return BudgetError(
            "dataset",
            f"{name} has nothing left of its limit epsilon = {bound}{at}: a release {lacks} was made from it, which no "
            "limit can hold",
            remedy="Use other people's records",
        )
    if not all(cost.private for cost in costs):
        if unbounded(costs) == "zCDP alone":
            return BudgetError(
                "dataset",
                f"{name} has the limit epsilon = {bound}{at}, and this release has zCDP alone: no limit in epsilon can "
                "hold it",
                remedy="Use a mechanism that has an epsilon",
            )
        return BudgetError(
            "dataset",
            f"{name} has the limit epsilon = {bound}{at}, and this release is not private: its loss is infinite",
            remedy="Use a private mechanism",
        )
    requested = decimal_above(largest_sum(costs, lambda one: one.exact))
    return BudgetError(
        "dataset",
        f"{name} has {decimal_form(left)} left of its limit epsilon = {bound}{at}, and this release costs "
        f"{decimal_form(requested)}",
        remedy="Request less, use an earlier release, or raise the limit with `confide ledger limit`",
    )


def find_same_data(dataset: str, entries: Sequence[Entry], seen: bytes, key: str | None) -> Entry:
    """The newest of these stored releases that was computed from the same data.

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
        origin = "made from other data"
    else:
        origin = "stored without a fingerprint, so that the data cannot be compared"
    raise OtherDataError(
        "dataset",
        f"{dataset!r} has a release for this request, of {entries[0].charged_at}, {origin}",
        remedy=f"Nothing was charged. {OTHER_DATA_REMEDY}",
    )


OTHER_DATA_REMEDY = (
    "If these are the same people with new records, a new model or new random numbers, give again=True, which charges "
    "a new release; if they are other people, give them a name of their own; otherwise this is probably the wrong file"
)
"""Remedy for data other than those of an earlier release."""


def as_dataset(dataset: str | Dataset) -> Dataset:
    """A name or a `Dataset`, as a `Dataset`."""
    return dataset if isinstance(dataset, Dataset) else Dataset(dataset)


def check_limit(limit: float | tuple[float, float] | Limit) -> Limit:
    """A limit from a number or a pair (epsilon, dp_delta)."""
    pair = limit if isinstance(limit, tuple) else (limit, 0.0)
    if len(pair) != 2:
        raise InputTypeError("limit", "must be epsilon, or a pair (epsilon, dp_delta)")
    epsilon = pair[0]
    if isinstance(epsilon, bool) or not isinstance(epsilon, int | float):
        raise InputTypeError("limit", "must be a number", got=type(epsilon).__name__)
    if not (math.isfinite(epsilon) and 0 <= epsilon <= 1e12):
        raise InputError("limit", "must be a number between 0 and 1e12", got=repr(epsilon))
    return Limit(float(epsilon), check_delta(pair[1]))


def _opened(state: State, data: Dataset, neighbors: Neighbors, standard: Limit | None) -> tuple[Account, list[Event]]:
    """The account of a data set, and the records that open it with the standard limit if it is new."""
    if (account := find_account(state.accounts, data.name)) is not None:
        return account, []
    _warn_of_similar_names(data.name, state.accounts)
    opening = [OpenedEvent(data.name, neighbors, data.fingerprint)]
    return (
        Account(data.name, neighbors, data.fingerprint, standard, ()),
        [*opening, *([] if standard is None else [_limited(data.name, standard)])],
    )


def _limited(dataset: str, limit: Limit | None) -> LimitedEvent:
    return LimitedEvent(dataset, limit.epsilon if limit else None, limit.dp_delta if limit else 0.0)


def check_binding(account: Account, data: Dataset) -> None:
    """Check that data are those to which a name is bound."""
    if account.fingerprint is not None and account.fingerprint != data.fingerprint:
        what = "no fingerprint was given" if data.fingerprint is None else "these are other data, or another key"
        raise OtherDataError(
            "dataset",
            f"{account.dataset!r} is bound to a fingerprint, and {what}",
            remedy=f"Nothing was charged. {OTHER_DATA_REMEDY}",
        )


def check_cells(account: Account, datasets: Iterable[Dataset]) -> None:
    """Reject cells whose people may also be in other charged cells: a person in both would lose the sum."""
    cells = {data.group for data in datasets if data.group is not None and data.one_cell is False}
    partitions = {group.partition for group in cells}
    charged = {cost.group for cost in account.costs if cost.group is not None and cost.epsilon > 0}
    if any(group.partition in partitions for group in charged - cells):
        raise InputError(
            "dataset",
            (
                f"{account.dataset!r} was charged for other cells of the partition {min(partitions)!r}, and "
                "the records of a person are bounded in this table alone: a person in two cells would lose "
                "the sum, and the larger would be charged. If each person is in one cell, give one_cell=True"
            ),
            remedy="Otherwise give this release a partition of its own, which adds up",
        )


def _warn_of_similar_names(name: str, accounts: Iterable[str]) -> None:
    """Warn if a new name is similar to existing ones."""
    if names := similar(name, accounts):
        shown = ", ".join(map(repr, names[:3]))
        text = f"dataset {name!r} is new to the ledger and looks like {shown}; the same people must keep one name"
        warnings.warn(SimilarNameWarning(text), stacklevel=caller_stacklevel())


def _check_relation(account: Account, neighbors: Neighbors) -> None:
    if account.neighbors != neighbors:
        raise InputError(
            "dataset",
            (f"{account.dataset!r} is accounted under {account.neighbors!r}, and this is stated for {neighbors!r}"),
            remedy=f"Use neighbors={account.neighbors!r}",
        )
