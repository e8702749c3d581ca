"""Progress bars on stderr, for people only: none if stderr is not a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from confide.cli.interruption import check_interruption
from confide.tables import Progress


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
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), *_measured())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
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
