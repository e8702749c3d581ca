"""Files and folders as one table: Parquet, CSV and Arrow, one file, a pattern, or a partitioned folder."""

import glob
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from confide.errors import FormatError, InputError
from confide.support import Place, as_integer
from confide.tables.arrow_file import arrow_rows, arrow_schema, arrow_stream
from confide.tables.csv_dialect import csv_rows, sniff_all
from confide.tables.duckdb_table import ROWS, DuckTable, embedded
from confide.tables.expressions import select, text
from confide.tables.failures import Rows, of_files
from confide.tables.file_formats import ENDINGS, Format, ending_of, file_format, format_of


def files_named(source: str) -> list[Path]:
    """The files that a name stands for: the file of that name, else those below the folder, else those of the pattern.

    A file is what its name says, whatever characters the name has.

    Raises
    ------
    InputError
        If there is none, or they are of several formats.
    """
    path = Path(source)
    if path.is_dir():
        found = sorted(
            file for file in path.rglob("*") if file.is_file() and format_of(file) and not _hidden(path, file)
        )
    elif path.exists() or not glob.has_magic(source):
        return [path]
    else:
        # `Path.glob` takes no absolute pattern.
        found = sorted(Path(file) for file in glob.glob(source, recursive=True) if format_of(file))  # noqa: PTH207
    refuse_several_formats(source, found, "folder" if path.is_dir() else "pattern")
    return found


def refuse_several_formats(source: str, found: Sequence[Place], what: str) -> None:
    """Refuse a folder or a pattern of no file that can be read, or of files of several formats."""
    if not found:
        raise InputError(
            f"{what} {source!r} must name files that end in one of {', '.join(ENDINGS)}; it names none of them"
        )
    kinds = {form for file in found if (form := format_of(str(file)))}
    if len(kinds) > 1:
        endings = sorted({ending for file in found if (ending := ending_of(str(file)))})
        raise InputError(f"files of {source!r} must be of one format; found {', '.join(endings)}")


def _hidden(folder: Path, file: Path) -> bool:
    """Whether a name, or that of a folder on the way, marks what other programs have left there."""
    return any(part.startswith((".", "_")) for part in file.relative_to(folder).parts)


@contextmanager
def open_files(source: str, decimal: str = ".") -> Iterator[DuckTable]:
    """Open the file, the folder or the files of the pattern that a text names.

    Raises
    ------
    InputError
        If the ending is not known or there is no such file.
    FormatError
        If a file is empty, truncated or of another format than its ending says.
    """
    paths = files_named(source)
    if format_of(paths[0]) is None and not paths[0].suffix:
        _check_readable(paths[0])  # a name without an ending is mostly a folder that is not there
    form = file_format(paths[0], to_read=True)
    for path in paths:
        _check_readable(path)
    name = f"file {source!r}" if len(paths) == 1 else f"files {source!r}"
    in_words = partial(of_files, name, form)
    with ExitStack() as opening:
        with in_words():
            opened = _open(opening.enter_context(embedded()), name, paths, form)
        opened._in_words, opened.files, opened.decimal = in_words, tuple(paths), decimal
        yield opened


def _open(connection: Any, name: str, paths: Sequence[Path], form: Format) -> DuckTable:
    if form.kind == "arrow":
        return _arrow_files(connection, name, paths)
    patterns = [glob.escape(str(path)) for path in paths]  # to DuckDB every name is a pattern
    listed = "[" + ", ".join(map(text, patterns)) + "]"
    if form.kind == "csv":
        dialect = sniff_all(connection, paths, patterns, "gzip" if form.compressed else "none")
        folders = folders_by_value(paths)
        hive = f", hive_partitioning = {str(bool(folders)).lower()}, hive_types_autocast = false"
        source = f"read_csv({listed}, {dialect.options}{hive})"
        made = DuckTable(name, _schema_of(connection, dialect.types | folders), connection, source, texts=True)
        made.rows = csv_rows(dialect.skip) if len(paths) == 1 else Rows(0, "rows count from 0, over all files")
        return made
    source = f"read_parquet({listed})"
    names = _top_level(connection.sql(select("name, num_children", f"parquet_schema({text(patterns[0])})")))
    relation = connection.sql(select("*", source))
    if relation.columns[: len(names)] != names:
        raise InputError(f"{name} must have column names that differ in more than upper and lower case; rename them")
    count = select("sum(num_rows)", f"parquet_file_metadata({listed})")
    schema = connection.sql(select("*", source, "LIMIT 0")).to_arrow_table().schema
    return DuckTable(name, schema, connection, source, rows=lambda: int(connection.sql(count).fetchall()[0][0]))


def folders_by_value(paths: Sequence[Place]) -> dict[str, str]:
    """The columns that folders such as `ward=north` stand for, each with the DuckDB type of its values."""
    values: dict[str, list[str]] = {}
    for path in paths if len(paths) > 1 else ():
        for part in path.parts[:-1]:
            name, equals, value = part.partition("=")
            if equals:
                values.setdefault(name, []).append(value)
    full = {name: held for name, held in values.items() if len(held) == len(paths)}
    return {
        name: "BIGINT" if all(as_integer(value) is not None for value in held) else "VARCHAR"
        for name, held in full.items()
    }


def _arrow_files(connection: Any, name: str, paths: Sequence[Path]) -> DuckTable:
    import pyarrow as pa

    if folders_by_value(paths):
        raise InputError(f"{name} must be Parquet or CSV: values in the names of folders are not read for Arrow files")
    schema = arrow_schema(paths[0])
    if len({column.lower() for column in schema.names}) != len(schema.names):
        raise InputError(f"{name} must have column names that differ in more than upper and lower case; rename them")
    for path in paths[1:]:
        if arrow_schema(path) != schema:
            raise InputError(f"file {str(path)!r} must have the columns of {str(paths[0])!r}; it has others")

    def renew() -> None:
        pieces = (piece for path in paths for piece in arrow_stream(path))
        connection.register(ROWS, pa.RecordBatchReader.from_batches(schema, pieces))

    return DuckTable(name, schema, connection, ROWS, renew=renew, rows=lambda: sum(map(arrow_rows, paths)))


def _schema_of(connection: Any, types: dict[str, str]) -> Any:
    """DuckDB's types as an Arrow schema."""
    from confide.tables.expressions import identifier

    nothing = ", ".join(f"CAST(NULL AS {kind}) AS {identifier(name)}" for name, kind in types.items())
    return connection.sql(f"SELECT {nothing}").to_arrow_table().schema


def _top_level(schema: Any) -> list[str]:
    """Column names from a Parquet schema, which lists every node before its children, the root first."""
    names, inside = [], 0
    for name, children in schema.fetchall()[1:]:
        if inside == 0:
            names.append(name)
        inside += (children or 0) - (1 if inside else 0)
    return names


def _check_readable(path: Path) -> None:
    """Refuse a file that is missing, closed to us, or of no bytes."""
    try:
        with path.open("rb") as stream:
            empty = not stream.read(1)
    except FileNotFoundError:
        raise InputError(f"file {str(path)!r} does not exist") from None
    except OSError as error:
        raise InputError(f"file {str(path)!r} cannot be read: {error.strerror}") from None
    if empty:
        raise FormatError(f"file {str(path)!r} is empty: it has no bytes")
