"""Streams, which are read once: batches of any kind, and standard input."""

import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from io import BufferedReader
from itertools import chain
from typing import Any, cast

from confide.errors import FormatError, InputError, replaced_errors
from confide.support import require
from confide.tables.arrow import ColumnRef, first_length, or_empty_batch
from confide.tables.csv_dialect import CSV_ROWS, csv_dialect
from confide.tables.data import as_record_batches, not_registered
from confide.tables.deferred import pa
from confide.tables.duckdb_table import ROWS, DuckTable, embedded
from confide.tables.expressions import incomplete_sql, select
from confide.tables.failures import file_errors_in_fixed_words, library_errors_in_fixed_words
from confide.tables.file_formats import Format
from confide.tables.schemas import readable_schema, split_batches


@contextmanager
def open_batches(
    batches: Iterable[Any],
    name: str = "the stream of batches",
    in_words: Callable[[], AbstractContextManager[None]] | None = None,
    schema: Any = None,
) -> Iterator["StreamedTable"]:
    """Open record batches, Arrow tables or mappings of arrays as a table that can be read once.

    Their schema, if it is known in advance, is used for a table without rows.
    """
    # The first batch has the columns and their types
    in_words = in_words or partial(library_errors_in_fixed_words, name)
    arriving = (piece for batch in batches for piece in as_record_batches(batch, name))
    with in_words():
        first = next(arriving, None)
    if first is None:
        require("source", schema is not None, f"{name} must have at least one batch", got="none")
        first = pa.record_batch([pa.array([], field.type) for field in schema], schema=schema)
    # Leave out the columns of types that DuckDB does not have
    with embedded() as connection:
        with in_words():
            schema = readable_schema(first.schema)
            not_of_duckdb = not_registered(connection, pa.Table.from_batches([first]).cast(schema))
            schema = pa.schema([field for field in schema if field.name not in not_of_duckdb])
        pieces = split_batches(chain([first], arriving), schema)
        yield StreamedTable(
            name, schema, connection, ROWS, in_words, first=first, pieces=pieces, unreadable=not_of_duckdb
        )


@dataclass(eq=False)
class StreamedTable(DuckTable):
    """Rows that can be read once; `first` are the first rows, and `pieces` all rows, None after they were read."""

    # The sums of rows are checked while they are read, so whole lists are read.
    takes_entries = False

    threads = 1

    first: Any = field(kw_only=True)
    pieces: Iterable[Any] | None = field(kw_only=True)
    _failures: list[Exception] = field(default_factory=list, init=False)
    _incomplete: str = field(default="", init=False)
    _left_out: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._stream_in_words = self.in_words
        self.in_words = self._stream_errors
        self.renew = self._register

    @contextmanager
    def _stream_errors(self) -> Iterator[None]:
        """Raise an error of the stream itself in place of the error of the engine that reads it.

        An error of a library is then put into words; one of the caller's own code, such as a generator, is unchanged.
        """
        with self._stream_in_words(), replaced_errors(lambda error: next(iter(self._failures), None)):
            yield

    def _passing(self, pieces: Iterable[Any]) -> Iterator[Any]:
        """The batches that count; an exception is recorded for `_stream_errors`."""
        try:
            yield from self._complete(pieces) if self._incomplete else pieces
        except Exception as failure:
            self._failures.append(failure)
            raise

    def _complete(self, pieces: Iterable[Any]) -> Iterator[Any]:
        """The batches without records that lack a value; a second DuckDB, not the reading one, finds these records."""
        with embedded() as connection:
            for piece in pieces:
                connection.register(ROWS, pa.Table.from_batches([piece]))
                marks = connection.sql(select(f"NOT {self._incomplete} AS complete", ROWS)).to_arrow_table()
                complete = piece.filter(marks["complete"].combine_chunks())
                self._left_out += piece.num_rows - complete.num_rows
                yield complete

    def _register(self, _: object) -> None:
        if self.pieces is None:
            must = f"{self.name} can be read once only"
            raise InputError("source", must, remedy="Give it again, or write it into a file first")
        pieces = self.pieces
        self.pieces = None
        self.connection.register(ROWS, pa.RecordBatchReader.from_batches(self.schema, self._passing(pieces)))

    def counted_rows(self) -> None:
        """Return None: the row count of a stream is unknown before it is read."""

    def drop_missing(self, reads: Sequence[ColumnRef]) -> "StreamedTable":
        """The rows that lack no value, filtered while they are read."""
        self._incomplete = incomplete_sql(reads, self.schema, texts=self.texts)
        self.ordered = False
        return self

    def left_out(self) -> int:
        """The number of rows read so far that lacked a value."""
        return self._left_out

    def lacks_values(self, reads: Sequence[ColumnRef]) -> bool:
        """Whether rows that lack a value were read; the rows cannot be read again."""
        return not self._incomplete

    def _first_cells(self, expressions: str) -> Any:
        self.connection.register("confide_first", pa.Table.from_batches([self.first]))
        return self.connection.sql(select(expressions, "confide_first")).fetchall()[0]

    def first_length(self, column: str) -> int | None:
        """The length of the first list among the first rows."""
        return first_length(self.first.column(column))


_ARROW_STREAM = b"\xff\xff\xff\xff"  # its first bytes

# First bytes of what can be read from a file, but not as it arrives.
_FILES_ONLY = {b"\x1f\x8b": "gzip", b"(\xb5/\xfd": "Zstandard", b"PAR1": "Parquet", b"ARROW1": "an Arrow file"}

# So many bytes of standard input are looked at, to tell its format.
_PEEKED = 2**16


@contextmanager
def open_standard_input(decimal: str = ".") -> Iterator[StreamedTable]:
    """Standard input: an Arrow stream, or CSV with a line of column names; it is read once."""
    # Refuse what cannot be read as it arrives
    stream = cast(BufferedReader, sys.stdin.buffer)
    name = "standard input"
    head: bytes = stream.peek(_PEEKED)
    if not head:
        raise FormatError("path", f"{name} is empty: it has no bytes")
    for first_bytes, kind in _FILES_ONLY.items():
        if head.startswith(first_bytes):
            remedy = "Give the name of the file instead, or unpack it on the way, such as by gunzip -c"
            raise FormatError("path", f"{name} must be CSV or an Arrow stream", got=kind, remedy=remedy)
    # Open an Arrow stream, or CSV
    if head.startswith(_ARROW_STREAM):
        in_words = partial(file_errors_in_fixed_words, name, Format("arrow"))
        with in_words():
            batches = pa.ipc.open_stream(stream)
        opening = open_batches(batches, name, in_words, batches.schema)
    else:
        opening = _open_csv(stream, name, decimal)
    with opening as opened:
        yield opened


@contextmanager
def _open_csv(stream: BufferedReader, name: str, decimal: str) -> Iterator[StreamedTable]:
    """Streamed CSV, with the types of its first batch."""
    in_words = partial(file_errors_in_fixed_words, name, Format("csv"))
    with ExitStack() as opening:
        with in_words():
            batches = opening.enter_context(csv_batches(stream, name))
            first = next(batches)
        connection = opening.enter_context(embedded())
        batches = chain([first], batches)
        form: dict[str, Any] = {"texts": True, "rows": CSV_ROWS, "decimal": decimal}
        yield StreamedTable(name, first.schema, connection, ROWS, in_words, first=first, pieces=batches, **form)


# So many rows of CSV are one batch.
_BATCH_ROWS = 2**14


@contextmanager
def csv_batches(stream: BufferedReader, name: str) -> Iterator[Iterator[Any]]:
    """Record batches of streamed CSV, with every cell as text. DuckDB reads a pipe by the rules for files."""
    # Take the dialect from the first two lines
    header = stream.readline()
    if not header.endswith(b"\n"):
        raise FormatError("path", f"{name} must start with a line of column names", got="no line that ends")
    record = stream.readline()
    dialect = csv_dialect(name, [header.removeprefix(b"\xef\xbb\xbf").decode().rstrip("\r\n"), record.decode()])
    buffered = header + record + stream.read(len(stream.peek()))
    # Feed a pipe from a thread of its own, and read it by DuckDB
    reading, writing = os.pipe()
    failures: list[OSError] = []
    threading.Thread(target=_feed, args=(writing, buffered, stream, failures), daemon=True).start()

    def batches(reader: Any) -> Iterator[Any]:
        yield from or_empty_batch(reader, reader.schema)
        for failure in failures:
            raise failure

    try:
        with embedded() as connection:
            connection.execute("SET threads = 1")
            pipe = f"read_csv('/dev/fd/{reading}', {dialect.options}, compression='none')"
            yield batches(connection.sql(select("*", pipe)).to_arrow_reader(_BATCH_ROWS))
    finally:
        os.close(reading)


def _feed(writing: int, buffered: bytes, stream: BufferedReader, failures: list[OSError]) -> None:
    """Write what was buffered, and copy the rest without the buffer, so that Python can end while this waits."""
    try:
        with open(writing, "wb") as pipe:
            pipe.write(buffered)
            shutil.copyfileobj(stream.raw, pipe)
    except OSError as failure:  # also if reading ended early
        failures.append(failure)
