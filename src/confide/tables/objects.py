"""Objects of a store as one table: Parquet, CSV and Arrow, one object, a pattern, or a partitioned prefix.

They are read in batches, of Parquet and Arrow only the columns that are needed, and nothing is kept on a disk here.
"""

import fnmatch
import re
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from confide.errors import ConfideError, FormatError, InputError
from confide.support import ObjectPath, store_words
from confide.tables.arrow import ColumnRef
from confide.tables.arrow_file import ROWS as FEW
from confide.tables.arrow_file import in_pieces, readable_schema
from confide.tables.csv_dialect import csv_rows
from confide.tables.duckdb_table import ROWS, DuckTable, embedded
from confide.tables.failures import Rows, of_files
from confide.tables.file_formats import Format, file_format, format_of
from confide.tables.files import folders_by_value, refuse_several_formats
from confide.tables.streams import csv_batches, sniffed

_MAGIC = re.compile(r"[*?\[]")
_PIECE = re.compile(r"\[!?[^/][^\]/]*\]|.", re.DOTALL)
_AT_ONCE = 16
_PEEKED = 2**16


def objects_named(source: str) -> list[ObjectPath]:
    """The objects that an address stands for: the one of that name, else those below it, else those of the pattern.

    Raises
    ------
    InputError
        If there is none, they are of several formats, or the store cannot be asked.
    """
    place, (base, pattern) = ObjectPath.of(source), _base_and_pattern(source)
    if pattern is None:
        if place.is_file():
            return [place]
        place.check_bucket()
        if not place.is_dir():
            raise InputError(f"file {source!r} does not exist")
        found = [one for one in place.below() if format_of(str(one)) and not _hidden(place, one)]
        refuse_several_formats(source, found, "folder")
        return found
    place = ObjectPath.of(base)
    place.check_bucket()
    match, deep = _as_regex(pattern), "**" in pattern or "/" in pattern
    inside = place.below(recursive=deep) if place.is_dir() else iter(())
    start = len(place.address.path) + 1
    found = [one for one in inside if format_of(str(one)) and match.fullmatch(one.address.path[start:])]
    refuse_several_formats(source, found, "pattern")
    return found


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
    """A pattern as `glob` reads it: `*` stays within a folder, `**` goes through them, none sees what is hidden.

    Examples
    --------
    >>> [bool(_as_regex("**/[ab]*.csv").fullmatch(name)) for name in ("a1.csv", "x/y/b.csv", "x/c.csv")]
    [True, True, False]
    >>> [bool(_as_regex("a*b**[cd]*/*").fullmatch(name)) for name in ("a-b-d/x", "ab-cc.b/x", "a.c.b/x", "abd/.x")]
    [True, True, False, False]
    """
    return re.compile("".join(map(_part_as_regex, _once("**", pattern.split("/")))).removesuffix("/"), re.DOTALL)


def _part_as_regex(part: str) -> str:
    """What stands between two stars is looked for once, where it first occurs: a name is matched in linear time."""
    if part == "**":
        return r"(?:(?!\.)[^/]+/)*"
    pieces = _once("*", _PIECE.findall(part))
    stars = [k for k, piece in enumerate(pieces) if piece == "*"] or [len(pieces)]
    found = list(map(_translated, pieces))
    begin, end = "".join(found[: stars[0]]), "".join(found[stars[-1] :])
    between = ("".join(found[k + 1 : after]) for k, after in pairwise(stars))
    return r"(?!\.)" * (part[:1] != ".") + begin + "".join(f"(?>[^/]*?{fixed})" for fixed in between) + end + "/"


def _once(sign: str, pieces: list[str]) -> list[str]:
    """One sign for several in a row, which say the same."""
    return [piece for k, piece in enumerate(pieces) if piece != sign or pieces[k - 1 : k] != [sign]]


def _translated(piece: str) -> str:
    if len(piece) > 1:  # a range of characters, whose rules fnmatch knows
        anchored = re.fullmatch(r"\(\?s:(.*)\)\\[Zz]", fnmatch.translate(piece), re.DOTALL)
        assert anchored is not None
        return f"(?!/){anchored[1]}"
    return {"*": "[^/]*", "?": "[^/]"}.get(piece, re.escape(piece))


def _hidden(folder: ObjectPath, one: ObjectPath) -> bool:
    """Whether a name, or that of a prefix on the way, marks what other programs have left there."""
    return any(part.startswith((".", "_")) for part in one.parts[len(folder.parts) :])


@contextmanager
def open_objects(source: str, decimal: str = ".") -> Iterator["ObjectTable"]:
    """Open the object, the objects below an address, or those of a pattern.

    Raises
    ------
    InputError
        If there is none, its ending is not known, or the store cannot be asked: the message says what to do.
    FormatError
        If an object is empty, truncated or of another format than its ending says.
    """
    paths = objects_named(source)
    form = file_format(paths[0], to_read=True)
    name = f"file {source!r}" if len(paths) == 1 else f"files {source!r}"
    in_words = _Words(name, form, paths[0])
    with embedded() as connection:
        with in_words():
            pieces = (_csv if form.kind == "csv" else _columnar)(paths, form, name, connection)
        made = ObjectTable(name, connection, pieces, in_words)
        made.files, made.decimal = tuple(paths), decimal
        if form.kind == "csv":
            made.rows = csv_rows() if len(paths) == 1 else Rows(0, "rows count from 0, over all files")
        yield made


@dataclass
class _Pieces:
    """The batches of objects, one after the other.

    Parameters
    ----------
    schema
        The columns, in whose types batches arrive; of CSV all are texts.
    kinds
        The schema that the table tells: of CSV what the first rows suggest.
    batches
        From the columns that are wanted (None for all) to the batches.
    rows
        Their number, where it is stated.
    """

    schema: Any
    kinds: Any
    batches: Callable[[list[str] | None], Iterator[Any]]
    rows: int | None = None


@dataclass
class _Words:
    """What went wrong with objects: the store's failures in the words for stores, others as of files."""

    name: str
    form: Format
    path: ObjectPath
    failures: list[Exception] = field(default_factory=list)

    @contextmanager
    def __call__(self) -> Iterator[None]:
        self.failures.clear()
        try:
            yield
        except Exception as error:
            failure = self.failures[0] if self.failures else error
            if isinstance(failure, ConfideError):
                raise failure from None
            if (words := store_words(self.path.address, failure)) is not None:
                raise InputError(f"{self.name} cannot be read: {words}") from None
            with of_files(self.name, self.form):
                raise failure from None

    def kept(self, batches: Iterator[Any]) -> Iterator[Any]:
        """The batches; a failure is kept, for the engine that asks for them would tell another."""
        try:
            yield from batches
        except Exception as failure:
            self.failures.append(failure)
            raise


class ObjectTable(DuckTable):
    """Rows of objects, which are read anew for every question, and of which only the columns in question are read."""

    takes_entries = False
    """Lists are handed over whole."""

    def __init__(self, name: str, connection: Any, pieces: _Pieces, in_words: _Words) -> None:
        self._pieces, self._words, self._wanted = pieces, in_words, _Wanted()
        super().__init__(
            name,
            pieces.kinds,
            connection,
            ROWS,
            in_words,
            texts=pieces.kinds is not pieces.schema,
            renew=self._register,
            rows=lambda: pieces.rows,
        )

    def _register(self) -> None:
        import pyarrow as pa

        schema, wanted = self._pieces.schema, self._wanted.names
        if wanted is not None:
            schema = pa.schema([one for one in schema if one.name in wanted] or [schema.field(0)])
        pieces = in_pieces(self._pieces.batches(None if wanted is None else schema.names), schema)
        self.connection.register(ROWS, pa.RecordBatchReader.from_batches(schema, self._words.kept(pieces)))

    def batches(self, columns: Sequence[ColumnRef], rows: int) -> Generator[Any]:
        """As those of every table; other columns than these are not fetched."""
        with self._wanted.only(columns), closing(super().batches(columns, rows)) as batches:
            yield from batches

    def drop_missing(self, reads: Sequence[ColumnRef]) -> "ObjectTable":
        """The rows that lack no value."""
        self._wanted.always = (*self._wanted.always, *reads)
        made = super().drop_missing(reads)
        assert isinstance(made, ObjectTable)
        return made


@dataclass
class _Wanted:
    """Which columns the next question is about; None for all. Shared by a table and what is made of it."""

    names: set[str] | None = None
    always: tuple[ColumnRef, ...] = ()

    @contextmanager
    def only(self, columns: Sequence[ColumnRef]) -> Iterator[None]:
        self.names = {name for read in (*columns, *self.always) for name in (read.column, read.at) if name}
        try:
            yield
        finally:
            self.names = None


def _columnar(paths: Sequence[ObjectPath], form: Format, name: str, connection: Any) -> _Pieces:
    """Parquet and Arrow, which say their columns and rows at their ends."""
    import pyarrow as pa

    opened = _parquet if form.kind == "parquet" else _arrow
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        ends = list(threads.map(lambda path: opened(_not_empty(path)), paths))
    held = _plain(readable_schema(ends[0].schema))
    if len({column.lower() for column in held.names}) != len(held.names):
        raise InputError(f"{name} must have column names that differ in more than upper and lower case; rename them")
    for path, end in zip(paths, ends, strict=True):
        if sorted(end.schema.names) != sorted(held.names):
            raise InputError(f"file {str(path)!r} must have the columns of {str(paths[0])!r}; it has others")
    folders = _folders(paths, held.names)
    schema = pa.schema([*held, *folders.values()])

    def batches(wanted: list[str] | None) -> Iterator[Any]:
        own = None if wanted is None else [column for column in wanted if column in held.names]
        for path in paths:
            for batch in opened(path).batches(own):
                yield _with_folders(batch, path, folders)

    rows = [end.rows for end in ends]
    return _Pieces(schema, schema, batches, sum(row or 0 for row in rows) if form.kind == "parquet" else None)


@dataclass
class _End:
    """What the end of an object says, and its batches."""

    schema: Any
    rows: int | None
    batches: Callable[[list[str] | None], Iterator[Any]]


def _parquet(path: ObjectPath) -> _End:
    from pyarrow.parquet import ParquetFile

    file = ParquetFile(path.open(), pre_buffer=True)
    schema = file.schema_arrow

    def batches(wanted: list[str] | None) -> Iterator[Any]:
        named = schema.names if wanted is None else wanted
        if not named:  # of the columns in question all are those of folders
            named = schema.names[:1]
        for group in range(file.num_row_groups):  # one after the other: what is fetched ahead stays in memory
            for batch in file.iter_batches(batch_size=FEW, columns=named, row_groups=[group]):
                yield batch.select(named)  # a name with a dot may bring others

    return _End(schema, file.metadata.num_rows, batches)


def _arrow(path: ObjectPath) -> _End:
    import pyarrow as pa

    stream = path.open()
    schema = pa.ipc.open_file(stream).schema

    def batches(wanted: list[str] | None) -> Iterator[Any]:
        fields = None if wanted is None else sorted(schema.get_field_index(name) for name in wanted)
        options = pa.ipc.IpcReadOptions(included_fields=fields or ([0] if fields == [] else None))
        reader = pa.ipc.open_file(stream, options=options)
        for i in range(reader.num_record_batches):
            yield reader.get_batch(i)

    return _End(schema, None, batches)


def _csv(paths: Sequence[ObjectPath], form: Format, name: str, connection: Any) -> _Pieces:
    """CSV, read as it is from standard input: every cell as text."""
    import pyarrow as pa

    def reader(path: ObjectPath) -> Any:
        def stream() -> Any:
            packing = "gzip" if form.compressed else None
            return path.filesystem.open_input_stream(path.address.path, compression=packing)

        with stream() as begin:
            head = begin.read(_PEEKED)
        if not head:
            raise FormatError(f"file {str(path)!r} is empty: it has no bytes")
        return csv_batches(stream(), head, f"file {str(path)!r}")

    first = reader(_not_empty(paths[0]))
    held = first.schema
    folders = {column: field.with_type(pa.string()) for column, field in _folders(paths, held.names).items()}
    batch = next(iter(first), None) or pa.RecordBatch.from_pylist([], held)
    schema = pa.schema([*held, *folders.values()])
    kinds = pa.schema([*sniffed(connection, batch), *_folders(paths, held.names).values()])

    def batches(wanted: list[str] | None) -> Iterator[Any]:
        for path in paths:
            for piece in reader(_not_empty(path)):
                yield _with_folders(piece, path, folders)

    return _Pieces(schema, kinds, batches)


def _not_empty(path: ObjectPath) -> ObjectPath:
    if not path.info().size:
        raise FormatError(f"file {str(path)!r} is empty: it has no bytes")
    return path


def _plain(schema: Any) -> Any:
    """The same schema with categories as their values: every object has its own categories."""
    import pyarrow as pa

    return pa.schema(
        [one.with_type(one.type.value_type) if pa.types.is_dictionary(one.type) else one for one in schema]
    )


def _folders(paths: Sequence[ObjectPath], names: Sequence[str]) -> dict[str, Any]:
    """The columns that parts such as `ward=north` of the names stand for."""
    import pyarrow as pa

    kinds = {"BIGINT": pa.int64(), "VARCHAR": pa.string()}
    found = folders_by_value(paths)
    return {name: pa.field(name, kinds[kind]) for name, kind in found.items() if name not in names}


def _with_folders(batch: Any, path: ObjectPath, folders: dict[str, Any]) -> Any:
    import pyarrow as pa

    values = dict(part.split("=", 1) for part in path.parts[:-1] if "=" in part)
    for name, one in folders.items():
        value = pa.scalar(int(values[name]) if pa.types.is_integer(one.type) else values[name], one.type)
        batch = batch.append_column(one, pa.repeat(value, batch.num_rows))
    return batch
