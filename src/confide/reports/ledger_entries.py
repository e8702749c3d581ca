"""Ledger entries of a release: spent before it, with it and since, and the limit."""

import hashlib
from dataclasses import replace
from typing import Any

from confide.core import Release, entry_checksums
from confide.errors import InputError
from confide.ledger import Account, Ledger, decimal_form
from confide.reports.page import number


def spending(release: Release, ledger: Ledger) -> list[dict[str, Any]]:
    """One block for each data set that was charged for the release.

    Raises
    ------
        If the ledger contains no charge for this release.
        If no charge of the ledger is one for this release.

    Examples
    --------
    >>> import confide, numpy as np, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = confide.Ledger(f"{folder}/budget.db", limit=2.0)
    ...     known = {"ledger": ledger, "dataset": "patients"}
    ...     released = confide.calibrate(np.linspace(0, 1, 2000), 0.1, 0.5, score="lac", **known)
    ...     block = spending(released, ledger)[0]
    >>> block["name"], block["rows"][0], block["rows"][2]
    ('patients', ('Spent before this release', 'ε = 0'), ('Spent with it', 'ε = 0.5'))
    """
    own = {release.checksum, *entry_checksums(release)}
    found = []
    for account in ledger.accounts().values():
        places = [place for place, entry in enumerate(account.entries) if _checksum(entry.release) in own]
        if places:
            found.append(_block(account, places))
    if not found:
        raise InputError(
            "ledger", "must be the one that was charged for this release", "a ledger without such a charge"
        )
    return found


def _checksum(text: str | None) -> str | None:
    return None if text is None else hashlib.sha256(text.encode()).hexdigest()


def _block(account: Account, places: list[int]) -> dict[str, Any]:
    limit, now = account.limit, account.spent().epsilon
    before, after = _spent(account, places[0]), _spent(account, places[-1] + 1)
    first = account.entries[places[0]]
    rows = [
        ("Spent before this release", _loss(before)),
        ("Charged for it", f"on {first.charged_at[:10]}{f', by {first.by}' if first.by else ''}"),
        ("Spent with it", _loss(after)),
        ("Spent by now", f"{_loss(now)}, in {len(account.entries):,} releases"),
        ("Limit", "none" if limit is None else _loss(limit.epsilon)),
    ]
    if limit is not None:
        rows.append(("Left for one more release", _loss(account.remaining() or 0.0)))
    return {
        "name": account.dataset,
        "rows": rows,
        "used": None
        if limit is None or not limit.epsilon or now == float("inf")
        else round(min(1.0, now / limit.epsilon), 3),
    }


def _spent(account: Account, entries: int) -> float:
    """Loss after a number of charges."""
    return replace(account, entries=account.entries[:entries]).spent().epsilon


def _loss(epsilon: float) -> str:
    return f"ε = {number(epsilon)}" if epsilon == float("inf") else f"ε = {decimal_form(epsilon)}"
