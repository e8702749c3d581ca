"""Predictions written: one writer for files, one for folders; tables are written by the engine that has them."""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from confide.errors import ConfideError, InputError
from confide.support import (
    Kind,
    ObjectPath,
    OutputExistsError,
    Place,
    as_place,
    kind_of,
    names_object,
    new_file,
    of_store,
    refuse_existing,
    refuse_input,
)
from confide.tables.databases import without_password
from confide.tables.figures import Figures, Tally
from confide.tables.files import open_files
from confide.tables.formats import file_format, format_of
from confide.tables.objects import open_objects
from confide.tables.predictions import Predictions
from confide.tables.predictors import LOWER, SET, SIZE, UPPER
from confide.tables.progress import Progress
from confide.tables.sinks import open_sink

_ROWS_PER_FILE = 2**20


def is_folder(out: str | Path) -> bool:
    """Whether an output is a folder: a name that ends in `/`, one without an ending, or an address Spark alone knows.

    Examples
    --------
    >>> [is_folder(out) for out in ("sets/", "s3://bucket/sets", "hdfs://host/sets", "s3://bucket/sets.csv", "a.xlsx")]
    [True, True, True, False, False]
    """
    foreign = "://" in str(out) and not names_object(out)
    return str(out).endswith("/") or foreign or not (format_of(out) or Path(out).suffix)


def refuse_existing_predictions(path: Place, *, overwrite: bool) -> None:
    """Refuse a file that exists, unless it may be overwritten and holds predictions."""
    refuse_existing(path, overwrite=overwrite, kind=Kind.PREDICTIONS, what_is=kind_of_table)


def kind_of_table(path: Place) -> Kind:
    """What a file is; a table of predictions is one whose last columns are such as `predict_table` adds.

    They are `prediction_set` and `set_size`, or `lower` and `upper`, each perhaps with `_` and a level. So a table that
    was predicted by another version, or by hand, counts as one, and a table of records does not.
    """
    found = kind_of(path)
    if found not in (Kind.TABLE, Kind.OTHER) or format_of(path) is None:
        return found
    try:
        with open_objects(str(path)) if isinstance(path, ObjectPath) else open_files(str(path)) as table:
            last = table.columns[-2:]
    except ConfideError:
        return found
    return Kind.PREDICTIONS if _are_added(last) else Kind.TABLE


def _are_added(last: Sequence[str]) -> bool:
    """Whether the last columns belong to one prediction."""
    level = last[-1].removeprefix(SIZE).removeprefix(UPPER) if last else ""
    return (not level or level.startswith("_")) and list(last) in (
        [SET + level, SIZE + level],
        [LOWER + level, UPPER + level],
    )


def refuse_existing_folder(folder: Place) -> None:
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
    if table.writes_folders and (is_folder(out) or "://" in str(out)):
        return table.write_folder(predictions, str(out), partition_by, progress)
    if not is_folder(out):
        return _write_file(predictions, as_place(out), overwrite=overwrite, progress=progress)
    if "://" in str(out) and not names_object(out):
        raise InputError(
            f"output {without_password(str(out))!r} is an address that Spark alone writes to; name a file, a folder, "
            "or an address s3://, gs:// or az://"
        )
    return _write_folder(predictions, as_place(out), partition_by, progress)


def _write_file(predictions: Predictions, path: Place, *, overwrite: bool, progress: Progress) -> Figures:
    form, tally = file_format(path), Tally(predictions)
    as_text = form.kind == "csv"
    refuse_input(path, predictions.table.files)
    with (
        new_file(path, overwrite=overwrite, kind=Kind.PREDICTIONS, what_is=kind_of_table) as part,
        open_sink(part, form) as sink,
        closing(predictions.batches(as_text=as_text, progress=progress)) as batches,
    ):
        for batch in batches:
            tally.add(batch)
            sink.write(batch)
    return tally.figures()


def _write_folder(
    predictions: Predictions, folder: Place, partition_by: tuple[str, ...], progress: Progress
) -> Figures:
    """Parquet files in a new folder, of a million rows at most, perhaps in folders by value; one file of no rows."""
    import pyarrow as pa
    import pyarrow.dataset as ds
    import pyarrow.parquet as pq

    tally = Tally(predictions)

    def counted(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            tally.add(batch)
            yield batch

    with _new_folder(folder) as part, closing(predictions.batches(as_text=False, progress=progress)) as batches:
        first = next(batches)
        tally.add(first)
        where = str(part) if isinstance(part, Path) else part.address.path
        system = None if isinstance(part, Path) else part.filesystem
        if not first.num_rows:  # of which a data set makes no file, and a folder by value has no columns
            pq.write_table(pa.Table.from_batches([first]), f"{where}/part-0.parquet", filesystem=system)
        else:
            reader = pa.RecordBatchReader.from_batches(first.schema, _chained(first, counted(batches)))
            fields = pa.schema([first.schema.field(name) for name in partition_by])
            ds.write_dataset(
                reader,
                where,
                filesystem=system,
                create_dir=isinstance(part, Path),
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
def _new_folder(folder: Place) -> Iterator[Place]:
    """A temporary folder beside a new one, moved into place when the block succeeds and removed when it does not.

    A store moves nothing: there it is the new folder itself, of which every object is deleted.
    """
    refuse_existing_folder(folder)
    if isinstance(folder, ObjectPath):
        try:
            with of_store(folder.address, "written"):
                yield folder
        except BaseException:
            folder.delete_below()
            raise
        return
    part = folder.parent / f".confide-{os.urandom(8).hex()}.part"
    try:
        part.mkdir()
        yield part
        part.rename(folder)
    except OSError as error:
        raise InputError(f"output {str(folder)!r} cannot be written: {error.strerror}") from None
    finally:
        shutil.rmtree(part, ignore_errors=True)
