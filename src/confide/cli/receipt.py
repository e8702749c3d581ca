"""What a command charged to which data set, and what the ledger then says was spent and is left."""

import logging
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from confide.cli.output import note
from confide.ledger import Account, Cost, Group, Ledger, compose, decimal_form, file_of, plain

_LOGGER = "confide.ledger"

NO_LEDGER = "no ledger: the losses of all runs about the same people add up, and --ledger keeps the sum"


class _Charges(logging.Handler):
    """Keeps the costs that the library says it charged."""

    def __init__(self) -> None:
        super().__init__()
        self.costs: list[Cost] = []
        self.before = logging.NOTSET

    def emit(self, record: logging.LogRecord) -> None:
        if getattr(record, "event", None) == "charged":
            facts: dict[str, Any] = record.facts  # type: ignore[attr-defined]
            group = Group(facts["partition"], facts["cell"]) if "cell" in facts else None
            self.costs.append(Cost(facts["epsilon"], facts["neighbors"], facts["mechanism"], None, group))


@dataclass(frozen=True)
class Receipt:
    """Made before the ledger is opened, and entered while it is charged.

    Parameters
    ----------
    ledger, dataset
        What was typed; None without a ledger.
    new
        Whether the ledger is a file that does not exist yet.
    """

    ledger: str | None
    dataset: str | None
    new: bool
    _charges: _Charges = field(init=False, default_factory=_Charges)

    @classmethod
    def of(cls, ledger: str | None, dataset: str | None) -> "Receipt":
        """For what was typed."""
        path = file_of(ledger)
        return cls(ledger, dataset, path is not None and not path.exists())

    def __enter__(self) -> "Receipt":
        logger = logging.getLogger(_LOGGER)
        self._charges.before = logger.level
        logger.addHandler(self._charges)
        logger.setLevel(min(logger.getEffectiveLevel(), logging.INFO))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        logger = logging.getLogger(_LOGGER)
        logger.removeHandler(self._charges)
        logger.setLevel(self._charges.before)
        if error is None and self.new and self.ledger is not None:
            path = Path(self.ledger)
            where = "the current folder" if path.parent == Path() else str(path.parent)
            note(f"new ledger {path.name} made in {where}: nothing was charged in it before")

    def text(self) -> str:
        """One line: what was charged, spent, and is left; or that nothing keeps the sum."""
        if (account := self._account()) is None:
            return NO_LEDGER
        return f"charged {decimal_form(self._charged())} to {account.dataset!r}: {account.summary}"

    def fields(self) -> dict[str, Any]:
        """The same as JSON values; None without a ledger."""
        if (account := self._account()) is None:
            return {"ledger": None}
        found = plain(account)
        told = {name: found[name] for name in ("dataset", "spent", "limit", "remaining")}
        return {"ledger": {"ledger": self.ledger, "new": self.new, "charged": self._charged(), **told}}

    def _account(self) -> Account | None:
        if self.ledger is None or self.dataset is None:
            return None
        return Ledger(self.ledger, create=False).account(self.dataset)

    def _charged(self) -> float:
        return compose(self._charges.costs).epsilon
