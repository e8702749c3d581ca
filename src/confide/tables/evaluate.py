"""How often sets contain the truth, and how large they are, over a table. These numbers are not private."""

from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np

from confide.errors import InputError
from confide.evaluation import Evaluation, IntervalTally, LevelEvaluation, ScoreTally, SetTally
from confide.releases import GroupCalibration, Release
from confide.tables.findings import Findings
from confide.tables.named_column import NamedColumn, label_column
from confide.tables.open_table import opened
from confide.tables.progress import Progress, silent
from confide.tables.readings import ClassReading, ScoreReading, TargetReading, finite_columns
from confide.tables.readings import Findings as Found
from confide.tables.stream_counts import rows_per_batch
from confide.tables.table import Table
from confide.tables.what import Classified, Losses, What


def evaluate_table(
    source: Any,
    what: What,
    release: Release,
    *,
    by: str | None = None,
    examples: int = 0,
    progress: Progress = silent,
) -> Evaluation | LevelEvaluation:
    """Measure coverage and set size on records with known truth; not private.

    Parameters
    ----------
    source
        Whatever `open_table` opens, or what it gave.
    what
        The columns, with label or target; a score is that of the release. `Scored` compares scores of the truth with
        the threshold; `Losses` compares critical thresholds, of which the share beyond it, times the bound, is the
        loss.
    release
        What is evaluated.
    by
        For thresholds per group: the column of each record's group; for `Scored` and thresholds per class, of its
        class.
    examples
        How many records to keep as they are, with sets and true labels; the first ones.

    Raises
    ------
    InputError
        If columns do not fit the release, or rows cannot be used: how many, and why.

    Examples
    --------
    >>> import confide, pyarrow
    >>> from confide.tables import Scored
    >>> released = confide.calibrate(np.linspace(0, 1, 2000), alpha=0.1, epsilon=1.0, score="lac")
    >>> found = evaluate_table(pyarrow.table({"s": [0.1, 0.5, 0.99]}), Scored("s", "lac"), released)
    >>> round(found.coverage.value, 2)
    0.67
    """
    with opened(source) as table:
        groups = None if by is None else _group_column(table, by, release)
        counted = _counted(table, what, release, examples)
        reads = [*counted.reads, *([] if groups is None else [groups.read])]
        requirements = [*counted.requirements, *([] if groups is None else [groups.requirement])]
        keys = None if groups is None else np.array(groups.names, dtype=object)
        findings, start = Findings(), 0
        with closing(table.batches(tuple(dict.fromkeys(reads)), rows_per_batch(counted.width))) as batches:
            for batch in batches:
                if not batch.num_rows:
                    continue
                arrays, wrong = counted.arrays(batch)
                place = None if groups is None else groups.places(batch)
                if place is not None and (place < 0).any():
                    wrong = np.zeros(len(place), np.int8) if wrong is None else wrong
                    wrong[place < 0] = len(requirements)
                if wrong is not None:
                    findings.note(wrong, start if table.ordered else None)
                start += batch.num_rows
                progress(batch.num_rows)
                if not findings:
                    counted.add(arrays, None if place is None or keys is None else keys[place])
        findings.refuse(requirements)
        if not start:
            raise InputError(f"{table.name} must have rows; it is empty: it has column names but no rows")
        found: Evaluation | LevelEvaluation = counted.tally.result()
        return found


class _Sets:
    """Prediction sets of batches, counted."""

    def __init__(self, table: Table, what: Classified, release: Release, examples: int) -> None:
        (reading,) = replace(what, score="aps").readings(table)  # whichever score: all probabilities are read
        assert isinstance(reading, ClassReading)
        _, names = what.columns(table)
        self._reading, self.tally = reading, SetTally(release, names, examples)
        self._u = np.random.default_rng() if self.tally.randomised else None
        self.reads, self.requirements, self.width = reading.reads, reading.requirements, reading.width

    def arrays(self, batch: Any) -> tuple[list[Any], Found]:
        p, findings = self._reading.probabilities.matrix(batch)
        place = self._reading.label.places(batch)
        if (place < 0).any():
            findings = np.zeros(len(place), np.int8) if findings is None else findings
            findings[(place < 0) & (findings == 0)] = len(self.requirements)
        return [p, place], findings

    def add(self, arrays: list[Any], groups: Any) -> None:
        self.tally.add(arrays[0], arrays[1], groups, self._u)


class _Intervals:
    """Prediction intervals of batches, counted."""

    def __init__(self, reading: TargetReading, release: Release) -> None:
        self._names, self.tally = (*reading.predictions, reading.target), IntervalTally(release)
        self.reads, self.requirements, self.width = reading.reads, reading.requirements[1:], reading.width

    def arrays(self, batch: Any) -> tuple[list[Any], Found]:
        columns, findings = finite_columns(batch, self._names, first=1)
        return [columns[0] if len(columns) == 2 else np.column_stack(columns[:-1]), columns[-1]], findings

    def add(self, arrays: list[Any], groups: Any) -> None:
        self.tally.add(arrays[0], arrays[1], groups)


class _Scores:
    """Scores of batches, compared with thresholds and counted."""

    def __init__(self, reading: Any, release: Release) -> None:
        self._reading, self.tally = reading, ScoreTally(release)
        self.reads, self.requirements, self.width = reading.reads, reading.requirements, reading.width

    def arrays(self, batch: Any) -> tuple[list[Any], Found]:
        scores, findings = self._reading.scores(batch)
        kind, low = self._reading.kind, np.float64(self._reading.kind.low)
        unusable = ~((scores >= low) & (scores <= np.float64(kind.high)))
        if unusable.any() and isinstance(self._reading, ScoreReading):
            findings = unusable.astype(np.int8)
        return [scores], findings

    def add(self, arrays: list[Any], groups: Any) -> None:
        self.tally.add(arrays[0], groups)


def _counted(table: Table, what: What, release: Release, examples: int) -> Any:
    if isinstance(what, Classified):
        return _Sets(table, what, release, examples)
    readings = what.readings(table)
    if isinstance(readings[0], TargetReading):
        return _Intervals(readings[0], release)
    if isinstance(what, Losses) and type(release).__name__ != "RiskCalibration":
        raise InputError("the release must be a bound on a loss, to be evaluated on losses")
    return _Scores(readings[0], release)


def _group_column(table: Table, by: str, release: Release) -> NamedColumn:
    """The column that says to which group, or true class, of a release a record belongs."""
    if not isinstance(release, GroupCalibration):
        raise InputError("by belongs to releases with one threshold per group")
    made = label_column(table, by, tuple(release.parts))
    return replace(made, what="groups", positions=False)
