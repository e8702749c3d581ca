"""Files of counts: their rows, and the noisy counts of other engines. **Private**: no message contains a count."""

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from confide.candidates import Candidates
from confide.core import PublishedCounts
from confide.errors import FormatError, InputError
from confide.mechanisms import Noise
from confide.support import FileLocation, as_place, require
from confide.tables.deferred import pa

# The values of a row, by the columns that count
Row = Mapping[str, Any]

# The largest file, which is read whole
_MOST_BYTES = 2**28

# At most so many digits that the number is one of 64 bits
_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,18}", re.ASCII)


def bytes_of(place: FileLocation) -> bytes:
    """The bytes of a file, which must not be too large."""
    try:
        with place.open("rb") as stream:
            content: bytes = stream.read(_MOST_BYTES + 1)
    except OSError as error:
        raise InputError("counts", f"{str(place)!r} cannot be read: {error.strerror}") from None
    require("counts", len(content) <= _MOST_BYTES, f"{str(place)!r} must not be larger than {_MOST_BYTES:,} bytes")
    return content


def text_of(content: bytes) -> str:
    """Bytes as text."""
    try:
        return content.decode("utf-8-sig")
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
        header, *lines = list(csv.reader(io.StringIO(text.rstrip(), newline=""), strict=True)) or [[]]
    except csv.Error:
        raise FormatError("counts", "must be well-formed CSV") from None
    places = _places(header, columns)
    for number, line in enumerate(lines):
        if len(line) != len(header):
            raise FormatError(f"counts[{number}]", f"must have {len(header)} cells, as the header")
        yield {name: line[place].strip() for name, place in places.items()}


class _Object(tuple[tuple[str, Any], ...]):
    """The fields of a JSON object, which may be repeated, unlike those of a dictionary."""


def of_json(text: str, columns: Sequence[str]) -> Iterator[Row]:
    """The rows of a JSON text: a list of objects, or an object in each line."""
    texts = [text] if text.lstrip().startswith("[") else [line for line in text.split("\n") if line.strip()]
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


def _of_parquet(content: bytes, columns: Sequence[str]) -> Iterator[Row]:
    from pyarrow import parquet

    try:
        table = parquet.read_table(pa.BufferReader(content))
    except (pa.ArrowException, OSError, ValueError):
        raise FormatError("counts", "must be a whole Parquet file") from None
    places = _places(table.column_names, columns)
    rows = zip(*(table.column(place).to_pylist() for place in places.values()), strict=True)
    yield from (dict(zip(places, values, strict=True)) for values in rows)


def _places(names: Sequence[str], columns: Sequence[str]) -> dict[str, int]:
    """The positions of the columns; names in upper or lower case."""
    known = [name.strip().lower() for name in names]
    for name in columns:
        if known.count(name) != 1:
            must = f"must have the columns {', '.join(columns)}, each once, as the query gives them"
            raise FormatError("counts", must, got=f"{known.count(name)} columns {name!r}")
    return {name: known.index(name) for name in columns}


def rows_of(place: FileLocation, columns: Sequence[str]) -> Iterator[Row]:
    """The rows of a file, each with the columns that count."""
    suffix = place.suffix.lower()
    if suffix not in (".csv", ".json", ".jsonl", ".ndjson", ".parquet"):
        raise InputError("counts", f"{str(place)!r} must be a .csv, .json, .jsonl or .parquet file")
    content = bytes_of(place)
    if suffix == ".parquet":
        return _of_parquet(content, columns)
    text = text_of(content)
    return of_csv(text, columns) if suffix == ".csv" else of_json(text, columns)


def whole_number(value: Any, argument: str, of_file: str) -> int:
    """A whole number that a file contains as a number or a text."""
    if isinstance(value, str) and _WHOLE_NUMBER.fullmatch(value):
        return int(value)
    if isinstance(value, Decimal) and value.is_finite() and value == int(value):
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise FormatError(argument, f"must be a whole number{of_file}")


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
    # A JSON document may be a file of the library, which states everything
    place = as_place(file)
    options: dict[str, Any] = {"n": n, "n_noisy": n_noisy, "n_noise": n_noise, "score": score, "classes": classes}
    document = _json_document(place) if place.suffix.lower() == ".json" else None
    if isinstance(document, dict) and document.get("kind") == "confide/published-counts":
        arguments = {"candidates": candidates, "noise": noise, **options}
        if repeated := [name for name, value in arguments.items() if value is not None]:
            raise InputError(repeated[0], f"must be left out: {str(place)!r} states it")
        return PublishedCounts.load(place)  # type: ignore[arg-type]

    # Other files need the candidates and the noise
    if candidates is None or noise is None:
        name = "candidates" if candidates is None else "noise"
        raise InputError(name, f"must be given: {str(place)!r} does not state it")

    # Their counts are in rows, or in the document as `PublishedCounts` takes them
    in_rows = document is None or (isinstance(document, list) and any(isinstance(entry, dict) for entry in document))
    counts: Any = _noisy_counts(place) if in_rows else document
    return PublishedCounts(counts, candidates, noise, **options)


def _json_document(place: FileLocation) -> Any:
    try:
        return json.loads(text_of(bytes_of(place)))
    except (ValueError, RecursionError):
        raise FormatError("counts", f"{str(place)!r} must be one valid JSON document") from None


def _noisy_counts(place: FileLocation) -> dict[str, list[int]]:
    """The columns of noisy counts in the rows of a file."""
    rows = list(rows_of(place, _NOISY_COLUMNS))
    return {
        name: [whole_number(row[name], f"counts[{number}].{name}", "") for number, row in enumerate(rows)]
        for name in _NOISY_COLUMNS
    }
