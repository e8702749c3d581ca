"""Tables that this process never reads: the query that counts one, and the files of its answer as a source.

A request states all columns, so that the same readers as for other tables check the columns and write the expressions.
Types are not known: numbers are cast to double precision, and labels and groups to texts. Noisy counts of other engines
are read from files in the same way, strictly. **Private**: no message contains a count.
"""

import csv
import hashlib
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import combinations
from pathlib import Path
from types import MappingProxyType
from typing import Any

from confide.candidates import Candidates
from confide.core import LONGEST, PublishedCounts
from confide.errors import FormatError, InputError
from confide.mechanisms import Noise
from confide.support import MOST_RECORDS, FileLocation, ObjectPath, as_place, one_of, require, same_place
from confide.tables.bin_counts import DOUBLES, Counts, Job, binned_by_reason, scored_rows
from confide.tables.columns import ELSEWHERE
from confide.tables.databases import IbisTable
from confide.tables.expressions import with_trees
from confide.tables.source import Columns
from confide.tables.table import Progress

# The rows of a file of counts, each with the columns that count.

Row = Mapping[str, Any]

_MOST_BYTES = 2**28
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


def _of_parquet(content: bytes, columns: Sequence[str]) -> Iterator[Row]:
    import pyarrow as pa
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
            raise FormatError("counts", f"must have the columns {', '.join(columns)}, as the query gives them")
    return {name: known.index(name) for name in columns}


_READERS: Mapping[str, Callable[[bytes, Sequence[str]], Iterator[Row]]] = {
    ".csv": lambda content, columns: of_csv(text_of(content), columns),
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), lambda content, columns: of_json(text_of(content), columns)),
    ".parquet": _of_parquet,
}


def rows_of(place: FileLocation, columns: Sequence[str]) -> Iterator[Row]:
    """The rows of a file, each with the columns that count."""
    reader = _READERS.get(place.suffix.lower())
    if reader is None:
        raise InputError("counts", f"{str(place)!r} must be a .csv, .json, .jsonl or .parquet file")
    return reader(bytes_of(place), columns)


def whole_number(value: Any, argument: str, of_file: str) -> int:
    """A whole number that a file contains as a number or a text."""
    if isinstance(value, str) and _WHOLE_NUMBER.fullmatch(value):
        return int(value)
    if isinstance(value, Decimal) and value.is_finite() and value == int(value):
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise FormatError(argument, f"must be a whole number{of_file}")


# The columns of the answer; of weighted records also the sum of weights. Group and bin are empty with a reason.
COLUMNS = ("query", "part", "reason", "group", "bin", "n")


def read_counts(places: Sequence[FileLocation], jobs: Sequence[Job], digest: str) -> list[Counts]:
    """The counts of each job in the answers to the query with this digest; counts of several files are added.

    Raises
    ------
    InputError
        If a file cannot be read.
    FormatError
        If its rows are not counts of this query. The message names the row and contains no count.
    """
    totals = [Counts.none(job) for job in jobs]
    weight = ["weight"] if jobs[0].columns.weight is not None else []
    for place in places:
        add_rows(rows_of(place, [*COLUMNS, *weight]), digest, totals, f" in {str(place)!r}")
    if sum(float(counts.array.sum()) for counts in totals) > MOST_RECORDS * (jobs[0].groups + 1):
        raise InputError("counts", f"must add up to at most {MOST_RECORDS} records over all files")
    return totals


def add_rows(rows: Iterable[Row], digest: str, totals: Sequence[Counts], of_file: str = "") -> None:
    """Add the rows of one answer to the counts of each job, after checks."""
    jobs = [counts.job for counts in totals]
    counted = set()
    for number, row in enumerate(rows):
        where = f"counts[{number}]"
        if row["query"] != digest:
            must = f"must be the digest of this request's query{of_file}"
            remedy = "State the request for which the query was written, by the same options"
            raise FormatError(f"{where}.query", must, got="that of another query", remedy=remedy)
        numbers = _checked(row, jobs, where, of_file)
        key = tuple(numbers[name] for name in ("part", "reason", "group", "bin"))
        if key in counted:
            raise FormatError(where, f"must differ from all earlier rows in part, reason, group or bin{of_file}")
        counted.add(key)
        totals[numbers["part"]].add(numbers)


def _checked(row: Row, jobs: Sequence[Job], where: str, of_file: str) -> dict[str, int]:
    """The whole numbers of a row, each within its range."""

    def checked(name: str, least: int, most: int) -> int:
        number = whole_number(row[name], f"{where}.{name}", of_file)
        if not least <= number <= most:
            raise FormatError(f"{where}.{name}", f"must be from {least} to {most}{of_file}")
        return number

    part = checked("part", 0, len(jobs) - 1)
    job, columns = jobs[part], jobs[part].columns
    numbers = {"part": part, "reason": checked("reason", 0, len(columns.requirements)), "group": 0, "bin": 0}
    # Unusable records have neither a bin nor a group nor a weight
    if not numbers["reason"]:
        numbers["bin"] = checked("bin", 0, len(job.edges))
        numbers["group"] = 0 if job.group is None else checked("group", 0, job.groups - 1)
    numbers["n"] = checked("n", 0, MOST_RECORDS)
    if columns.weight is not None and not numbers["reason"]:
        numbers["weight"] = checked("weight", 0, columns.weight.weights.heaviest * numbers["n"])
    return numbers


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
    # Other files need the candidates and the noise; counts stand in rows, or in the document
    if candidates is None or noise is None:
        name = "candidates" if candidates is None else "noise"
        raise InputError(name, f"must be given: {str(place)!r} does not state it")
    if content is None or (isinstance(content, list) and any(isinstance(entry, dict) for entry in content)):
        rows = list(enumerate(rows_of(place, _NOISY_COLUMNS)))
        content = {
            name: [whole_number(row[name], f"counts[{k}].{name}", "") for k, row in rows] for name in _NOISY_COLUMNS
        }
    return PublishedCounts(content, candidates, noise, **stated)


DIALECTS: Mapping[str, str] = MappingProxyType(
    {
        "duckdb": "duckdb",
        "postgres": "postgres",
        "spark": "databricks",
        "databricks": "databricks",
        "snowflake": "snowflake",
        "bigquery": "bigquery",
        "datafusion": "datafusion",
    }
)
"""The engines whose queries are written, by name, and Ibis's name of their dialect."""

# The limit of one query in Snowflake and BigQuery.
MOST_BYTES = 1_000_000

# The dialects that quote names by backticks.
_BACKTICKS = ("spark", "databricks", "bigquery")


@dataclass(frozen=True)
class CountsFiles:
    """The answer to `counting_query` as a source of `calibrate_table` with the same request. **Private**.

    Parameters
    ----------
    paths
        One or more files, CSV, JSON (a list of objects, or one object per line) or Parquet, or such objects of a store.
        Several files contain the counts of different records.

    Examples
    --------
    >>> CountsFiles("counts.csv").paths
    (PosixPath('counts.csv'),)
    """

    paths: Any

    def __post_init__(self) -> None:
        single = isinstance(self.paths, str | Path | ObjectPath)
        places = tuple(map(as_place, [self.paths] if single else self.paths))
        require("counts", places, "must be one file or more", got="none")
        if any(same_place(place, other) for place, other in combinations(places, 2)):
            raise InputError("counts", "must differ: one of them is named twice, and its records would count twice")
        object.__setattr__(self, "paths", places)


class UnreadTable(IbisTable):
    """A table that is known by its columns alone, and the files of its counts, if there are any.

    Parameters
    ----------
    columns
        The columns of each record.
    name
        Its name in the engine, with points between its parts.
    dialect
        The engine's name.
    files
        The files of its counts.
    """

    local = True
    most_candidates = LONGEST

    def __init__(
        self, columns: Columns, name: str = "records", dialect: str = "duckdb", files: Sequence[FileLocation] = ()
    ) -> None:
        import pyarrow as pa

        self.dialect = one_of("dialect", dialect, tuple(DIALECTS))
        self.files = tuple(files)
        kinds = _types(columns)
        types = {"number": pa.float64(), "position": pa.int64(), "text": pa.string(), "any": pa.string()}
        schema = pa.schema([(column, types[kind]) for column, kind in kinds.items()])
        self._placeholders = {column: f"confide_column_{place}" for place, column in enumerate(kinds)}
        super().__init__("the table of the query", _cast(name, self.dialect, self._placeholders, kinds), schema)
        self._skips_incomplete = columns.skip_incomplete

    @property
    def engine(self) -> str:
        """The engine's name; nothing is connected."""
        return DIALECTS[self.dialect]

    def row_count(self) -> None:
        """Unknown."""

    def count(self, jobs: Sequence[Job], progress: Progress) -> list[Counts]:
        """Read the counts from the files."""
        _check_in_sql(jobs)
        counted = read_counts(self.files, jobs, self.digest(jobs))
        progress(counted[0].records)
        return counted

    def digest(self, jobs: Sequence[Job]) -> str:
        """Twelve digits that identify what is counted, and the candidates; every row of an answer contains them."""
        counted = repr([self._skips_incomplete, *(job.columns for job in jobs)]).encode()
        return hashlib.sha256(counted + jobs[0].edges.tobytes()).hexdigest()[:12]

    def query(self, jobs: Sequence[Job]) -> str:
        """The query that counts for several jobs over the same candidates: one statement.

        Raises
        ------
        InputError
            If SQL cannot compute the score, or the query would be longer than the engine permits.
        """
        import ibis

        _check_in_sql(jobs)
        digest, first = self.digest(jobs), jobs[0]
        # Count the rows of all jobs in one statement, each with the number of its job
        scored = [
            scored_rows(self.expression, job.columns).mutate(part=ibis.literal(number))
            for number, job in enumerate(jobs)
        ]
        rows = binned_by_reason(ibis.union(*scored) if len(scored) > 1 else scored[0], first, self.engine)
        weight = ["weight"] if first.columns.weight is not None else []
        rows = rows.mutate(query=ibis.literal(digest)).select(*COLUMNS, *weight)
        # Write it, with trees of comparisons and the real names of columns
        sql = str(ibis.to_sql(rows, self.engine, pretty=False))
        sql = with_trees(sql, first.edges, DOUBLES.get(self.engine, "DOUBLE"))
        for column, placeholder in self._placeholders.items():  # Ibis would change some names for BigQuery
            quote = "`" if self.dialect in _BACKTICKS else '"'
            name = _written(column, self.dialect, "columns").replace(quote, 2 * quote)
            sql = sql.replace(f"{quote}{placeholder}{quote}", f"{quote}{name}{quote}")
        if self.dialect in ("snowflake", "bigquery") and len(sql.encode()) > MOST_BYTES:
            must = f"would have {len(sql.encode()):,} bytes, and {self.dialect} accepts at most {MOST_BYTES:,}"
            remedy = "Choose fewer candidates, for example 1000 of them, or fewer groups or classes"
            raise InputError("query", must, remedy=remedy)
        return (
            f"-- Counts of nonconformity scores for `confide calibrate --counts`: query {digest}.\n"
            "-- The answer is PRIVATE, as the records are: keep it where they are kept.\n"
            f"{sql}\n"
        )


def _check_in_sql(jobs: Sequence[Job]) -> None:
    for job in jobs:
        if not job.columns.reader.in_sql:
            raise InputError("score", f"{job.columns.reader.score!r} is not computed in SQL", remedy=ELSEWHERE)


def _types(columns: Columns) -> dict[str, str]:
    """The columns of a request, and what each is taken for: a number, a text, a position, or what it is."""
    types = columns.what._types_in_sql
    types |= {} if columns.weights is None else {columns.weights: "number"}
    by = () if columns.by is None else (columns.by,) if isinstance(columns.by, str) else columns.by
    # Persons are ordered by the values as they are, so their columns are not read as texts as well
    texts = [*(name for name, kind in types.items() if kind != "number"), *by]
    people = columns.people
    if people is not None and (shared := sorted({*people.order} & {*texts})):
        must = "must name other columns than labels and groups, which are read as texts"
        raise InputError("order", must, got=shared[0])
    persons = () if people is None else (people.person, *people.order)
    return dict.fromkeys(persons, "any") | dict.fromkeys(by, "text") | types


def _cast(table: str, dialect: str, placeholders: Mapping[str, str], kinds: Mapping[str, str]) -> Any:
    """The columns of an unbound table, with numbers in double precision, and labels and groups as texts."""
    import ibis
    import ibis.expr.datatypes as dt

    *spaces, name = (_written(word, dialect, "table") for word in table.split("."))
    require("table", len(spaces) <= 2, "must have at most three parts between points", got=repr(table))
    space = dict(zip(("database", "catalog"), reversed(spaces), strict=False))
    rows = ibis.table(dict.fromkeys(placeholders.values(), dt.unknown), name=name, **space)
    read = {column: rows[placeholder] for column, placeholder in placeholders.items()}
    casts = {"number": "float64", "text": "string", "position": "string"}
    return rows.select(
        **{column: read[column].cast(casts[kind]) if kind in casts else read[column] for column, kind in kinds.items()}
    )


def _written(name: str, dialect: str, argument: str) -> str:
    """A name as the engine stores it: in Snowflake plain names are upper-case, unless typed in double quotes."""
    if dialect == "snowflake":
        typed = len(name) > 2 and name[0] == name[-1] == '"'
        plain = name.isascii() and name.isidentifier()
        name = name[1:-1] if typed else name.upper() if plain else name
    require(argument, name and name.isprintable(), "names in SQL must be printable and not empty", got=repr(name))
    if dialect in _BACKTICKS and not {"`", "\\"}.isdisjoint(name):
        raise InputError(argument, f"must not hold a backtick or a backslash in {dialect}", got=repr(name))
    return name
