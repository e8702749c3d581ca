"""`--schedule`: a command that takes what it may spend from a schedule, and nothing that contradicts it."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from confide.cli import options as o
from confide.errors import InputError
from confide.ledger import Schedule
from confide.mechanisms import PrivacyStatement

ScheduleFile: TypeAlias = Annotated[
    Path | None,
    o.accounting("FILE", "Take what this may spend from a schedule, as `confide budget plan --out` wrote it."),
]


def scheduled(file: Path | None, kind: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a command with what a schedule says of its kind in the place of those that were not given.

    Parameters
    ----------
    file
        The schedule; without one the options stay as they are.
    kind
        `"calibration"`, `"evaluation"` or `"look"`.
    given
        The options of the command that a schedule may speak of; None for what was not typed.

    Raises
    ------
    InputError
        If an option says something else than the schedule, or it has none of this kind.
    """
    if file is None:
        return dict(given)
    schedule = Schedule.load(file)
    entry = schedule.entry_for(kind)
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
    return {option: stated[option] for option in given}


def scheduled_privacy(file: Path | None, privacy: o.PrivacyOptions, most: int | None = None) -> o.PrivacyOptions:
    """The options of a calibration with those of a schedule; `most` records of each person are kept, if that is asked.

    Raises
    ------
    InputError
        If an option says something else than the schedule.
    """
    if file is None:
        return privacy
    given = {
        "epsilon": privacy.epsilon,
        "rho": privacy.rho,
        "selector": privacy.selector,
        "neighbors": None if privacy.neighbors == "add_remove" else privacy.neighbors,
        "records_per_person": None if privacy.records_per_person == 1 else privacy.records_per_person,
    }
    found = scheduled(file, "calibration", given)
    if most is not None:
        if most > found["records_per_person"]:
            records = found["records_per_person"]
            raise InputError(
                f"--max-records-per-person must be at most what --schedule says, {records} in one release; found {most}"
            )
        found["records_per_person"] = privacy.records_per_person
    return replace(privacy, **found)


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
                f"PREVIOUS was made with {name} {was}, and --schedule says {stated}; begin a new chain with "
                "`confide calibrate --schedule`"
            )
