"""Arrow and Feather files as a stream of small batches over a memory map.

Pages that were read are given back at once, so that a file of one huge batch is streamed, too. (A *compressed* batch
has to be unpacked whole: there the memory needed is that of the writer's batch.)
"""

import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROWS = 16384


def arrow_schema(path: Path) -> Any:
    """The schema of an Arrow file, half-precision columns as single precision (DuckDB has no half precision)."""
    return _schema(_open(path)[0])


def arrow_stream(path: Path) -> Any:
    """A `pyarrow.RecordBatchReader` over an Arrow file; it can be read once."""
    import pyarrow as pa

    reader, mapped = _open(path)
    schema = _schema(reader)
    return pa.RecordBatchReader.from_batches(schema, _batches(reader, mapped, schema))


def arrow_rows(path: Path) -> int:
    """The number of rows, from the batches' headers."""
    reader, _ = _open(path)
    return sum(reader.get_batch(i).num_rows for i in range(reader.num_record_batches))


def _open(path: Path) -> tuple[Any, mmap.mmap]:
    import pyarrow as pa

    with path.open("rb") as stream:
        mapped = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    return pa.ipc.open_file(pa.py_buffer(mapped)), mapped


def _schema(reader: Any) -> Any:
    import pyarrow as pa

    return pa.schema([pa.field(field.name, _readable(field.type), field.nullable) for field in reader.schema])


def _readable(kind: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_float16(kind):
        return pa.float32()
    if pa.types.is_fixed_size_list(kind) and pa.types.is_float16(kind.value_type):
        return pa.list_(pa.float32(), kind.list_size)
    if pa.types.is_list(kind) and pa.types.is_float16(kind.value_type):
        return pa.list_(pa.float32())
    return kind


def _batches(reader: Any, mapped: mmap.mmap, schema: Any) -> Iterator[Any]:
    for i in range(reader.num_record_batches):
        batch = reader.get_batch(i)
        for start in range(0, batch.num_rows, ROWS):
            piece = batch.slice(start, ROWS)
            yield piece if piece.schema.types == schema.types else piece.cast(schema)
            if hasattr(mmap, "MADV_DONTNEED"):
                mapped.madvise(mmap.MADV_DONTNEED)
