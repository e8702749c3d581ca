"""Predictions written: one writer for files, one for folders; tables are written by the engine that has them."""

import os
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from confide.errors import InputError
from confide.support import OutputExistsError, new_file
from confide.tables.formats import file_format, format_of
from confide.tables.predictions import Predictions
from confide.tables.progress import Progress
from confide.tables.sinks import open_sink

Figures: TypeAlias = dict[str, float]
"""What is told of written predictions: `rows`, and for sets `mean_set_size`."""

_ROWS_PER_FILE = 2**20


class Tally:
    """Counts rows, and the members of sets, as batches go by."""

    def __init__(self, predictions: Predictions) -> None:
        self._proof = predictions.proof if predictions.counts_members else None
        self.rows = self._members = 0

    def add(self, batch: Any) -> None:
        """Count a `pyarrow.RecordBatch`."""
        self.rows += batch.num_rows
        if self._proof is not None:
            self._members += int(batch.column(self._proof).to_numpy(zero_copy_only=False).sum())

    def figures(self) -> Figures:
        """Rows and mean set size."""
        return {"rows": self.rows} | ({} if self._proof is None else {"mean_set_size": self._members / self.rows})


def figures_of(predictions: Predictions, rows: int, missing: int, members: int | None) -> Figures:
    """The same from counts that an engine made; rows without a prediction are refused with their number."""
    if missing:
        raise InputError(
            f"{'; '.join(predictions.predictors[0].requirements)} in every row; {missing} of {rows} do not"
        )
    if not rows:
        raise InputError(f"{predictions.table.name} must have rows; it is empty: it has column names but no rows")
    return {"rows": rows} | ({} if members is None else {"mean_set_size": members / rows})


def is_folder(out: str | Path) -> bool:
    """Whether an output is a folder: an address, a name that ends in `/`, or one without an ending.

    Examples
    --------
    >>> [is_folder(out) for out in ("sets/", "sets", "s3a://bucket/sets", "sets.parquet", "sets.xlsx")]
    [True, True, True, False, False]
    """
    return str(out).endswith("/") or "://" in str(out) or not (format_of(out) or Path(out).suffix)


def refuse_existing_folder(folder: Path) -> None:
    """Refuse a folder that exists."""
    if folder.exists():
        raise OutputExistsError(f"output {str(folder)!r} exists already; choose another name")


def write_predictions(
    predictions: Predictions,
    out: str | Path,
    *,
    as_table: bool,
    partition_by: tuple[str, ...],
    overwrite: bool,
    progress: Progress,
) -> Figures:
    """Write into a file, a folder, or with `as_table` a table beside the one that is read; whole, or not at all."""
    table = predictions.table
    if partition_by and (as_table or not is_folder(out)):
        raise InputError("partition_by belongs to a folder: name one with out")
    for name in partition_by:
        if name not in predictions.keep:
            raise InputError(f"partition_by must name kept columns; {name!r} is none of them")
    if as_table:
        if not table.writes_tables:
            raise InputError(
                "out_table belongs to a DuckDB or PostgreSQL database, or to Spark; name a file or a folder with out"
            )
        return table.write_table(predictions, str(out), progress)
    if not is_folder(out):
        return _write_file(predictions, Path(out), overwrite=overwrite, progress=progress)
    if table.writes_folders:
        return table.write_folder(predictions, str(out), partition_by, progress)
    if "://" in str(out):
        raise InputError(f"output {str(out)!r} is an address, which Spark alone writes to; name a file or a folder")
    return _write_folder(predictions, Path(out), partition_by, progress)


def _write_file(predictions: Predictions, path: Path, *, overwrite: bool, progress: Progress) -> Figures:
    form, tally = file_format(path), Tally(predictions)
    as_text = form.kind == "csv"
    with (
        new_file(path, overwrite=overwrite) as part,
        open_sink(part, form) as sink,
        closing(predictions.batches(as_text=as_text, progress=progress)) as batches,
    ):
        for batch in batches:
            tally.add(batch)
            sink.write(batch)
    return tally.figures()


def _write_folder(predictions: Predictions, folder: Path, partition_by: tuple[str, ...], progress: Progress) -> Figures:
    """Parquet files in a new folder, of a million rows at most, perhaps in folders by value."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    tally = Tally(predictions)

    def counted(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            tally.add(batch)
            yield batch

    with _new_folder(folder) as part, closing(predictions.batches(as_text=False, progress=progress)) as batches:
        first = next(batches, None)
        if first is not None:
            tally.add(first)
            reader = pa.RecordBatchReader.from_batches(first.schema, _chained(first, counted(batches)))
            fields = pa.schema([first.schema.field(name) for name in partition_by])
            ds.write_dataset(
                reader,
                part,
                format="parquet",
                basename_template="part-{i}.parquet",
                partitioning=ds.partitioning(fields, flavor="hive") if partition_by else None,
                max_rows_per_file=_ROWS_PER_FILE,
                max_rows_per_group=_ROWS_PER_FILE,
                use_threads=False,
            )
    return tally.figures()


def _chained(first: Any, others: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from others


@contextmanager
def _new_folder(folder: Path) -> Iterator[Path]:
    """A temporary folder beside a new one, moved into place when the block succeeds and removed when it does not."""
    refuse_existing_folder(folder)
    part = folder.parent / f".confide-{os.urandom(8).hex()}.part"
    try:
        part.mkdir()
        yield part
        part.rename(folder)
    except OSError as error:
        raise InputError(f"output {str(folder)!r} cannot be written: {error.strerror}") from None
    finally:
        shutil.rmtree(part, ignore_errors=True)
