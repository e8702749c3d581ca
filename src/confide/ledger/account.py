"""Account of one data set: the budget spent, its limit, and the budget left."""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from confide.ledger.composition import Limit, Totals, compose
from confide.ledger.cost import Cost, Group, Loss, decimal_form, unbounded
from confide.ledger.identity import name_key
from confide.mechanisms import Neighbors, weak_privacy_text
from confide.support import Described, Facts, Section, to_text


@dataclass(frozen=True, repr=False)
class Entry(Described):
    """One charge, and the release that it paid for.

    Parameters
    ----------
    token
        Identifies the charge.
    charged_at
        Time of the charge, UTC, ISO 8601.
    request
        Digest of the request.
    cost
        The cost that was charged.
    release
        The text of the release; None if the run ended before there was one. Its charge stands.
    fingerprint
        Fingerprint of the mechanism's input under the ledger's own key; None if it was not stored. Not for publication.
    by
        The account that charged it: on a server the role, in a file the text of `Ledger(by=...)`; None if that was not
        stored.
    """

    token: str
    charged_at: str
    request: str
    cost: Cost
    release: str | None
    fingerprint: str | None = None
    by: str | None = None

    @property
    def kind(self) -> str:
        """The kind of release: `"calibration"`, `"evaluation"` or `"look"` (a batch of a monitor)."""
        return self.cost.kind

    @property
    def kind_and_mechanism(self) -> str:
        """The kind and the mechanism. The mechanism's name contains the kind unless it is a calibration."""
        mechanism = self.cost.mechanism
        return mechanism if mechanism.startswith(f"{self.kind} by ") else f"{self.kind} by {mechanism}"

    @property
    def text(self) -> str:
        """The text of an existing release."""
        assert self.release is not None
        return self.release

    def _section(self) -> Section:
        return Section("Entry", self._words())

    def _words(self) -> str:
        group = "" if self.cost.group is None else f"  group {'='.join(self.cost.group)}"
        zcdp = "" if self.cost.rho is None else f" ({self.cost.rho:.4g}-zCDP)"
        who = "" if self.by is None else f"  by {self.by}"
        kept = "" if self.release is not None else "  (no release: the run ended before it)"
        loss = loss_text(self.cost.epsilon, [self.cost])
        return f"{self.charged_at}  {self.kind_and_mechanism}  epsilon {loss}{zcdp}{group}{who}{kept}"

    def _brief(self) -> str:
        return self._words().replace("  ", ", ")


@dataclass(frozen=True)
class Balance:
    """The budget of a data set without its charges: what a decision about another charge depends on.

    Parameters
    ----------
    dataset
        Its name.
    neighbors
        The adjacency for which its losses are stated.
    fingerprint
        Keyed fingerprint of the data that the name is bound to, or None.
    limit
        The limit on its budget, or None.
    totals
        The exact totals of its charges. A ledger reads the sums of those cells only that a decision is about.
    shared
        The partitions in which other cells than those were charged.
    """

    dataset: str
    neighbors: Neighbors
    fingerprint: str | None = None
    limit: Limit | None = None
    totals: Totals = field(default_factory=Totals)
    shared: frozenset[str] = frozenset()

    @property
    def facts(self) -> Facts:
        """The budget as names and values: spent, limit, left, releases, their and their adjacency."""
        limit, totals = self.limit, self.totals
        at = f" at delta {limit.dp_delta:g}" if limit is not None and limit.dp_delta else ""
        spent = decimal_form(totals.epsilon) if totals.private else f"+inf ({totals.unbounded})"
        return (
            ("epsilon spent, the losses added up", spent),
            ("limit", "none" if limit is None else f"{decimal_form(limit.epsilon)}{at}"),
            ("left for one more release", _left_text(self.remaining())),
            ("releases", _counted(totals.kinds)),
            ("counted for", _RELATIONS[self.neighbors]),
        )

    @property
    def summary(self) -> str:
        """One line with the budget spent, the limit, and the budget left."""
        spent, limit, left, releases, *_ = (text for _, text in self.facts)
        weak = weak_privacy_text(self.totals.epsilon)
        line = f"spent {spent} in {releases} ({self.neighbors}){f', {weak}' if weak else ''}"
        if self.limit is None:
            return f"{line}; no limit"
        return f"{line}; limit {limit}, {left} left"

    def as_json(self) -> dict[str, Any]:
        """The budget as plain data."""
        limit = self.limit
        return {
            "dataset": self.dataset,
            "neighbors": self.neighbors,
            "bound": self.fingerprint is not None,
            "limit": None if limit is None else {"epsilon": limit.epsilon, "dp_delta": limit.dp_delta},
            "spent": _finite(self.totals.epsilon),
            "remaining": self.remaining(),
        }

    def allows(self, *costs: Cost) -> bool:
        """Whether the limit allows one more release, or several together.

        A limit with dp_delta = 0 bounds the exact sum of the epsilons as printed. A limit with dp_delta > 0 also uses
        zero-concentrated accounting, for releases that have an epsilon each. A release with zCDP alone, or without
        privacy, fits no limit.
        """
        if self.limit is None or all(cost.epsilon == 0 for cost in costs):
            return True
        after = self.after(*costs)
        return after.private and self.limit.holds(after)

    def after(self, *costs: Cost) -> Totals:
        """The totals after more charges."""
        totals = self.totals
        for cost in costs:
            totals = totals.plus(cost)
        return totals

    def remaining(self, group: Group | None = None) -> float | None:
        """The largest epsilon of one more release that the limit certainly allows; None without a limit.

        It is computed by the sum of epsilons alone. With dp_delta > 0 a larger epsilon may be allowed. After a release
        without privacy it is 0.
        """
        return None if self.limit is None else self.limit.left(self.totals, group)


@dataclass(frozen=True, repr=False)
class Account(Described):
    """The privacy budget spent on one data set, with every charge.

    Parameters
    ----------
    dataset, neighbors, fingerprint, limit
        As in `Balance`.
    entries
        Every charge, oldest first.
    """

    dataset: str
    neighbors: Neighbors
    fingerprint: str | None
    limit: Limit | None
    entries: tuple[Entry, ...]

    @cached_property
    def balance(self) -> Balance:
        """The budget alone."""
        return Balance(self.dataset, self.neighbors, self.fingerprint, self.limit, Totals.of(self.costs))

    @property
    def costs(self) -> list[Cost]:
        """The costs of all charges."""
        return [entry.cost for entry in self.entries]

    @property
    def summary(self) -> str:
        """One line with the budget spent, the limit, and the budget left."""
        return self.balance.summary

    def spent(self, dp_delta: float = 0.0) -> Loss:
        """The privacy loss of all releases together, as in `compose`."""
        return compose(self.costs, dp_delta)

    def allows(self, *costs: Cost) -> bool:
        """Whether the limit allows one more release, or several together: `Balance.allows`."""
        return self.balance.allows(*costs)

    def remaining(self, group: Group | None = None) -> float | None:
        """The largest epsilon of one more release that the limit certainly allows: `Balance.remaining`."""
        return self.balance.remaining(group)

    def describe(self, dp_delta: float = 0.0) -> str:
        """Return a text with every charge, their total privacy loss at `dp_delta`, and its derivation."""
        return to_text(self.section(dp_delta))

    def section(self, dp_delta: float = 0.0) -> Section:
        """The description of the account that `describe` returns as text."""
        loss = self.spent(dp_delta)
        facts = (("together", str(loss)),)
        rules = tuple((bound.rule, f"epsilon {bound.epsilon:.6g}") for bound in loss.bounds)
        several = len(rules) > 1 and all(cost.private for cost in self.costs)
        charges = "\n".join(["", *(f"  {entry}" for entry in self.entries)])
        lead = f"{self.dataset}: {self.summary}{charges if self.entries else ''}"
        return Section("Account", lead, facts, parts=(Section("", facts=rules),) if several else ())

    def _section(self) -> Section:
        return self.section()

    def _brief(self) -> str:
        return f"{self.dataset!r}, {self.summary}"


_RELATIONS: Mapping[Neighbors, str] = {
    "add_remove": "adding or removing one person's record; the number of records stays secret",
    "replace_one": "replacing one person's record; the number of records is public",
}


def _left_text(left: float | None) -> str:
    return "unlimited" if left is None else decimal_form(left)


def loss_text(epsilon: float, costs: Iterable[Cost]) -> str:
    """A loss of these costs together; for an infinite one the reason.

    Examples
    --------
    >>> loss_text(0.5, []), loss_text(math.inf, [Cost(math.inf, "add_remove", "none")])
    ('0.5', '+inf (not private)')
    """
    return f"+inf ({unbounded(costs)})" if math.isinf(epsilon) else decimal_form(epsilon)


def _counted(kinds: Mapping[str, int]) -> str:
    """The number of releases, by kind unless all are calibrations."""
    of_kinds = ", ".join(f"{number:,} {kind}{'' if number == 1 else 's'}" for kind, number in sorted(kinds.items()))
    total = sum(kinds.values())
    made = "1 release" if total == 1 else f"{total:,} releases"
    return f"{made} ({of_kinds})" if set(kinds) - {"calibration"} else made


def account_as_json(account: Account) -> dict[str, Any]:
    """An account as plain data."""
    return account.balance.as_json() | {
        "entries": [
            {
                "token": entry.token,
                "made": entry.charged_at,
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
        ]
    }


def find_account(accounts: Mapping[str, Account], name: str) -> Account | None:
    """The account of a data set, whose name may have another case or Unicode form; None if it is new."""
    if name in accounts:
        return accounts[name]
    key = name_key(name)
    return next((account for other, account in accounts.items() if name_key(other) == key), None)


def _finite(loss: float) -> float | str:
    """A loss as a JSON value: an infinite one is a text."""
    return loss if math.isfinite(loss) else "+inf"


def _as_json(release: str | None) -> Any:
    try:
        return None if release is None else json.loads(release)
    except ValueError:
        return release
