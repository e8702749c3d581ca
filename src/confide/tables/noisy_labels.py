"""Labels of a table: randomise them where they are stored, and calibrate on the randomised labels."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from confide.calibration import LabelRequest, LedgerOptions, NoisyLabelCounts, randomise_labels, release
from confide.candidates import Candidates
from confide.releases import LabelStatement, NoisyLabelCalibration
from confide.support import FileKind, as_place, canonical_name, check_not_input, new_file
from confide.tables.arrow import ColumnRef, is_integer
from confide.tables.columns import ClassColumns, stated_outputs
from confide.tables.file_formats import file_format, open_sink
from confide.tables.named_columns import Names, label_column
from confide.tables.open_table import as_open_table
from confide.tables.readers import ClassReader, LabelReader, RecordReader
from confide.tables.records import RecordColumns, checked_batches, process_records
from confide.tables.table import Progress, Table, no_progress


def calibrate_noisy_label_table(
    source: Any,
    what: ClassColumns,
    request: LabelRequest,
    *,
    about: Mapping[str, str] | None = None,
    skip_incomplete: bool = False,
    progress: Progress = no_progress,
) -> NoisyLabelCalibration:
    """Calibrate on noisy labels of a table as `calibrate_noisy_labels`; `what` names probabilities and noisy labels.

    Parameters
    ----------
    source
        A source that `open_table` opens, or its result.
    what
        The columns. The score is that of the request.
    request
        From `confide.calibration.label_request`.
    about, skip_incomplete, progress
        As in `calibrate_table`. The number of records is public.

    Raises
    ------
    InputError
        If columns do not fit, or rows cannot be used: how many, and why.

    Examples
    --------
    >>> import pyarrow
    >>> from confide.calibration import label_request
    >>> table = pyarrow.table({"p_no": [0.9] * 500, "p_yes": [0.1] * 500, "label": ["no"] * 450 + ["yes"] * 50})
    >>> released = calibrate_noisy_label_table(table, ClassColumns("p_*", "label"), label_request(0.2, 3.0))
    >>> released.classes, 0.1 <= released.threshold < 0.2
    (('no', 'yes'), True)
    """
    with as_open_table(source) as table:
        known = request.classes
        if what.classes is None and isinstance(known, tuple) and isinstance(what.probabilities, tuple):
            what = replace(what, classes=known)
        rows = LabelledRows(table, what, skip_incomplete, progress)
        _, names = what.columns(table)
        own = None if names == tuple(range(len(names))) else names
        column_request = request.of_columns(own, len(names), stated_outputs(what, about))
        released: NoisyLabelCalibration = release(rows, column_request)
    return released


@dataclass(frozen=True)
class LabelledRows:
    """Probabilities and randomised labels of a table, as a source of releases; its columns are looked up at once."""

    table: Table
    what: ClassColumns
    skip_incomplete: bool = False
    progress: Progress = no_progress
    reader: RecordReader = field(init=False)
    n = None
    reading_is_visible = recounts = False

    def __post_init__(self) -> None:
        found, names = self.what.columns(self.table)
        label = self.what.label_column(self.table, names)  # randomised labels are names of classes
        # For every score: all probabilities are read.
        reader = ClassReader.of(found, label, "aps_deterministic", entries=False)
        object.__setattr__(self, "reader", reader)

    def count(self, request: LabelRequest, candidates: Candidates) -> dict[None, NoisyLabelCounts]:
        """Count the labels, overall and by class."""
        counts = NoisyLabelCounts(candidates, request.score)

        def add(arrays: list[Any], _: Any) -> None:
            counts.add(arrays[0], arrays[1])

        columns = RecordColumns(self.reader)
        process_records(self.table, self.what, columns, add, self.progress, skip_incomplete=self.skip_incomplete)
        self.table.check_rows(counts.n)
        return {None: counts}


def randomise_table(
    source: Any,
    label: str,
    classes: Sequence[object],
    epsilon: float,
    out: str | Path,
    *,
    keep: Sequence[str] | None = None,
    skip_incomplete: bool = False,
    progress: Progress = no_progress,
    **account: Unpack[LedgerOptions],
) -> LabelStatement:
    """Write a copy of a table with randomised labels; other columns are unchanged, in the order of the rows.

    The rows are held in memory, because a ledger needs all labels before the first is drawn.

    Parameters
    ----------
    source
        A source that `open_table` opens, or its result.
    label
        The column of the true labels: names out of `classes`, which are public.
    epsilon
        The privacy budget of each label.
    out
        A new file: Parquet, CSV or Arrow by its extension.
    keep
        The columns to keep in addition to the label; by default all.
    skip_incomplete
        Leave out rows without a label, instead of raising an error. The existence of such rows is not hidden.
    progress
        As in `score_histogram`.
    **account
        `ledger`, `dataset` and `again`, as in `randomise_labels`.

    Raises
    ------
    InputError, OutputExistsError
        If rows have no such label, or the output exists. Then nothing was charged.

    Examples
    --------
    >>> import pyarrow, tempfile
    >>> table = pyarrow.table({"id": [1, 2, 3], "label": ["no", "yes", "no"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     statement = randomise_table(table, "label", ["no", "yes"], 1.0, f"{folder}/noisy.csv")
    ...     print(Path(folder, "noisy.csv").read_text().splitlines()[0])
    "id","label"
    >>> statement.n
    3
    """
    place = as_place(out)
    form = file_format(place)
    with as_open_table(source) as table:
        check_not_input(place, table.files)
        column = label_column(table, label, _public(classes))
        names = [one for one in table.columns if keep is None or one in keep or one == label]
        for name in keep or ():
            table.type_of(name)
        other = [ColumnRef(name, "text" if form.kind == "csv" else "value") for name in names if name != label]
        reader = LabelReader.of(column)
        rows = table.drop_missing(reader.reads) if skip_incomplete else table
        checked = checked_batches(rows, reader, progress, keep=other, skips=not skip_incomplete, shows_types=True)
        with closing(checked):
            batches = [(batch, positions) for batch, (positions,) in checked]
        with new_file(place, overwrite=False, kind=FileKind.TABLE) as part, open_sink(part, form) as sink:
            integers = is_integer(table.type_of(label))
            labels = np.concatenate([positions for _, positions in batches])
            drawn, start = randomise_labels(labels, len(column.names), epsilon, **account), 0
            for batch, positions in batches:
                own = drawn.labels[start : start + len(positions)].tolist()
                start += len(positions)
                names_or_places = own if column.positions else [column.names[k] for k in own]
                sink.write(_written(batch, names, label, other, names_or_places, integers))
    kept = len(column.names) if column.positions or integers else column.names
    return replace(drawn.statement, classes=kept)


def _public(classes: Sequence[Any]) -> Names:
    """The class names as texts or integers."""
    return tuple(name if isinstance(name, int) else str(canonical_name(name)) for name in classes)


def _written(
    batch: Any, names: Sequence[str], label: str, other: Sequence[ColumnRef], own: Sequence[Any], integers: bool
) -> Any:
    """A batch of all columns, with these labels."""
    import pyarrow as pa

    aliases = {read.column: read.alias for read in other}
    labels = pa.array([int(one) for one in own] if integers else [str(one) for one in own])
    columns = [labels if name == label else batch.column(aliases[name]) for name in names]
    return pa.RecordBatch.from_arrays(columns, names=list(names))
