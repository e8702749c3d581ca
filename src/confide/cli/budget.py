"""The ledger options of `confide calibrate`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from confide.cli.options import accounting
from confide.cli.receipt import Receipt
from confide.errors import InputError
from confide.ledger import Dataset, Group, Ledger, file_of, fingerprint

_MOST_KEY = 2**16


@dataclass(frozen=True)
class LedgerOptions:
    """Who pays."""

    ledger: Annotated[
        str | None,
        accounting(
            "LEDGER",
            "Charge this ledger first, for --dataset; the same request about the same data is free. A file, or "
            "postgresql://ROLE@HOST/DB.",
        ),
    ] = None
    dataset: Annotated[str | None, accounting("NAME", "The name of these people's data in the ledger.")] = None
    again: Annotated[
        bool,
        accounting(None, "The same people with new records or a new model: charge a new release.", "--again"),
    ] = False
    group: Annotated[
        str | None,
        accounting("PARTITION=CELL", "One cell of a public partition, as region=north."),
    ] = None
    one_cell: Annotated[
        bool,
        accounting(None, "With --person: each person is in one cell only.", "--one-cell"),
    ] = False
    charged_by: Annotated[str | None, accounting("NAME", "Who charges, kept in a file; a server has roles.")] = None
    ledger_key: Annotated[
        Path | None,
        accounting("FILE", "At least 16 secret random bytes: binds the name to this very input file."),
    ] = None

    @property
    def files(self) -> tuple[Path | None, ...]:
        """The files that are read, or written, to account for the release."""
        return file_of(self.ledger), self.ledger_key

    def receipt(self) -> Receipt:
        """What will say what was charged; to be made before `account`, which may make the ledger."""
        return Receipt.of(self.ledger, self.dataset)

    def account(self, file: str) -> dict[str, Any]:
        """The ledger and the data set that the options name, for `calibrate_table`; nothing without them."""
        named = (self.ledger, self.dataset, self.group, self.charged_by, self.ledger_key)
        if not (self.again or self.one_cell) and named == (None,) * len(named):
            return {}
        if self.ledger is None or self.dataset is None:
            raise InputError("--ledger and --dataset must be given together")
        if self.ledger_key is not None and not Path(file).is_file():
            raise InputError("--ledger-key binds to one file's bytes; leave it out for everything else")
        mark = None if self.ledger_key is None else fingerprint(_read_key(self.ledger_key), Path(file))
        dataset = Dataset(self.dataset, _group(self.group), mark, self.one_cell or None)
        return {"ledger": Ledger(self.ledger, by=self.charged_by), "dataset": dataset, "again": self.again}


def _group(text: str | None) -> Group | None:
    if text is None:
        return None
    partition, equals, cell = text.partition("=")
    if not equals:
        raise InputError("--group must have the form PARTITION=CELL, such as region=north")
    return Group(partition, cell)


def _read_key(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_MOST_KEY)
    except OSError as error:
        raise InputError(f"--ledger-key {str(path)!r} cannot be read: {error.strerror}") from None
