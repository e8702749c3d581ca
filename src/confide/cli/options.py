"""The options that commands share, with their help."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import click
import typer

from confide.cli.output import check_output, say
from confide.cli.progress import progress_bar
from confide.errors import InputError
from confide.mechanisms import NEIGHBORS
from confide.releases import Release, load_release
from confide.selection import SELECTORS
from confide.support import Kind, Place, as_place, write_text
from confide.tables import People, Progress, What, files_of, open_table


def option(panel: str | None, metavar: str | None, text: str, *names: str, **more: Any) -> Any:
    """An option in a panel of the help, called as its parameter if no names are given."""
    return typer.Option(*names, metavar=metavar, help=text, rich_help_panel=panel, **more)


columns, grouping, promise, privacy, owners, making, course, accounting, output, content = (
    partial(option, panel)
    for panel in (
        "Columns", "Groups", "Coverage promise", "Privacy", "People with several records", "Threshold", "Watch",
        "Budget ledger", "Output", "Content",
    )
)  # fmt: skip

Alpha: TypeAlias = Annotated[
    str,
    promise(
        "LEVEL",
        "Share of truths that may be missed: 0.1 asks for 90 % coverage; also a fraction.",
    ),
]
_LEVELS = promise(
    "LEVEL[,LEVEL]",
    "Share of truths that may be missed: 0.1 asks for 90 % coverage; several, as 0.2,0.1, for nested thresholds.",
)
Alphas: TypeAlias = Annotated[str, _LEVELS]
AlphasOrPlan: TypeAlias = Annotated[str | None, _LEVELS]
Delta: TypeAlias = Annotated[
    str | None,
    promise("PROBABILITY", "Promise coverage of this calibration with probability 1 - delta, not on average."),
]
Epsilon: TypeAlias = Annotated[
    float | None,
    privacy("NUMBER", "Privacy loss; smaller is more private; 1 is common."),
]
NMin: TypeAlias = Annotated[int, privacy("N", "Public lower bound on the secret number of records.")]
NMinOfSilos: TypeAlias = Annotated[
    int | None,
    privacy("N", "Public lower bound on the secret number of records (default: 1; of each group 0).", min=0),
]
NTypical: TypeAlias = Annotated[
    int | None, privacy("N", "Public guess of the secret number of records; touches efficiency only.")
]
CandidatesSpec: TypeAlias = Annotated[
    str | None,
    making(
        "SPEC",
        "Public candidates, as unit:1000, geometric:UNIT, sinh:UNIT, around:THRESHOLD, around:RELEASE, or their "
        "number (default: those that suit the score).",
    ),
]
Unit: TypeAlias = Annotated[float | None, making("NUMBER", "Of residuals: a public typical size of the target.")]
ByColumn: TypeAlias = Annotated[
    str | None,
    grouping("COLUMN", "The column of each record's group; `evaluate` takes any column."),
]
Out: TypeAlias = Annotated[Path, output("FILE", "Where to write.")]
Force: TypeAlias = Annotated[
    bool, output(None, "Replace an earlier output of the same kind, and nothing else.", "--force")
]
AsJson: TypeAlias = Annotated[bool, output(None, "Print one line of JSON, nothing else.", "--json")]


@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """How a table is read, whichever it is."""

    table: Annotated[
        str | None,
        columns("NAME", "The table of the database; for Spark also a path."),
    ] = None

    skip_incomplete: Annotated[
        bool,
        columns(
            None,
            "Leave out records with missing values.",
            "--skip-incomplete",
        ),
    ] = False
    decimal: Annotated[str, columns("MARK", "Of CSV: ',' for a decimal comma.")] = "."

    @contextmanager
    def opened(self, file: str, doing: str, *, write: bool = False) -> Iterator[tuple[Any, Progress]]:
        """The open table, and a progress bar."""
        with (
            open_table(file, self.table, write=write, decimal=self.decimal) as opened,
            progress_bar(doing, opened.row_count) as progress,
        ):
            yield opened, progress

    def left_out(self, opened: Any) -> dict[str, int]:
        """How many records were left out, for those who may know their number."""
        return {"left_out": opened.left_out()} if self.skip_incomplete else {}


TABLE = (
    "A Parquet, CSV or Arrow file, a folder, a quoted pattern; - for standard input; s3://BUCKET/NAME; with --table "
    "duckdb://FILE, postgresql://USER@HOST/DB, or Spark as sc://HOST."
)
"""What a table is typed as."""


@dataclass(frozen=True, kw_only=True)
class Source(ReadingOptions):
    """The table that is read."""

    file: Annotated[
        str,
        typer.Argument(metavar="TABLE", help=TABLE),
    ]

    @property
    def files(self) -> tuple[Place, ...]:
        """The files of this machine, or objects of a store, that are read."""
        return files_of(self.file)

    @contextmanager
    def open(
        self, doing: str, what: What | None, ways: str, *, write: bool = False
    ) -> Iterator[tuple[Any, What, Progress]]:
        """The open table, what is read of it, and a progress bar; columns that nobody named are asked for by ways."""
        with self.opened(self.file, doing, write=write) as (opened, progress):
            if what is None:
                raise InputError(f"say which columns to read, by {ways}; {opened.existing()}")
            yield opened, what, progress


RELEASE = "What `confide calibrate`, `recalibrate` or `federated aggregate` wrote."
"""What a release is."""


@dataclass(frozen=True, kw_only=True)
class SourceOfRelease(Source):
    """The table that is read, and the release that it is for; also typed as two arguments, RELEASE TABLE."""

    second: Annotated[
        str | None, typer.Argument(metavar="TABLE", hidden=True, help="The table, where RELEASE was typed first.")
    ] = None
    calibration: Annotated[Path | None, columns("RELEASE", RELEASE)] = None

    def separate(self) -> tuple[Path, Source]:
        """The release, and the table alone."""
        table = Source(**{field.name: getattr(self, field.name) for field in fields(Source)})
        if self.second is None:
            return only_one(None, self.calibration), table
        return only_one(as_place(self.file), self.calibration), replace(table, file=self.second)


@dataclass(frozen=True)
class Released:
    """The release that a command works with, or its calibration of one level, and the column of its groups."""

    calibration: Annotated[Path, columns("RELEASE", RELEASE)]
    alpha: Annotated[str | None, columns("LEVEL", "Of several levels this one only (default: all).")] = None
    by: ByColumn = None

    def load(self) -> Release:
        """The release, or that of the level."""
        release = load_release(self.calibration)
        if self.alpha is None:
            return release
        if release.by != "level":
            raise InputError("--alpha belongs to a calibration of several levels")
        return release.at(self.alpha)

    def check_group(self, release: Release, *, of_classes: bool, any_groups: bool = False) -> None:
        """Refuse thresholds per group, or per class where the columns do not say it, without --by.

        The reverse, too, unless `any_groups` may be looked at.
        """
        needed = release.asks_groups(sets=not of_classes)
        if needed and self.by is None:
            what = "true class" if release.by == "class" else "group"
            raise click.UsageError(
                f"--by is missing, the column of each record's {what}: there are thresholds for each"
            )
        if self.by is not None and not (needed or any_groups):
            raise click.UsageError("--by must be left out: the calibration has no thresholds per group of records")


@dataclass(frozen=True)
class PrivacyOptions:
    """What a release may cost, and how it is drawn."""

    epsilon: Epsilon = None
    rho: Annotated[float | None, privacy("NUMBER", "zCDP loss, instead of --epsilon.")] = None
    neighbors: Annotated[
        str,
        privacy(
            "RELATION",
            "add_remove: whether a record is there stays secret, and so does their number. replace_one: what it "
            "says stays secret, their number is public.",
            click_type=click.Choice(NEIGHBORS),
        ),
    ] = "add_remove"
    records_per_person: Annotated[int, privacy("K", "The most records of one person (public).")] = 1
    n_min: NMin = 1
    n_typical: NTypical = None
    selector: Annotated[
        str | None,
        making(
            "RULE",
            "permute_and_flip (default) or exponential (with --rho).",
            click_type=click.Choice(SELECTORS),
        ),
    ] = None
    delta: Delta = None


@dataclass(frozen=True)
class PeopleOptions:
    """How many records of each person count."""

    person: Annotated[
        str | None,
        owners("COLUMN", "Who owns each record; the loss is stated per person."),
    ] = None
    max_records_per_person: Annotated[int | None, owners("K", "How many of one person's records count.")] = None
    order: Annotated[
        str | None,
        owners("COLUMN,...", "What tells them apart, no scores or labels; the first K count."),
    ] = None
    sample: Annotated[
        str | None,
        owners("TEXT", "Take K by a hash of this text and --order."),
    ] = None

    @property
    def people(self) -> People | None:
        """Who owns which record; None if that is not asked."""
        if (self.person, self.max_records_per_person, self.order, self.sample) == (None, None, None, None):
            return None
        if self.person is None or self.max_records_per_person is None or self.order is None:
            raise InputError(
                "--person, --max-records-per-person and --order must be given together; --sample draws records by what "
                "--order names"
            )
        return People(self.person, self.max_records_per_person, tuple(split(self.order)), self.sample)


@dataclass(frozen=True)
class GroupOptions:
    """What thresholds depend on."""

    by: ByColumn = None
    groups: Annotated[
        str | None,
        grouping("A,B,C", "With --by: a threshold for each of these; a public list, not taken from the records."),
    ] = None
    by_class: Annotated[
        bool, grouping(None, "A threshold for each class, so that each is covered on its own.", "--by-class")
    ] = False
    partition: Annotated[
        str | None,
        grouping("NAME", "With --ledger: the public name of this division into groups, as ward."),
    ] = None

    def arguments(self, *, label: str | None, with_ledger: bool) -> dict[str, Any]:
        """What `calibrate_table` takes of them; nothing for one threshold. Contradictions are a `click.UsageError`."""
        if self.by is None and self.groups is None and not self.by_class:
            if self.partition is not None:
                raise click.UsageError("--partition belongs to --by or --by-class")
            return {}
        if self.by_class and (self.by is not None or self.groups is not None):
            raise click.UsageError("give --by with --groups, or --by-class, not both")
        if with_ledger != (self.partition is not None):
            raise click.UsageError("--partition, the name of the division into groups, belongs to --ledger; give both")
        if self.by_class and label is None:
            raise click.UsageError("--by-class needs --probabilities and --label")
        if not self.by_class and (self.by is None or self.groups is None):
            raise click.UsageError(
                "--by, the column, and --groups, the public list of its values, must be given together"
            )
        return {**vars(self), "groups": None if self.groups is None else tuple(split(self.groups))}


@dataclass(frozen=True)
class Output:
    """The file that a command writes."""

    out: Out
    force: Force = False

    def check(self, kind: Kind, *inputs: str | Place | None) -> None:
        """Refuse a file that cannot be written, or would replace an input, before any work is done."""
        check_output(self.out, kind, *inputs, force=self.force)

    def write(self, text: str, what: str = "saved") -> None:
        """Write the file, whole or not at all, and say so."""
        write_text(self.out, text, overwrite=self.force)
        say(f"{what}: {self.out}")


SameRelease: TypeAlias = Annotated[
    Path | None, option(None, "RELEASE", "The same file, as commands that read a table name it.")
]


def only_one(argument: Any, calibration: Any) -> Any:
    """The release, which an argument names, or --calibration."""
    if argument is not None and calibration is not None:
        raise click.UsageError("--calibration must be left out where an argument names the release; name it once")
    if argument is None and calibration is None:
        raise click.UsageError("Missing option '--calibration'.")
    return calibration if argument is None else argument


def levels_of(alpha: str) -> list[str]:
    """The levels between commas; whole numbers among them are a decimal comma."""
    found = split(alpha)
    if len(found) > 1 and any(one.isdigit() for one in found):
        raise click.UsageError(
            f"--alpha must be levels; found {alpha!r}: a comma separates levels, write 0.1 with a point"
        )
    return found


def one_level(alpha: str) -> str:
    """The level; several are another command's."""
    levels_of(alpha)
    if "," in alpha:
        raise click.UsageError(
            f"--alpha is one level here; found {alpha!r}. `confide calibrate` divides --epsilon evenly among several: "
            "plan each of them with its share"
        )
    return alpha


def split(text: str) -> list[str]:
    """Names between commas.

    Examples
    --------
    >>> split("cat, dog")
    ['cat', 'dog']
    """
    return [name.strip() for name in text.split(",")]
