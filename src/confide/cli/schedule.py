"""`--schedule`: a command that takes what it may spend from a schedule, and nothing that contradicts it."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, TypeAlias

from confide.cli import options as o
from confide.errors import InputError
from confide.ledger import Planned, Schedule

ScheduleFile: TypeAlias = Annotated[
    Path | None,
    o.accounting("FILE", "Take what this may spend from a schedule, as `confide budget plan --out` wrote it."),
]


def planned(file: Path | None, kind: str) -> tuple[Schedule, Planned] | None:
    """The schedule in a file, read and checked, and what it plans of a kind; None without a file."""
    if file is None:
        return None
    schedule = Schedule.load(file)
    return schedule, schedule.entry_for(kind)


def scheduled_privacy(file: Path | None, privacy: o.PrivacyOptions, most: int | None = None) -> o.PrivacyOptions:
    """The options of a calibration with the loss, selector, relation and bound on records of a schedule.

    Parameters
    ----------
    file
        The schedule; without one the options stay as they are.
    privacy
        What was typed.
    most
        How many records of each person are kept, if that was asked.

    Raises
    ------
    InputError
        If an option says something else than the schedule.
    """
    if (found := planned(file, "calibration")) is None:
        return privacy
    schedule, entry = found
    if privacy.rho is not None:
        raise InputError("--rho must be left out with --schedule, which says what this may spend")
    refuse_other("--epsilon", privacy.epsilon, entry.epsilon)
    refuse_other("--selector", privacy.selector, entry.selector)
    if privacy.neighbors != "add_remove":
        refuse_other("--neighbors", privacy.neighbors, schedule.neighbors)
    if privacy.records_per_person != 1:
        refuse_other("--records-per-person", privacy.records_per_person, schedule.records_per_person)
    if most is not None and most > schedule.records_per_person:
        refuse_other("--max-records-per-person", most, schedule.records_per_person)
    return replace(
        privacy,
        epsilon=entry.epsilon,
        selector=entry.selector,
        neighbors=schedule.neighbors,
        records_per_person=schedule.records_per_person if most is None else privacy.records_per_person,
    )


def refuse_other(option: str, given: object, stated: object) -> None:
    """Refuse an option that says something else than the schedule."""
    if given is not None and given != stated:
        raise InputError(f"{option} must be left out with --schedule, which says {stated}; found {given}")
