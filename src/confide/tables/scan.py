"""One pass over a file, batch by batch."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from numpy.typing import NDArray

from confide.errors import InputError
from confide.tables.findings import Findings
from confide.tables.parts import Part
from confide.tables.source import Table

Progress: TypeAlias = Callable[[int], None]
"""Told the number of rows of every batch that was read."""

_CELLS = 2**19
_LEAST, _MOST = 2048, 2**14


def silent(rows: int) -> None:
    """Show no progress."""


def scan(
    table: Table, parts: Sequence[Part], kept: Sequence[str] = (), progress: Progress = silent
) -> Iterator[tuple[list[NDArray[Any]], list[Any]]]:
    """The arrays of the parts and the Arrow columns of the kept expressions, for one batch of rows after the other.

    From the first bad row on nothing more is yielded; the rest of the file is read to count the bad rows.

    Raises
    ------
    InputError
        At the end, if rows were bad (how many, and where the first is) or there were none at all.
    """
    asked = [part.expressions for part in parts]
    expressions = [*(one for several in asked for one in several), *kept]
    named = [f"{expression} AS c{i}" for i, expression in enumerate(expressions)]
    width = sum(part.width for part in parts) + len(kept)
    findings, start = Findings(), 0
    for batch in table.stream(named, min(_MOST, max(_LEAST, _CELLS // width))):
        if batch.num_rows == 0:
            continue
        columns = batch.columns
        arrays, at = [], 0
        for part, several in zip(parts, asked, strict=True):
            arrays.append(part.read(columns[at : at + len(several)], start, findings))
            at += len(several)
        start += batch.num_rows
        if not findings:
            yield [array for array in arrays if array is not None], columns[at:]
        progress(batch.num_rows)
    findings.refuse()
    if start == 0:
        raise InputError(f"file {str(table.path)!r} is empty: it has column names but no rows")
