"""The only entry point for tables: from a name or data to a `Table`."""

import re
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from confide.errors import InputError, InputTypeError
from confide.support import FileLocation, names_object, one_of, require, require_extra
from confide.tables.data import has_columns, open_memory
from confide.tables.databases import files_behind, open_database
from confide.tables.deferred import pa
from confide.tables.duckdb_table import DuckTable
from confide.tables.failures import engine_errors_in_fixed_words, library_errors_in_fixed_words
from confide.tables.file_names import places_named
from confide.tables.files import open_files
from confide.tables.ibis_table import IbisTable
from confide.tables.schemas import type_disagreements
from confide.tables.spark import SparkTable
from confide.tables.streams import open_batches, open_standard_input
from confide.tables.table import Table

_URL = re.compile(r"([a-z][a-z0-9+.-]*)://", re.IGNORECASE)
_STANDARD_INPUT = ("-", "/dev/stdin")


@contextmanager
def open_table(source: Any, table: str | None = None, *, decimal: str = ".") -> Iterator[Table]:
    """Open a table, and close it at the end of the block.

    Parameters
    ----------
    source
        A text or a path: a Parquet, CSV (also compressed, `.csv.gz`), Arrow or Feather file; a folder of such files,
        also a partitioned one, or a pattern such as `part-*.parquet`, of one format; the same in an object store, as
        `s3://bucket/folder`, `gs://` or `az://`; `-` for standard input, which is CSV or an Arrow stream. With `table`
        also a database, `postgresql://user@host/database`, `duckdb://file`, `sqlite://file` or another engine of Ibis
        by its name. The path of an existing file is taken literally, even with special characters.

        Or data: an Arrow table, a data frame of pandas, polars or Spark, an Ibis table, or any iterable of record
        batches, Arrow tables or mappings of arrays, which is read once.
    table
        The table of a database, possibly as `schema.table`.
    decimal
        The decimal separator of CSV, `.` or `,`. With a comma no cell may have a point.

    Raises
    ------
    InputError
        If there is no such source, or its driver is not installed.
    MissingExtraError
        If `confide[standard]` is not installed.
    FormatError
        If a file is empty, truncated or of another format than its extension.
    EngineError
        If an engine fails or cannot be reached. The message contains neither password nor data.

    Examples
    --------
    >>> import pyarrow
    >>> with open_table(pyarrow.table({"s": [0.1, 0.5]})) as table:
    ...     table.columns, table.row_count()
    (['s'], 2)
    """
    one_of("decimal", decimal, (".", ","))
    require_extra("a table", "standard", "duckdb", "ibis", "pyarrow")
    with _opening(source, table, decimal) as opened:
        yield opened


def _opening(source: Any, table: str | None, decimal: str) -> AbstractContextManager[Table]:
    """The block in which a source is open, by the kind of the source."""
    if isinstance(source, str) and _names_database(source):
        return open_database(source, table)
    is_name = isinstance(source, str | Path)
    others = "files and objects of a store" if is_name else "data"
    require("table", table is None, f"must be left out for {others}", remedy="It belongs to a database")
    if not is_name:
        return _opening_data(source)
    return open_standard_input(decimal) if str(source) in _STANDARD_INPUT else open_files(str(source), decimal)


def _names_database(source: str) -> bool:
    return bool(_URL.match(source)) and not names_object(source) and not Path(source).exists()


def _opening_data(data: Any) -> AbstractContextManager[Table]:
    """The block in which data are open; a library is recognised by a method of its tables, and not imported."""
    if hasattr(data, "get_backend"):
        return nullcontext(_ibis_table(data))
    if hasattr(data, "mapInArrow"):
        return nullcontext(SparkTable(data))
    if hasattr(data, "scanner"):
        return _open_dataset(data)
    if hasattr(data, "read_next_batch"):  # a stream that is read once
        return open_batches(iter(data), schema=data.schema)
    if has_columns(data) or type(data).__module__.partition(".")[0] == "pyarrow":
        return open_memory(data)
    if isinstance(data, Iterable):
        return open_batches(data)
    raise InputTypeError("source", "must be a name, a table or batches", got=type(data).__name__)


@contextmanager
def _open_dataset(data: Any) -> Iterator[Table]:
    """Open a pyarrow data set without the columns in which a part has another type, which pyarrow would cast."""
    parts = [(repr(getattr(piece, "path", "a part")), piece.physical_schema) for piece in data.get_fragments()]
    disagreements = type_disagreements(parts, data.schema)
    agreed = pa.schema([field for field in data.schema if field.name not in disagreements])
    with open_batches(data.to_batches(columns=agreed.names), "the data set", schema=agreed) as opened:
        opened.disagreements = disagreements
        yield opened


def _ibis_table(expression: Any) -> Table:
    """An Ibis table; a table of a DuckDB in this process is read like a file."""
    with engine_errors_in_fixed_words():
        backend = expression.get_backend()
        if backend.name == "pyspark":
            return SparkTable(backend.raw_sql(backend.compile(expression)))
        if backend.name != "duckdb":
            return IbisTable("the table", expression)
        backend._run_pre_execute_hooks(expression)
        source = f"({backend.compile(expression)})"
        schema = expression.schema().to_pyarrow()
        return DuckTable("the table", schema, backend.con, source, engine_errors_in_fixed_words)


def files_of(source: str) -> tuple[FileLocation, ...]:
    """The files, or objects of a store, of a name as far as they are known; no output may replace one."""
    if source in _STANDARD_INPUT:
        return (Path("/dev/stdin"),)
    if _names_database(source):
        return files_behind(source)
    try:
        return tuple(places_named(source))
    except InputError:  # there are none, and opening them reports this
        return ()


@contextmanager
def as_open_table(source: Any) -> Iterator[Table]:
    """An open table as it is, or the table that `open_table` opens, while the library computes with it."""
    with ExitStack() as opening:
        opening.enter_context(library_errors_in_fixed_words("the table"))
        yield source if isinstance(source, Table) else opening.enter_context(open_table(source))
