"""What commands are given, as values: groups of options, whose fields name rows of `confide.cli.options`.

Which options go together is said in `confide.cli.rules`, and checked before a value is made.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import click

from confide.cli.choices import split
from confide.cli.output import check_output, progress_bar, say
from confide.errors import InputError
from confide.releases import Release, load_release
from confide.support import Kind, Place, as_place, write_text
from confide.tables import People, Progress, What, files_of, open_table


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
                raise InputError(f"say which columns to read, by {ways}; {opened.existing()}")
            yield opened, what, progress


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

    epsilon: float | None = None
    rho: float | None = None
    neighbors: str = "add_remove"
    records_per_person: int = 1
    n_min: int = 1
    n_typical: int | None = None
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

    def arguments(self) -> dict[str, Any]:
        """What `calibrate_table` takes of them; nothing for one threshold."""
        if self.by is None and not self.by_class:
            return {}
        return {**vars(self), "groups": None if self.groups is None else tuple(split(self.groups))}


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

    def write(self, text: str) -> None:
        """Write the file, whole or not at all, if one is asked for."""
        if self.out is not None:
            write_text(self.out, text, overwrite=self.force)

    def say_saved(self, what: str = "saved") -> None:
        """Say where it is, if one is."""
        if self.out is not None:
            say(f"{what}: {self.out}")


@dataclass(frozen=True)
class Output(_Written):
    """The file that a command writes."""

    out: Path
    force: bool = False

    def save(self, text: str, what: str = "saved") -> None:
        """Write the file, and say so."""
        self.write(text)
        self.say_saved(what)


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
