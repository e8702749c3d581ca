"""Tables written batch by batch: Parquet, CSV, Arrow and Feather."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confide.tables.formats import Format

_ROWS = 2**16
_BYTES = 2**25


class Sink:
    """Gathers batches of one schema into larger ones and writes them; made by `open_sink`."""

    def __init__(self, path: Path, kind: Format, delimiter: str) -> None:
        self._path, self._kind, self._delimiter = path, kind, delimiter
        self._writer: Any = None
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
        if self._writer is None:
            self._writer = _writer(self._path, self._kind, self._delimiter, table.schema)
        self._writer.write_table(table)

    def close(self) -> None:
        """Finish the file format's footer and close the file."""
        if self._writer is not None:
            self._writer.close()


@contextmanager
def open_sink(path: Path, kind: Format, delimiter: str = ",") -> Iterator[Sink]:
    """A sink that is flushed and closed at the end of the block."""
    sink = Sink(path, kind, delimiter)
    try:
        yield sink
        sink.flush()
    finally:
        sink.close()


def _writer(path: Path, kind: Format, delimiter: str, schema: Any) -> Any:
    if kind == "parquet":
        import pyarrow.parquet

        return pyarrow.parquet.ParquetWriter(path, schema)
    if kind == "csv":
        import pyarrow.csv

        return pyarrow.csv.CSVWriter(path, schema, write_options=pyarrow.csv.WriteOptions(delimiter=delimiter))
    import pyarrow as pa

    return pa.ipc.new_file(str(path), schema)
