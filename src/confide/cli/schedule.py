"""`--schedule`: a command that takes what it may spend from a schedule, and nothing that contradicts it."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from confide.cli import options as o
from confide.errors import InputError
from confide.ledger import Schedule
from confide.mechanisms import PrivacyStatement
from confide.tables import People

ScheduleFile: TypeAlias = Annotated[
    Path | None,
    o.accounting("FILE", "Take what this may spend from a schedule, as `confide budget plan --out` wrote it."),
]


def scheduled(file: Path | None, kind: str, given: Mapping[str, Any], people: People | None = None) -> dict[str, Any]:
    """The options of a command with what a schedule says of its kind in the place of those that were not given.

    Parameters
    ----------
    file
        The schedule; without one the options stay as they are.
    kind
        `"calibration"`, `"evaluation"` or `"look"`.
    given
        The options of the command that a schedule may speak of; None for what was not typed.
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
    for option, value in given.items():
        if value is not None and value != stated[option]:
            said = (
                "which says what this may spend" if option == "rho" else f"which says {stated[option]}; found {value}"
            )
            raise InputError(f"--{option.replace('_', '-')} must be left out with --schedule, {said}")
    bounded = {"records_per_person": given.get("records_per_person")} if people is not None else {}
    return {option: stated[option] for option in given} | bounded


def scheduled_privacy(file: Path | None, privacy: o.PrivacyOptions, people: People | None) -> o.PrivacyOptions:
    """The options of a calibration with those of a schedule, as `scheduled`."""
    if file is None:
        return privacy
    given = {
        "epsilon": privacy.epsilon,
        "rho": privacy.rho,
        "selector": privacy.selector,
        "neighbors": None if privacy.neighbors == "add_remove" else privacy.neighbors,
        "records_per_person": None if privacy.records_per_person == 1 else privacy.records_per_person,
    }
    found = scheduled(file, "calibration", given, people)
    return replace(privacy, **found | {"records_per_person": found["records_per_person"] or 1})


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
