"""File formats by extension, files written batch by batch, and CSV cells that no spreadsheet executes.

Columns of the input are kept in the output, so a cell such as `=cmd|...` from an untrusted source would reach a
reader's spreadsheet. Such cells get a leading apostrophe. Numbers, dates, telephone numbers and a single dash are not
changed, and neither are Parquet and Arrow files.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from confide.errors import InputError
from confide.support import FileLocation
from confide.tables.deferred import pa, pc

FormatName: TypeAlias = Literal["parquet", "csv", "arrow"]


@dataclass(frozen=True)
class Format:
    """A file format.

    Parameters
    ----------
    kind
        `parquet`, `csv` or `arrow`.
    delimiter
        Between the cells of a CSV file.
    compressed
        Whether a CSV file is compressed by gzip.
    """

    kind: FormatName
    delimiter: str = ","
    compressed: bool = False

    @property
    def in_words(self) -> str:
        """The format's name with its article."""
        return {"parquet": "a Parquet file", "csv": "a CSV file", "arrow": "an Arrow (IPC) or Feather file"}[self.kind]


ENDINGS: dict[str, Format] = {
    **dict.fromkeys((".parquet", ".pq"), Format("parquet")),
    ".csv": Format("csv"),
    ".tsv": Format("csv", "\t"),
    ".csv.gz": Format("csv", ",", True),
    ".tsv.gz": Format("csv", "\t", True),
    **dict.fromkeys((".arrow", ".feather", ".ipc"), Format("arrow")),
}


def ending_of(name: str | FileLocation) -> str | None:
    """The known extension of a name; None for any other.

    Examples
    --------
    >>> ending_of("scores.CSV.gz"), ending_of("scores")
    ('.csv.gz', None)
    """
    lower = str(name).lower()
    return next((ending for ending in ENDINGS if lower.endswith(ending)), None)


def format_of(name: str | FileLocation) -> Format | None:
    """The format for the extension of a name; None for any other extension.

    Examples
    --------
    >>> format_of("scores.Parquet").kind, format_of("scores.csv.gz").compressed, format_of("scores")
    ('parquet', True, None)
    """
    return ENDINGS.get(ending_of(name) or "")


_SPREADSHEET = "; in Excel: Save as, CSV UTF-8"
_REMEDIES = {
    **dict.fromkeys((".xlsx", ".xlsm", ".xlsb", ".xls"), _SPREADSHEET),
    ".ods": "; in LibreOffice: Save as, Text CSV, UTF-8",
    **dict.fromkeys((".txt", ".dat"), "; a text table may be renamed: .csv, or .tsv where tabs separate values"),
}


def file_format(path: FileLocation, *, to_read: bool = False) -> Format:
    """The format of a file.

    Raises
    ------
    InputError
        If its extension is not known. With `to_read`, the message contains a remedy.
    """
    form = format_of(path)
    if form is None:
        remedy = _REMEDIES.get(path.suffix.lower(), "") if to_read else ""
        must = f"{str(path)!r} must end in one of {', '.join(ENDINGS)}"
        raise InputError("path", must, got=f"{path.suffix or 'no extension'!r}{remedy}")
    return form


# Batches are joined until they have so many rows or bytes.
_ROWS = 2**16
_BYTES = 2**25


def write_batches(path: Path, form: Format, batches: Iterable[Any]) -> None:
    """Write record batches of one schema into a file; small ones are joined."""
    with ExitStack() as opened:
        writer: Any = None
        for batch in _joined(batches):
            table = without_formulas(batch) if form.kind == "csv" else batch
            if writer is None:
                writer = _open_writer(path, form, table.schema, opened)
            writer.write_table(table)


def _joined(batches: Iterable[Any]) -> Iterator[Any]:
    """Tables of enough record batches to be written at once."""
    waiting: list[Any] = []
    rows = size = 0
    for batch in batches:
        waiting.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= _ROWS or size >= _BYTES:
            yield pa.Table.from_batches(waiting).combine_chunks()
            waiting, rows, size = [], 0, 0
    if waiting:
        yield pa.Table.from_batches(waiting).combine_chunks()


def _open_writer(path: Path, form: Format, schema: Any, opened: ExitStack) -> Any:
    if form.kind == "parquet":
        return opened.enter_context(_parquet_writer(path, schema))
    if form.kind == "arrow":
        return opened.enter_context(pa.ipc.new_file(str(path), schema))
    import pyarrow.csv

    compression = "gzip" if form.compressed else None
    target = opened.enter_context(pa.output_stream(str(path), compression=compression))
    options = pyarrow.csv.WriteOptions(delimiter=form.delimiter)
    return opened.enter_context(pyarrow.csv.CSVWriter(target, schema, write_options=options))


def _parquet_writer(path: Path, schema: Any) -> Any:
    """The writer of a Parquet file; raises an error that names the columns of types that Parquet lacks."""
    from pyarrow.parquet import ParquetWriter

    def lacks(field: Any) -> bool:
        try:
            ParquetWriter(pa.BufferOutputStream(), pa.schema([field])).close()
        except pa.ArrowException:
            return True
        return False

    try:
        return ParquetWriter(path, schema)
    except pa.ArrowException:
        names = [field.name for field in schema if lacks(field)]
        must = f"{', '.join(map(repr, names[:3]))} must be of a type that Parquet has"
        got = "one that it lacks, such as durations or structs without fields"
        raise InputError("column", must, got=got, remedy="Convert it, or list other columns in keep") from None


# Cells that a spreadsheet reads as a formula: a sign counts if a character follows that numbers and dates lack.
_RUNS = r"^[=@\t\r]|^[+\-].*[^0-9 .,:()/eE+\-]"
_NO_FORMULA = r"(?i)^[+\-](inf|infinity|nan)$"


def without_formulas(table: Any) -> Any:
    """Return a `pyarrow.Table` whose texts, including column names, no spreadsheet executes.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = without_formulas(pa.table({"note": ["=1+1", "-1.5e-3", "+49 170", "-", "-A1", "-inf", None]}))
    >>> table["note"].to_pylist()
    ["'=1+1", '-1.5e-3', '+49 170', '-', "'-A1", '-inf', None]
    """
    for place, field in enumerate(table.schema):
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            column = table.column(place)
            runs = pc.match_substring_regex(column, f"(?s){_RUNS}")
            runs = pc.and_not(runs, pc.match_substring_regex(column, _NO_FORMULA))
            if pc.any(runs).as_py():
                marked = pc.binary_join_element_wise(pa.scalar("'", field.type), column, pa.scalar("", field.type))
                table = table.set_column(place, field, pc.if_else(runs, marked, column))
    names = [f"'{name}" if re.match(_RUNS, name, re.DOTALL) else name for name in table.column_names]
    return table if names == table.column_names else table.rename_columns(names)
