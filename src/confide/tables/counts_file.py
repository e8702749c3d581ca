"""Files of counts: the answer to a counting query, and noisy counts of other engines. They are read strictly.

**Private**: no message contains a count.
"""

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from confide.candidates import Candidates
from confide.core import PublishedCounts
from confide.errors import FormatError, InputError
from confide.mechanisms import Noise
from confide.support import MOST_RECORDS, FileLocation, as_place
from confide.tables.bin_counts import Counts, Job, add_count
from confide.tables.failures import RowErrors

_MOST_BYTES = 2**28
_WHOLE = re.compile(r"-?[0-9]{1,18}", re.ASCII)

Row = Mapping[str, Any]

# The columns of the answer; of weighted records also the sum of weights. Group and bin are empty with a reason.
COLUMNS = ("query", "part", "reason", "group", "bin", "n")


def read_counts(places: Sequence[FileLocation], jobs: Sequence[Job], digest: str) -> list[Counts]:
    """The counts of each job in the answers to the query with this digest; those of several files are added.

    Raises
    ------
    InputError
        If a file cannot be read.
    FormatError
        If its rows are not counts of this query. The message names the row and contains no count.
    """
    totals = [(np.zeros(job.shape, dtype=np.int64), RowErrors()) for job in jobs]
    weight = ["weight"] if jobs[0].columns.weight is not None else []
    for place in places:
        add_rows(rows_of(place, [*COLUMNS, *weight]), jobs, digest, totals, f" in {str(place)!r}")
    if sum(float(counts.sum()) for counts, _ in totals) > MOST_RECORDS * (jobs[0].groups + 1):
        raise InputError("counts", f"must be of at most {MOST_RECORDS} records together")
    return totals


def add_rows(
    rows: Iterable[Row], jobs: Sequence[Job], digest: str, totals: Sequence[Counts], of_file: str = ""
) -> None:
    """Add the rows of one answer to the counts of each job, after checks."""
    counted = set()
    for number, row in enumerate(rows):
        where = f"counts[{number}]"
        if row["query"] != digest:
            raise FormatError(
                f"{where}.query",
                f"must be this query{of_file}",
                got="another",
                remedy="State the request of the query, by the same options",
            )
        whole_row = _checked(row, jobs, where, of_file)
        key = tuple(whole_row[name] for name in ("part", "reason", "group", "bin"))
        if key in counted:
            raise FormatError(where, f"must be of another part, reason, group or bin than the rows before{of_file}")
        counted.add(key)
        add_count(whole_row, jobs[whole_row["part"]], *totals[whole_row["part"]])


def _checked(row: Row, jobs: Sequence[Job], where: str, of_file: str) -> dict[str, int]:
    """The whole numbers of a row, each within its range."""

    def checked(name: str, least: int, most: int) -> int:
        number = whole(row[name], f"{where}.{name}", of_file)
        if not least <= number <= most:
            raise FormatError(f"{where}.{name}", f"must be from {least} to {most}{of_file}")
        return number

    part = checked("part", 0, len(jobs) - 1)
    columns, (_, bins) = jobs[part].columns, jobs[part].shape
    numbers = {"part": part, "reason": checked("reason", 0, len(columns.requirements)), "group": 0, "bin": 0}
    if not numbers["reason"]:
        numbers["bin"] = checked("bin", 0, bins - 1)
        numbers["group"] = checked("group", 0, jobs[part].groups - 1) if jobs[part].group is not None else 0
    numbers["n"] = checked("n", 0, MOST_RECORDS)
    if columns.weight is not None and not numbers["reason"]:
        numbers["weight"] = checked("weight", 0, columns.weight.weights.heaviest * numbers["n"])
    return numbers


def whole(value: Any, argument: str, of_file: str) -> int:
    """A whole number that a file contains as a number or a text."""
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        return int(value)
    if isinstance(value, Decimal) and value.is_finite() and value == int(value):
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


def of_csv(text: str, columns: Sequence[str]) -> Iterator[Row]:
    r"""The rows of a CSV text.

    Examples
    --------
    >>> list(of_csv("BIN,N\n3,20\n", ["bin", "n"]))
    [{'bin': '3', 'n': '20'}]
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


def of_json(text: str, columns: Sequence[str]) -> Iterator[Row]:
    """The rows of a JSON text: a list of objects, or an object in each line."""
    texts = [text] if text.lstrip().startswith("[") else text.splitlines()
    try:
        read = [json.loads(line, object_pairs_hook=_Object) for line in texts]
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


# The columns of noisy counts.
_NOISY_COLUMNS = ("bin", "count")


def read_published_counts(
    file: str | FileLocation,
    candidates: Candidates | None = None,
    noise: Noise | None = None,
    *,
    n: int | None = None,
    n_noisy: int | None = None,
    n_noise: Noise | None = None,
    score: str | None = None,
    classes: Sequence[object] | int | None = None,
) -> PublishedCounts:
    r"""Read noisy counts that another engine made.

    Parameters
    ----------
    file
        A file of `PublishedCounts.save`, which states everything. Or a CSV, JSON or Parquet file with the columns bin
        (from 0) and count, such as Tumult and OpenDP make; a JSON list of counts in the order of the bins; or a JSON
        object with the report_count and the aggregate_result of a collection of DAP.
    candidates, noise, n, n_noisy, n_noise, score, classes
        As in `PublishedCounts`; left out for its own files.

    Raises
    ------
    InputError, InputTypeError
        If the file or an argument cannot be used.
    FormatError
        If the file does not contain counts.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "counts.csv")
    ...     written = path.write_text("bin,count\n1,-2\n0,30\n")
    ...     read_published_counts(path, Candidates.of([0.5]), Noise.discrete_laplace(2.0), n=29).counts
    array([30, -2])
    """
    place = as_place(file)
    stated: dict[str, Any] = {"n": n, "n_noisy": n_noisy, "n_noise": n_noise, "score": score, "classes": classes}
    content: Any = None
    if place.suffix.lower() == ".json":
        try:
            content = json.loads(text_of(bytes_of(place)))
        except (ValueError, RecursionError):
            raise FormatError("counts", f"{str(place)!r} must be one valid JSON document") from None
    if isinstance(content, dict) and content.get("kind") == "confide/published-counts":
        given = {"candidates": candidates, "noise": noise, **stated}
        if known := [name for name, value in given.items() if value is not None]:
            raise InputError(known[0], f"must be left out: {str(place)!r} states it")
        return PublishedCounts.load(place)  # type: ignore[arg-type]
    if candidates is None or noise is None:
        name = "candidates" if candidates is None else "noise"
        raise InputError(name, f"must be given: {str(place)!r} does not state it")
    if content is None or (isinstance(content, list) and any(isinstance(entry, dict) for entry in content)):
        rows = list(enumerate(rows_of(place, _NOISY_COLUMNS)))
        content = {name: [whole(row[name], f"counts[{k}].{name}", "") for k, row in rows] for name in _NOISY_COLUMNS}
    return PublishedCounts(content, candidates, noise, **stated)
