"""A public pilot sample from a table: scores, and those of all classes, for `confide.plan`. It is kept in memory."""

from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np

from confide.errors import InputError
from confide.planning import Pilot
from confide.scores import all_scores
from confide.tables.findings import Findings
from confide.tables.open_table import opened
from confide.tables.progress import Progress, silent
from confide.tables.readings import ScoreReading, noted
from confide.tables.stream_counts import rows_per_batch
from confide.tables.what import Classified, Losses, Regressed, What


def read_pilot(source: Any, what: What, *, skip_incomplete: bool = False, progress: Progress = silent) -> Pilot:
    """Read a PUBLIC sample; never private records, for a plan tells what it sees.

    Parameters
    ----------
    source
        Whatever `open_table` opens, or what it gave.
    what
        The columns: scores; probabilities and labels, of which set sizes are told besides; or predictions and targets.
    skip_incomplete
        Leave out records in which a value that is read is missing, instead of refusing them; `left_out()` of an open
        table tells how many.

    Raises
    ------
    InputError
        If rows cannot be used: how many, and why; and for losses and two sides, which have no one score.

    Examples
    --------
    >>> import pyarrow
    >>> from confide.tables import Scored
    >>> read_pilot(pyarrow.table({"s": [0.1, 0.5, 0.99]}), Scored("s", "lac")).scores
    array([0.1 , 0.5 , 0.99])
    """
    if isinstance(what, Losses) or (isinstance(what, Regressed) and len(what.kinds) > 1):
        raise InputError("a pilot sample must have one score per record: no losses, and no scores of two sides")
    scores, table_of_classes, widths = list[Any](), list[Any](), list[float]()
    # Whichever score: all probabilities of a record are read.
    read = replace(what, score="aps") if isinstance(what, Classified) else what
    with opened(source) as table:
        (reading,), found, start = read.readings(table), Findings(), 0
        table = table.complete(reading.reads) if skip_incomplete else table
        with closing(table.batches(reading.reads, rows_per_batch(reading.width))) as batches:
            for batch in batches:
                if not batch.num_rows:
                    continue
                arrays, wrong = reading.arrays(batch)
                if isinstance(reading, ScoreReading):
                    wrong = noted(wrong, ~reading.in_range(arrays[0]), 1)
                if wrong is not None:
                    found.note(wrong, start if table.ordered else None, reading.faults(batch))
                start += batch.num_rows
                progress(batch.num_rows)
                if found:
                    continue
                if isinstance(what, Classified):
                    table_of_classes.append(all_scores(arrays[0], what.score))
                    scores.append(table_of_classes[-1][np.arange(batch.num_rows), arrays[1]])
                    continue
                scores.append(reading.score_of(arrays))
                if isinstance(what, Regressed) and what.kind.family == "cqr":
                    widths.append(float(np.diff(arrays[0], axis=1).sum()))
        found.refuse(reading.requirements, table.rows, skips=not skip_incomplete)
        if not start:
            raise InputError(f"{table.name} must have rows; it is empty: it has column names but no rows")
    return Pilot(
        np.concatenate(scores),
        np.concatenate(table_of_classes) if table_of_classes else None,
        sum(widths) / start if widths else None,
        what.kind.name,
    )
