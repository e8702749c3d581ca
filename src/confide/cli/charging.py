"""Charges of commands: the options of a ledger, and the receipt."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from confide.cli.command import renamed
from confide.cli.commands import LedgerOptions
from confide.cli.options import ACCOUNTING, DEFAULT_LEDGER
from confide.cli.output import CapturedWarnings, capture_warnings, print_warning
from confide.cli.request import take
from confide.cli.values import place_of
from confide.core import Payer, check_payer, check_together
from confide.errors import InputError
from confide.ledger import (
    Account,
    Cost,
    Dataset,
    Group,
    Ledger,
    check_name,
    compose,
    decimal_form,
    file_of,
    fingerprint,
)
from confide.support import FileLocation, handled, require

# The library's events about charges
_LOGGER = "confide.ledger"

_NO_LEDGER = "no ledger: the losses of all runs about the same people add up, and --ledger records the sum"

# The requirement of a key
KEY_OF_ONE_FILE = "must be left out unless one file is read, to whose bytes it binds the data set"

# Largest number of bytes of a key
_MOST_KEY = 2**16


class _Charges(logging.Handler):
    """Collects the costs of the library's `charged` events, and whether this process `created` the ledger."""

    def __init__(self) -> None:
        super().__init__()
        self.costs: list[Cost] = []
        self.created = False

    def emit(self, record: logging.LogRecord) -> None:
        event = getattr(record, "event", None)
        self.created = self.created or event == "created"
        if event == "charged":
            facts: dict[str, Any] = record.facts  # type: ignore[attr-defined]
            group = Group(facts["partition"], facts["cell"]) if "cell" in facts else None
            self.costs.append(Cost(facts["epsilon"], facts["neighbors"], facts["mechanism"], group=group))


@dataclass(frozen=True)
class Receipt:
    """The charges and warnings of a command."""

    ledger: str | None
    dataset: str | None
    captured: CapturedWarnings
    charges: _Charges = field(init=False, default_factory=_Charges)

    def text(self) -> str:
        """One line with the charge and the account, or a note that there is no ledger."""
        if (balance := self._balance) is None:
            return _NO_LEDGER
        return f"charged {decimal_form(self._charged())} to {balance.dataset!r}: {balance.summary}"

    def fields(self) -> dict[str, Any]:
        """The charge and the account as JSON values; None without a ledger."""
        if (balance := self._balance) is None:
            return {"ledger": None}
        values = balance.as_json(entries=False)
        totals = {name: values[name] for name in ("dataset", "spent", "limit", "remaining")}
        return {"ledger": {"ledger": self.ledger, "new": self.charges.created, "charged": self._charged(), **totals}}

    @cached_property
    def _balance(self) -> Account | None:
        if self.ledger is None or self.dataset is None:
            return None
        return Ledger(self.ledger, create=False).balance(self.dataset)

    def _charged(self) -> float:
        return compose(self.charges.costs).epsilon


@dataclass(frozen=True)
class Accounting(LedgerOptions):
    """What is charged: the ledger and the data set, and how."""

    one_cell: bool | None = None
    charged_by: str | None = None
    ledger_key: FileLocation | None = None

    @classmethod
    def of(cls, options: LedgerOptions, arguments: dict[str, Any]) -> "Accounting":
        """From the options, and the arguments that have none, which are taken out of those of the command."""
        further = take(arguments, ACCOUNTING)
        if "ledger_key" in further:
            further["ledger_key"] = place_of("ledger_key", further["ledger_key"])
        if "charged_by" in further:
            check_name("charged_by", further["charged_by"])
        default = os.environ.get(DEFAULT_LEDGER) if options.dataset is not None else None
        return cls(**vars(options) | {"ledger": options.ledger or default}, **further)

    @property
    def files(self) -> tuple[FileLocation | None, ...]:
        """The files that accounting reads or writes."""
        return file_of(self.ledger), self.ledger_key

    def refuse(self, other: str) -> None:
        """Reject all of these options with another one."""
        if stated := [name for name, value in vars(self).items() if value]:
            raise InputError(stated[0], f"must be left out with {other}")

    @contextmanager
    def charging(self, *kinds: type[Warning]) -> Iterator[Receipt]:
        """Yield a receipt of the ledger's charges within the block; warnings as in `capture_warnings`."""
        # The library logs its charges at the level of information, whatever level the program has set.
        logger = logging.getLogger(_LOGGER)
        level = min(logger.getEffectiveLevel(), logging.INFO)
        with capture_warnings(*kinds) as warned:
            receipt = Receipt(self.ledger, self.dataset, warned)
            with handled(logger, receipt.charges, level):
                yield receipt

        # A mistyped name would begin a second ledger.
        if receipt.charges.created and (path := file_of(self.ledger)) is not None:
            where = "the current folder" if path.parent == Path() else str(path.parent)
            print_warning(f"created the ledger {path.name} in {where}: it has no earlier charges", kind="note")

    def payer(self, file: str, partition: str | None, *, divided: bool) -> Payer:
        """Who pays for a release; what is stated is checked before a ledger, which may be a new file, is opened."""
        check_payer(self.ledger, self.dataset, partition, divided=divided)
        return Payer(partition=partition, **self.account(file))

    def account(self, file: str) -> dict[str, Any]:
        """The ledger and the data set as arguments for `calibrate_table`; empty without them."""
        # Without a ledger none of its options has a meaning.
        check_together(ledger=self.ledger, dataset=self.dataset)
        if self.ledger is None or self.dataset is None:
            self.refuse("no ledger, which alone charges")
            return {}

        # A key binds the charge to the bytes of one file.
        is_one_file = self.ledger_key is None or Path(file).is_file()
        require("ledger_key", is_one_file, KEY_OF_ONE_FILE)
        with renamed("key", "ledger_key"):
            data_fingerprint = None if self.ledger_key is None else fingerprint(_read_key(self.ledger_key), Path(file))
        dataset = Dataset(self.dataset, _group(self.group), data_fingerprint, self.one_cell)
        return {"ledger": Ledger(self.ledger, by=self.charged_by), "dataset": dataset, "again": self.again}


def _group(text: str | None) -> Group | None:
    if text is None:
        return None
    partition, equals, cell = text.partition("=")
    require("group", equals, "must have the form PARTITION=CELL, such as region=north")
    return Group(partition, cell)


def _read_key(path: FileLocation) -> bytes:
    try:
        with path.open("rb") as file:
            key: bytes = file.read(_MOST_KEY)
            return key
    except OSError as error:
        raise InputError("ledger_key", f"{str(path)!r} cannot be read: {error.strerror}") from None
