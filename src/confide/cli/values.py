"""What commands are given, as values: groups of options, whose fields name rows of `confide.cli.options`.

Which options go together is said in `confide.cli.command`, and checked before a value is made.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

import click

from confide.cli.choices import split
from confide.cli.columns import Columns
from confide.cli.output import check_output, progress_bar, say
from confide.errors import InputError
from confide.planning import Pilot
from confide.releases import Release, load_release
from confide.support import Kind, Place, as_place, new_file, write_text
from confide.tables import People, Progress, What, files_of, open_table, read_pilot


@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """How a table is read, whichever it is."""

    table: str | None = None
    skip_incomplete: bool = False
    decimal: str = "."

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


@dataclass(frozen=True, kw_only=True)
class PilotOptions:
    """A public sample, and what is read of it."""

    pilot: str | None = None
    reading: ReadingOptions
    columns: Columns

    @property
    def files(self) -> tuple[Place, ...]:
        """The files that are read."""
        return () if self.pilot is None else files_of(self.pilot)

    def what(self) -> What | None:
        """What is read of each record; refused if there is a sample and no columns were named."""
        what = self.columns.what()
        if self.pilot is not None and what is None:
            raise click.UsageError(f"--pilot needs {self.columns.ways}")
        return what

    def sample(self) -> tuple[Pilot | None, dict[str, int]]:
        """The sample, and how many of its records were left out; None if there is none."""
        what, reading = self.what(), self.reading
        if self.pilot is None or what is None:
            return None, {}
        with reading.opened(self.pilot, "reading") as (opened, progress):
            read = read_pilot(opened, what, skip_incomplete=reading.skip_incomplete, progress=progress)
            return read, reading.left_out(opened)


@dataclass(frozen=True, kw_only=True)
class Source(ReadingOptions):
    """The table that is read."""

    file: str

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
                raise InputError("probabilities", f"say which columns to read, by {ways}", remedy=opened.existing())
            yield opened, what, progress

    def what(self, what: What | None, ways: str) -> What:
        """The same before anything else: a table is opened only to say what it has."""
        if what is None:
            with self.open("reading", what, ways) as (_, asked, _):
                return asked
        return what


@dataclass(frozen=True, kw_only=True)
class OptionalSource(Source):
    """The same, where something else may be read in its place."""

    file: str = ""


@dataclass(frozen=True, kw_only=True)
class SourceOfRelease(Source):
    """The table that is read, and the release that it is for; also typed as two arguments, RELEASE TABLE."""

    second: str | None = None
    calibration: Path | None = None

    def separate(self) -> tuple[Path, Source]:
        """The release, and the table alone."""
        table = Source(**{field.name: getattr(self, field.name) for field in fields(Source)})
        if self.second is None:
            return named_release(self.calibration), table
        return named_release(as_place(self.file)), replace(table, file=self.second)


def named_release(*named: Any) -> Any:
    """The release, by the argument or by --calibration, of which no more than one was typed."""
    found = next((one for one in named if one is not None), None)
    if found is None:
        raise click.UsageError("Missing option '--calibration'.")
    return found


@dataclass(frozen=True)
class Released:
    """The release that a command works with, or its calibration of one level, and the column of its groups."""

    calibration: Path
    alpha: str | None = None
    by: str | None = None

    def load(self) -> Release:
        """The release, or that of the level."""
        release = load_release(self.calibration)
        if self.alpha is None:
            return release
        if release.by != "level":
            raise InputError("alpha", "belongs to a calibration of several levels")
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

    epsilon: float | None = None
    rho: float | None = None
    neighbors: str = "add_remove"
    records_per_person: int = 1
    n_min: int = 1
    n_typical: int | Literal["noisy"] | None = None
    selector: str | None = None
    delta: str | None = None


@dataclass(frozen=True)
class PeopleOptions:
    """How many records of each person count."""

    person: str | None = None
    max_records_per_person: int | None = None
    order: str | None = None
    sample: str | None = None

    @property
    def people(self) -> People | None:
        """Who owns which record; None if that is not asked."""
        if self.person is None or self.max_records_per_person is None or self.order is None:
            return None
        return People(self.person, self.max_records_per_person, tuple(split(self.order)), self.sample)


@dataclass(frozen=True)
class GroupOptions:
    """What thresholds depend on."""

    by: str | None = None
    groups: str | None = None
    by_class: bool = False
    partition: str | None = None

    @property
    def asked(self) -> bool:
        """Whether there is more than one threshold."""
        return self.by is not None or self.by_class

    def arguments(self) -> dict[str, Any]:
        """What a table is asked of them; nothing for one threshold."""
        groups = None if self.groups is None else tuple(split(self.groups))
        return {"by": self.by, "groups": groups, "by_class": self.by_class} if self.asked else {}


def check_partition(ledger: str | None, partition: str | None) -> None:
    """Refuse groups of a ledger without the name of their division, and the name without a ledger."""
    if (ledger is None) != (partition is None):
        raise click.UsageError("--partition, the name of the division into groups, belongs to --ledger; give both")


class _Written:
    """A file that a command writes, or may write."""

    out: Path | None
    force: bool

    def check(self, kind: Kind, *inputs: str | Place | None) -> None:
        """Refuse a file that cannot be written, or would replace an input, before any work is done."""
        check_output(self.out, kind, *inputs, force=self.force)

    def new(self, kind: Kind) -> AbstractContextManager[Path]:
        """Where to write the file, which is there once the block is left in peace."""
        assert self.out is not None
        return new_file(self.out, overwrite=self.force, kind=kind)

    def write(self, text: str) -> None:
        """Write the file, whole or not at all, if one is asked for."""
        if self.out is not None:
            write_text(self.out, text, overwrite=self.force)

    def saved(self, what: str = "saved") -> str | None:
        """Where it is, if one is."""
        return None if self.out is None else f"{what}: {self.out}"


@dataclass(frozen=True)
class Output(_Written):
    """The file that a command writes."""

    out: Path
    force: bool = False

    def save(self, text: str, what: str = "saved") -> None:
        """Write the file, and say so."""
        self.write(text)
        say(f"{what}: {self.out}")


@dataclass(frozen=True)
class PrintedOutput(Output):
    """The same, and whether it is printed as JSON."""

    as_json: bool = False


@dataclass(frozen=True)
class OptionalOutput(_Written):
    """A file that may be written, too."""

    out: Path | None = None
    force: bool = False


@dataclass(frozen=True)
class Findings(OptionalOutput):
    """The same, beside what is printed."""

    as_json: bool = False


def names_in(texts: Sequence[str]) -> list[str] | None:
    """All names in options that may be repeated; None if none was typed."""
    return [name for text in texts for name in split(text)] or None
