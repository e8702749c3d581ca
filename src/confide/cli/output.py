"""Output of commands: text or one line of JSON, warnings, progress; and checks of output files."""

import json
import math
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from confide.cli.exit_codes import check_interruption
from confide.errors import ChargedAgainWarning, CoverageWarning, EarlierReleaseWarning, SimilarNameWarning
from confide.support import (
    FileKind,
    FileLocation,
    ObjectPath,
    as_place,
    check_new,
    check_not_input,
    escape_json,
    escape_line,
    escape_text,
    refuse_other_than_html,
    require,
)
from confide.tables import Progress, refuse_existing_predictions


def print_text(*texts: object) -> None:
    """Print texts on stdout, one below the other, with control characters escaped; None is skipped."""
    for text in texts:
        if text is not None:
            sys.stdout.write(escape_text(str(text)) + "\n")


def print_warning(*texts: str, kind: str = "warning") -> None:
    """Print texts about the command on stderr, one line each."""
    for text in texts:
        sys.stderr.write(f"{kind}: {escape_line(text)}\n")


def print_result(document: Mapping[str, Any], *texts: object, as_json: bool) -> None:
    """Print a document as one line of JSON, or else these texts, one below the other; None is skipped."""
    if as_json:
        print_text(escape_json(json.dumps(plain(document), allow_nan=False, ensure_ascii=False)))
    else:
        print_text(*texts)


def fields_of(value: object, *names: str) -> dict[str, Any]:
    """These attributes of a value, by name."""
    return {name: getattr(value, name) for name in names}


def plain(value: Any) -> Any:
    """Replace NaN and infinities, which JSON does not have: infinities become texts.

    Examples
    --------
    >>> plain({"threshold": float("inf"), "sizes": [1, 2]})
    {'threshold': '+inf', 'sizes': [1, 2]}
    """
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else f"{value:+}"
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    return value


def left_out_text(counts: Mapping[str, Any]) -> str | None:
    """The number of records left out, if it is public."""
    if "left_out" not in counts:
        return None
    count = counts["left_out"]
    return f"left out: {count:,} record{'' if count == 1 else 's'} with missing values"


# The library's warnings

# The warnings that commands show in their own words
EXPECTED = (ChargedAgainWarning, CoverageWarning, EarlierReleaseWarning, SimilarNameWarning)


@dataclass(frozen=True)
class CapturedWarnings:
    """The library's warnings during a command, which the command prints itself."""

    kinds: tuple[type[Warning], ...]
    caught: list[warnings.WarningMessage]

    @property
    def earlier(self) -> list[EarlierReleaseWarning]:
        """The warnings about earlier releases."""
        return [warning.message for warning in self.caught if isinstance(warning.message, EarlierReleaseWarning)]

    @property
    def notes(self) -> list[str]:
        """The texts of all other expected warnings, each once."""
        expected = [warning for warning in self.caught if issubclass(warning.category, self.kinds)]
        return list(dict.fromkeys(str(warning.message) for warning in expected if warning.message not in self.earlier))

    def warn(self) -> None:
        """Print the notes on stderr."""
        print_warning(*self.notes)

    def fields(self) -> dict[str, Any]:
        """All warnings as JSON values."""
        return {"earlier": [time for warning in self.earlier for time in warning.charged_at], "warnings": self.notes}


@contextmanager
def capture_warnings(*kinds: type[Warning]) -> Iterator[CapturedWarnings]:
    """Print no warning within the block; yield those of these kinds, by default `EXPECTED`, for the command to print.

    Warnings of all other kinds are dropped.
    """
    with warnings.catch_warnings(record=True) as caught:
        for kind in (*EXPECTED, *kinds):  # also those that are dropped, which a filter could turn into errors
            warnings.simplefilter("always", kind)
        yield CapturedWarnings(kinds or EXPECTED, caught)


# Output files


def check_output(
    path: str | FileLocation | None, kind: FileKind, *inputs: str | FileLocation | None, force: bool
) -> None:
    """Check before any work that an output can be written, and replaces no input."""
    if path is None:
        return

    # It is no input, and nothing but an earlier output of its kind.
    path = as_place(path)
    if force or not path.exists():
        check_not_input(path, inputs)
    if kind is FileKind.PREDICTIONS:
        refuse_existing_predictions(path, overwrite=force)
    else:
        check_new(path, overwrite=force, kind=kind)

    # It has the ending of its kind, and a folder.
    if kind is FileKind.PAGE:
        refuse_other_than_html(path)
    has_folder = isinstance(path, ObjectPath) or path.parent.is_dir()
    require("output", has_folder, f"{str(path)!r} cannot be written: its folder does not exist")


# Progress


@contextmanager
def progress_bar(title: str, total: Callable[[], int | None]) -> Iterator[Progress]:
    """Yield a function to call with the number of rows of every batch. The bar shows a share, not a number of rows.

    `total` is called for the number of rows only on a terminal. If it returns None, the bar moves without a share and
    shows the elapsed time.
    """
    if not sys.stderr.isatty():
        yield lambda rows: check_interruption()
        return
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    # On a terminal, a bar that is removed at the end
    rows_in_all = total()
    end = [TimeElapsedColumn()] if rows_in_all is None else [TaskProgressColumn(), TimeRemainingColumn()]
    columns = [TextColumn("{task.description}"), BarColumn(), *end]
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=rows_in_all)

        def advance(rows: int) -> None:
            check_interruption()
            bar.advance(task, rows)

        yield advance
