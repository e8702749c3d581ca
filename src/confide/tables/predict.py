"""Prediction sets and intervals for the rows of a file, written to another."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError
from confide.releases.calibration import Calibration
from confide.releases.several import GroupCalibration
from confide.scores.kinds import score_kind
from confide.sets.predict import predict_interval, predict_set
from confide.support.files import new_file
from confide.tables.formats import Format, file_format
from confide.tables.parts import Label, Number, Part, Probabilities, one_or_pairs
from confide.tables.scan import Progress, scan, silent
from confide.tables.set_columns import INTERVAL_COLUMNS, SET_COLUMNS, interval_columns, set_columns
from confide.tables.sinks import open_sink
from confide.tables.source import Table
from confide.tables.sql import identifier, in_words, is_number, is_plain


@dataclass(frozen=True)
class Output:
    """Where predictions go.

    Parameters
    ----------
    path
        The file; its extension says the format.
    keep
        Input columns to keep; None keeps all but the probabilities.
    overwrite
        Whether an existing file may be replaced.
    """

    path: Path
    keep: tuple[str, ...] | None = None
    overwrite: bool = False

    @property
    def format(self) -> Format:
        """The file format."""
        return file_format(self.path)


def write_sets(
    probabilities: Probabilities,
    calibration: Calibration | GroupCalibration,
    output: Output,
    progress: Progress = silent,
    group: Label | None = None,
) -> dict[str, float]:
    """Write the kept columns with `prediction_set` and `set_size`; returns the number of rows and the mean size.

    Thresholds per group need the column of each row's group. Randomised scores draw fresh numbers.
    """
    names, as_text = probabilities.names, output.format == "csv"
    u = np.random.default_rng() if score_kind(calibration.score).randomised else None
    members = 0

    def columns(p: NDArray[Any], *place: NDArray[Any]) -> list[Any]:
        nonlocal members
        mask = predict_set(p, calibration, names, u=u, groups=_named(group, place)).mask
        members += int(mask.sum())
        return set_columns(mask, names, as_text=as_text)

    table = probabilities.table
    kept = _kept(table, output, probabilities.columns, SET_COLUMNS)
    rows = _write(table, _with([probabilities], group), columns, kept, SET_COLUMNS, output, progress)
    return {"rows": rows, "mean_set_size": members / rows}


def write_intervals(
    predictions: Sequence[Number],
    calibration: Calibration | GroupCalibration,
    output: Output,
    progress: Progress = silent,
    group: Label | None = None,
) -> dict[str, float]:
    """Write the kept columns with `lower` and `upper`; returns the number of rows.

    Predictions are one column, or lower and upper quantiles.
    """
    many = len(predictions)

    def columns(*arrays: NDArray[Any]) -> list[Any]:
        f = one_or_pairs(arrays[:many])
        return interval_columns(*predict_interval(f, calibration, groups=_named(group, arrays[many:])))

    table = predictions[0].table
    kept = _kept(table, output, (), INTERVAL_COLUMNS)
    return {"rows": _write(table, _with(predictions, group), columns, kept, INTERVAL_COLUMNS, output, progress)}


def _with(parts: Sequence[Part], group: Label | None) -> list[Part]:
    return [*parts] if group is None else [*parts, group]


def _named(group: Label | None, place: tuple[NDArray[Any], ...]) -> NDArray[Any] | None:
    """The name of each row's group."""
    return None if group is None else np.array(group.names, dtype=object)[place[0]]


def _write(
    table: Table,
    parts: Sequence[Part],
    columns: Callable[..., list[Any]],
    kept: dict[str, str],
    added: tuple[str, ...],
    output: Output,
    progress: Progress,
) -> int:
    import pyarrow as pa

    rows = 0
    delimiter = "\t" if output.path.suffix.lower() == ".tsv" else ","
    with (
        new_file(output.path, overwrite=output.overwrite) as path,
        open_sink(path, output.format, delimiter) as sink,
    ):
        for arrays, others in scan(table, parts, list(kept.values()), progress):
            sink.write(pa.RecordBatch.from_arrays([*others, *columns(*arrays)], names=[*kept, *added]))
            rows += len(arrays[0])
    return rows


def _kept(table: Table, output: Output, left_out: Sequence[str], added: tuple[str, ...]) -> dict[str, str]:
    """The columns to keep, each with the expression that reads it."""
    names = [name for name in table.columns if name not in left_out] if output.keep is None else list(output.keep)
    for name in names:
        table.kind(name)
        if name in added:
            raise InputError(
                f"column {name!r} is in the input and would be written as well; choose the columns to keep without it"
            )
    if len(set(names)) != len(names):
        raise InputError(f"keep must name every column once; found {len(names) - len(set(names))} repeated")
    return {name: _expression(table, name, output.format) for name in names}


def _expression(table: Table, name: str, kind: Format) -> str:
    """A kept column: as it is, in CSV as text where it is no number, from CSV with the type of its first rows."""
    column, held = identifier(name), table.columns[name]
    if table.format == "csv":
        return column if kind == "csv" or held == "VARCHAR" else f"CAST({column} AS {held})"
    if kind != "csv" or held == "VARCHAR" or is_number(held):
        return column
    if not is_plain(held):
        raise InputError(
            f"column {name!r} holds {in_words(held)}, which a CSV cell cannot; leave it out with keep, or write Parquet"
        )
    return f"CAST({column} AS VARCHAR)"
