"""From a table to histograms, in one pass of the table's own engine. Only counts come back.

PostgreSQL counts with a GROUP BY over the bins. Spark counts on its workers. DuckDB, which is embedded, hands Arrow
batches over within the process.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.calibration.calibrate import check_candidates
from confide.candidates import Candidates
from confide.counting.histogram import ScoreHistogram
from confide.errors import InputError
from confide.scores.kinds import ScoreKind
from confide.tables.batch_scores import FINDING, GROUP, scored_batch, source_columns
from confide.tables.bins import bin_index
from confide.tables.engine_failures import fixed_words
from confide.tables.engine_findings import Finding, refuse
from confide.tables.expressions import existing_column, number, position
from confide.tables.people import People
from confide.tables.progress import Progress, silent
from confide.tables.reading import arrow_batches
from confide.tables.what import Source

_ROWS = 2**13
"""Rows per batch where scores are computed in Python: 32 MB at a thousand probabilities."""


def score_histogram(
    table: Any,
    source: Source,
    candidates: Candidates | None = None,
    *,
    people: People | None = None,
    progress: Progress = silent,
) -> ScoreHistogram:
    """The counts of a table's scores over public candidates. **Private**, like every histogram.

    Parameters
    ----------
    table
        An Ibis table expression, on any engine.
    source
        The columns: `Scored`, `Classified` or `Regressed`.
    candidates
        Public candidate thresholds; by default those that suit the score.
    people
        Bounds the records that count of each person.
    progress
        Told the number of rows of every batch, where the engine hands over batches; its method `share`, if it has one,
        is told the tasks of Spark that are done, and all that are known.

    Raises
    ------
    InputError
        If rows have no usable score (how many, and why), if there are no rows, or if the engine fails.

    Examples
    --------
    >>> import ibis, pyarrow
    >>> from confide.tables import Scored
    >>> table = ibis.memtable(pyarrow.table({"s": [0.1, 0.5, 0.6]}))
    >>> score_histogram(table, Scored("s"), Candidates.of([0.5, 1.0])).counts
    array([2, 1, 0])
    """
    return histograms(prepared(table, source, people=people), source, candidates, (None,), progress)[None]


def group_histograms(
    table: Any,
    source: Source,
    group: str,
    names: Sequence[str | int],
    candidates: Candidates | None = None,
    *,
    people: People | None = None,
    progress: Progress = silent,
) -> dict[str | int, ScoreHistogram]:
    """One histogram per group, in the same pass.

    Parameters
    ----------
    group
        The column of each row's group, texts or integers; for class-conditional thresholds the label.
    names
        All groups there are, public. Rows of another group are refused.
    table, source, candidates, people, progress
        As in `score_histogram`.

    Examples
    --------
    >>> import ibis, pyarrow
    >>> from confide.tables import Scored
    >>> table = ibis.memtable(pyarrow.table({"s": [0.1, 0.5, 0.6], "g": ["a", "b", "a"]}))
    >>> {name: h.total for name, h in group_histograms(table, Scored("s"), "g", ["a", "b", "c"]).items()}
    {'a': 2, 'b': 1, 'c': 0}
    """
    rows = prepared(table, source, group, tuple(names), people)
    return histograms(rows, source, candidates, tuple(names), progress)


def prepared(
    table: Any, source: Source, group: str | None = None, names: tuple[Any, ...] = (None,), people: People | None = None
) -> Any:
    """The rows that `histograms` counts, as an expression: columns are looked up, the engine is not asked."""
    with fixed_words():
        return (records if source.in_sql else batch_records)(table, source, group, names, people)


def histograms(
    rows: Any, source: Source, candidates: Candidates | None, names: tuple[Any, ...], progress: Progress
) -> dict[Any, ScoreHistogram]:
    """One histogram per name of what `prepared` gave; without groups the name is None."""
    chosen = source.kind.candidates() if candidates is None else check_candidates(candidates)
    with fixed_words():
        count = _executor(rows.get_backend().name) if source.in_sql else partial(_in_batches, source)
        counts, found = count(rows, chosen.edges, source.kind, len(names), progress)
    refuse(found, source.kind)
    if not counts.any():
        raise InputError("table must have rows; it is empty")
    return {name: ScoreHistogram(chosen, counts[place]) for place, name in enumerate(names)}


def records(table: Any, source: Source, group: str | None, names: tuple[Any, ...], people: People | None) -> Any:
    """The table of `score` (float64 or null), and where there may be any, `finding` and `group` (a position)."""
    kept, place, findings = _kept(table, group, names, people)
    score, own = source.expressions(kept)
    findings = {**own, **findings}
    columns = {"score": score}
    if place is not None:
        columns["group"] = place
    if findings:
        columns["finding"] = _largest(findings)
    return kept.select(**columns)


def batch_records(table: Any, source: Any, group: str | None, names: tuple[Any, ...], people: People | None) -> Any:
    """The columns that a score is computed from, and where there may be any, `FINDING` and `GROUP`."""
    kept, place, findings = _kept(table, group, names, people)
    columns = {name: existing_column(kept, name) for name in source_columns(source)}
    if place is not None:
        columns[GROUP] = place
    if findings:
        columns[FINDING] = _largest(findings)
    return kept.select(**columns)


def _kept(
    table: Any, group: str | None, names: tuple[Any, ...], people: People | None
) -> tuple[Any, Any, dict[Finding, Any]]:
    """The rows that count, the position of each one's group, and what is wrong with its person or its group."""
    findings: dict[Finding, Any] = {}
    if people is not None:
        table = people.keep(people.place(table))
        findings.update(people.findings(table))
    if group is None:
        return table, None, findings
    place = position(existing_column(table, group), names)
    findings[Finding.GROUP] = place.isnull() | (place < 0) | (place >= len(names))
    return table, place.cast("int32"), findings


def _largest(findings: dict[Finding, Any]) -> Any:
    """The largest finding that holds of a row, or 0."""
    import ibis

    clauses = [(wrong, int(finding)) for finding, wrong in sorted(findings.items(), reverse=True)]
    return ibis.cases(*clauses, else_=0).cast("int32")


def grouped_counts(
    rows: Any, edges: NDArray[np.float64], kind: ScoreKind, groups: int, progress: Progress
) -> tuple[NDArray[np.int64], Mapping[Finding, int]]:
    """Counts per group and bin by a GROUP BY in the engine, shape (groups, m), and the rows to refuse."""
    answer = binned(rows, edges, kind).to_pyarrow().to_pylist()
    found = dict.fromkeys(Finding, 0)
    counts = np.zeros((groups, len(edges) + 1), dtype=np.int64)
    for row in answer:
        if row["finding"]:
            found[Finding(row["finding"])] += row["n"]
        else:
            counts[row["group"], row["bin"]] += row["n"]
    progress(int(counts.sum()))
    return counts, found


def binned(rows: Any, edges: NDArray[np.float64], kind: ScoreKind) -> Any:
    """The GROUP BY: an expression with `finding`, `group`, `bin` and `n`, at most groups x m rows and the findings."""
    import ibis

    sorted_out = judged(rows, kind)
    good = sorted_out.finding == 0
    place = bin_index(good.ifelse(sorted_out.score, number(0.0)), edges, rows.get_backend().name)
    nothing = ibis.literal(0, "int32")
    table = sorted_out.select(
        finding="finding", group=good.ifelse(sorted_out.group, nothing), bin=good.ifelse(place, nothing)
    )
    return table.group_by(["finding", "group", "bin"]).agg(n=table.count())


def judged(rows: Any, kind: ScoreKind) -> Any:
    """The rows of `records` with `score`, `group` (0 without groups) and a `finding` that knows the score's range."""
    import ibis

    usable = (rows.score >= number(kind.low)) & (rows.score <= number(kind.high))  # NaN is above +inf in every engine
    clauses = [(rows.score.isnull() | rows.score.isnan(), int(Finding.MISSING)), (~usable, int(Finding.OUTSIDE))]
    if "finding" in rows.columns:
        clauses.insert(0, (rows.finding != 0, rows.finding))
    group = rows.group if "group" in rows.columns else ibis.literal(0, "int32")
    return rows.select(score="score", group=group, finding=ibis.cases(*clauses, else_=0).cast("int32"))


def _executor(engine: str) -> Callable[..., tuple[NDArray[np.int64], Mapping[Finding, int]]]:
    if engine == "duckdb":
        from confide.tables.streamed import count_table

        return count_table
    if engine == "pyspark":
        from confide.tables.spark.counts import count_table as count_on_spark

        return count_on_spark
    return grouped_counts


def _in_batches(
    source: Any, rows: Any, edges: NDArray[np.float64], kind: ScoreKind, groups: int, progress: Progress
) -> tuple[NDArray[np.int64], Mapping[Finding, int]]:
    """Counts of scores that are computed in Python: on Spark's executors, or in this process from a stream of rows."""
    from confide.tables.streamed import count_stream

    engine = rows.get_backend().name
    if engine == "pyspark":
        from confide.tables.spark.python import count_in_batches

        return count_in_batches(rows, source, edges, kind, groups, progress)
    with closing(arrow_batches(rows, _ROWS)) as batches:
        scored = (scored_batch(batch, source) for batch in batches if batch.num_rows)
        return count_stream(scored, edges, kind, groups, progress)
