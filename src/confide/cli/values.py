"""Groups of options as values. Their fields name rows of `confide.cli.options`.

Options that exclude or need each other are listed in `confide.cli.command`, and checked before a value is created.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import click

from confide.cli.choices import parse_metadata, split
from confide.cli.columns import Columns
from confide.cli.output import check_output, print_text, print_warning, progress_bar
from confide.core import ModelFingerprint, Pilot, Release, load_release, reminder_due, uncompared
from confide.errors import InputError
from confide.support import FileKind, FileLocation, as_place, new_file, same_place, write_text
from confide.tables import (
    ColumnSpec,
    ContributionBound,
    Progress,
    files_of,
    format_of,
    open_table,
    read_numbers,
    read_pilot,
)


@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """The options for reading a table."""

    table: str | None = None
    skip_incomplete: bool = False
    decimal: str = "."

    @contextmanager
    def opened(self, file: str, doing: str) -> Iterator[tuple[Any, Progress]]:
        """Open the table, with a progress bar."""
        with (
            open_table(file, self.table, decimal=self.decimal) as opened,
            progress_bar(doing, opened.row_count) as progress,
        ):
            yield opened, progress

    def left_out(self, opened: Any) -> dict[str, int]:
        """The number of records left out, for use where it is public."""
        return {"left_out": opened.left_out()} if self.skip_incomplete else {}


@dataclass(frozen=True, kw_only=True)
class PilotOptions:
    """The options of a public sample."""

    pilot: str | None = None
    reading: ReadingOptions
    columns: Columns

    @property
    def files(self) -> tuple[FileLocation, ...]:
        """The input files."""
        return () if self.pilot is None else files_of(self.pilot)

    def what(self) -> ColumnSpec | None:
        """The columns to read, which a sample requires."""
        what = self.columns.columns_to_read()
        if self.pilot is not None and what is None:
            raise click.UsageError(f"--pilot needs {self.columns.ALTERNATIVES}")
        return what

    def sample(self) -> tuple[Pilot | None, dict[str, int]]:
        """The sample, or None, and the number of its records left out."""
        what, reading = self.what(), self.reading
        if self.pilot is None or what is None:
            return None, {}
        with reading.opened(self.pilot, "reading") as (opened, progress):
            read = read_pilot(opened, what, skip_incomplete=reading.skip_incomplete, progress=progress)
            return read, reading.left_out(opened)


@dataclass(frozen=True, kw_only=True)
class Source(ReadingOptions):
    """The input table."""

    file: str

    @property
    def files(self) -> tuple[FileLocation, ...]:
        """The input files, or objects of a store."""
        return files_of(self.file)

    @contextmanager
    def open(
        self, doing: str, what: ColumnSpec | None, alternatives: str
    ) -> Iterator[tuple[Any, ColumnSpec, Progress]]:
        """Open the table, with its columns and a progress bar; an error about missing columns lists `ALTERNATIVES`."""
        with self.opened(self.file, doing) as (opened, progress):
            if what is None:
                raise InputError("probabilities", f"name the columns to read: {alternatives}", remedy=opened.existing())
            yield opened, what, progress

    def what(self, what: ColumnSpec | None, alternatives: str) -> ColumnSpec:
        """The columns; without them the table is opened for an error that lists its columns."""
        if what is None:
            with self.open("reading", what, alternatives) as (_, columns, _):
                return columns
        return what


@dataclass(frozen=True, kw_only=True)
class SourceOfRelease(Source):
    """The input table and its release; both may also be typed as two arguments, RELEASE TABLE."""

    second: str | None = None
    calibration: Path | None = None

    def separate(self) -> tuple[Path, Source]:
        """The release, and the table alone."""
        table = Source(**{field.name: getattr(self, field.name) for field in fields(Source)})
        if self.second is None:
            return named_release(self.calibration), table
        return named_release(as_place(self.file)), replace(table, file=self.second)


def named_release(*named: Any) -> Any:
    """The release, from the argument or from --calibration; at most one was typed."""
    release = next((one for one in named if one is not None), None)
    if release is None:
        raise click.UsageError("Missing option '--calibration'.")
    return release


@dataclass(frozen=True)
class Released:
    """The options of an input release: its file, one level, and the column of its groups."""

    calibration: Path
    alpha: str | None = None
    by: str | None = None
    fingerprint: Path | None = None

    def load(self) -> Release:
        """Load the release, or its calibration of one level; compare its fingerprint with that of the model."""
        release = load_release(self.calibration)
        if self.fingerprint is not None:
            stated = release.fingerprint
            release.for_model(read_fingerprint(self.fingerprint, decimals=None if stated is None else stated.decimals))
        elif reminder_due(release):
            print_warning(uncompared(release))
        if self.alpha is None:
            return release
        if release.by != "level":
            raise InputError("alpha", "needs a calibration of several levels")
        return release.at(self.alpha)

    def columns_of(self, release: Release) -> str | list[str] | None:
        """The column of --by; the columns, between commas, if the groups of the release overlap."""
        return split(self.by) if self.by is not None and release.overlap is not None else self.by

    def check_group(self, release: Release, *, of_classes: bool, any_groups: bool = False) -> None:
        """Check that --by is given for thresholds per group, or per class without a label column.

        Without such thresholds --by must be left out, unless `any_groups` is set.
        """
        needed = release.needs_groups(sets=not of_classes)
        if needed and self.by is None:
            what = "true class" if release.by == "class" else "group"
            raise click.UsageError(
                f"--by is missing, the column of each record's {what}: there are thresholds for each"
            )
        if self.by is not None and not (needed or any_groups):
            raise click.UsageError("--by must be left out: the calibration has no thresholds per group of records")


def read_fingerprint(
    path: FileLocation, records: Iterable[FileLocation] = (), decimals: int | None = None
) -> ModelFingerprint:
    """The fingerprint in a table of outputs on public probe records, by all its columns, or else of a model's file.

    Outputs are rounded to this number of decimals, by default to that of `ModelFingerprint.of`.

    Raises
    ------
    InputError
        If it is one of the files with the private records, or cannot be read as numbers.
    """
    if any(same_place(path, place) for place in records):
        must = "must be outputs on other, PUBLIC probe records, or the model's file"
        raise InputError("fingerprint", must, got="the table of the records")
    if format_of(path) is None:
        return ModelFingerprint.of_file(path)
    with open_table(str(path)) as table:
        outputs = read_numbers(table)
    return ModelFingerprint.of(outputs) if decimals is None else ModelFingerprint.of(outputs, decimals)


@dataclass(frozen=True)
class Words:
    """The options of public metadata for a new release."""

    about: tuple[str, ...] = ()
    fingerprint: Path | None = None

    def arguments(self, *records: FileLocation) -> dict[str, Any]:
        """The metadata as arguments of a request; `records` are the files with private records."""
        model = None if self.fingerprint is None else read_fingerprint(self.fingerprint, records)
        return {"about": parse_metadata(self.about), "fingerprint": model}


@dataclass(frozen=True)
class PeopleOptions:
    """The options that bound the records of each person."""

    person: str | None = None
    max_records_per_person: int | None = None
    order: str | None = None
    sample: str | None = None

    @property
    def people(self) -> ContributionBound | None:
        """The bound on records per person; None if there is none."""
        if self.person is None or self.max_records_per_person is None or self.order is None:
            return None
        return ContributionBound(self.person, self.max_records_per_person, tuple(split(self.order)), self.sample)


@dataclass(frozen=True)
class GroupOptions:
    """The options of groups and classes."""

    by: str | None = None
    groups: str | None = None
    by_class: bool = False
    partition: str | None = None

    @property
    def has_groups(self) -> bool:
        """Whether thresholds for groups or classes are requested."""
        return self.by is not None or self.by_class

    def arguments(self) -> dict[str, Any]:
        """The arguments of a request to a table; empty for one threshold."""
        if not self.has_groups:
            return {}
        if self.by is None or self.groups is None or "," not in self.by:
            groups = None if self.groups is None else tuple(split(self.groups))
            return {"by": self.by, "groups": groups, "by_class": self.by_class}
        columns, lists = split(self.by), self.groups.split(";")
        if len(lists) != len(columns):
            must = f"must be the values of each of the {len(columns)} columns of --by, with ; between columns"
            example = "For example --by sex,site --groups 'f,m;north,south'"
            raise InputError("groups", must, got=f"{len(lists)} of them", remedy=example)
        groups_of = dict(zip(columns, map(split, lists), strict=True))
        return {"by": columns, "groups": groups_of, "by_class": self.by_class}


def check_partition(ledger: str | None, partition: str | None) -> None:
    """Check that --partition is given with --ledger, and only then."""
    if (ledger is None) != (partition is None):
        raise click.UsageError("--partition, the name of the division into groups, and --ledger must be given together")


class _Written:
    """An output file."""

    out: Path | None
    force: bool

    def check(self, kind: FileKind, *inputs: str | FileLocation | None) -> None:
        """Check before any work that the file can be written, and replaces no input."""
        check_output(self.out, kind, *inputs, force=self.force)

    def new(self, kind: FileKind) -> AbstractContextManager[Path]:
        """A path to write to; the output file appears when the block ends without an error."""
        assert self.out is not None
        return new_file(self.out, overwrite=self.force, kind=kind)

    def write(self, text: str) -> None:
        """Write the file as a whole or not at all, if there is one."""
        if self.out is not None:
            write_text(self.out, text, overwrite=self.force)

    def saved(self) -> str | None:
        """A line with the path of the file, if there is one."""
        return None if self.out is None else f"saved: {self.out}"


@dataclass(frozen=True)
class Output(_Written):
    """A required output file."""

    out: Path
    force: bool = False

    def save(self, text: str, what: str = "saved") -> None:
        """Write the file, and print its path."""
        self.write(text)
        print_text(f"{what}: {self.out}")


@dataclass(frozen=True)
class PrintedOutput(Output):
    """A required output file, and the choice of printing JSON."""

    as_json: bool = False


@dataclass(frozen=True)
class OptionalOutput(_Written):
    """An optional output file."""

    out: Path | None = None
    force: bool = False


@dataclass(frozen=True)
class Findings(OptionalOutput):
    """An optional output file, and the choice of printing JSON."""

    as_json: bool = False


def option_names(texts: Sequence[str]) -> list[str] | None:
    """All names in repeatable options; None if none was typed."""
    return [name for text in texts for name in split(text)] or None
