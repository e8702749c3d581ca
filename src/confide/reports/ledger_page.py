"""A ledger for those responsible for privacy: spent and remaining budget of each data set, and of a release."""

import hashlib
import math
from collections.abc import Iterator
from dataclasses import replace

from confide.core import Release, entry_checksums
from confide.ledger import Account, Checkpoint, Ledger, check_delta
from confide.mechanisms import weak_privacy_text
from confide.reports.page import Page, page_of
from confide.reports.words import LARGEST_EXPONENT, date_of, factor, percent, say, words
from confide.support import Section, Table, require

# Newest charges in a table
MOST_CHARGES = 200


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
    """
    return page_of(ledger_section(ledger, dataset, dp_delta, who=who), title)


def ledger_section(ledger: Ledger, dataset: str | None = None, dp_delta: float = 1e-6, *, who: bool = True) -> Section:
    """A ledger, or one of its data sets; the arguments are those of `ledger_page`."""
    # One data set or all.
    accounts = ledger.accounts().values() if dataset is None else [ledger.account(dataset)]
    check_delta(dp_delta)

    # Reading the checkpoint checks every seal.
    number, seal = ledger.checkpoint(Checkpoint(), "")
    source = (("Ledger", str(ledger.path)), ("Charges", f"{number:,}"), ("Seal of the last charge", seal or "none"))
    parts = (
        *(_account(account, dp_delta, who=who) for account in accounts),
        Section("How to read this page", facts=tuple(words()["ledger"]["reading"].items())),
        Section("Source", facts=source, notes=(say("ledger", "checked"),)),
    )
    facts = tuple((account.dataset, account.summary) for account in accounts)
    lead = "" if accounts else "Nothing was charged yet."
    return Section("Privacy budget", lead, facts, parts=parts)


def _account(account: Account, dp_delta: float, *, who: bool) -> Section:
    # The account as `confide ledger show` prints it, in the words of the page.
    section = account.section(dp_delta, who=who, most=MOST_CHARGES)
    spent = account.totals.epsilon
    limit = account.limit
    facts = [*section.facts]
    if limit is not None and limit.epsilon and math.isfinite(spent):
        facts.append(("share of the limit that is spent", percent(min(1.0, spent / limit.epsilon))))
    if 0 < spent <= LARGEST_EXPONENT:
        facts.append(("odds", say("ledger", "odds", factor=factor(spent))))
    return replace(section, lead="", facts=tuple(facts), warnings=tuple(_warnings(account)))


def _warnings(account: Account) -> Iterator[str]:
    bare = sum(not cost.private for cost in account.costs)
    lost = sum(entry.release is None for entry in account.entries)
    if bare:
        kind = "bare" if account.totals.bare else "no_epsilon"
        yield say("ledger", kind, number=counted_releases(bare))
    elif account.limit is None:
        yield say("ledger", "no_limit")
    elif account.remaining() == 0.0:
        yield say("ledger", "nothing_left")
    if weak := weak_privacy_text(account.totals.epsilon):
        yield say("ledger", "weak", weak=weak)
    if lost:
        yield say("ledger", "lost", number=counted_releases(lost))


def counted_releases(count: int) -> str:
    """Number of releases, as the beginning of a sentence."""
    return "One release was" if count == 1 else f"{count:,} releases were"


def spending(release: Release, ledger: Ledger) -> Section:
    """What each data set that was charged for the release had spent before it, with it, and by now, and its limit."""
    parts = []
    checksums = {release.checksum, *entry_checksums(release)}
    for account in ledger.accounts().values():
        places = [place for place, entry in enumerate(account.entries) if _checksum(entry.release) in checksums]
        if places:
            parts.append(_spent_for(account, places[0], places[-1] + 1))
    must = "must be the one that was charged for this release"
    require("ledger", parts, must, got="a ledger without such a charge")
    return Section("What the data have spent", say("spending", "lead"), parts=tuple(parts))


def _checksum(text: str | None) -> str | None:
    return None if text is None else hashlib.sha256(text.encode()).hexdigest()


def _spent_for(account: Account, first: int, end: int) -> Section:
    """The account before the charges `first` to `end` for a release, after them, and as it is."""
    states = [account.until(count) for count in (first, end, len(account.entries))]
    budgets = [dict(state.facts[:-1]) for state in states]  # the adjacency is the same
    rows = tuple((name, *(budget[name] for budget in budgets)) for name in budgets[0])
    heads = ("Budget", "Before this release", "With it", "By now")
    entry = account.entries[first]
    charged = f"Charged on {date_of(entry.charged_at)}{f', by {entry.by}' if entry.by else ''}."
    return Section(account.dataset, charged, tables=(Table(heads, rows, f"Budget of {account.dataset}"),))
