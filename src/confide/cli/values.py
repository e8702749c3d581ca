"""Values of arguments that are files: tables, releases and fingerprints."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confide.cli.output import print_warning, progress_bar
from confide.core import FROM_LOGITS, ModelFingerprint, Release, load_release, reminder_due, uncompared
from confide.errors import InputError, InputTypeError
from confide.support import FileLocation, as_place, require, same_place
from confide.tables import ColumnSpec, Progress, files_of, format_of, open_table, read_numbers

# The options of which one names the columns of a score
ALTERNATIVES = "--probabilities with --label, --prediction with --target, or --score-column"


@dataclass(frozen=True)
class Source:
    """The input table, and how it is read."""

    file: str
    table: str | None = None
    decimal: str = "."

    @property
    def files(self) -> tuple[FileLocation, ...]:
        """The input files, or objects of a store."""
        return files_of(self.file)

    @contextmanager
    def open(self, doing: str) -> Iterator[tuple[Any, Progress]]:
        """Open the table, with a progress bar."""
        with (
            open_table(self.file, self.table, decimal=self.decimal) as opened,
            progress_bar(doing, opened.row_count) as progress,
        ):
            yield opened, progress

    def require_columns(self, columns: ColumnSpec | None, alternatives: str = ALTERNATIVES) -> ColumnSpec:
        """The columns; if none were named, an error that lists those of the table."""
        if columns is None:
            with self.open("reading") as (opened, _):
                raise InputError("probabilities", f"name the columns to read: {alternatives}", remedy=opened.existing())
        return columns


def read_release(path: Path, arguments: dict[str, Any]) -> Release:
    """Read a release, or its one level; take `fingerprint` and `alpha` out of the arguments."""
    # Compare the model with that of the release.
    release = load_release(path)
    if "fingerprint" in arguments:
        decimals = None if release.fingerprint is None else release.fingerprint.decimals
        release.for_model(read_fingerprint(place_of("fingerprint", arguments.pop("fingerprint")), decimals=decimals))
    elif reminder_due(release):
        print_warning(uncompared(release))
    if release.about.get("outputs") == FROM_LOGITS and "probabilities" in arguments and not arguments.get("logits"):
        print_warning(
            f"calibration {str(path)!r} was made from {FROM_LOGITS}; {arguments['probabilities']!r} is read as "
            "probabilities, which must be that softmax: give --set logits=true for logits"
        )

    # One level.
    if "alpha" not in arguments:
        return release
    require("alpha", release.by == "level", "must be left out, because the release does not have several levels")
    return release.at(arguments.pop("alpha"))


def read_fingerprint(
    path: FileLocation, records: Iterable[FileLocation] = (), decimals: int | None = None
) -> ModelFingerprint:
    """The fingerprint of a model: of a table of its outputs on public probe records, all columns, or of its file.

    A file of the private records raises `InputError`, because a fingerprint is published.
    """
    is_public = not any(same_place(path, place) for place in records)
    must = "must be outputs on other, PUBLIC probe records, or the model's file"
    require("fingerprint", is_public, must, got="the table of the records")
    if format_of(path) is None:
        return ModelFingerprint.of_file(path)
    with open_table(str(path)) as table:
        outputs = read_numbers(table)
    return ModelFingerprint.of(outputs) if decimals is None else ModelFingerprint.of(outputs, decimals)


def place_of(argument: str, name: Any) -> FileLocation:
    """The file that an argument names."""
    if not isinstance(name, str):
        raise InputTypeError(argument, "must be the name of a file", got=type(name).__name__)
    return as_place(name)
