"""Arrow data as a stream of small batches: files over a memory map, tables and batches that somebody handed over.

Pages of a file that were read are given back at once, so that a file of one huge batch is streamed, too. (A
*compressed* batch has to be unpacked whole: there the memory needed is that of the writer's batch.)
"""

import mmap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from confide.errors import InputError

ROWS = 16384


def arrow_schema(path: Path) -> Any:
    """The schema of an Arrow file, as it can be read."""
    return readable_schema(_open(path)[0].schema)


def arrow_rows(path: Path) -> int:
    """The number of rows, from the batches' headers."""
    reader, _ = _open(path)
    return sum(reader.get_batch(i).num_rows for i in range(reader.num_record_batches))


def arrow_stream(path: Path) -> Iterator[Any]:
    """The record batches of an Arrow file, in pieces."""
    reader, mapped = _open(path)
    schema = readable_schema(reader.schema)
    for i in range(reader.num_record_batches):
        for piece in in_pieces([reader.get_batch(i)], schema):
            yield piece
            if hasattr(mmap, "MADV_DONTNEED"):
                mapped.madvise(mmap.MADV_DONTNEED)


def in_pieces(batches: Iterable[Any], schema: Any) -> Iterator[Any]:
    """Record batches of at most ROWS rows, of this schema."""
    for batch in batches:
        for start in range(0, batch.num_rows, ROWS):
            yield _alike(batch.slice(start, ROWS), schema)


def _alike(batch: Any, schema: Any) -> Any:
    """A batch with the columns of a schema, found by their names, and with their types."""
    import pyarrow as pa

    if batch.schema.names == schema.names and batch.schema.types == schema.types:
        return batch
    for name in schema.names:
        if batch.schema.names.count(name) != 1:
            raise InputError(f"every batch must have the columns of the first; {name!r} is not in a later one")
    try:
        return batch.select(schema.names).cast(schema)
    except pa.ArrowException:
        raise InputError("every batch must have columns of the types of the first; a later one has others") from None


def readable_schema(schema: Any) -> Any:
    """The same schema with single precision for half precision, which DuckDB does not have."""
    import pyarrow as pa

    return pa.schema([pa.field(field.name, _readable(field.type), field.nullable) for field in schema])


def _readable(kind: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_float16(kind):
        return pa.float32()
    if pa.types.is_fixed_size_list(kind) and pa.types.is_float16(kind.value_type):
        return pa.list_(pa.float32(), kind.list_size)
    if pa.types.is_list(kind) and pa.types.is_float16(kind.value_type):
        return pa.list_(pa.float32())
    return kind


def _open(path: Path) -> tuple[Any, mmap.mmap]:
    import pyarrow as pa

    with path.open("rb") as stream:
        mapped = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    return pa.ipc.open_file(pa.py_buffer(mapped)), mapped
