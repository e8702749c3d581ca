"""From the records of a ledger to what was spent: a pure function, run again on every reading."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from confide.errors import FormatError, InputError
from confide.ledger.composition import compose, worst
from confide.ledger.cost import Cost, Group, Loss, decimal, decimal_below
from confide.ledger.events import Charged, Event, Keyed, Limited, Opened, Released
from confide.ledger.names import name_key
from confide.mechanisms import Neighbors


class Limit(NamedTuple):
    """The most that may be spent on a data set: (epsilon, dp_delta)-differential privacy of all releases together."""

    epsilon: float
    dp_delta: float = 0.0


@dataclass(frozen=True)
class Entry:
    """One charge, and the release that it paid for.

    Parameters
    ----------
    token
        Identifies the charge.
    made
        When it was charged, UTC, ISO 8601.
    request
        Digest of what was asked.
    cost
        What was charged.
    release
        The text of the release; None if the run ended before there was one. Its charge stands.
    fingerprint
        Of what the mechanism saw, under the ledger's own key; None if it was not kept. Not for publication.
    """

    token: str
    made: str
    request: str
    cost: Cost
    release: str | None
    fingerprint: str | None = field(default=None, repr=False)

    @property
    def kind(self) -> str:
        """What was paid for: `"calibration"`, `"evaluation"` or `"look"`."""
        return self.cost.kind

    @property
    def text(self) -> str:
        """The text of a release that is there."""
        assert self.release is not None
        return self.release


@dataclass(frozen=True)
class Account:
    """What was spent on one data set.

    Parameters
    ----------
    dataset
        Its name.
    neighbors
        The relation that its losses are stated for.
    fingerprint
        Keyed fingerprint of the data it stands for, or None.
    limit
        The most that may be spent, or None.
    entries
        Every charge, oldest first.
    """

    dataset: str
    neighbors: Neighbors
    fingerprint: str | None
    limit: Limit | None
    entries: tuple[Entry, ...]

    @property
    def costs(self) -> list[Cost]:
        """The costs of all charges."""
        return [entry.cost for entry in self.entries]

    def spent(self, dp_delta: float = 0.0, *, adaptive: bool = False) -> Loss:
        """What all releases cost together, as in `compose`."""
        return compose(self.costs, dp_delta, adaptive=adaptive)

    def allows(self, *costs: Cost) -> bool:
        """Whether the limit leaves room for one more release, or several together.

        A limit with dp_delta = 0 bounds the exact sum of the epsilons as printed. One with dp_delta > 0 also allows
        what zero-concentrated accounting allows; no figure is used that needs parameters to be fixed in advance.
        """
        if self.limit is None or all(cost.epsilon == 0 for cost in costs):
            return True
        after = [*self.costs, *costs]
        if not all(one.private for one in after):
            return False
        if worst(after, lambda one: one.exact) <= decimal(self.limit.epsilon):
            return True
        if self.limit.dp_delta == 0:
            return False
        return compose(after, self.limit.dp_delta, adaptive=True).epsilon <= self.limit.epsilon

    def remaining(self, group: Group | None = None) -> float | None:
        """The largest epsilon of one more release that the limit is sure to allow; None without a limit.

        By the sum of epsilons alone: with dp_delta > 0, more may be possible. Nothing is left once a release was
        without privacy.
        """
        if self.limit is None:
            return None
        if not all(one.private for one in self.costs):
            return 0.0
        limit = decimal(self.limit.epsilon)
        base = worst(self.costs, lambda one: one.exact)
        if base > limit:
            return 0.0
        if group is None:
            return decimal_below(limit - base)
        # A cell has all the room that its partition's largest cell has, and what it is behind that one.
        probe = Cost(float(limit), self.neighbors, "probe", None, group)
        behind = limit - (worst([*self.costs, probe], lambda one: one.exact) - base)
        return decimal_below(min(limit, limit - base + behind))

    def answers(self, request: str) -> tuple[Entry, ...]:
        """The kept releases that answered this request, newest first."""
        return tuple(one for one in reversed(self.entries) if one.request == request and one.release is not None)


_BARE = ("fedcp-qq", "fedcp-avg")
"""Methods without privacy whose answers 0.1 kept at cost 0, under a name of their own."""


def replay(events: Iterable[tuple[str, Event]]) -> dict[str, Account]:
    """The accounts that (time, event) pairs add up to, in the order of their opening.

    Raises
    ------
    FormatError
        If an event does not follow from those before: a charge to a data set that was never opened, a release that
        nobody paid for, or something twice.
    """
    accounts: dict[str, Account] = {}
    entries: dict[str, dict[str, Entry]] = {}
    owner: dict[str, str] = {}
    keys = 0
    for made, event in events:
        match event:
            case Opened(dataset, neighbors, fingerprint):
                _require(dataset not in accounts)
                accounts[dataset] = Account(dataset, neighbors, fingerprint, None, ())
                entries[dataset] = {}
            case Limited(dataset, epsilon, dp_delta):
                _require(dataset in accounts)
                limit = None if epsilon is None else Limit(epsilon, dp_delta)
                accounts[dataset] = replace(accounts[dataset], limit=limit)
            case Charged(dataset, token, request, cost):
                _require(dataset in accounts and token not in owner)
                _require(cost.neighbors == accounts[dataset].neighbors)
                owner[token] = dataset
                true = replace(cost, epsilon=math.inf) if cost.epsilon == 0 and cost.mechanism in _BARE else cost
                entries[dataset][token] = Entry(token, made, request, true, None)
            case Released(token, text, fingerprint):
                _require(token in owner)
                entry = entries[owner[token]][token]
                _require(entry.release is None)
                entries[owner[token]][token] = replace(entry, release=text, fingerprint=fingerprint)
            case Keyed():
                keys += 1
                _require(keys == 1)
    return {name: replace(account, entries=tuple(entries[name].values())) for name, account in accounts.items()}


def known(accounts: Mapping[str, Account], name: str) -> Account | None:
    """The account of a data set, whose name may be written in another case or Unicode form; None if it is new.

    Raises
    ------
    InputError
        If a ledger of 0.1 holds several that are one name today, and this is none of their spellings.
    """
    if name in accounts:
        return accounts[name]
    alike = [account for other, account in accounts.items() if name_key(other) == name_key(name)]
    if len(alike) > 1:
        spellings = ", ".join(repr(account.dataset) for account in alike)
        raise InputError(
            f"dataset {name!r} is one of {spellings}, which an earlier version opened one by one although they differ "
            "only in case or Unicode form; write the one that is meant as it stands there"
        )
    return alike[0] if alike else None


def _require(condition: bool) -> None:
    if not condition:
        raise FormatError("the ledger's records contradict each other; restore it from a backup")
