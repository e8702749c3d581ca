"""Progress bars on stderr, for people only: none if stderr is not a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from confide.cli.interruption import check_interruption
from confide.tables.source import Table


@contextmanager
def progress_bar(title: str, table: Table) -> Iterator[Callable[[int], None]]:
    """A function to be told of every batch of rows. The bar says which share is done, not how many rows there are."""
    if not sys.stderr.isatty():
        yield lambda rows: check_interruption()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=table.row_count())

        def advance(rows: int) -> None:
            check_interruption()
            bar.advance(task, rows)

        yield advance
