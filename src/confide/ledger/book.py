"""`Ledger`: what has been spent on which data, charged before anything is released.

The order is always the same, and each step is on disk before the next begins:

    1. the cost is charged, if the limit allows it      2. the mechanism runs      3. the release is kept
                                                                                   4. the release is returned

A process that dies after 1 has paid for nothing; one that dies after 3 finds its release again. There is no release
without a charge, and no charge is ever taken back.
"""

import json
import math
import secrets
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from confide.errors import BudgetError, InputError, InputTypeError
from confide.ledger.account import Account, Limit, replay
from confide.ledger.composition import check_delta
from confide.ledger.cost import Cost, check_name
from confide.ledger.events import Charged, Limited, Opened, Released, check_release
from confide.ledger.identity import Dataset, is_hexadecimal
from confide.ledger.store import Store
from confide.mechanisms import NEIGHBORS, Neighbors
from confide.support import one_of, positive_number


@dataclass(frozen=True)
class Ledger:
    """A privacy-budget ledger in one SQLite file.

    Safe to use from several threads and processes at once, on a local disk (not on a network file system).

    Parameters
    ----------
    path
        The file; it is made if it does not exist and `create` is true.
    create
        Whether a missing file is made.
    limit
        Limit that data sets get when they are first charged: a number (pure epsilon) or (epsilon, dp_delta); None for
        no limit. It never changes a data set that is already known.
    timeout
        Seconds to wait for other processes, positive.

    Raises
    ------
    LedgerError, FormatError
        If the file cannot be made or read, is damaged, of another program, or of a newer schema.

    Examples
    --------
    >>> import confide, numpy as np, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = confide.Ledger(Path(folder.name) / "budget.db", limit=2.0)
    >>> scores = np.random.default_rng(0).random(2000)
    >>> first = confide.calibrate(scores, alpha=0.1, epsilon=1.5, ledger=ledger, dataset="patients")
    >>> again = confide.calibrate(scores, alpha=0.1, epsilon=1.5, ledger=ledger, dataset="patients")
    >>> again == first, ledger.account("patients").remaining()
    (True, 0.5)
    >>> confide.calibrate(scores, alpha=0.2, epsilon=1.0, ledger=ledger, dataset="patients")
    Traceback (most recent call last):
        ...
    confide.errors.BudgetError: dataset 'patients' has 0.5 left of its limit epsilon = 2, and this release costs 1; ...
    >>> folder.cleanup()
    """

    path: Path
    create: bool = True
    limit: Limit | None = None
    timeout: float = 30.0

    def __init__(
        self,
        path: str | Path,
        *,
        create: bool = True,
        limit: float | tuple[float, float] | Limit | None = None,
        timeout: float = 30.0,
    ) -> None:
        if not isinstance(path, str | Path):
            raise InputTypeError(f"ledger's path must be a path; found {type(path).__name__}")
        object.__setattr__(self, "path", Path(path))
        object.__setattr__(self, "create", create)
        object.__setattr__(self, "limit", None if limit is None else check_limit(limit))
        object.__setattr__(self, "timeout", positive_number("timeout", timeout))
        Store(self.path, create=create, timeout=self.timeout).read()

    def accounts(self) -> dict[str, Account]:
        """What was spent, by data set, in the order of their opening."""
        return replay(self._store().read())

    def account(self, dataset: str) -> Account:
        """What was spent on one data set.

        Raises
        ------
        InputError
            If the ledger does not know it.
        """
        accounts = self.accounts()
        if dataset not in accounts:
            raise InputError(f"dataset {dataset!r} is not in the ledger; it holds {len(accounts)} others")
        return accounts[dataset]

    def set_limit(
        self,
        dataset: str,
        limit: float | tuple[float, float] | Limit | None,
        *,
        neighbors: Neighbors = "add_remove",
    ) -> Account:
        """Set or lift (None) the limit of a data set, which is opened under `neighbors` if it is new.

        A limit may be set below what was spent already: then nothing more is released. Old limits stay on record.

        Raises
        ------
        InputError
            If the data set is known under the other relation.
        """
        check_name("dataset", dataset)
        new = None if limit is None else check_limit(limit)
        with self._store().writing() as writer:
            account = replay(writer.records).get(dataset)
            if account is None:
                writer.append(Opened(dataset, one_of("neighbors", neighbors, NEIGHBORS), None))
            elif account.neighbors != neighbors:
                raise _other_relation(account, neighbors)
            writer.append(Limited(dataset, new.epsilon if new else None, new.dp_delta if new else 0.0))
            return replay(writer.records)[dataset]

    def relation(self, dataset: str) -> Neighbors | None:
        """The neighbouring relation that a data set is accounted under; None if it is new."""
        account = self.accounts().get(dataset)
        return account.neighbors if account else None

    def find(self, dataset: str | Dataset, request: str) -> str | None:
        """The release that answered an identical request on this data set, or None.

        Raises
        ------
        InputError
            If the data set is bound to other data.
        """
        data = as_dataset(dataset)
        account = self.accounts().get(data.name)
        if account is None:
            return None
        _check_binding(account, data)
        return account.find(request)

    def charge(
        self,
        dataset: str | Dataset,
        cost: Cost,
        request: str,
        *,
        token: str | None = None,
        at_most: float | tuple[float, float] | Limit | None = None,
    ) -> str:
        """Charge a release that is about to be made. When this returns, the charge is on disk.

        Parameters
        ----------
        dataset
            The data set; opened under the cost's relation if it is new.
        cost
            The price; its group must be that of the data set.
        request
            Digest of what is asked (`request_digest`), 64 hexadecimal digits.
        token
            32 to 64 hexadecimal digits that no charge in this ledger has had; by default random ones.
        at_most
            A limit besides the data set's own.

        Returns
        -------
        token
            To `attach` the release to this charge.

        Raises
        ------
        BudgetError
            If the limit does not allow it; then nothing was charged.
        InputError
            If the data set is accounted under the other relation, or bound to other data, or the token was used.
        LedgerError
            If the ledger cannot be written; then do not release.

        Examples
        --------
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> ledger = Ledger(Path(folder.name) / "budget.db")
        >>> token = ledger.charge("patients", Cost(1.0, "add_remove", "slopes"), "0" * 64)
        >>> ledger.attach(token, "what was released")
        >>> ledger.find("patients", "0" * 64)
        'what was released'
        >>> folder.cleanup()
        """
        data = as_dataset(dataset)
        if cost.group != data.group:
            raise InputError("cost must be stated for the group of the data set; found another")
        if not is_hexadecimal(request, least=64):
            raise InputError("request must be a digest of 64 hexadecimal digits, as `request_digest` makes them")
        token = secrets.token_hex(16) if token is None else token
        if not is_hexadecimal(token):
            raise InputError("token must have 32 to 64 hexadecimal digits")
        with self._store().writing() as writer:
            accounts = replay(writer.records)
            if any(entry.token == token for account in accounts.values() for entry in account.entries):
                raise InputError("token must be new; the ledger has a charge with this one")
            account = accounts.get(data.name)
            if account is None:
                writer.append(Opened(data.name, cost.neighbors, data.fingerprint))
                if self.limit is not None:
                    writer.append(Limited(data.name, self.limit.epsilon, self.limit.dp_delta))
                account = replay(writer.records)[data.name]
            if account.neighbors != cost.neighbors:
                raise _other_relation(account, cost.neighbors)
            _check_binding(account, data)
            besides = account if at_most is None else replace(account, limit=check_limit(at_most))
            for one in (account, besides):
                if not one.allows(cost):
                    raise BudgetError(refusal(one, cost))
            writer.append(Charged(data.name, token, request, cost))
        return token

    def attach(self, token: str, release: str) -> None:
        """Keep the release that a charge paid for. When this returns, it is on disk, and may be published.

        Raises
        ------
        InputError
            If the token is unknown or has its release already.
        """
        check_release(release)
        with self._store().writing() as writer:
            entries = [e for account in replay(writer.records).values() for e in account.entries if e.token == token]
            if not entries or entries[0].release is not None:
                raise InputError("token must be that of a charge without a release; found none")
            writer.append(Released(token, release))

    def export(self) -> dict[str, Any]:
        """Everything in the ledger as plain data, for JSON.

        Examples
        --------
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Ledger(Path(folder) / "budget.db").export()
        {'kind': 'confide.ledger', 'schema': 1, 'datasets': []}
        """
        return {"kind": "confide.ledger", "schema": 1, "datasets": [plain(a) for a in self.accounts().values()]}

    def _store(self) -> Store:
        return Store(self.path, create=False, timeout=self.timeout)


def plain(account: Account) -> dict[str, Any]:
    """An account as plain data."""
    limit = account.limit
    return {
        "dataset": account.dataset,
        "neighbors": account.neighbors,
        "bound": account.fingerprint is not None,
        "limit": None if limit is None else {"epsilon": limit.epsilon, "dp_delta": limit.dp_delta},
        "spent": account.spent().epsilon,
        "remaining": account.remaining(),
        "entries": [
            {
                "token": entry.token,
                "made": entry.made,
                "request": entry.request,
                "mechanism": entry.cost.mechanism,
                "epsilon": entry.cost.epsilon,
                "rho": entry.cost.rho,
                "group": None if entry.cost.group is None else "=".join(entry.cost.group),
                "release": _as_json(entry.release),
            }
            for entry in account.entries
        ],
    }


def refusal(account: Account, cost: Cost) -> str:
    """Why a limit refuses a release, and what remains."""
    assert account.limit is not None
    left, limit = account.remaining(cost.group), account.limit
    at = f" at dp_delta = {limit.dp_delta:g}" if limit.dp_delta else ""
    return (
        f"dataset {account.dataset!r} has {left:.12g} left of its limit epsilon = {limit.epsilon:g}{at}, and this "
        f"release costs {cost.epsilon:.12g}; ask for less, use an earlier release, or raise the limit with "
        "`confide ledger limit`"
    )


def as_dataset(dataset: str | Dataset) -> Dataset:
    """A name or a `Dataset`, as a `Dataset`."""
    return dataset if isinstance(dataset, Dataset) else Dataset(dataset)


def check_limit(limit: float | tuple[float, float] | Limit) -> Limit:
    """A limit from a number or a pair (epsilon, dp_delta)."""
    pair = limit if isinstance(limit, tuple) else (limit, 0.0)
    if len(pair) != 2:
        raise InputTypeError("limit must be epsilon, or a pair (epsilon, dp_delta)")
    epsilon = pair[0]
    if isinstance(epsilon, bool) or not isinstance(epsilon, int | float):
        raise InputTypeError(f"limit must be a number; found {type(epsilon).__name__}")
    if not (math.isfinite(epsilon) and 0 <= epsilon <= 1e12):
        raise InputError(f"limit must be a number between 0 and 1e12; found {epsilon!r}")
    return Limit(float(epsilon), check_delta(pair[1]))


def _check_binding(account: Account, data: Dataset) -> None:
    if account.fingerprint is not None and account.fingerprint != data.fingerprint:
        what = "no fingerprint was given" if data.fingerprint is None else "these data are others, or the key is"
        raise InputError(
            f"dataset {account.dataset!r} is bound to a fingerprint, and {what}; give these data another name"
        )


def _other_relation(account: Account, neighbors: Neighbors) -> InputError:
    return InputError(
        f"dataset {account.dataset!r} is accounted under {account.neighbors!r}, and this is stated for {neighbors!r}; "
        f"use neighbors={account.neighbors!r}, or another name for these data"
    )


def _as_json(release: str | None) -> Any:
    try:
        return None if release is None else json.loads(release)
    except ValueError:
        return release
