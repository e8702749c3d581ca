"""How far a long run is, for whoever watches."""

from collections.abc import Callable
from typing import TypeAlias

Progress: TypeAlias = Callable[[int], None]
"""Told the number of rows of every batch. If it has a method `share(done, total)`, that is told the tasks of Spark."""


def silent(rows: int) -> None:
    """Show no progress."""
