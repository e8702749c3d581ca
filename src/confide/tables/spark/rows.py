"""Rows of a table on Spark, handed over to the driver partition by partition."""

from collections.abc import Callable, Iterator
from typing import Any

from confide.tables.spark.failures import in_words
from confide.tables.spark.frames import frame_of


def batches_from_executors(table: Any) -> Iterator[Any]:
    """Arrow record batches of a table on Spark, partition by partition: the driver holds one partition at a time.

    The executors' Python needs pyarrow.
    """
    import pyarrow as pa

    def packed() -> Iterator[Any]:
        rows: Iterator[Any] = frame_of(table).mapInArrow(_packer(), "batch binary").toLocalIterator()
        return rows

    rows = in_words(packed)
    while (row := in_words(lambda: next(rows, None))) is not None:
        yield from pa.ipc.open_stream(row[0])


def _packer() -> Callable[[Iterator[Any]], Iterator[Any]]:
    """A function that travels with its code, for executors without confide: batches as bytes, one per row.

    They are of 16 MiB at most (or of one row), since Spark Connect sends no larger ones.
    """

    def pack(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow

        for batch in batches:
            rows = max(1, batch.num_rows * 2**24 // max(batch.nbytes, 1))
            for start in range(0, batch.num_rows, rows):
                sink = pyarrow.BufferOutputStream()
                with pyarrow.ipc.new_stream(sink, batch.schema) as writer:
                    writer.write_batch(batch.slice(start, rows))
                yield pyarrow.record_batch({"batch": pyarrow.array([sink.getvalue().to_pybytes()], pyarrow.binary())})

    return pack
