"""Tables written batch by batch: Parquet, CSV, Arrow and Feather."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confide.tables.formats import Format
from confide.tables.spreadsheets import without_formulas

_ROWS = 2**16
_BYTES = 2**25


class Sink:
    """Gathers batches of one schema into larger ones and writes them; made by `open_sink`."""

    def __init__(self, path: Path, form: Format) -> None:
        self._path, self._form = path, form
        self._writer: Any = None
        self._packed: Any = None
        self._waiting: list[Any] = []
        self._rows = self._bytes = 0

    def write(self, batch: Any) -> None:
        """Add a `pyarrow.RecordBatch`."""
        self._waiting.append(batch)
        self._rows, self._bytes = self._rows + batch.num_rows, self._bytes + batch.nbytes
        if self._rows >= _ROWS or self._bytes >= _BYTES:
            self.flush()

    def flush(self) -> None:
        """Write what has gathered."""
        import pyarrow as pa

        if not self._waiting:
            return
        table = pa.Table.from_batches(self._waiting).combine_chunks()
        self._waiting, self._rows, self._bytes = [], 0, 0
        if self._form.kind == "csv":
            table = without_formulas(table)
        if self._writer is None:
            self._writer = self._open(table.schema)
        self._writer.write_table(table)

    def close(self) -> None:
        """Finish the file format's footer and close the file."""
        for one in (self._writer, self._packed):
            if one is not None:
                one.close()

    def _open(self, schema: Any) -> Any:
        import pyarrow as pa

        if self._form.kind == "parquet":
            import pyarrow.parquet

            return pyarrow.parquet.ParquetWriter(self._path, schema)
        if self._form.kind == "csv":
            import pyarrow.csv

            target: Any = self._path
            if self._form.compressed:
                target = self._packed = pa.CompressedOutputStream(str(self._path), "gzip")
            options = pyarrow.csv.WriteOptions(delimiter=self._form.delimiter)
            return pyarrow.csv.CSVWriter(target, schema, write_options=options)
        return pa.ipc.new_file(str(self._path), schema)


@contextmanager
def open_sink(path: Path, form: Format) -> Iterator[Sink]:
    """A sink that is flushed and closed at the end of the block."""
    sink = Sink(path, form)
    try:
        yield sink
        sink.flush()
    finally:
        sink.close()
