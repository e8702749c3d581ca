"""Counts per group and bin by a GROUP BY of an engine, for which Ibis writes the query.

The answer has at most one row per group and bin, and one per reason of records that cannot be used.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.scores import ScoreKind
from confide.tables.bin_counts import CountRow, Counts, Job
from confide.tables.deferred import ibis
from confide.tables.expressions import number
from confide.tables.named_columns import AnyGroups
from confide.tables.number_columns import Reason
from confide.tables.people import PERSON_ERROR_COLUMN, PERSON_ERRORS
from confide.tables.record_columns import RecordColumns
from confide.tables.table import Progress

# The engines' names of double precision that are not DOUBLE.
DOUBLES: Mapping[str, str] = {"bigquery": "FLOAT64"}


def grouped_counts(table: Any, job: Job, progress: Progress) -> Counts:
    """Count an Ibis table by its engine."""
    query = binned(scored_rows(table, job.columns), job, table.get_backend().name)
    counts = Counts.none(job)
    for row in _fetched(query, job.edges):
        counts.add(row if row.bin >= 0 else CountRow(n=row.n, reason=-row.bin))
    progress(counts.records)
    return counts


def _fetched(query: Any, edges: NDArray[np.float64]) -> list[CountRow]:
    backend = query.get_backend()
    if backend.name == "polars":
        fetched = query.to_pyarrow().to_pylist()
    elif backend.name == "postgres":
        # Ibis would read by a cursor of the server, for which PostgreSQL counts in a single process
        with backend.raw_sql(backend.compile(query)) as cursor:
            fetched = [dict(zip(query.columns, values, strict=True)) for values in cursor.fetchall()]
    else:
        backend._run_pre_execute_hooks(query)
        sql = with_trees(backend.compile(query), edges, DOUBLES.get(backend.name, "DOUBLE"))
        fetched = backend.sql(sql, schema=query.schema()).to_pyarrow().to_pylist()
    return [CountRow(**row) for row in fetched]


def scored_rows(table: Any, columns: RecordColumns) -> Any:
    """The records of an Ibis table: `score` (float64 or null), `reason` and `group` (a position; 0 without groups).

    For weighted records also `weight`, a whole number. The reason is the first that applies to a record.
    """
    reader = columns.reader
    # The values of a record, and the conditions under which it cannot be used
    score, reasons = reader.expressions(table)
    values: dict[str, Any] = {"group": ibis.literal(0, "int32")}
    for reason, column in columns.required.items():
        assert not isinstance(column, AnyGroups)  # groups are counted by a public list of names
        value, reasons[reason] = column.expressions(table)
        values |= {"weight": value} if column is columns.weight else {"group": value.cast("int32")}
    if columns.people is not None:
        after = len(reader.requirements) + len(columns.required)
        reasons |= {after + flag: table[PERSON_ERROR_COLUMN] == flag for flag in PERSON_ERRORS}
    # The first condition that applies
    clauses = [(wrong, int(reason)) for reason, wrong in sorted(reasons.items())]
    first = ibis.cases(*clauses, else_=0).cast("int32") if clauses else ibis.literal(0, "int32")
    rows = table.select(score=score, reason=first, **values)
    # A score out of its range, unless the reader has another reason
    unscored = (rows.reason > 0) & (rows.reason <= len(reader.requirements))
    out_of_range = ~_in_range(rows.score, reader.kind)
    reason = ibis.cases((unscored, rows.reason), (out_of_range, int(Reason.NUMBER)), else_=rows.reason)
    return rows.mutate(reason=reason.cast("int32"))


def _in_range(score: Any, kind: ScoreKind) -> Any:
    # NaN is above +inf in some engines, and in the others no comparison with it is true
    inside = (score >= number(kind.low)) & (score <= number(kind.high))
    if kind.takes_infinity:
        inside |= score == number(np.inf)
    return inside.fill_null(False)


def binned(rows: Any, job: Job, engine: str) -> Any:
    """A query for the number of rows `n` in each `bin`, of each `group` if there are groups, and the sum of `weight`.

    The bin of unusable rows is minus their reason. An inner query selects the bin, because PostgreSQL computes an
    expression again wherever it is used.
    """
    groups = [] if job.group is None else ["group"]
    place = (rows.reason == 0).ifelse(bin_index(rows.score, job.edges, engine), -rows.reason)
    return _grouped(rows, groups, bin=place)


def binned_by_reason(rows: Any, job: Job, engine: str) -> Any:
    """The GROUP BY of all rows, also by `reason` and any `part`; rows with a reason have neither bin nor group."""
    usable = rows.reason == 0
    nothing = ibis.null("int32")
    place = bin_index(rows.score, job.edges, engine)
    keys = ["part", "reason"] if "part" in rows.columns else ["reason"]
    return _grouped(rows, keys, group=usable.ifelse(rows.group, nothing), bin=usable.ifelse(place, nothing))


def _grouped(rows: Any, keys: Sequence[str], **computed: Any) -> Any:
    """The number of rows, and of weighted records the sum of weights, by keys and by keys that are computed first."""
    weights = [name for name in ("weight",) if name in rows.columns]
    selected = rows.select(*keys, *weights, **computed)
    sums = {name: selected[name].sum() for name in weights}
    return selected.group_by([*keys, *computed]).agg(n=selected.count(), **sums)


def bin_index(score: Any, edges: NDArray[np.float64], engine: str) -> Any:
    """The number of edges below a score, as an expression for the engine of this name.

    PostgreSQL would compute the score again for every comparison, and has a search in an array. The others compare by
    a balanced tree. Ibis needs a minute for a tree of thousands of comparisons, so that SQL has a call in its place,
    for which `with_trees` inserts it.
    """
    if not len(edges):
        return ibis.literal(0, "int32")
    if engine == "postgres":
        # The thresholds at or below -x among the negated edges are the edges at or above x
        # Each number by the shortest text that reads back as it
        array = "{" + ",".join(map(repr, (-edges[::-1]).tolist())) + "}"
        at_or_above = _width_bucket()(-score, ibis.literal(array).cast("array<float64>"))
        return (ibis.literal(len(edges), "int32") - at_or_above).cast("int32")
    if engine == "polars":
        return _compared(score, edges, 0, len(edges))
    return ibis.udf.scalar.builtin(_tree, name=_call(edges))(score)


def _compared(score: Any, edges: NDArray[np.float64], low: int, high: int) -> Any:
    if low == high:
        return ibis.literal(low, "int32")
    middle = (low + high) // 2
    below = _compared(score, edges, low, middle)
    above = _compared(score, edges, middle + 1, high)
    return (score <= number(edges[middle])).ifelse(below, above)


def _tree(score: float) -> int:  # type: ignore[empty-body]
    """The call that stands for a tree of comparisons."""


def _call(edges: NDArray[np.float64]) -> str:
    """The name of the call for these edges, which occurs nowhere else in a query."""
    return f"confide_bin_{hashlib.sha256(edges.tobytes()).hexdigest()[:16]}"


def with_trees(sql: str, edges: NDArray[np.float64], double: str = "DOUBLE") -> str:
    r"""SQL with a tree of comparisons wherever `bin_index` left its call; `double` is the engine's double precision.

    Examples
    --------
    >>> edges = np.array([0.5])
    >>> with_trees(f'SELECT {_call(edges)}("s") FROM t', edges)
    'SELECT CASE WHEN "s" <= CAST(\'0.5\' AS DOUBLE) THEN 0\nELSE 1 END FROM t'
    """

    def compared(score: str, low: int, high: int) -> str:
        if low == high:
            return str(low)
        middle = (low + high) // 2
        below, above = compared(score, low, middle), compared(score, middle + 1, high)
        return f"CASE WHEN {score} <= CAST('{float(edges[middle])!r}' AS {double}) THEN {below}\nELSE {above} END"

    call = re.compile(_call(edges) + r"""\(((?:"[^"]*"|`[^`]*`|[^()"`])*)\)""", re.IGNORECASE)
    return call.sub(lambda match: compared(match[1], 0, len(edges)), sql)


def _width_bucket() -> Any:
    import ibis.expr.datatypes as dt

    @ibis.udf.scalar.builtin(name="width_bucket", signature=((dt.float64, dt.Array(dt.float64)), dt.int32))
    def width_bucket(x, thresholds):  # type: ignore[no-untyped-def]
        """PostgreSQL's function."""

    return width_bucket
