"""Who pays, and what for: the ledger that is charged, the receipt, and a schedule that says what may be spent."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from confide.cli.command import typed_here
from confide.cli.output import note
from confide.cli.values import PrivacyOptions
from confide.errors import InputError
from confide.ledger import (
    Account,
    Cost,
    Dataset,
    Group,
    Ledger,
    Schedule,
    compose,
    decimal_form,
    file_of,
    fingerprint,
    plain,
)
from confide.mechanisms import PrivacyStatement
from confide.tables import People

_MOST_KEY = 2**16

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


@dataclass(frozen=True)
class LedgerOptions:
    """Who pays."""

    ledger: str | None = None
    dataset: str | None = None
    again: bool = False
    group: str | None = None
    one_cell: bool = False
    charged_by: str | None = None
    ledger_key: Path | None = None

    @property
    def files(self) -> tuple[Path | None, ...]:
        """The files that are read, or written, to account for the release."""
        return file_of(self.ledger), self.ledger_key

    def receipt(self) -> Receipt:
        """What will say what was charged; to be made before `account`, which may make the ledger."""
        return Receipt.of(self.ledger, self.dataset)

    def account(self, file: str) -> dict[str, Any]:
        """The ledger and the data set that the options name, for `calibrate_table`; nothing without them."""
        if self.ledger is None or self.dataset is None:
            return {}
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


def scheduled(file: Path | None, kind: str, given: Mapping[str, Any], people: People | None = None) -> dict[str, Any]:
    """The options of a command with what a schedule says of its kind in the place of those that were not given.

    Parameters
    ----------
    file
        The schedule; without one the options stay as they are.
    kind
        `"calibration"`, `"evaluation"` or `"look"`.
    given
        The options of the command that a schedule may speak of.
    people
        Whose records are bounded, if that is asked; then this bound stands for --records-per-person.

    Raises
    ------
    InputError
        If an option says something else than the schedule, or it has none of this kind.
    """
    if file is None:
        return dict(given)
    schedule = Schedule.load(file)
    entry = schedule.entry_for(kind)
    most = schedule.records_per_person
    if people is not None and people.most > most:
        raise InputError(
            f"--max-records-per-person must be at most what --schedule says, {most} in one release; found {people.most}"
        )
    stated = {
        "epsilon": entry.epsilon,
        "rho": None,
        "selector": entry.selector,
        "neighbors": schedule.neighbors,
        "records_per_person": schedule.records_per_person,
        "looks": entry.count,
    }
    typed = typed_here()
    for option, value in given.items():
        if option in typed and value != stated[option]:
            said = (
                "which says what this may spend" if option == "rho" else f"which says {stated[option]}; found {value}"
            )
            raise InputError(f"--{option.replace('_', '-')} must be left out with --schedule, {said}")
    bounded = {"records_per_person": given.get("records_per_person")} if people is not None else {}
    return {option: stated[option] for option in given} | bounded


def scheduled_privacy(file: Path | None, privacy: PrivacyOptions, people: People | None) -> PrivacyOptions:
    """The options of a calibration with those of a schedule, as `scheduled`."""
    named = ("epsilon", "rho", "selector", "neighbors", "records_per_person")
    given = {name: getattr(privacy, name) for name in named}
    return replace(privacy, **scheduled(file, "calibration", given, people))


def refuse_another_request(file: Path | None, privacy: PrivacyStatement, selector: str | None) -> None:
    """Refuse to renew what was asked for otherwise than a schedule says; `selector` is None if the method has none.

    Raises
    ------
    InputError
        If the relation or the selector is another, or one person may have more records in a release.
    """
    if file is None:
        return
    schedule = Schedule.load(file)
    entry = schedule.entry_for("calibration")
    found = [
        ("neighbors", privacy.neighbors, schedule.neighbors, privacy.neighbors == schedule.neighbors),
        ("selector", selector, entry.selector, selector in (None, entry.selector)),
        (
            "records_per_person", privacy.records_per_person, schedule.records_per_person,
            privacy.records_per_person <= schedule.records_per_person,
        ),
    ]  # fmt: skip
    for name, was, stated, right in found:
        if not right:
            raise InputError(
                f"the release was made with {name} {was}, and --schedule says {stated}; begin a new chain with "
                "`confide calibrate --schedule`"
            )
