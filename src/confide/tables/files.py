"""Files, folders and objects of a store as one table: Parquet, CSV and Arrow; one file, a pattern, or a folder.

DuckDB reads Parquet and CSV, from this machine and from a store in the same way. Of Parquet it fetches only the
required columns, and nothing is kept on a local disk. Arrow files are read batch by batch. Memory pages are released
after reading, so that a file of one huge batch is streamed as well. (A *compressed* batch has to be decompressed
whole, and needs the memory of the writer's batch.)
"""

import csv
import fnmatch
import glob
import gzip
import mmap
import re
import threading
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from io import TextIOWrapper
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

from confide.errors import ConfideError, FormatError, InputError, replaced_errors
from confide.support import FileLocation, ObjectPath, as_integer, as_place, needs_extra, store_words
from confide.tables.arrow import readable_schema, split_batches, type_disagreements, widest_schema
from confide.tables.duckdb_table import ROWS, DuckTable, embedded
from confide.tables.expressions import select, text
from confide.tables.failures import Rows, file_errors_in_fixed_words
from confide.tables.file_formats import ENDINGS, Format, ending_of, file_format, format_of

_MAGIC = re.compile(r"[*?\[]")
_PIECE = re.compile(r"\[!?[^/][^\]/]*\]|.", re.DOTALL)


def places_named(source: str) -> list[FileLocation]:
    """The files of a name: the file or object of that name, otherwise those below it, otherwise those of the pattern.

    The path of an existing file on this machine is taken literally, even with special characters.

    Raises
    ------
    InputError
        If there are no such files, they have several formats, or a store cannot be reached.
    """
    place = as_place(source)
    if isinstance(place, Path):
        if place.is_dir():
            return _of_one_format(source, "folder", _below(place, sorted(filter(Path.is_file, place.rglob("*")))))
        if place.exists() or not glob.has_magic(source):
            return [place]
        # `Path.glob` takes no absolute pattern.
        return _of_one_format(source, "pattern", sorted(map(Path, glob.glob(source, recursive=True))))  # noqa: PTH207
    base, pattern = _base_and_pattern(source)
    if pattern is None and place.is_file():
        return [place]
    folder = ObjectPath.of(base)
    folder.check_bucket()
    if pattern is None:
        if not folder.is_dir():
            raise InputError("path", f"{source!r} does not exist")
        return _of_one_format(source, "folder", _below(folder, folder.below()))
    match, start = _as_regex(pattern), len(folder.address.path) + 1
    inside = folder.below(recursive="**" in pattern or "/" in pattern) if folder.is_dir() else iter(())
    return _of_one_format(source, "pattern", (one for one in inside if match.fullmatch(one.address.path[start:])))


def _below(folder: FileLocation, found: Iterable[FileLocation]) -> Iterator[FileLocation]:
    """Skip names, and folders on the way, that mark temporary files of other programs."""
    start = len(folder.parts)
    return (one for one in found if not any(part.startswith((".", "_")) for part in one.parts[start:]))


def _of_one_format(source: str, what: str, found: Iterable[FileLocation]) -> list[FileLocation]:
    """The places with known extensions, in order; raises `InputError` for none, or for several formats."""
    places = [one for one in found if format_of(str(one))]
    if not places:
        raise InputError(
            "path",
            f"{what} {source!r} must name files that end in one of {', '.join(ENDINGS)}",
            remedy="It names none of them",
        )
    if len({format_of(str(one)) for one in places}) > 1:
        endings = sorted({str(ending_of(str(one))) for one in places})
        raise InputError("files", f"files of {source!r} must be of one format", got=str(", ".join(endings)))
    return places


def folders_by_value(places: Sequence[FileLocation], least: int = 2) -> dict[str, str]:
    """The columns of folders such as `ward=north`, each with the DuckDB type of all values, for `least` files."""
    values: dict[str, list[str]] = {}
    for place in places if len(places) >= least else ():
        for part in place.parts[:-1]:
            name, equals, value = part.partition("=")
            if equals:
                values.setdefault(name, []).append(value)
    full = {name: held for name, held in values.items() if len(held) == len(places)}
    return {
        name: "BIGINT" if all(as_integer(value) is not None for value in held) else "VARCHAR"
        for name, held in full.items()
    }


_COLUMNAR = tuple(ending for ending, form in ENDINGS.items() if form.kind == "parquet")
_OBJECTS = "confide"
"""The scheme of addresses that DuckDB reads through `duckdb_filesystem`."""


def path_in_duckdb(place: FileLocation) -> str:
    """The name of a file, or an object of a store, in DuckDB's messages."""
    return f"{_OBJECTS}://{place.address.path}" if isinstance(place, ObjectPath) else str(place)


def pattern_in_duckdb(place: FileLocation) -> str:
    """The name for DuckDB, which reads file names as patterns; our `glob` takes names of objects literally."""
    return path_in_duckdb(place) if isinstance(place, ObjectPath) else glob.escape(str(place))


class _SharedFile:
    """A file that several threads of DuckDB read at once, each in two calls: it seeks, and then it reads.

    Every thread has its own position. pyarrow's `read_at` uses no position that threads share. DuckDB does not check
    the number of bytes, so all requested bytes must be returned.
    """

    def __init__(self, held: Any) -> None:
        self._held, self._sought = held, threading.local()
        self.close, self.size = held.close, held.size

    def seek(self, place: int) -> None:
        self._sought.place = place

    def tell(self) -> int:
        return int(getattr(self._sought, "place", 0))

    def read(self, length: int) -> bytes:
        found: bytes = self._held.read_at(length, self.tell())
        if len(found) < length:
            raise OSError("the object ends before it should")
        self._sought.place = self.tell() + len(found)
        return found


def duckdb_filesystem(place: ObjectPath) -> Any:
    """The store of an object, to register with a DuckDB connection, which fetches only what it needs."""
    with needs_extra(f"{place.scheme}://", "standard", "fsspec"):
        from fsspec import AbstractFileSystem

    class Objects(AbstractFileSystem):  # type: ignore[misc]
        protocol, cacheable = _OBJECTS, False

        def _open(self, path: str, *_: Any, **__: Any) -> Any:
            held = place.filesystem.open_input_file(self._strip_protocol(path))
            return _SharedFile(held) if path.lower().endswith(_COLUMNAR) else held

        def info(self, path: str, **_: Any) -> dict[str, Any]:
            found = place.filesystem.get_file_info(self._strip_protocol(path))
            return {"name": path, "size": found.size, "type": "file", "mtime": found.mtime}

        def modified(self, path: str) -> Any:
            return self.info(path)["mtime"]

        def glob(self, path: str, **_: Any) -> list[str]:
            return [path]

    return Objects()


def _base_and_pattern(source: str) -> tuple[str, str | None]:
    """The address before the first part with a special character, and the pattern from there on.

    Examples
    --------
    >>> _base_and_pattern("s3://b/year=*/x.parquet"), _base_and_pattern("s3://b/x.parquet")
    (('s3://b', 'year=*/x.parquet'), ('s3://b/x.parquet', None))
    """
    scheme, _, rest = source.partition("://")
    parts = rest.split("/")
    special = next((i for i, part in enumerate(parts) if i and _MAGIC.search(part)), None)
    if special is None:
        return source, None
    return f"{scheme}://{'/'.join(parts[:special])}", "/".join(parts[special:])


def _as_regex(pattern: str) -> re.Pattern[str]:
    """The rules of `glob`: `*` stays within a folder, `**` crosses folders, and neither matches hidden names.

    Examples
    --------
    >>> [bool(_as_regex("**/[ab]*.csv").fullmatch(name)) for name in ("a1.csv", "x/y/b.csv", "x/c.csv")]
    [True, True, False]
    >>> [bool(_as_regex("a*b**[cd]*/*").fullmatch(name)) for name in ("a-b-d/x", "ab-cc.b/x", "a.c.b/x", "abd/.x")]
    [True, True, False, False]
    """
    return re.compile("".join(map(_part_as_regex, _once("**", pattern.split("/")))).removesuffix("/"), re.DOTALL)


def _part_as_regex(part: str) -> str:
    """Match the text between two stars once, at its first occurrence, so that matching takes linear time."""
    if part == "**":
        return r"(?:(?!\.)[^/]+/)*"
    pieces = _once("*", _PIECE.findall(part))
    stars = [k for k, piece in enumerate(pieces) if piece == "*"] or [len(pieces)]
    found = list(map(_translated, pieces))
    begin, end = "".join(found[: stars[0]]), "".join(found[stars[-1] :])
    between = ("".join(found[k + 1 : after]) for k, after in pairwise(stars))
    return r"(?!\.)" * (part[:1] != ".") + begin + "".join(f"(?>[^/]*?{fixed})" for fixed in between) + end + "/"


def _once(sign: str, pieces: list[str]) -> list[str]:
    """Replace repeated signs by one, which has the same meaning."""
    return [piece for k, piece in enumerate(pieces) if piece != sign or pieces[k - 1 : k] != [sign]]


def _translated(piece: str) -> str:
    if len(piece) > 1:  # a character class, translated by fnmatch
        anchored = re.fullmatch(r"\(\?s:(.*)\)\\[Zz]", fnmatch.translate(piece), re.DOTALL)
        assert anchored is not None
        return f"(?!/){anchored[1]}"
    return {"*": "[^/]*", "?": "[^/]"}.get(piece, re.escape(piece))


_AT_ONCE = 16


@contextmanager
def open_files(source: str, decimal: str = ".") -> Iterator[DuckTable]:
    """Open the file, the folder or the files of a pattern, on this machine or in a store.

    Raises
    ------
    InputError
        If the extension is not known, there is no such file, or a store cannot be reached. The message has a remedy.
    FormatError
        If a file is empty, truncated or of another format than its extension.
    """
    places = places_named(source)
    if format_of(places[0]) is None and not places[0].suffix:
        _check_readable(places[0])  # a name without an extension is usually a missing folder
    form = file_format(places[0], to_read=True)
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        list(threads.map(_check_readable, places))
    name = f"file {source!r}" if len(places) == 1 else f"files {source!r}"
    in_words = partial(_in_words, name, form, places)
    with ExitStack() as opening:
        with in_words():
            connection = opening.enter_context(embedded())
            if isinstance(places[0], ObjectPath):
                connection.register_filesystem(duckdb_filesystem(places[0]))
            opened = _open(connection, name, places, form)
        opened._in_words, opened.files, opened.decimal = in_words, tuple(places), decimal
        yield opened


@contextmanager
def _in_words(name: str, form: Format, places: Sequence[FileLocation]) -> Iterator[None]:
    """Replace every error of reading these files by one that cannot quote data."""

    def instead(error: Exception) -> InputError | None:
        first = places[0]
        if isinstance(error, ConfideError):
            return None
        if isinstance(first, ObjectPath) and (words := store_words(first.address, error)) is not None:
            return InputError("path", f"{name} cannot be read: {words}")
        return None

    with file_errors_in_fixed_words(name, form), replaced_errors(instead):
        yield


def _open(connection: Any, name: str, places: Sequence[FileLocation], form: Format) -> DuckTable:
    import pyarrow as pa

    if form.kind == "arrow":
        return _arrow_files(connection, name, places)
    names = list(map(pattern_in_duckdb, places))
    listed = "[" + ", ".join(map(text, names)) + "]"
    if form.kind == "csv":
        dialect = sniff_all(connection, places, names, "gzip" if form.compressed else "none")
        folders = folders_by_value(places)
        hive = f", hive_partitioning = {str(bool(folders)).lower()}, hive_types_autocast = false"
        source = f"read_csv({listed}, {dialect.options}{hive})"
        schema = pa.schema([(column, pa.string()) for column in dict.fromkeys([*dialect.names, *folders])])
        made = DuckTable(name, schema, connection, source, texts=True)
        made.rows = csv_rows(dialect.skip) if len(places) == 1 else Rows(0, "rows count from 0, over all files")
        return made
    nodes = connection.sql(select("file_name, name, num_children, duckdb_type", f"parquet_schema({listed})"))
    columns = _top_level(nodes.fetchall())
    columns = columns if any(some != columns[0] for some in columns) else columns[:1]
    agreed, disagreements = _agreed(name, places, [_schema_of(connection, some) for some in columns])
    values = {column: kind for column, kind in folders_by_value(places, least=1).items() if column not in agreed.names}
    options = f"hive_partitioning = {str(bool(values)).lower()}, union_by_name = {str(len(columns) > 1).lower()}"
    if values:
        kinds = ", ".join(f"{text(column)}: {kind}" for column, kind in values.items())
        options += f", hive_types_autocast = false, hive_types = {{{kinds}}}"
    count = select("sum(num_rows)", f"parquet_file_metadata({listed})")
    made = DuckTable(
        name,
        pa.schema([*agreed, *_schema_of(connection, list(values.items()))]),
        connection,
        f"read_parquet({listed}, {options})",
        rows=lambda: int(connection.sql(count).fetchall()[0][0]),
    )
    made.disagreements = disagreements
    return made


def _agreed(name: str, places: Sequence[FileLocation], schemas: Sequence[Any]) -> tuple[Any, dict[str, str]]:
    """The columns that agree in type in all files, as a schema, and the types of the others."""
    import pyarrow as pa

    if any(len({column.lower() for column in schema.names}) < len(schema.names) for schema in schemas):
        raise InputError(
            "path", f"{name} must have column names that differ in more than upper and lower case", remedy="Rename them"
        )
    widest = widest_schema(schemas)
    disagreements = type_disagreements(list(zip(map(repr, map(str, places)), schemas, strict=False)), widest)
    return pa.schema([field for field in widest if field.name not in disagreements]), disagreements


def _arrow_files(connection: Any, name: str, places: Sequence[FileLocation]) -> DuckTable:
    import pyarrow as pa

    with ThreadPoolExecutor(_AT_ONCE) as threads:
        schemas = [readable_schema(opened.schema) for opened, _ in threads.map(_arrow_reader, places)]
    agreed, disagreements = _agreed(name, places, schemas)
    values = folders_by_value(places)
    folders = _schema_of(connection, [pair for pair in values.items() if pair[0] not in agreed.names])

    def renew(wanted: Collection[str] | None) -> None:
        held = pa.schema([field for field in agreed if wanted is None or field.name in wanted] or [agreed.field(0)])
        pieces = (_in_folder(piece, place, folders) for place in places for piece in _arrow_stream(place, held))
        schema = pa.schema([*held, *folders])
        connection.register(ROWS, pa.RecordBatchReader.from_batches(schema, pieces))

    made = DuckTable(
        name,
        pa.schema([*agreed, *folders]),
        connection,
        ROWS,
        renew=renew,
        rows=lambda: sum(map(_arrow_rows, places)),
    )
    made.disagreements = disagreements
    return made


def _in_folder(batch: Any, place: FileLocation, folders: Any) -> Any:
    """A batch with the columns for parts such as `ward=north` of its file's path."""
    import pyarrow as pa

    values = dict(part.split("=", 1) for part in place.parts[:-1] if "=" in part)
    for field in folders:
        value = pa.scalar(values[field.name], pa.string()).cast(field.type)
        batch = batch.append_column(field, pa.repeat(value, batch.num_rows))
    return batch


def _arrow_rows(place: FileLocation) -> int:
    """The number of rows, from the headers of the batches."""
    reader, _ = _arrow_reader(place)
    return sum(int(reader.get_batch(i).num_rows) for i in range(reader.num_record_batches))


def _arrow_stream(place: FileLocation, schema: Any) -> Iterator[Any]:
    """The record batches of an Arrow file, in pieces with the columns of this schema; other columns are not fetched."""
    reader, mapped = _arrow_reader(place, schema.names)
    for i in range(reader.num_record_batches):
        for piece in split_batches([reader.get_batch(i)], schema):
            yield piece
            if mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
                mapped.madvise(mmap.MADV_DONTNEED)


def _arrow_reader(place: FileLocation, names: Sequence[str] | None = None) -> tuple[Any, mmap.mmap | None]:
    """The reader of an Arrow file, with all columns or the named ones; local files are memory-mapped."""
    import pyarrow as pa

    mapped = None
    if isinstance(place, ObjectPath):
        held = place.open()
    else:
        with place.open("rb") as stream:
            mapped = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        held = pa.py_buffer(mapped)
    reader = pa.ipc.open_file(held)
    if names is not None and len(names) < len(reader.schema):
        options = pa.ipc.IpcReadOptions(included_fields=sorted(map(reader.schema.get_field_index, names)))
        reader = pa.ipc.open_file(held, options=options)
    return reader, mapped


def _schema_of(connection: Any, types: Sequence[tuple[str, str]]) -> Any:
    """Columns with DuckDB's types as an Arrow schema."""
    import pyarrow as pa

    nothing = ", ".join(["NULL", *(f"CAST(NULL AS {kind})" for _, kind in types)])
    kinds = connection.sql(f"SELECT {nothing}").to_arrow_table().schema.types[1:]
    return pa.schema([(name, kind) for (name, _), kind in zip(types, kinds, strict=True)])


def _top_level(nodes: Iterable[tuple[str, str, int | None, str]]) -> list[list[tuple[str, str]]]:
    """The columns of every file with their DuckDB types; a node precedes its children, and the root is first."""
    files: dict[str, list[tuple[str, str]]] = {}
    inside = 0
    for file, name, children, kind in nodes:
        if file not in files:
            files[file], inside = [], 0
            continue
        if inside == 0:
            files[file].append((name, kind))
        inside += (children or 0) - (1 if inside else 0)
    return list(files.values())


def _check_readable(place: FileLocation) -> None:
    """Reject a file that is missing, unreadable, or has no bytes."""
    try:
        if isinstance(place, ObjectPath):
            empty = not place.info().size
        else:
            with place.open("rb") as stream:
                empty = not stream.read(1)
    except FileNotFoundError:
        raise InputError("path", f"{str(place)!r} does not exist") from None
    except OSError as error:
        raise InputError("path", f"{str(place)!r} cannot be read: {error.strerror}") from None
    if empty:
        raise FormatError("path", f"{str(place)!r} is empty: it has no bytes")


DELIMITERS = ",;\t|"


@dataclass(frozen=True)
class CsvDialect:
    """A CSV file's dialect, as DuckDB's sniffer finds it from the first rows.

    Parameters
    ----------
    names
        The column names.
    options
        The options with which DuckDB reads it, with every column as text.
    skip
        Lines before the column names.
    """

    names: tuple[str, ...]
    options: str
    skip: int = 0


def csv_rows(skip: int = 0) -> Rows:
    """The counting of rows as a spreadsheet shows them."""
    return Rows(2 + skip, f"rows as in a spreadsheet, where the column names are row {1 + skip}")


def sniff(connection: Any, path: FileLocation, pattern: str, packing: str) -> CsvDialect:
    """Find the dialect of a CSV file; `pattern` is its name, with DuckDB's special characters escaped.

    `packing` is `gzip` or `none`. It is given explicitly, because DuckDB does not detect it for every name.

    Raises
    ------
    FormatError
        If there is no line of column names. (Without this check the first record would be read as the names, and would
        be printed wherever names are.) Also if two columns have the same name, or if a line and the header have
        different numbers of cells.
    """
    import duckdb

    sniffed = f"sniff_csv({text(pattern)}, compression={text(packing)})"
    query = select("Delimiter, Quote, Escape, SkipRows, HasHeader, Columns", sniffed)
    try:
        found = connection.sql(query).fetchall()
    except duckdb.Error:
        refuse_ragged(path, packing)
        raise
    delimiter, quote, escape, skip, has_header, columns = found[0]
    if len(columns) == 1 and any(mark in columns[0]["name"] for mark in DELIMITERS):
        refuse_ragged(path, packing)
    if not has_header:
        raise FormatError(
            "path",
            f"{str(path)!r} must start with a line of column names",
            got="none that can be distinguished from the values (names that all look like numbers cannot be)",
        )
    quote = quote if quote and quote != "(empty)" else '"'
    escape = escape if escape == "\\" else quote  # any other sign would be removed from cells
    refuse_repeated(f"file {str(path)!r}", _header(path, packing, int(skip), delimiter, quote))
    names = tuple(column["name"] for column in columns)
    return CsvDialect(
        names,
        f"auto_detect=false, compression={text(packing)}, header=true, skip={int(skip)}, "
        f"{csv_options(names, delimiter, quote, escape)}",
        int(skip),
    )


def csv_options(names: Sequence[str], delimiter: str, quote: str = '"', escape: str = '"') -> str:
    """The options of DuckDB for these columns, every one of which is text."""
    as_text = ", ".join(f"{text(name)}: 'VARCHAR'" for name in names)
    return f"delim={text(delimiter)}, quote={text(quote)}, escape={text(escape)}, columns={{{as_text}}}"


def refuse_repeated(name: str, names: Sequence[str]) -> None:
    """Reject column names that occur twice; names that differ in case only are the same to DuckDB."""
    seen: dict[str, str] = {}
    for one in filter(None, names):
        if one.lower() in seen:
            first = seen[one.lower()]
            similar = "" if one == first else f" (and {first!r}; upper and lower case do not distinguish them)"
            raise FormatError(
                "path",
                f"{name} must give every column a different name",
                got=f"{one!r} twice{similar}",
                remedy="Rename one",
            )
        seen[one.lower()] = one


def refuse_ragged(path: FileLocation, packing: str) -> None:
    """Reject the first line that has more or fewer cells than there are column names, if there is one."""
    with suppress(csv.Error, EOFError, zlib.error), _opened(path, packing) as stream:
        header = stream.readline()
        rows = csv.reader(chain([header], stream), delimiter=max(DELIMITERS, key=header.count))
        names = next(rows, [])
        for row in rows:
            if row and len(row) != len(names):
                values = "1 value" if len(row) == 1 else f"{len(row)} values"
                raise FormatError(
                    "path",
                    f"{str(path)!r} cannot be read: line {rows.line_num} has {values}, and there are {len(names)} "
                    "column names",
                )


def _header(path: FileLocation, packing: str, skip: int, delimiter: str, quote: str) -> list[str]:
    """The cells of the line of column names; empty if Python's reader does not support such a dialect."""
    with suppress(csv.Error, TypeError), _opened(path, packing) as stream:
        for _ in range(skip):
            stream.readline()
        return next(csv.reader(stream, delimiter=delimiter, quotechar=quote), [])
    return []


def _opened(place: FileLocation, packing: str) -> Any:
    """The text of a CSV file, with invalid characters replaced."""
    spelled: Any = {"encoding": "utf-8-sig", "errors": "replace", "newline": ""}
    held: Any = place.open() if isinstance(place, ObjectPath) else place
    if packing == "gzip":
        return gzip.open(held, "rt", **spelled)
    return TextIOWrapper(held, **spelled) if isinstance(place, ObjectPath) else held.open(**spelled)


def sniff_all(connection: Any, paths: Sequence[FileLocation], patterns: Sequence[str], packing: str) -> CsvDialect:
    """The common dialect of several files."""
    dialects = [sniff(connection, path, pattern, packing) for path, pattern in zip(paths, patterns, strict=True)]
    for path, dialect in zip(paths, dialects, strict=True):
        if dialect.options != dialects[0].options:
            raise InputError(
                "path", f"{str(path)!r} must have the column names and the dialect of {str(paths[0])!r}", got="others"
            )
    return dialects[0]
