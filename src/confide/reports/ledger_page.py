"""A ledger as a page for those responsible for privacy: spent and remaining budget of each data set."""

import math
from collections import Counter
from datetime import datetime
from fractions import Fraction
from typing import Any

from confide.errors import InputError
from confide.ledger import Account, Cost, Entry, Ledger, decimal_form, loss_text, unbounded
from confide.mechanisms import weak_privacy_text
from confide.reports.charts import spending
from confide.reports.page import Page, number, page_of
from confide.support import Section

MOST_CHARGES, MOST_POINTS = 200, 400
"""Newest charges in a table, and points in a chart."""


def ledger_page(
    ledger: Ledger, *, dataset: str | None = None, dp_delta: float = 1e-6, who: bool = True, title: str | None = None
) -> Page:
    """Page of a ledger, or of one of its data sets.

    It contains what readers of the ledger may see: public choices, times and losses. It contains neither releases nor
    fingerprints.

    Parameters
    ----------
    ledger
        The ledger; a database role with read access is enough.
    dataset
        Show only this data set.
    dp_delta
        Delta at which the releases are also composed, in addition to pure epsilon; 0 for pure epsilon only.
    who
        Whether to show who charged.
    title
        Heading of the page.

    Raises
    ------
    InputError
        If the ledger does not contain the data set, or dp_delta is outside [0, 1).

    Examples
    --------
    >>> import confide, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = confide.Ledger(f"{folder}/budget.db")
    ...     _ = ledger.set_limit("patients", 2.0)
    ...     ledger_page(ledger)
    Page('Privacy budget', ... kB of HTML)
    """
    found = ledger.snapshot()
    accounts = list(found.accounts.values()) if dataset is None else [ledger.account(dataset)]
    if isinstance(dp_delta, bool) or not 0 <= dp_delta < 1:
        raise InputError("dp_delta", "must be a number of at least 0 and below 1", repr(dp_delta))
    blocks = [_block(index, account, dp_delta, who=who) for index, account in enumerate(accounts, 1)]
    context = {
        "headline": _headline(accounts),
        "blocks": blocks,
        "releases": f"{sum(len(account.entries) for account in accounts):,}",
        "sets": f"{len(accounts):,}",
        "last": max((entry.charged_at for account in accounts for entry in account.entries), default="none yet"),
        "warned": sum(bool(block["warnings"]) for block in blocks),
        "place": str(ledger.path),
        "records": f"{len(found.hashes):,}",
        "seal": found.hashes[-1] if found.hashes else "none",
        "dp_delta": dp_delta,
        "who": who,
    }
    return page_of("ledger.html", title or "Privacy budget", context, script=False)


def _headline(accounts: list[Account]) -> str:
    if not accounts:
        return "Nothing was charged yet."
    most = max(accounts, key=lambda account: account.spent().epsilon)
    spent = loss_text(most.spent().epsilon, most.costs)
    sets = "One data set" if len(accounts) == 1 else f"{len(accounts):,} data sets"
    if most.limit is None:
        return f"{sets}; the most was spent on “{most.dataset}”: ε = {spent}, without a limit."
    return f"{sets}; the most was spent on “{most.dataset}”: ε = {spent} of {decimal_form(most.limit.epsilon)}."


def _block(index: int, account: Account, dp_delta: float, *, who: bool) -> dict[str, Any]:
    entries, limit = account.entries, account.limit
    private = all(cost.private for cost in account.costs)
    spent = account.spent().epsilon
    shown, allowed, left, *_ = (text for _, text in account.facts)
    last = entries[-1].charged_at[:10] if entries else "never"
    together = account.spent(dp_delta)
    return {
        "id": f"set-{index}",
        "name": account.dataset,
        "facts": account.facts,
        "overview": [account.dataset, shown, allowed, left, f"{len(entries):,}", last],
        "used": None if limit is None or not private else min(1.0, _share(spent, limit.epsilon)),
        "factor": _factor(spent),
        "warnings": _warnings(account),
        "course": _course(account) if private else None,
        "purposes": _purposes(entries, who=who),
        "bounds": [
            (bound.rule, _figure(bound.epsilon), f"{bound.dp_delta:g}")
            for bound in sorted(together.bounds, key=lambda bound: bound.epsilon)
        ],
        "derivations": [(bound.rule, bound.derivation) for bound in together.bounds],
        "charges": [_row(entry, who=who) for entry in reversed(entries[-MOST_CHARGES:])],
        "unshown": max(0, len(entries) - MOST_CHARGES),
    }


def _warnings(account: Account) -> list[tuple[str, str]]:
    found = []
    spent = account.spent().epsilon
    if (bare := sum(not cost.private for cost in account.costs)) and unbounded(account.costs) == "zCDP alone":
        found.append(("No epsilon.", f"{counted_releases(bare)} with zCDP alone, which has no limit in epsilon."))
    elif bare:
        found.append(("Not private.", f"{counted_releases(bare)} without privacy, which no limit covers."))
    elif account.limit is None:
        found.append(("No limit.", "Every request is charged. `confide ledger limit` sets one."))
    elif account.remaining() == 0.0:
        found.append(("Nothing is left.", "The ledger rejects every further release."))
    if weak := weak_privacy_text(spent):
        found.append(("Hardly private.", f"The total privacy loss is {weak}."))
    if lost := sum(entry.release is None for entry in account.entries):
        found.append(
            (
                "Charged without a release.",
                f"{counted_releases(lost)} charged and never stored, because the run ended before. The charge stands.",
            )
        )
    return found


def counted_releases(number_of: int) -> str:
    """Number of releases, as the beginning of a sentence.

    Examples
    --------
    >>> counted_releases(1), counted_releases(1200)
    ('One release was', '1,200 releases were')
    """
    return "One release was" if number_of == 1 else f"{number_of:,} releases were"


def _purposes(entries: tuple[Entry, ...], *, who: bool) -> list[tuple[str, ...]]:
    """Purposes and persons of the charges: how often, and the sum of the losses as charged."""
    number_of: Counter[tuple[str, str]] = Counter()
    sums: dict[tuple[str, str], Fraction] = {}
    for entry in entries:
        key = (entry.kind_and_mechanism, (entry.by or "not kept") if who else "")
        number_of[key] += 1
        if entry.cost.private:
            sums[key] = sums.get(key, Fraction(0)) + entry.cost.exact
    rows = sorted(number_of, key=lambda key: -sums.get(key, Fraction(10**15)))
    return [
        (key[0], *([key[1]] if who else []), f"{number_of[key]:,}", number(float(sums[key])) if key in sums else "+inf")
        for key in rows
    ]


def _row(entry: Entry, *, who: bool) -> tuple[str, ...]:
    group = "" if entry.cost.group is None else " = ".join(entry.cost.group)
    kept = "kept" if entry.release is not None else "none: the run ended before"
    made = entry.charged_at.replace("T", " ").removesuffix("+00:00")
    return (
        made,
        entry.kind_and_mechanism,
        loss_text(entry.cost.epsilon, [entry.cost]),
        group,
        *([entry.by or ""] if who else []),
        kept,
    )


def _course(account: Account) -> Section | None:
    """Sum of losses over time; None with fewer than two charges."""
    if len(account.entries) < 2:
        return None
    times = [datetime.fromisoformat(entry.charged_at).timestamp() for entry in account.entries]
    sums = [float(total) for total in running(account.costs)]
    first, last = min(times), max(times)
    limit = None if account.limit is None else account.limit.epsilon
    shares = [(at - first) / (last - first) if last > first else k / len(times) for k, at in enumerate(times, 1)]
    kept = [*range(0, len(sums), math.ceil(len(sums) / MOST_POINTS)), len(sums) - 1]
    dates = account.entries[0].charged_at[:10], account.entries[-1].charged_at[:10]
    chart = spending([(shares[k], sums[k]) for k in kept], limit, dates, decimal_form(sums[-1]))
    caption = "Cumulated loss of all releases over time."
    return Section(
        "", chart=chart, notes=(f"{caption}{' Dashed: the limit as it is now.' if limit is not None else ''}",)
    )


def running(costs: list[Cost]) -> list[Fraction]:
    """Sum of losses after each charge; of the cells of a partition, the largest loss counts.

    Examples
    --------
    >>> from confide.ledger import Group
    >>> cells = [Cost(1.0, "add_remove", "m", None, Group("ward", name)) for name in ("a", "b")]
    >>> [float(one) for one in running([*cells, Cost(0.5, "add_remove", "m")])]
    [1.0, 1.0, 1.5]
    """
    total, found = Fraction(0), []
    cells: dict[str, dict[str, Fraction]] = {}
    for cost in costs:
        if cost.group is None:
            total += cost.exact
        else:
            sums = cells.setdefault(cost.group.partition, {})
            before = max(sums.values(), default=Fraction(0))
            sums[cost.group.cell] = sums.get(cost.group.cell, Fraction(0)) + cost.exact
            total += max(sums.values()) - before
        found.append(total)
    return found


def _share(spent: float, limit: float) -> float:
    return spent / limit if limit else float(spent > 0)


def _factor(epsilon: float) -> str | None:
    """Factor on the odds, rounded up; None if it is too large to be useful."""
    if not 0 < epsilon <= 20:
        return None
    factor = math.exp(epsilon)
    return f"{math.ceil(factor):,}" if factor >= 100 else f"{math.ceil(100 * factor) / 100:.2f}"


def _figure(epsilon: float) -> str:
    """Format a total, rounded up."""
    return "+inf" if math.isinf(epsilon) else f"{math.ceil(epsilon * 1e4) / 1e4:.4f}".rstrip("0").rstrip(".")
