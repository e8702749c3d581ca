"""The result of a counting query: a file of counts, read strictly. **Private**: no message contains a count.

A file has the columns plan, part, bin and records, in any order and in any upper or lower case. Other columns are
ignored. Missing bins have no records. Records that could not be used are counted under negative bins; they raise an
error with their number, as elsewhere.
"""

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from confide.counting import ScoreHistogram
from confide.errors import FormatError, InputError
from confide.support import MOST_RECORDS, FileLocation, ObjectPath, as_place, same_place
from confide.warehouse.plan import CountingPlan
from confide.warehouse.query import COLUMNS, requirements

_MOST_BYTES = 2**28
_WHOLE = re.compile(r"-?[0-9]{1,16}", re.ASCII)

Row = Mapping[str, Any]


def read_counts(
    files: str | FileLocation | Sequence[str | FileLocation], plan: CountingPlan
) -> dict[Any, ScoreHistogram]:
    r"""Read the histograms of one or several files, whose counts are added, by the names of `plan.parts`; private.

    Parameters
    ----------
    files
        CSV, JSON (a list of objects, or one object per line) or Parquet files, by their extensions, or such objects of
        a store. Several files contain the counts of different records.
    plan
        The plan from which the query was made.

    Raises
    ------
    InputError
        If a file cannot be used, or records could not be used: how many, and why.
    FormatError
        If its rows are not counts of this plan. The message names the row and contains no count.

    Examples
    --------
    >>> import tempfile
    >>> from confide.tables import ScoreColumn
    >>> plan = CountingPlan.of(ScoreColumn("s", "lac"), 0.1, 1.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "counts.csv")
    ...     written = path.write_text(f"plan,part,bin,records\n{plan.digest},0,3,20\n")
    ...     read_counts(path, plan)["lac"].total
    20
    """
    listed = [as_place(one) for one in ([files] if isinstance(files, str | Path | ObjectPath) else files)]
    if not listed:
        raise InputError("files", "must be one or more", got="none")
    if any(same_place(one, other) for one, other in combinations(listed, 2)):
        raise InputError("files", "must differ: one of them is named twice, and its records would count twice")
    words = requirements(plan)
    found = np.zeros((len(plan.parts), plan.bins + len(words)), dtype=np.int64)  # the last columns are bins -1, -2, ...
    for path in listed:
        for (part, at), records in counts_of(rows_of(path, COLUMNS), plan, str(path)).items():
            found[part, at] += records
    if found.sum(dtype=np.float64) > MOST_RECORDS:
        raise InputError("counts", f"must be of at most {MOST_RECORDS} records together")
    unusable, counts = found[:, : plan.bins - 1 : -1].max(axis=0), found[:, : plan.bins]  # a record may have two sides
    if unusable.any():
        broken = [
            f"{requirement} in every row; {number} {'does' if number == 1 else 'do'} not"
            for requirement, number in zip(words, unusable.tolist(), strict=True)
            if number
        ]
        then = "Correct the records, or see skip_incomplete of the request"
        raise InputError("counts", "; ".join(broken), remedy=then)
    return {name: ScoreHistogram(plan.candidates, own) for name, own in zip(plan.parts, counts, strict=True)}


def counts_of(rows: Iterable[Row], plan: CountingPlan, path: str = "") -> dict[tuple[int, int], int]:
    """The records by (part, bin) that rows contain, checked; negative bins are records that cannot be used.

    Examples
    --------
    >>> from confide.tables import ScoreColumn
    >>> plan = CountingPlan.of(ScoreColumn("s", "lac"), 0.1, 1.0)
    >>> counts_of([{"plan": plan.digest, "part": "0", "bin": 3, "records": 20}], plan)
    {(0, 3): 20}
    """
    parts, bins, broken = len(plan.parts), plan.bins, len(requirements(plan))
    found: dict[tuple[int, int], int] = {}
    of_file = f" in {path!r}" if path else ""
    for place, row in enumerate(rows):
        where = f"counts[{place}]"
        if row["plan"] != plan.digest:
            raise FormatError(
                f"{where}.plan",
                f"must be this plan{of_file}",
                got="another",
                remedy="Use the plan, or the options, of its query",
            )
        part, at, records = (whole(row[name], f"{where}.{name}", of_file) for name in COLUMNS[1:])
        if not 0 <= part < parts:
            raise FormatError(f"{where}.part", f"must be from 0 to {parts - 1}{of_file}")
        if not -broken <= at < bins:
            raise FormatError(f"{where}.bin", f"must be one of this plan's, from {-broken} to {bins - 1}{of_file}")
        if not 0 <= records <= MOST_RECORDS:
            raise FormatError(f"{where}.records", f"must be from 0 to {MOST_RECORDS}{of_file}")
        if (part, at) in found:
            raise FormatError(where, f"must be of another part or bin than the rows before{of_file}")
        found[part, at] = records
    return found


def whole(value: Any, argument: str, of_file: str) -> int:
    """A whole number that a file contains as a number or a text."""
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        return int(value)
    if isinstance(value, Decimal) and value.is_finite() and abs(value) <= MOST_RECORDS and value == int(value):
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise FormatError(argument, f"must be a whole number{of_file}")


def rows_of(place: FileLocation, columns: Sequence[str]) -> Iterator[Row]:
    """The rows of a file, each with the columns that count."""
    return _reader(place)(bytes_of(place), columns)


def _reader(place: FileLocation) -> Callable[[bytes, Sequence[str]], Iterator[Row]]:
    reader = _READERS.get(place.suffix.lower())
    if reader is None:
        raise InputError("counts", f"{str(place)!r} must be a .csv, .json, .jsonl or .parquet file")
    return reader


def bytes_of(place: FileLocation) -> bytes:
    """The bytes of a file, which must not be too large."""
    try:
        with place.open("rb") as stream:
            held: bytes = stream.read(_MOST_BYTES + 1)
    except OSError as error:
        raise InputError("counts", f"{str(place)!r} cannot be read: {error.strerror}") from None
    if len(held) > _MOST_BYTES:
        raise InputError("counts", f"{str(place)!r} must not be larger than {_MOST_BYTES:,} bytes")
    return held


def text_of(held: bytes) -> str:
    """Bytes as text."""
    try:
        return held.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise FormatError("counts", "must be text in UTF-8") from None


def of_csv(text: str, columns: Sequence[str] = COLUMNS) -> Iterator[Row]:
    r"""The rows of a CSV text.

    Examples
    --------
    >>> list(of_csv("PLAN,PART,BIN,RECORDS\nab,0,3,20\n"))
    [{'plan': 'ab', 'part': '0', 'bin': '3', 'records': '20'}]
    """
    try:
        header, *lines = list(csv.reader(io.StringIO(text, newline=""), strict=True)) or [[]]
    except csv.Error:
        raise FormatError("counts", "must be well-formed CSV") from None
    places = _places(header, columns)
    for number, line in enumerate(lines):
        if len(line) != len(header):
            raise FormatError(f"counts[{number}]", f"must have {len(header)} cells, as the header")
        yield {name: line[place].strip() for name, place in places.items()}


def of_json(text: str, columns: Sequence[str] = COLUMNS) -> Iterator[Row]:
    """The rows of a JSON text: a list of objects, or an object in each line."""
    texts = [text] if text.lstrip().startswith("[") else text.splitlines()
    try:
        read = [json.loads(one, object_pairs_hook=_Object) for one in texts]
    except (ValueError, RecursionError):
        read = []
    if not read:
        raise FormatError("counts", "must be a JSON list of objects, or one object in each line")
    for number, row in enumerate(read[0] if isinstance(read[0], list) else read):
        if not isinstance(row, _Object):
            raise FormatError(f"counts[{number}]", "must be a JSON object")
        places = _places([name for name, _ in row], columns)
        yield {name: row[place][1] for name, place in places.items()}


class _Object(tuple[tuple[str, Any], ...]):
    """The fields of a JSON object, including repeated ones."""


def _of_parquet(held: bytes, columns: Sequence[str]) -> Iterator[Row]:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        table = parquet.read_table(pa.BufferReader(held))
    except (pa.ArrowException, OSError, ValueError):
        raise FormatError("counts", "must be a whole Parquet file") from None
    places = _places(table.column_names, columns)
    held_values = [table.column(place).to_pylist() for place in places.values()]
    for values in zip(*held_values, strict=True):
        yield dict(zip(places, values, strict=True))


_READERS: Mapping[str, Callable[[bytes, Sequence[str]], Iterator[Row]]] = {
    ".csv": lambda held, columns: of_csv(text_of(held), columns),
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), lambda held, columns: of_json(text_of(held), columns)),
    ".parquet": _of_parquet,
}


def _places(names: Sequence[str], columns: Sequence[str]) -> dict[str, int]:
    """The positions of the columns; names in upper or lower case."""
    known = [name.strip().lower() for name in names]
    for name in columns:
        if known.count(name) != 1:
            raise FormatError("counts", f"must have the columns {', '.join(columns)}, as the query gives them")
    return {name: known.index(name) for name in columns}
