"""Prediction sets and intervals for the rows of a table, written into a file, a folder, or a table beside it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from confide.errors import InputError
from confide.releases import Release, warn_of
from confide.tables.figures import Figures
from confide.tables.open_table import opened
from confide.tables.predictions import Predictions
from confide.tables.predictors import Predictor, SetPredictor, predictors_of
from confide.tables.progress import Progress, silent
from confide.tables.readings import refuse_first_rows
from confide.tables.table import Table
from confide.tables.targets import write_predictions
from confide.tables.what import What


def predict_table(
    source: Any,
    what: What,
    release: Release,
    out: str | Path | None = None,
    *,
    out_table: str | None = None,
    by: str | None = None,
    keep: Sequence[str] | None = None,
    partition_by: Sequence[str] = (),
    overwrite: bool = False,
    skip_incomplete: bool = False,
    progress: Progress = silent,
) -> Figures:
    """Predict for every row of a table, and write its columns with the predictions; whole, or not at all.

    Sets become `prediction_set`, a list of class names (in CSV a JSON array), and `set_size`; intervals become `lower`
    and `upper`. With several levels there are such columns for each: `prediction_set_0.1`. The sets are those of
    `predict_set`, bit for bit, and the intervals those of `predict_interval`. A table without rows gives one with the
    same columns and no rows.

    Parameters
    ----------
    source
        Whatever `open_table` opens, or what it gave.
    what
        The columns of probabilities or predictions; label and target are not needed.
    release
        What the thresholds come from.
    out
        The file, by its ending Parquet, CSV or Arrow; or a folder (a name without an ending, or one that ends in `/`)
        of Parquet files, into which Spark's executors write on their own.
    out_table
        Instead: a new table in the same database or Spark.
    by
        For thresholds per group: the column of each row's group.
    keep
        Columns to keep; by default all but the probabilities.
    partition_by
        For a folder: columns whose values become folders, `ward=north/part-0.parquet`.
    overwrite
        Whether an existing file may be replaced if it holds predictions, which its last columns say (`prediction_set`
        and `set_size`, or `lower` and `upper`); other files, folders and tables never are.
    skip_incomplete
        Write no row in which a value that is read is missing, instead of refusing; `left_out()` of an open table tells
        how many there were.

    Returns
    -------
    dict
        `rows`, and for sets, if there are any, `mean_set_size` and `empty_sets`.

    Raises
    ------
    InputError
        If columns do not fit, or rows have no prediction: how many, and why; then nothing is written.
    OutputExistsError
        If the output exists. (One that may not be replaced even so is an InputError.)

    Warns
    -----
    CoverageWarning
        If a threshold is +inf or nearly so.

    Examples
    --------
    >>> import confide, pyarrow, tempfile
    >>> from confide.tables import Classified
    >>> released = confide.calibrate([0.3] * 500, 0.1, 1.0, score="lac", candidates=confide.Candidates.unit(3))
    >>> table = pyarrow.table({"p_a": [0.9, 0.5], "p_b": [0.1, 0.5]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     figures = predict_table(table, Classified("p_*"), released, f"{folder}/sets.csv")
    ...     print(Path(folder, "sets.csv").read_text(), figures["mean_set_size"])
    "prediction_set","set_size"
    "[""a""]",1
    "[""a"", ""b""]",2
     1.5
    """
    if (out is None) == (out_table is None):
        raise InputError("out or out_table must be given, and not both")
    with opened(source) as table:
        predictors = predictors_of(table, what, release, by)
        for one in predictors[:1]:
            if isinstance(one, SetPredictor) and one.sums and one.in_sql and not table.local:
                refuse_first_rows(table, one.probabilities)
        warn_of(release)
        reads = [read for one in predictors for read in one.reads]
        rows = table.complete(reads) if skip_incomplete else table
        made = Predictions(rows, _kept(table, keep, predictors), predictors)
        return write_predictions(
            made,
            str(out_table) if out is None else out,
            as_table=out is None,
            partition_by=tuple(partition_by),
            overwrite=overwrite,
            progress=progress,
        )


def _kept(table: Table, keep: Sequence[str] | None, predictors: Sequence[Predictor]) -> tuple[str, ...]:
    """The columns to keep; the names of the predictions must be free."""
    left_out = {name for one in predictors if isinstance(one, SetPredictor) for name in one.probabilities.columns}
    names = [name for name in table.columns if name not in left_out] if keep is None else list(keep)
    added = {name for one in predictors for name in one.adds}
    for name in names:
        table.type_of(name)
        if name in added:
            raise InputError(
                f"column {name!r} is in the input and would be written as well; choose the columns to keep without it"
            )
    if len(set(names)) != len(names):
        raise InputError(f"keep must name every column once; found {len(names) - len(set(names))} repeated")
    return tuple(names)
