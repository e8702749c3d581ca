"""Counts by a GROUP BY in the engine of a table: one query, whose answer has a row per group and bin at most."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.tables.bins import bin_index
from confide.tables.expressions import number
from confide.tables.findings import Findings
from confide.tables.named_column import NamedColumn
from confide.tables.people import FLAG
from confide.tables.progress import Progress
from confide.tables.readings import Reading
from confide.tables.weight_column import WeightColumn


def grouped_counts(
    table: Any,
    reading: Reading,
    group: NamedColumn | None,
    edges: NDArray[np.float64],
    progress: Progress,
    weight: WeightColumn | None = None,
) -> tuple[NDArray[np.int64], Findings]:
    """Counts per group and bin, shape (groups, m), or sums of whole weights; and the rows to refuse."""
    rows = with_findings(scored_rows(table, reading, group, weight), reading)
    groups = 1 if group is None else len(group.names)
    found, counts, seen = Findings(), np.zeros((groups, len(edges) + 1), dtype=np.int64), 0
    for row in binned(rows, edges).to_pyarrow().to_pylist():
        if row["finding"]:
            found.add(row["finding"], row["n"])
        else:
            counts[row["group"], row["bin"]] += row["n"] if weight is None else int(row["weight"])
            seen += row["n"]
    progress(seen)
    return counts, found


def scored_rows(table: Any, reading: Reading, group: NamedColumn | None, weight: WeightColumn | None = None) -> Any:
    """The table of `score` (float64 or null), `finding` and `group` (a position; 0 without groups).

    Where records weigh differently `weight`, a whole number, besides.
    """
    import ibis

    score, findings = reading.expressions(table)
    place = ibis.literal(0, "int32")
    if group is not None:
        places, unknown = group.expressions(table)
        place, findings[len(reading.requirements) + 1] = places.cast("int32"), unknown
    more = {}
    if weight is not None:
        more["weight"], findings[len(reading.requirements) + (group is not None) + 1] = weight.expressions(table)
    if FLAG in table.columns:
        after = len(reading.requirements) + (group is not None) + (weight is not None)
        findings |= {after + flag: table[FLAG] == flag for flag in (1, 2)}
    return table.select(score=score, finding=_first(findings), group=place, **more)


def batch_rows(table: Any, reading: Reading, group: NamedColumn | None, weight: WeightColumn | None = None) -> Any:
    """The columns that are read, called by their aliases, for scores that are computed in Python."""
    reads = [*reading.reads, *(one.read for one in (group, weight) if one is not None)]
    columns = {read.alias: table[read.column] for read in reads}
    if FLAG in table.columns:
        columns[FLAG] = table[FLAG]
    return table.select(**columns)


def with_findings(rows: Any, reading: Reading) -> Any:
    """The rows of `scored_rows` with findings that know the score's range: the first that holds of each row."""
    import ibis

    kind = reading.kind
    usable = (rows.score >= number(kind.low)) & (rows.score <= number(kind.high))  # NaN is above +inf in every engine
    unusable = rows.score.isnull() | rows.score.isnan() | ~usable
    its_own = (rows.finding > 0) & (rows.finding <= len(reading.requirements))  # why there is no score
    finding = ibis.cases((its_own, rows.finding), (unusable, 1), else_=rows.finding).cast("int32")
    more = {"weight": "weight"} if "weight" in rows.columns else {}
    return rows.select(score="score", group="group", finding=finding, **more)


def binned(rows: Any, edges: NDArray[np.float64]) -> Any:
    """The GROUP BY: an expression with `finding`, `group`, `bin` and `n`, and `weight` where rows have one."""
    import ibis

    good = rows.finding == 0
    place = bin_index(good.ifelse(rows.score, number(0.0)), edges)
    nothing = ibis.literal(0, "int32")
    more = {"weight": "weight"} if "weight" in rows.columns else {}
    columns = {"group": good.ifelse(rows.group, nothing), "bin": good.ifelse(place, nothing), **more}
    table = rows.select(finding="finding", **columns)
    sums = {"weight": table.weight.sum()} if more else {}
    return table.group_by(["finding", "group", "bin"]).agg(n=table.count(), **sums)


def _first(findings: dict[int, Any]) -> Any:
    """The smallest finding that holds of a row, or 0."""
    import ibis

    if not findings:
        return ibis.literal(0, "int32")
    clauses = [(wrong, finding) for finding, wrong in sorted(findings.items())]
    return ibis.cases(*clauses, else_=0).cast("int32")
