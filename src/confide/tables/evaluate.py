"""How often sets contain the truth, and how large they are, over a table. These numbers are not private."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import Any

from confide.errors import InputError
from confide.evaluation import Evaluation, IntervalTally, LevelEvaluation, ScoreTally, SetTally
from confide.releases import GroupCalibration, Release, RiskCalibration, names_for
from confide.tables.findings import Findings
from confide.tables.named_column import AnyGroups, NamedColumn, group_column
from confide.tables.open_table import opened
from confide.tables.predictors import refuse_turned_pair
from confide.tables.progress import Progress, silent
from confide.tables.readings import Reading, ScoreReading, noted
from confide.tables.stream_counts import rows_per_batch
from confide.tables.table import Table
from confide.tables.what import Classified, Losses, Regressed, What


def evaluate_table(
    source: Any,
    what: What,
    release: Release,
    *,
    by: str | None = None,
    examples: int = 0,
    skip_incomplete: bool = False,
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
        The column of each record's group. Needed for thresholds per group, and for `Scored` and thresholds per class,
        whose classes it names; for every other release a check: coverage is measured group by group.
    examples
        How many records to keep as they are, with sets and true labels; the first ones.
    skip_incomplete
        Leave out records in which a value that is read is missing, instead of refusing them; `left_out()` of an open
        table tells how many.

    Raises
    ------
    InputError
        If columns do not fit the release, or rows cannot be used: how many, and why.

    Examples
    --------
    >>> import confide, pyarrow, numpy as np
    >>> from confide.tables import Scored
    >>> released = confide.calibrate(np.linspace(0, 1, 2000), alpha=0.1, epsilon=1.0, score="lac")
    >>> found = evaluate_table(pyarrow.table({"s": [0.1, 0.5, 0.99]}), Scored("s", "lac"), released)
    >>> round(found.coverage.value, 2)
    0.67
    """
    return tally_table(
        source,
        what,
        release,
        by=by,
        examples=examples,
        skip_incomplete=skip_incomplete,
        may_be_empty=False,
        progress=progress,
    ).result()


def tally_table(
    source: Any,
    what: What,
    release: Release,
    *,
    by: str | None = None,
    examples: int = 0,
    skip_incomplete: bool = False,
    may_be_empty: bool = True,
    progress: Progress = silent,
) -> SetTally | IntervalTally | ScoreTally:
    """What `evaluate_table` counts, of a table that `may_be_empty`: what is released of it with noise must not tell."""
    with opened(source) as table:
        reading, tally, add = _tally(table, what, release, examples)
        groups = None if by is None else _group_column(table, by, release, what)
        reads = tuple(dict.fromkeys([*reading.reads, *([] if groups is None else [groups.read])]))
        findings, start = Findings(), 0
        table = table.complete(reads) if skip_incomplete else table
        with closing(table.batches(reads, rows_per_batch(reading.width))) as batches:
            for batch in batches:
                arrays, wrong = reading.arrays(batch)
                keys = None
                if groups is not None:
                    keys, without = groups.keys(batch)
                    wrong = noted(wrong, without, len(reading.requirements) + 1)
                if isinstance(reading, ScoreReading):
                    wrong = noted(wrong, ~reading.in_range(arrays[0]), 1)
                if wrong is not None:
                    faults = reading.faults(batch)
                    if groups is not None:
                        faults.append(groups.fault(batch, len(reading.requirements) + 1))
                    findings.note(wrong, start if table.ordered else None, faults)
                start += batch.num_rows
                progress(batch.num_rows)
                if batch.num_rows and not findings:
                    counted = arrays if isinstance(what, Classified | Regressed) else [reading.score_of(arrays)]
                    add(*counted, keys)
        wanted = [*reading.requirements, *([] if groups is None else [groups.requirement])]
        findings.refuse(wanted, table.rows, skips=not skip_incomplete)
        if not (start or may_be_empty):
            raise InputError(f"{table.name} must have rows; it is empty: it has column names but no rows")
        return tally


def _tally(
    table: Table, what: What, release: Release, examples: int
) -> tuple[Reading, SetTally | IntervalTally | ScoreTally, Callable[..., None]]:
    """What is read of each record, what counts it, and how it is told."""
    if isinstance(what, Classified):
        (reading,) = replace(what, score="aps").readings(table)  # whichever score: all probabilities are read
        p, names = what.columns(table)
        refuse_turned_pair(p, names, release)
        sets = SetTally(release, names, examples)
        return reading, sets, sets.add
    reading = what.readings(table)[0]
    if isinstance(what, Losses) and what.probabilities is not None:
        names_for(release, what.columns(table)[1], len(what.columns(table)[1]))
    if isinstance(what, Regressed):
        intervals = IntervalTally(release)
        return reading, intervals, intervals.add
    if isinstance(what, Losses) and not isinstance(release, RiskCalibration):
        raise InputError("the release must be a bound on a loss, to be evaluated on losses")
    scores = ScoreTally(release)
    return reading, scores, scores.add


def _group_column(table: Table, by: str, release: Release, what: What) -> NamedColumn | AnyGroups:
    """The column that says to which group, or true class, of a release a record belongs; or to which group at all."""
    if isinstance(release, GroupCalibration) and (release.by == "group" or not isinstance(what, Classified)):
        return group_column(table, by, tuple(release.parts))
    return AnyGroups.of(table, by)
