"""The options for one threshold per group or per class, and what they mean for the columns of a table."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

import click
import typer

from confide.cli.columns import Columns, split
from confide.errors import InputError
from confide.releases.calibration import Calibration
from confide.releases.several import GroupCalibration

_GROUPS = "Groups"

ByColumn: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--by",
        metavar="COLUMN",
        rich_help_panel=_GROUPS,
        help="One threshold for each group of records that this column names, so that each is covered on its own. "
        "Needs --groups.",
    ),
]
GroupNames: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--groups",
        metavar="A,B,C",
        rich_help_panel=_GROUPS,
        help="All groups there are: a public list, from a code book and not from the records. Rows of another group "
        "are refused.",
    ),
]
ByClass: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--by-class", rich_help_panel=_GROUPS, help="One threshold for each class, so that each is covered on its own."
    ),
]
Partition: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        rich_help_panel=_GROUPS,
        help="With --ledger: the public name of this way to divide the records, such as ward; one name must always "
        "stand for one way.",
    ),
]
GroupColumn: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--by",
        metavar="COLUMN",
        rich_help_panel="Columns",
        help="For a calibration with thresholds per group: the column of each row's group.",
    ),
]


@dataclass(frozen=True)
class Grouping:
    """What the thresholds depend on: a column with a public list of its values, or the label."""

    column: str
    names: tuple[str, ...] | None
    partition: str | None

    @property
    def by(self) -> Literal["group", "class"]:
        """Whether thresholds belong to groups of records or to classes."""
        return "class" if self.names is None else "group"


def grouping(
    by: str | None, groups: str | None, by_class: bool, partition: str | None, columns: Columns, *, with_ledger: bool
) -> Grouping | None:
    """The grouping that the options name; None for one threshold.

    Raises
    ------
    click.UsageError
        If options contradict one another, or lack one.
    """
    if by is None and groups is None and not by_class:
        if partition is not None:
            raise click.UsageError("--partition belongs to --by or --by-class")
        return None
    if by_class and (by is not None or groups is not None):
        raise click.UsageError("give --by with --groups, or --by-class, not both")
    if with_ledger != (partition is not None):
        raise click.UsageError("--partition, the name of the division into groups, belongs to --ledger; give both")
    if by_class:
        if columns.label is None:
            raise click.UsageError("--by-class needs --probabilities and --label")
        return Grouping(columns.label, None, partition)
    if by is None or groups is None:
        raise click.UsageError("--by, the column, and --groups, the public list of its values, must be given together")
    return Grouping(by, tuple(split(groups)), partition)


def as_values(names: Sequence[str], column: str, *, integers: bool) -> tuple[str | int, ...]:
    """The groups' names as values of their column: integers for a column of integers.

    Examples
    --------
    >>> as_values(["1", "2"], "ward", integers=True)
    (1, 2)
    """
    if not integers:
        return tuple(names)
    try:
        return tuple(int(name) for name in names)
    except ValueError:
        wrong = sum(not name.removeprefix("-").isdigit() for name in names)
        raise InputError(
            f"--groups must be integers, for column {column!r} holds integers; found {wrong} that are not"
        ) from None


def class_keys(names: Sequence[str]) -> tuple[str | int, ...]:
    """The names under which classes are released: positions as numbers, as in `predict_set`; anything else as text.

    Examples
    --------
    >>> class_keys(["0", "1"]), class_keys(["cat", "1"])
    ((0, 1), ('cat', '1'))
    """
    return tuple(range(len(names))) if list(names) == [str(place) for place in range(len(names))] else tuple(names)


def by_text(released: GroupCalibration) -> GroupCalibration:
    """The same with texts for names, as classes and groups are called on a command line."""
    parts: dict[str | int, Calibration] = {str(name): part for name, part in released.parts.items()}
    if len(parts) != len(released.parts):
        raise InputError("the calibration's groups must differ as texts, too; use the library for this one")
    return GroupCalibration(released.by, released.neighbors, parts)


def check_group(released: Calibration | GroupCalibration, by: str | None) -> None:
    """Refuse a calibration per group without its column, and a column without such a calibration."""
    needed = isinstance(released, GroupCalibration) and released.by == "group"
    if needed and by is None:
        raise click.UsageError("the calibration has thresholds per group; name the column of groups with --by")
    if by is not None and not needed:
        raise click.UsageError("--by must be left out: the calibration has no thresholds per group of records")
