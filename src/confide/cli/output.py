"""What a command prints: text for people, or one line of JSON for machines; and where it may write."""

import json
import math
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from confide.cli.interruption import check_interruption
from confide.errors import CoverageWarning, EarlierReleaseWarning, InputError, SimilarNameWarning
from confide.support import (
    Kind,
    ObjectPath,
    Place,
    as_place,
    harmless,
    harmless_json,
    one_line,
    refuse_existing,
    refuse_input,
    refuse_other_than_html,
)
from confide.tables import Progress, refuse_existing_predictions


def say(text: str) -> None:
    """Print a line, or several, on stdout; whatever was read from files cannot steer the terminal."""
    sys.stdout.write(harmless(text) + "\n")


def warn(text: str) -> None:
    """Print a warning on stderr."""
    sys.stderr.write(f"warning: {one_line(text)}\n")


def note(text: str) -> None:
    """Print what is worth a word and no warning on stderr."""
    sys.stderr.write(f"note: {one_line(text)}\n")


EXPECTED = (CoverageWarning, EarlierReleaseWarning, SimilarNameWarning)
"""The warnings that commands show in their own words."""


@dataclass(frozen=True)
class Heard:
    """What the library warned of while a command worked, which the command prints in its place."""

    kinds: tuple[type[Warning], ...]
    caught: list[warnings.WarningMessage]

    @property
    def earlier(self) -> list[EarlierReleaseWarning]:
        """Of releases that were paid for before."""
        return [one.message for one in self.caught if isinstance(one.message, EarlierReleaseWarning)]

    @property
    def notes(self) -> list[str]:
        """Everything else that is expected, each text once."""
        expected = [one for one in self.caught if issubclass(one.category, self.kinds)]
        return list(dict.fromkeys(str(one.message) for one in expected if one.message not in self.earlier))

    def warn(self) -> None:
        """Print the notes on stderr."""
        for text in self.notes:
            warn(text)

    def fields(self) -> dict[str, Any]:
        """All of it as JSON values."""
        return {"earlier": [time for one in self.earlier for time in one.made], "warnings": self.notes}


@contextmanager
def heard(*kinds: type[Warning]) -> Iterator[Heard]:
    """What the library warns of is kept for the command to print, of these kinds or of all that are expected."""
    with warnings.catch_warnings(record=True) as caught:
        for kind in (*EXPECTED, *kinds):
            warnings.simplefilter("always", kind)
        yield Heard(kinds or EXPECTED, caught)


def tell(document: Callable[[], Mapping[str, Any]], *texts: object, as_json: bool) -> None:
    """Print one JSON document, or these texts in its place, one below the other; what is None is nothing to tell."""
    if as_json:
        emit(document())
        return
    for text in texts:
        if text is not None:
            say(str(text))


def emit(document: Mapping[str, Any]) -> None:
    """Print one JSON document on stdout, as one line."""
    say(harmless_json(json.dumps(plain(document), allow_nan=False, ensure_ascii=False)))


def plain(value: Any) -> Any:
    """A value without NaN and infinities, which JSON cannot hold: infinities become texts.

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


def check_output(path: str | Place | None, kind: Kind, *inputs: str | Place | None, force: bool) -> None:
    """Refuse an output that cannot be written, or would replace an input, before any work is done."""
    if path is None:
        return
    path = as_place(path)
    if isinstance(path, ObjectPath):
        path.check_bucket()
    if force or not path.exists():
        refuse_input(path, inputs)
    if kind is Kind.PREDICTIONS:
        refuse_existing_predictions(path, overwrite=force)
    else:
        refuse_existing(path, overwrite=force, kind=kind)
    if kind is Kind.PAGE:
        refuse_other_than_html(path)
    if not isinstance(path, ObjectPath) and not path.parent.is_dir():
        raise InputError("output", f"{str(path)!r} cannot be written: its folder does not exist")


def left_out_text(found: Mapping[str, Any]) -> str | None:
    """How many records were left out, if that may be known."""
    if "left_out" not in found:
        return None
    count = found["left_out"]
    return f"left out: {count:,} record{'' if count == 1 else 's'} with missing values"


@contextmanager
def progress_bar(title: str, total: Callable[[], int | None]) -> Iterator[Progress]:
    """A function to be told of every batch of rows. The bar says which share is done, not how many rows there are.

    `total` is asked for the number of rows only if somebody watches; None shows a bar that merely moves, and the time,
    until the function's method `share` is told how many tasks of how many are done.
    """
    if not sys.stderr.isatty():
        yield lambda rows: check_interruption()
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), *_measured())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        yield _Watched(bar, bar.add_task(title, total=total()))


class _Watched:
    """Moves a bar by rows, or by the tasks of Spark."""

    def __init__(self, bar: Any, task: Any) -> None:
        self._bar, self._task = bar, task

    def __call__(self, rows: int) -> None:
        check_interruption()
        self._bar.advance(self._task, rows)

    def share(self, done: int, total: int) -> None:
        """Show which share of the tasks is done."""
        self._bar.update(self._task, completed=done, total=total)


def _measured() -> tuple[Any, Any]:
    """Columns for the share and the time that is left, where the total is known; else for the time that has passed."""
    from rich.progress import TaskProgressColumn, TimeElapsedColumn, TimeRemainingColumn

    class Share(TaskProgressColumn):
        def render(self, task: Any) -> Any:
            return super().render(task) if task.total is not None else TimeElapsedColumn().render(task)

    class Remaining(TimeRemainingColumn):
        def render(self, task: Any) -> Any:
            return super().render(task) if task.total is not None else ""

    return Share(), Remaining()
