"""Checks of a charge against the account of its data set. The ledger runs them while no other process can write."""

import math
import secrets
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from confide.errors import BudgetError, FormatError, InputError, InputTypeError, OtherDataError, SimilarNameWarning
from confide.ledger.account import Account, Entry
from confide.ledger.composition import Limit, Totals, check_delta
from confide.ledger.cost import Cost, decimal_above, decimal_form
from confide.ledger.identity import Dataset, is_hexadecimal, keyed_digest, similar
from confide.mechanisms import Neighbors
from confide.support import caller_stacklevel

# Most characters of a stored release
MOST_RELEASE = 1_000_000


def new_token() -> str:
    """A random token."""
    return secrets.token_hex(16)


@dataclass(frozen=True)
class Charge:
    """What `Ledger.charge` takes: data set, cost, digest of the request, and token."""

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


def check_limits(account: Account, costs: Sequence[Cost], standard: Limit | None, at_most: Limit | None) -> None:
    """Check costs against the data set's own limit, or else the standard one, and against `at_most`.

    Raises
    ------
    BudgetError
        With the budget left, if they exceed either.
    """
    for limit in (standard if account.limit is None else account.limit, at_most):
        bounded = replace(account, limit=limit)
        if not bounded.allows(*costs):
            raise _budget_error(bounded, *costs)


def _budget_error(account: Account, *costs: Cost) -> BudgetError:
    name = repr(account.dataset)
    assert account.limit is not None
    group = costs[0].group if len({cost.group for cost in costs}) == 1 else None
    limit, bound, left = account.limit, decimal_form(account.limit.epsilon), account.remaining(group)
    assert left is not None
    at = f" at dp_delta = {limit.dp_delta:g}" if limit.dp_delta else ""

    # An earlier release without an epsilon
    if not account.totals.private:
        lacks = "without privacy" if account.totals.bare else "with zCDP alone and no epsilon"
        return BudgetError(
            "dataset",
            f"{name} has nothing left of its limit epsilon = {bound}{at}: a release {lacks} was made from it, which no "
            "limit can hold",
            remedy="Use other people's records",
        )
    # A new release without an epsilon
    if not all(cost.private for cost in costs):
        if not Totals.of(costs).bare:
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
    # The sum of the epsilons
    requested = decimal_above(Totals.of(costs).sums.epsilon)
    return BudgetError(
        "dataset",
        f"{name} has {decimal_form(left)} left of its limit epsilon = {bound}{at}, and this release costs "
        f"{decimal_form(requested)}",
        remedy="Request less, use an earlier release, or raise the limit with `confide ledger limit`",
    )


def find_same_data(dataset: str, entries: Sequence[Entry], mechanism_input: bytes, key: str) -> Entry:
    """The newest of these stored releases that was computed from the same data.

    Raises
    ------
    OtherDataError
        If there is none.
    """
    digest = keyed_digest(key, mechanism_input)
    for entry in entries:
        if entry.fingerprint == digest:
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


# Remedy for data other than those of an earlier release
OTHER_DATA_REMEDY = (
    "If these are the same people with new records, a new model or new random numbers, which aps, raps and saps draw "
    "at every run, give again=True, which charges a new release; if they are other people, give them a name of their "
    "own; otherwise this is probably the wrong file"
)


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
    partitions = {data.group.partition for data in datasets if data.group is not None and data.one_cell is False}
    if shared := partitions & account.shared:
        raise InputError(
            "dataset",
            f"{account.dataset!r} was charged for other cells of the partition {min(shared)!r}, and "
            "the records of a person are bounded in this table alone: a person in two cells would lose "
            "the sum, and the larger would be charged. If each person is in one cell, give one_cell=True",
            remedy="Otherwise give this release a partition of its own, which adds up",
        )


def warn_of_similar_names(name: str, known: Iterable[str]) -> None:
    """Warn if a new name is similar to existing ones."""
    if names := similar(name, known):
        shown = ", ".join(map(repr, names[:3]))
        text = f"dataset {name!r} is new to the ledger and looks like {shown}; the same people must keep one name"
        warnings.warn(SimilarNameWarning(text), stacklevel=caller_stacklevel())


def check_release(text: Any) -> str:
    """Check that a release is a text of at most a million characters that both databases can store."""
    if not isinstance(text, str) or len(text) > MOST_RELEASE:
        raise FormatError("release", f"must be a text of at most {MOST_RELEASE} characters")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise FormatError("release", "must be a text that UTF-8 can encode") from None
    if "\0" in text:
        raise FormatError("release", "must be a text without the character U+0000, which PostgreSQL cannot store")
    return text


def check_relation(account: Account, neighbors: Neighbors) -> None:
    """Check that a loss is stated for the adjacency of its account."""
    if account.neighbors != neighbors:
        raise InputError(
            "dataset",
            f"{account.dataset!r} is accounted under {account.neighbors!r}, and this is stated for {neighbors!r}",
            remedy=f"Use neighbors={account.neighbors!r}",
        )
