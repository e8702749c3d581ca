"""Account of one data set: the budget spent, its limit, and the budget left."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

from confide.ledger.composition import Limit, Totals, compose
from confide.ledger.cost import Cost, Group
from confide.ledger.decimals import decimal_form
from confide.ledger.loss import Loss
from confide.mechanisms import Neighbors, weak_privacy_text
from confide.support import Described, Facts, Section, Table, json_number, require, to_text

_RELATIONS: Mapping[Neighbors, str] = {
    "add_remove": "adding or removing one person's record; the number of records stays secret",
    "replace_one": "replacing one person's record; the number of records is public",
}


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
        The text of the release; None if the run ended before the release was stored. The charge stands.
    fingerprint
        Fingerprint of the mechanism's input under the ledger's own key; None if it was not stored. Do not publish it.
    by
        Who charged it: on a server the role, in a file the text of `Ledger(by=...)`; None if nothing was stored.
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
        """The kind and the mechanism, whose name contains the kind unless it is a calibration."""
        mechanism = self.cost.mechanism
        return mechanism if mechanism.startswith(f"{self.kind} by ") else f"{self.kind} by {mechanism}"

    @property
    def text(self) -> str:
        """The text of an existing release."""
        assert self.release is not None
        return self.release

    def _brief(self) -> str:
        return ", ".join(text for text in self.row(who=self.by is not None) if text)

    def row(self, *, who: bool) -> tuple[str, ...]:
        """Time, purpose, losses, group, account (with `who`) and release, for a table."""
        cost = self.cost
        time = self.charged_at.replace("T", " ").removesuffix("+00:00")
        loss = Totals.of([cost]).text
        rho = "" if cost.rho is None else f"{cost.rho:.4g}"
        group = "" if cost.group is None else "=".join(cost.group)
        stored = "stored" if self.release is not None else "none: the run ended before"
        charged_by = (self.by or "not stored",) if who else ()
        return (time, self.kind_and_mechanism, loss, rho, group, *charged_by, stored)

    def as_json(self) -> dict[str, Any]:
        """The charge as plain data, without the fingerprint."""
        cost = self.cost
        content = {
            "token": self.token,
            "made": self.charged_at,
            "kind": self.kind,
            "request": self.request,
            "mechanism": cost.mechanism,
            "epsilon": json_number(cost.epsilon),
            "rho": cost.rho,
            "group": None if cost.group is None else "=".join(cost.group),
            "release": _as_json(self.release),
        }
        return content if self.by is None else content | {"by": self.by}


@dataclass(frozen=True, repr=False)
class Account(Described):
    """The privacy budget spent on one data set.

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
    entries
        Every charge, oldest first; empty if they were not read.
    totals
        The exact totals of its charges. An account without entries has sums only for the partition cells that were
        requested.
    shared
        The partitions in which other cells than the requested ones were charged.
    """

    dataset: str
    neighbors: Neighbors
    fingerprint: str | None = None
    limit: Limit | None = None
    entries: tuple[Entry, ...] = ()
    totals: Totals = field(default_factory=Totals)
    shared: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        are_counted = not self.entries or self.totals.releases == len(self.entries)
        require("totals", are_counted, "must be those of the entries")

    @property
    def costs(self) -> list[Cost]:
        """The costs of all charges."""
        were_read = self.totals.releases == len(self.entries)
        require("entries", were_read, "must have been read", remedy="Use Ledger.account")
        return [entry.cost for entry in self.entries]

    def spent(self, dp_delta: float = 0.0) -> Loss:
        """The privacy loss of all releases together at this delta, by `compose`."""
        return compose(self.costs, dp_delta)

    @property
    def facts(self) -> Facts:
        """The budget as names and values: spent, limit, left, releases, and the adjacency."""
        left = self.remaining()
        return (
            ("epsilon spent, the losses added up", self.totals.text),
            ("limit", "none" if self.limit is None else self.limit.text),
            ("left for one more release", "unlimited" if left is None else decimal_form(left)),
            ("releases", _releases(self.totals)),
            ("counted for", _RELATIONS[self.neighbors]),
        )

    @property
    def summary(self) -> str:
        """One line with the budget spent, the limit, and the budget left."""
        weak = weak_privacy_text(self.totals.epsilon)
        line = f"spent {self.totals.text} in {_releases(self.totals)} ({self.neighbors})"
        line += f", {weak}" if weak else ""
        if self.limit is None:
            return f"{line}; no limit"
        return f"{line}; limit {self.limit.text}, {decimal_form(self.limit.left(self.totals))} left"

    def describe(self, dp_delta: float = 0.0) -> str:
        """Return a text with every charge, their total privacy loss at `dp_delta`, and its derivation."""
        return to_text(self.section(dp_delta))

    def section(self, dp_delta: float = 0.0, *, who: bool = True, most: int | None = None) -> Section:
        """The description of the account: with who charged, and the newest `most` charges."""
        loss = self.spent(dp_delta)
        entries = self.entries[::-1][:most]
        lead = f"{self.dataset}: {self.summary}"
        facts = (*self.facts, ("together", str(loss)))
        if not entries:
            return Section(self.dataset, lead, facts)
        bounds = tuple((b.rule, _rounded_up(b.epsilon), f"{b.dp_delta:g}", b.derivation) for b in loss.bounds)
        charged_by = ("Account",) if who else ()
        heads = ("Time (UTC)", "Purpose", "ε", "ρ", "Group", *charged_by, "Release")
        charges = tuple(entry.row(who=who) for entry in entries)
        tables = (
            Table(heads, charges, "Charges, the newest first", total=len(self.entries)),
            Table(("Rule", "ε", "δ", "Derivation"), bounds, "All bounds on the total"),
        )
        return Section(self.dataset, lead, facts, tables)

    def _section(self) -> Section:
        return self.section()

    def _brief(self) -> str:
        return f"{self.dataset!r}, {self.summary}"

    def after(self, *costs: Cost) -> "Account":
        """The account after more charges, without their entries."""
        return replace(self, entries=(), totals=reduce(Totals.plus, costs, self.totals))

    def until(self, count: int) -> "Account":
        """The account as it was after its first `count` charges."""
        return replace(self, entries=self.entries[:count], totals=Totals.of(self.costs[:count]))

    def allows(self, *costs: Cost) -> bool:
        """Whether the limit allows one more release, or several together (`Limit.allows`)."""
        return self.limit is None or self.limit.allows(self.totals, costs)

    def remaining(self, group: Group | None = None) -> float | None:
        """The largest epsilon of one more release that the limit certainly allows; None without a limit.

        Only the sum of epsilons is used: with dp_delta > 0 the limit may allow a larger epsilon. After a release
        without privacy nothing is left, and the result is 0.
        """
        return None if self.limit is None else self.limit.left(self.totals, group)

    def as_json(self, *, entries: bool = True) -> dict[str, Any]:
        """The account as plain data, with its entries or without."""
        limit = self.limit
        content: dict[str, Any] = {
            "dataset": self.dataset,
            "neighbors": self.neighbors,
            "bound": self.fingerprint is not None,
            "limit": None if limit is None else limit._asdict(),
            "spent": json_number(self.totals.epsilon),
            "remaining": self.remaining(),
        }
        if entries:
            content["entries"] = [entry.as_json() for entry in self.entries]
        return content


def _releases(totals: Totals) -> str:
    """The number of releases, and of each kind if not all are calibrations."""
    total = _number_of(totals.releases, "release")
    if totals.kinds.keys() <= {"calibration"}:
        return total
    return f"{total} ({', '.join(_number_of(number, kind) for kind, number in sorted(totals.kinds.items()))})"


def _number_of(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _rounded_up(epsilon: float) -> str:
    """An epsilon with four decimals."""
    return "+inf" if math.isinf(epsilon) else f"{math.ceil(epsilon * 1e4) / 1e4:.10g}"


def _as_json(release: str | None) -> Any:
    """A release as a JSON value, or as the text that it is."""
    try:
        return None if release is None else json.loads(release)
    except ValueError:
        return release
