"""Prediction sets and intervals for the rows of a table, written into a file or a folder."""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from confide.core import Release, warn_about
from confide.errors import ConfideError, InputError, InputTypeError
from confide.sets import warn_of_empty_sets
from confide.support import (
    FileKind,
    FileLocation,
    ObjectPath,
    OutputExistsError,
    as_place,
    check_new,
    check_not_input,
    kind_of,
    names_object,
    new_file,
    require,
)
from confide.tables.arrow import with_decimal_commas
from confide.tables.columns import ColumnSpec
from confide.tables.databases import without_password
from confide.tables.file_formats import file_format, format_of, write_batches
from confide.tables.files import open_files
from confide.tables.open_table import as_open_table
from confide.tables.prediction_counts import PredictionCounts, Summary
from confide.tables.predictors import LOWER, SET, SIZE, UPPER, Predictions, Predictor, SetPredictor
from confide.tables.spark import SparkTable
from confide.tables.table import Progress, Table, no_progress


def predict_table(
    source: Any,
    what: ColumnSpec,
    release: Release,
    out: str | Path,
    *,
    by: str | Sequence[str] | None = None,
    keep: Sequence[str] | None = None,
    overwrite: bool = False,
    skip_incomplete: bool = False,
    progress: Progress = no_progress,
) -> Summary:
    """Predict for every row of a table, and write its columns with the predictions; all of them, or nothing.

    Sets become `prediction_set`, a list of class names (in CSV a JSON array), and `set_size`; intervals become `lower`
    and `upper`. With several levels there are such columns for each: `prediction_set_0.1`. The sets are those of
    `predict_set`, bit for bit, and the intervals those of `predict_interval`. A table without rows gives one with the
    same columns and no rows.

    Parameters
    ----------
    source
        A source that `open_table` opens, or its result.
    what
        The columns of probabilities or predictions; label and target are not needed.
    release
        The release with the thresholds.
    out
        The file: Parquet, CSV or Arrow by its extension. Or a folder of Parquet files (a name without an extension, or
        one that ends in `/`). This process writes them; for a frame of Spark see `predict_frame`.
    by
        For thresholds per group: the column of each row's group. If groups overlap: their columns, whose names may
        differ from those at the calibration if they are in the same order.
    keep
        Columns to keep; by default all but the probabilities.
    overwrite
        Whether an existing file may be replaced if its last columns are predictions (`prediction_set` and `set_size`,
        or `lower` and `upper`). Other files and folders are never replaced.
    skip_incomplete
        Write no row with a missing value in a column that is read, instead of raising an error. `left_out()` of an open
        table returns their number.
    progress
        As in `score_histogram`.

    Returns
    -------
    dict
        `rows`, and for sets, if there are any, `mean_set_size` and `empty_sets`.

    Raises
    ------
    InputError
        If columns do not fit, or rows have no prediction: how many, and why. Then nothing is written.
    OutputExistsError
        If the output exists. (If it can never be replaced, the error is an InputError.)

    Warns
    -----
    CoverageWarning
        If a threshold is +inf or uninformative, or more than 1 % of the sets are empty.

    Examples
    --------
    >>> import confide, pyarrow, tempfile
    >>> from confide.tables import ClassColumns
    >>> released = confide.calibrate([0.3] * 500, 0.1, 1.0, score="lac", candidates=confide.Candidates.unit(3))
    >>> table = pyarrow.table({"p_a": [0.9, 0.5], "p_b": [0.1, 0.5]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     summary = predict_table(table, ClassColumns("p_*"), released, f"{folder}/sets.csv")
    ...     print(Path(folder, "sets.csv").read_text(), summary["mean_set_size"])
    "prediction_set","set_size"
    "[""a""]",1
    "[""a"", ""b""]",2
     1.5
    """
    with as_open_table(source) as table:
        rows, predictions = _predictions(table, what, release, by, keep, skip_incomplete)
        summary = write_predictions(rows, predictions, out, overwrite=overwrite, progress=progress)
    if release.loss is None:
        warn_of_empty_sets(int(summary.get("empty_sets", 0)), int(summary["rows"]), release.score)
    return summary


def predict_frame(
    frame: Any,
    what: ColumnSpec,
    release: Release,
    *,
    by: str | Sequence[str] | None = None,
    keep: Sequence[str] | None = None,
    skip_incomplete: bool = False,
) -> Any:
    """Predict for every row of a data frame of Spark: a frame of its columns with the predictions.

    The predictions are those of `predict_table`. The executors compute them when you write or show the frame, and no
    row reaches this process.

    Parameters
    ----------
    frame
        A `pyspark.sql.DataFrame`, also of Spark Connect.
    what, release, by, keep, skip_incomplete
        As in `predict_table`.

    Returns
    -------
    pyspark.sql.DataFrame
        Rows without a prediction fail its jobs, so that Spark writes nothing. Spark's error then ends with the number
        of these rows of one partition, and why.

    Raises
    ------
    InputError
        If columns do not fit.

    Warns
    -----
    CoverageWarning
        If a threshold is +inf or uninformative.

    Examples
    --------
    >>> import confide
    >>> from confide.tables import ClassColumns
    >>> def write_sets(session, folder, out):
    ...     release = confide.load("released.json")
    ...     predict_frame(session.read.parquet(folder), ClassColumns("p"), release).write.parquet(out)
    """
    with as_open_table(frame) as table:
        rows, predictions = _predictions(table, what, release, by, keep, skip_incomplete)
        if not isinstance(rows, SparkTable):
            raise InputTypeError("frame", "must be a data frame of Spark", got=type(frame).__name__)
        return rows.predicted(predictions)


def _predictions(
    table: Table,
    what: ColumnSpec,
    release: Release,
    by: str | Sequence[str] | None,
    keep: Sequence[str] | None,
    skip_incomplete: bool,
) -> tuple[Table, Predictions]:
    predictors = what._predictors(table, release, by)
    warn_about(release)
    reads = [read for predictor in predictors for read in predictor.reads]
    rows = table.drop_missing(reads) if skip_incomplete else table
    return rows, Predictions(_columns_to_keep(table, keep, predictors), predictors)


def _columns_to_keep(table: Table, keep: Sequence[str] | None, predictors: Sequence[Predictor]) -> tuple[str, ...]:
    """The columns to keep; raises `InputError` if a prediction would have the name of one."""
    left_out = {
        name
        for predictor in predictors
        if isinstance(predictor, SetPredictor)
        for name in predictor.reader.probabilities.columns
    }
    names = [name for name in table.columns if name not in left_out] if keep is None else list(keep)
    added = {name for predictor in predictors for name in predictor.adds}
    for name in names:
        table.type_of(name)
        must = f"{name!r} is in the input and would be written as well"
        require("column", name not in added, must, remedy="Choose the columns to keep without it")
    if len(set(names)) != len(names):
        raise InputError("keep", "must name every column once", got=f"{len(names) - len(set(names))} repeated")
    return tuple(names)


_ROWS_PER_FILE = 2**20


def is_folder(out: str | Path) -> bool:
    """Whether an output is a folder: its name ends in `/` or has no extension, or it is an address that is no store's.

    Examples
    --------
    >>> [is_folder(out) for out in ("sets/", "s3://bucket/sets", "hdfs://host/sets", "s3://bucket/sets.csv", "a.xlsx")]
    [True, True, True, False, False]
    """
    foreign = "://" in str(out) and not names_object(out)
    return str(out).endswith("/") or foreign or not (format_of(out) or Path(out).suffix)


def refuse_existing_predictions(path: FileLocation, *, overwrite: bool) -> None:
    """Reject a file that exists, unless it may be overwritten and contains predictions."""
    check_new(path, overwrite=overwrite, kind=FileKind.PREDICTIONS, what_is=kind_of_table)


def kind_of_table(path: FileLocation) -> FileKind:
    """The kind of a file; a table that ends in columns such as `predict_table` adds is one of predictions."""
    kind = kind_of(path)
    if kind not in (FileKind.TABLE, FileKind.OTHER) or format_of(path) is None:
        return kind
    try:
        with open_files(str(path)) as table:
            last = table.columns[-2:]
    except ConfideError:
        return kind
    return FileKind.PREDICTIONS if _are_added(last) else FileKind.TABLE


def _are_added(last: Sequence[str]) -> bool:
    level = last[-1].removeprefix(SIZE).removeprefix(UPPER) if last else ""
    added = [SET + level, SIZE + level], [LOWER + level, UPPER + level]
    return (not level or level.startswith("_")) and list(last) in added


def refuse_existing_folder(folder: FileLocation) -> None:
    """Reject a folder that exists."""
    if folder.exists():
        raise OutputExistsError("output", f"{str(folder)!r} exists already", remedy="Choose another name")


def write_predictions(
    table: Table, predictions: Predictions, out: str | Path, *, overwrite: bool, progress: Progress
) -> Summary:
    """Write the rows of a table into a file or a folder; everything, or nothing."""
    if not is_folder(out):
        return _write_file(table, predictions, as_place(out), overwrite=overwrite, progress=progress)
    must = f"{without_password(str(out))!r} must be a file, a folder, or an address s3://, gs:// or az://"
    remedy = "To other addresses Spark writes the frame of confide.tables.predict_frame"
    require("output", names_object(out) or "://" not in str(out), must, remedy=remedy)
    return _write_folder(table, predictions, as_place(out), progress)


def _write_file(
    table: Table, predictions: Predictions, path: FileLocation, *, overwrite: bool, progress: Progress
) -> Summary:
    form = file_format(path)
    tally = PredictionCounts(predictions)
    is_csv = form.kind == "csv"
    check_not_input(path, table.files)
    with (
        new_file(path, overwrite=overwrite, kind=FileKind.PREDICTIONS, what_is=kind_of_table) as temporary,
        closing(replace(predictions, as_text=is_csv).batches(table, progress)) as batches,
    ):
        counted = tally.counted(batches)
        decimal_commas = is_csv and table.decimal == ","
        write_batches(temporary, form, map(with_decimal_commas, counted) if decimal_commas else counted)
    return tally.summary()


def _write_folder(table: Table, predictions: Predictions, folder: FileLocation, progress: Progress) -> Summary:
    """Write Parquet files of about a million rows into a new folder; one file without rows if there are none."""
    tally = PredictionCounts(predictions)
    written: list[FileLocation] = []
    with _new_folder(folder, written) as destination, closing(predictions.batches(table, progress)) as batches:
        counted = tally.counted(batches)
        # A file begins only with a batch, so that none is empty; a table without rows gives one batch
        while (batch := next(counted, None)) is not None:
            file = destination / f"part-{len(written)}.parquet"
            with new_file(file, overwrite=False) as temporary:
                write_batches(temporary, file_format(file), _of_one_file(chain([batch], counted)))
            written.append(file)
    return tally.summary()


def _of_one_file(batches: Iterator[Any]) -> Iterator[Any]:
    rows = 0
    for batch in batches:
        yield batch
        rows += batch.num_rows
        if rows >= _ROWS_PER_FILE:
            return


@contextmanager
def _new_folder(folder: FileLocation, written: Sequence[FileLocation]) -> Iterator[FileLocation]:
    """A temporary folder next to a new one; it is moved into place if the block succeeds, and removed otherwise.

    An object store cannot move a folder. There files are written to the new folder itself, and deleted after an error.
    """
    refuse_existing_folder(folder)
    if isinstance(folder, ObjectPath):
        try:
            yield folder
        except BaseException:
            for file in written:
                file.unlink()
            raise
        return
    temporary = folder.parent / f".confide-{os.urandom(8).hex()}.part"
    try:
        temporary.mkdir()
        yield temporary
        temporary.rename(folder)
    except OSError as error:
        raise InputError("output", f"{str(folder)!r} cannot be written: {error.strerror}") from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
