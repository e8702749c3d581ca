"""Checks of a charge against the account of its data set, which a ledger runs while no other process can write."""

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from confide.errors import BudgetError, FormatError, InputError, InputTypeError, OtherDataError
from confide.ledger.account import Account, Entry
from confide.ledger.composition import Limit, Totals, check_delta
from confide.ledger.cost import Cost
from confide.ledger.decimals import decimal_above, decimal_form, finite_loss
from confide.ledger.identity import Dataset, is_hexadecimal, keyed_digest
from confide.mechanisms import Neighbors
from confide.support import require

# Most characters of a stored release
MOST_RELEASE = 1_000_000

# Remedy for data other than those of an earlier release
_OTHER_DATA = (
    "If these are the same people with new records, a new model or new random numbers, which aps, raps and saps draw "
    "at every run, give again=True, which charges a new release; if they are other people, give them a name of their "
    "own; otherwise this is probably the wrong file"
)

# A limit as it is given: an epsilon, or (epsilon, dp_delta)
LimitLike: TypeAlias = float | tuple[float, float] | Limit

# A charge, its release, and a limit, as they are given


def as_dataset(dataset: str | Dataset) -> Dataset:
    """A name or a `Dataset`, as a `Dataset`."""
    return dataset if isinstance(dataset, Dataset) else Dataset(dataset)


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
        same_group = self.cost.group == self.dataset.group
        require("cost", same_group, "must be stated for the group of the data set", got="another")
        is_digest = is_hexadecimal(self.request, least=64)
        require("request", is_digest, "must be a digest of 64 hexadecimal digits, as returned by `request_digest`")
        require("token", is_hexadecimal(self.token), "must have 32 to 64 hexadecimal digits")


class ReleaseOfCharge(NamedTuple):
    """The token of a charge, the text of its release, and the input of its mechanism (see `Ledger.attach`)."""

    token: str
    text: str
    mechanism_input: bytes | None


def check_limit(limit: LimitLike) -> Limit:
    """A limit from a number or a pair (epsilon, dp_delta)."""
    pair = limit if isinstance(limit, tuple) else (limit, 0.0)
    if len(pair) != 2:
        raise InputTypeError("limit", "must be epsilon, or a pair (epsilon, dp_delta)")
    epsilon, dp_delta = pair
    return Limit(finite_loss("limit", epsilon, "a number"), check_delta(dp_delta))


# A charge against its account


def check_relation(account: Account, neighbors: Neighbors) -> None:
    """Check that a loss is stated for the adjacency of its account."""
    requirement = f"{account.dataset!r} is accounted under {account.neighbors!r}, and this request states {neighbors!r}"
    require("dataset", account.neighbors == neighbors, requirement, remedy=f"Use neighbors={account.neighbors!r}")


def check_binding(account: Account, data: Dataset) -> None:
    """Check that data are those to which a name is bound."""
    if account.fingerprint is not None and account.fingerprint != data.fingerprint:
        difference = "no fingerprint was given" if data.fingerprint is None else "these are other data, or another key"
        requirement = f"{account.dataset!r} is bound to a fingerprint, and {difference}"
        raise OtherDataError("dataset", requirement, remedy=f"Nothing was charged. {_OTHER_DATA}")


def check_cells(account: Account, datasets: Iterable[Dataset]) -> None:
    """Reject cells whose people may also be in other charged cells: a person in both would lose the sum."""
    partitions = {data.group.partition for data in datasets if data.group is not None and data.one_cell is False}
    if shared := partitions & account.shared:
        raise InputError(
            "dataset",
            f"{account.dataset!r} was charged for other cells of the partition {min(shared)!r}, and "
            "records_per_person holds in this table alone: for a person in two cells the losses add up, and "
            "only the larger would be charged. If each person is in one cell, give one_cell=True",
            remedy="Otherwise give this release a partition of its own, which adds up",
        )


def check_limits(account: Account, costs: Sequence[Cost], standard: Limit | None, at_most: Limit | None = None) -> None:
    """Check costs against the data set's own limit, or else the standard one, and against `at_most`."""
    for limit in (standard if account.limit is None else account.limit, at_most):
        if limit is not None and not limit.allows(account.totals, costs):
            raise _budget_error(account, limit, costs)


def _budget_error(account: Account, limit: Limit, costs: Sequence[Cost]) -> BudgetError:
    delta = f" at dp_delta = {limit.dp_delta:g}" if limit.dp_delta else ""
    stated = f"limit epsilon = {decimal_form(limit.epsilon)}{delta}"
    # An earlier release without an epsilon
    if not account.totals.private:
        lacks = "without privacy" if account.totals.bare else "with zCDP alone and no epsilon"
        requirement = f"has nothing left of its {stated}: an earlier release {lacks} exceeds every limit"
        remedy = "Use other people's records"
    # A new release without an epsilon
    elif Totals.of(costs).bare:
        requirement = f"has the {stated}, and this release is not private: its loss is infinite"
        remedy = "Use a private mechanism"
    elif not Totals.of(costs).private:
        requirement = f"has the {stated}, and this release has zCDP alone, without an epsilon to compare with it"
        remedy = "Use a mechanism that has an epsilon"
    # The sum of the epsilons
    else:
        group = costs[0].group if len({cost.group for cost in costs}) == 1 else None
        left = limit.left(account.totals, group)
        requested = decimal_above(Totals.of(costs).sums.epsilon)
        requirement = f"has {decimal_form(left)} left of its {stated}, and this release costs {decimal_form(requested)}"
        remedy = "Request less, use an earlier release, or raise the limit with `confide ledger limit`"
    return BudgetError("dataset", f"{account.dataset!r} {requirement}", remedy=remedy)


# Releases


def find_same_data(dataset: str, entries: Sequence[Entry], mechanism_input: bytes, key: str) -> Entry:
    """The newest of these stored releases that was computed from the same data; raises `OtherDataError` if none was."""
    digest = keyed_digest(key, mechanism_input)
    for entry in entries:
        if entry.fingerprint == digest:
            return entry
    origin = "stored without a fingerprint, so that the data cannot be compared"
    if any(entry.fingerprint for entry in entries):
        origin = "made from other data"
    requirement = f"{dataset!r} has a release for this request, of {entries[0].charged_at}, {origin}"
    raise OtherDataError("dataset", requirement, remedy=f"Nothing was charged. {_OTHER_DATA}")


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
