"""Files, folders and objects of a store as one table: Parquet, CSV and Arrow; one file, a pattern, or a folder.

DuckDB reads Parquet and CSV, from this machine and from a store in the same way, and keeps nothing on a local disk.
Arrow files are read batch by batch; only a compressed batch needs the memory of the whole batch of its writer.
"""

import glob
import mmap
import threading
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import datetime
from functools import cache, partial
from typing import Any

from confide.errors import FormatError, InputError
from confide.support import FileLocation, ObjectPath, ObjectReader, require
from confide.tables.csv_dialect import CSV_ROWS, dialect_of
from confide.tables.deferred import pa
from confide.tables.duckdb_table import ROWS, DuckTable, embedded
from confide.tables.expressions import select, text
from confide.tables.failures import NOT_UTF8, file_errors_in_fixed_words
from confide.tables.file_formats import file_format, format_of
from confide.tables.file_names import folder_types, folder_values, places_named
from confide.tables.row_errors import Rows
from confide.tables.schemas import readable_schema, split_batches, type_disagreements, widest_schema

# The scheme of addresses that DuckDB reads through `_duckdb_filesystem`.
_OBJECTS = "confide"


def _in_duckdb(place: FileLocation) -> str:
    """The name for DuckDB, which reads names of files as patterns, and those of objects as our `glob` does."""
    return f"{_OBJECTS}://{place.bucket}/{place.key}" if isinstance(place, ObjectPath) else glob.escape(str(place))


class _SharedReader(ObjectReader):
    """A Parquet file that threads of DuckDB read at the same time, each in two calls: it seeks, and then it reads.

    Every thread has its own position. DuckDB does not check the number of bytes, so all of them must be returned.
    """

    def __init__(self, place: ObjectPath, size: int | None) -> None:
        super().__init__(place, size)
        self._sought = threading.local()

    def seek(self, offset: int, whence: int = 0) -> int:
        self._sought.position = offset
        return offset

    def read(self, length: int = -1) -> bytes:
        if self._sought.position + length > self.size:
            raise OSError("the object ends before it should")
        return bytes(self.fetch(self._sought.position, length))


def _duckdb_filesystem(bucket: ObjectPath) -> Any:
    """The store of an object, to register with a DuckDB connection, which fetches only what it needs."""
    from fsspec import AbstractFileSystem

    def named(path: str) -> ObjectPath:
        return bucket.at(path.removeprefix(f"{_OBJECTS}://").partition("/")[2])

    @cache  # DuckDB opens every file several times
    def size_of(place: ObjectPath) -> int | None:
        return place.size()

    class Objects(AbstractFileSystem):  # type: ignore[misc]
        protocol = _OBJECTS

        def _open(self, path: str, *_: Any, **__: Any) -> Any:
            place = named(path)
            form = format_of(path)
            shared = form is not None and form.kind == "parquet"
            return _SharedReader(place, size_of(place)) if shared else place.open()

        def info(self, path: str, **_: Any) -> dict[str, Any]:
            return {"name": path, "size": size_of(named(path)), "type": "file"}

        def modified(self, path: str) -> datetime:
            return datetime.fromtimestamp(0)

        def glob(self, path: str, **_: Any) -> list[str]:
            return [path]

    return Objects(skip_instance_cache=True)


# Files that are opened at a time.
_AT_ONCE = 16


@contextmanager
def open_files(source: str, decimal: str = ".") -> Iterator[DuckTable]:
    """Open the file, the folder or the files of a pattern, on this machine or in a store."""
    # Find the files and look at the first bytes of each
    places = places_named(source)
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        list(threads.map(_check_readable, places))
    # Open them by the opener of their format
    form = file_format(places[0], to_read=True)
    name = f"file {source!r}" if len(places) == 1 else f"files {source!r}"
    in_words = partial(file_errors_in_fixed_words, name, form)
    with ExitStack() as opening:
        with in_words():
            connection = opening.enter_context(embedded())
            if isinstance(places[0], ObjectPath):
                connection.register_filesystem(_duckdb_filesystem(places[0]))
            opened = _OPENERS[form.kind](connection, name, places)
        opened.in_words = in_words
        opened.files = tuple(places)
        opened.decimal = decimal
        yield opened


def _csv_files(connection: Any, name: str, places: Sequence[FileLocation]) -> DuckTable:
    # All files must have the columns and the separator of the first
    dialects = [dialect_of(place) for place in places]
    for place, dialect in zip(places, dialects, strict=True):
        unshared = sorted({*dialect.names} ^ {*dialects[0].names})
        must = f"{str(place)!r} must have the columns and the separator of {str(places[0])!r}"
        got = f"a column {unshared[0]!r} that only one of them has" if unshared else "another order or separator"
        require("path", dialect == dialects[0], must, got=got)
    # Every cell is read as text, also the values of folders
    folders = folder_types(places, dialects[0].names)
    source = _reading(
        "read_csv",
        places,
        f"{dialects[0].options}, compression={text('gzip' if file_format(places[0]).compressed else 'none')}",
        dict.fromkeys(folders, "VARCHAR"),
    )
    schema = pa.schema([(column, pa.string()) for column in [*dialects[0].names, *folders]])
    rows = CSV_ROWS if len(places) == 1 else Rows(0, "rows count from 0, over all files")
    return DuckTable(name, schema, connection, source, texts=True, rows=rows)


def _parquet_files(connection: Any, name: str, places: Sequence[FileLocation]) -> DuckTable:
    # The columns of each file; one list stands for all if they agree
    listed = _listed(places)
    nodes = connection.sql(select("file_name, name, num_children, duckdb_type", f"parquet_schema({listed})"))
    columns = _top_level(nodes.fetchall())
    columns = columns if any(of_file != columns[0] for of_file in columns) else columns[:1]
    agreed, disagreements = _agreed(places, [_schema_of(connection, of_file) for of_file in columns])
    # The number of rows comes from the files' metadata
    folders = folder_types(places, agreed.names)
    count = select("sum(num_rows)", f"parquet_file_metadata({listed})")
    return DuckTable(
        name,
        pa.schema([*agreed, *_schema_of(connection, list(folders.items()))]),
        connection,
        _reading("read_parquet", places, f"union_by_name = {str(len(columns) > 1).lower()}", folders),
        stated_rows=lambda: int(connection.sql(count).fetchall()[0][0]),
        disagreements=disagreements,
    )


def _listed(places: Sequence[FileLocation]) -> str:
    return f"[{', '.join(text(_in_duckdb(place)) for place in places)}]"


def _reading(reader: str, places: Sequence[FileLocation], options: str, folders: Mapping[str, str]) -> str:
    """DuckDB's table of these files, with the columns of their folders."""
    kinds = ", ".join(f"{text(column)}: {kind}" for column, kind in folders.items())
    hive = f"hive_partitioning = true, hive_types_autocast = false, hive_types = {{{kinds}}}"
    return f"{reader}({_listed(places)}, {options}, {hive if folders else 'hive_partitioning = false'})"


def _agreed(places: Sequence[FileLocation], schemas: Sequence[Any]) -> tuple[Any, dict[str, str]]:
    """The columns that agree in type in all files, as a schema, and the types of the others."""
    widest = widest_schema(schemas)
    disagreements = type_disagreements(list(zip(map(repr, map(str, places)), schemas, strict=False)), widest)
    return pa.schema([field for field in widest if field.name not in disagreements]), disagreements


def _arrow_files(connection: Any, name: str, places: Sequence[FileLocation]) -> DuckTable:
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        schemas = [readable_schema(opened.schema) for opened, _ in threads.map(_arrow_reader, places)]
    agreed, disagreements = _agreed(places, schemas)
    folders = _schema_of(connection, list(folder_types(places, agreed.names).items()))

    def renew(wanted: Collection[str] | None) -> None:
        fields = [field for field in agreed if wanted is None or field.name in wanted] or [agreed.field(0)]
        pieces = (piece for place in places for piece in _arrow_stream(place, pa.schema(fields), folders))
        connection.register(ROWS, pa.RecordBatchReader.from_batches(pa.schema([*fields, *folders]), pieces))

    return DuckTable(
        name,
        pa.schema([*agreed, *folders]),
        connection,
        ROWS,
        renew=renew,
        stated_rows=lambda: sum(_arrow_rows(place, agreed.names[:1]) for place in places),
        disagreements=disagreements,
    )


_OPENERS = {"csv": _csv_files, "parquet": _parquet_files, "arrow": _arrow_files}


def _arrow_rows(place: FileLocation, names: Sequence[str]) -> int:
    """The number of rows; of the batches only these columns are fetched."""
    reader, _ = _arrow_reader(place, names)
    return sum(int(reader.get_batch(i).num_rows) for i in range(reader.num_record_batches))


def _arrow_stream(place: FileLocation, schema: Any, folders: Any) -> Iterator[Any]:
    """The record batches of an Arrow file, in pieces: the columns of this schema, and those named by its folders.

    Other columns are not fetched.
    """
    reader, mapped = _arrow_reader(place, schema.names)
    values = folder_values(place)
    in_path = [(field, pa.scalar(values[field.name], pa.string()).cast(field.type)) for field in folders]
    for i in range(reader.num_record_batches):
        for piece in split_batches([reader.get_batch(i)], schema):
            for field, value in in_path:
                piece = piece.append_column(field, pa.repeat(value, piece.num_rows))
            yield piece
            # Release the memory pages, so that a file of one huge batch is streamed as well
            if mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
                mapped.madvise(mmap.MADV_DONTNEED)


def _arrow_reader(place: FileLocation, names: Sequence[str] | None = None) -> tuple[Any, mmap.mmap | None]:
    """The reader of an Arrow file, with all columns or the named ones; local files are memory-mapped."""
    mapped = None
    if isinstance(place, ObjectPath):
        file = pa.PythonFile(ObjectReader(place), mode="r")
    else:
        with place.open("rb") as stream:
            mapped = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        file = pa.py_buffer(mapped)
    reader = pa.ipc.open_file(file)
    if names is not None and len(names) < len(reader.schema):
        options = pa.ipc.IpcReadOptions(included_fields=sorted(map(reader.schema.get_field_index, names)))
        reader = pa.ipc.open_file(file, options=options)
    return reader, mapped


def _schema_of(connection: Any, types: Sequence[tuple[str, str]]) -> Any:
    """Columns with DuckDB's types as an Arrow schema."""
    nothing = ", ".join(["NULL", *(f"CAST(NULL AS {kind})" for _, kind in types)])
    kinds = connection.sql(f"SELECT {nothing}").to_arrow_table().schema.types[1:]
    return pa.schema([(name, kind) for (name, _), kind in zip(types, kinds, strict=True)])


def _top_level(nodes: Iterable[tuple[str, str, int | None, str]]) -> list[list[tuple[str, str]]]:
    """The columns of every file with their DuckDB types; a node precedes its children, and the root is first."""
    files: dict[str, list[tuple[str, str]]] = {}
    inside = 0
    for file, name, children, kind in nodes:
        if file not in files:
            files[file] = []
            inside = 0
            continue
        # Only a node that lies inside no other one is a column
        if inside == 0:
            files[file].append((name, kind))
        inside += (children or 0) - (1 if inside else 0)
    return list(files.values())


# The first bytes that are looked at.
_HEAD = 256


def _check_readable(place: FileLocation) -> None:
    """Reject a file that is missing, unreadable, or has no bytes; and CSV that is packed or encoded in another way."""
    try:
        with ObjectReader(place) if isinstance(place, ObjectPath) else place.open("rb") as stream:
            head = stream.read(_HEAD)
    except FileNotFoundError:
        raise InputError("path", f"{str(place)!r} does not exist") from None
    except OSError as error:
        raise InputError("path", f"{str(place)!r} cannot be read: {error.strerror}") from None
    if not head:
        raise FormatError("path", f"{str(place)!r} is empty: it has no bytes")
    # CSV is packed as its name states, and has no zero bytes, which UTF-16 has
    form = format_of(place)
    if form is None or form.kind != "csv":
        return
    packed = head.startswith(b"\x1f\x8b")
    if packed != form.compressed:
        got, ending = ("packed", "in .csv.gz") if packed else ("unpacked", "without .gz")
        raise FormatError("path", f"{str(place)!r} is {got} by gzip", remedy=f"Let its name end {ending}")
    if b"\0" in (zlib.decompressobj(wbits=31).decompress(head) if packed else head):
        raise FormatError("path", f"{str(place)!r} cannot be read: {NOT_UTF8}")
