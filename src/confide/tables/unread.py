"""Tables that this process never reads: the query that counts one, and the files of its answer as a source.

A request states all columns, so that the readers of every other table check them and write their expressions. Types
are not known: numbers are cast to double precision, and labels and groups to texts.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from confide.candidates import Spread
from confide.core import LONGEST, Request
from confide.errors import InputError
from confide.support import FileLocation, ObjectPath, as_place, one_of, same_place
from confide.tables.bin_counts import DOUBLES, Counts, Job, binned_by_reason, scored_rows
from confide.tables.columns import ELSEWHERE, ColumnSpec
from confide.tables.counts_file import COLUMNS, read_counts
from confide.tables.databases import IbisTable
from confide.tables.expressions import with_trees
from confide.tables.table import ContributionBound, Progress

DIALECTS: Mapping[str, str] = MappingProxyType(
    {
        "duckdb": "duckdb",
        "postgres": "postgres",
        "spark": "databricks",
        "databricks": "databricks",
        "snowflake": "snowflake",
        "bigquery": "bigquery",
        "datafusion": "datafusion",
    }
)
"""The engines whose queries are written, by name, and Ibis's name of their dialect."""

# The limit of one query in Snowflake and BigQuery.
MOST_BYTES = 1_000_000

# The dialects that quote names by backticks.
_BACKTICKS = ("spark", "databricks", "bigquery")


@dataclass(frozen=True)
class CountsFiles:
    """The answer to `counting_query` as a source of `calibrate_table` with the same request. **Private**.

    Parameters
    ----------
    paths
        One or more files, CSV, JSON (a list of objects, or one object per line) or Parquet, or such objects of a store.
        Several files contain the counts of different records.

    Examples
    --------
    >>> CountsFiles("counts.csv").paths
    (PosixPath('counts.csv'),)
    """

    paths: Any

    def __post_init__(self) -> None:
        single = isinstance(self.paths, str | Path | ObjectPath)
        places = tuple(map(as_place, [self.paths] if single else self.paths))
        if not places:
            raise InputError("counts", "must be one file or more", got="none")
        if any(same_place(place, other) for place, other in combinations(places, 2)):
            raise InputError("counts", "must differ: one of them is named twice, and its records would count twice")
        object.__setattr__(self, "paths", places)


class UnreadTable(IbisTable):
    """A table that is known by its columns alone, and the files of its counts, if there are any.

    Parameters
    ----------
    what, others
        The columns of the score, and of groups, weights and people.
    name
        Its name in the engine, with points between its parts.
    dialect
        The engine's name.
    files
        The files of its counts.
    """

    local = True
    most_candidates = LONGEST

    def __init__(
        self,
        what: ColumnSpec,
        others: Any,
        name: str = "records",
        dialect: str = "duckdb",
        files: Sequence[FileLocation] = (),
    ) -> None:
        import pyarrow as pa

        self.dialect, self.files = one_of("dialect", dialect, tuple(DIALECTS)), tuple(files)
        kinds = _types(what, others)
        types = {"number": pa.float64(), "position": pa.int64(), "text": pa.string(), "any": pa.string()}
        schema = pa.schema([(column, types[kind]) for column, kind in kinds.items()])
        self._columns = {column: f"confide_column_{place}" for place, column in enumerate(kinds)}
        super().__init__("the table of the query", _cast(name, self.dialect, self._columns, kinds), schema)
        self.skips = False

    @property
    def engine(self) -> str:
        """The engine's name; nothing is connected."""
        return DIALECTS[self.dialect]

    def row_count(self) -> None:
        """Unknown."""

    def drop_missing(self, reads: Any) -> Self:
        """The table without the rows that lack a value."""
        complete = super().drop_missing(reads)
        complete.skips = True
        return complete

    def count_all(self, jobs: Sequence[Job], progress: Progress) -> list[Counts]:
        """Read the counts from the files."""
        _refuse_others(jobs)
        counted = read_counts(self.files, jobs, self.digest(jobs))
        progress(int(counted[0][0][-jobs[0].groups :].sum()))
        return counted

    def digest(self, jobs: Sequence[Job]) -> str:
        """Twelve digits that identify what is counted, and the candidates; every row of an answer contains them."""
        counted = repr([self.skips, *(job.columns for job in jobs)]).encode()
        return hashlib.sha256(counted + jobs[0].edges.tobytes()).hexdigest()[:12]

    def query(self, jobs: Sequence[Job]) -> str:
        """The query that counts for several jobs over the same candidates: one statement.

        Raises
        ------
        InputError
            If SQL cannot compute the score, or the query would be longer than the engine permits.
        """
        import ibis

        _refuse_others(jobs)
        digest, first = self.digest(jobs), jobs[0]
        # Count the rows of all jobs in one statement, each with the number of its job
        scored = [
            scored_rows(self.expression, job.columns).mutate(part=ibis.literal(number))
            for number, job in enumerate(jobs)
        ]
        rows = binned_by_reason(ibis.union(*scored) if len(scored) > 1 else scored[0], first, self.engine)
        weight = ["weight"] if first.columns.weight is not None else []
        rows = rows.mutate(query=ibis.literal(digest)).select(*COLUMNS, *weight)
        # Write it, with trees of comparisons and the real names of columns
        sql = str(ibis.to_sql(rows, self.engine, pretty=False))
        sql = with_trees(sql, first.edges, DOUBLES.get(self.engine, "DOUBLE"))
        for column, placeholder in self._columns.items():  # Ibis would change some names for BigQuery
            quote = "`" if self.dialect in _BACKTICKS else '"'
            name = _written(column, self.dialect, "columns").replace(quote, 2 * quote)
            sql = sql.replace(f"{quote}{placeholder}{quote}", f"{quote}{name}{quote}")
        if self.dialect in ("snowflake", "bigquery") and len(sql.encode()) > MOST_BYTES:
            raise InputError(
                "query",
                f"would have {len(sql.encode()):,} bytes, and {self.dialect} accepts at most {MOST_BYTES:,}",
                remedy="Choose fewer candidates, for example 1000 of them, or fewer groups or classes",
            )
        return (
            f"-- Counts of nonconformity scores for `confide calibrate --counts`: query {digest}.\n"
            "-- The answer is PRIVATE, as the records are: keep it where they are kept.\n"
            f"{sql}\n"
        )


def bounded(request: Request, most: int | None, n: int | None) -> Request:
    """The request over lists of at most this many candidates; your own list is unchanged."""
    spread = next(iter(request.terms.values())).spread
    if most is None or not isinstance(spread, Spread) or request.counted_over(n).recipe["size"] <= most:
        return request
    return replace(request, candidates=replace(spread, most=most), unit=None)


def _refuse_others(jobs: Sequence[Job]) -> None:
    """Reject scores that SQL does not compute."""
    for job in jobs:
        if not job.columns.in_sql:
            raise InputError("score", f"{job.columns.reader.score!r} is not computed in SQL", remedy=ELSEWHERE)


def _types(what: ColumnSpec, others: Any) -> dict[str, str]:
    """The columns of a request, and what each is taken for: a number, a text, a position, or what it is."""
    types = what._types_in_sql
    types |= {} if others.weights is None else {others.weights: "number"}
    by = () if others.by is None else (others.by,) if isinstance(others.by, str) else others.by
    texts = [name for name, kind in types.items() if kind != "number"] + list(by)
    people: ContributionBound | None = others.people
    if people is not None and (shared := sorted({*people.order} & {*texts})):
        must = "must name other columns than labels and groups, which are read as texts"
        raise InputError("order", must, got=shared[0])
    persons = () if people is None else (people.person, *people.order)
    return dict.fromkeys(persons, "any") | dict.fromkeys(by, "text") | types


def _cast(table: str, dialect: str, columns: Mapping[str, str], kinds: Mapping[str, str]) -> Any:
    """The columns of an unbound table, with numbers in double precision, and labels and groups as texts."""
    import ibis
    import ibis.expr.datatypes as dt

    *spaces, name = (_written(word, dialect, "table") for word in table.split("."))
    if len(spaces) > 2:
        raise InputError("table", "must have at most three parts between points", got=repr(table))
    space = dict(zip(("database", "catalog"), reversed(spaces), strict=False))
    rows = ibis.table(dict.fromkeys(columns.values(), dt.unknown), name=name, **space)
    read = {column: rows[placeholder] for column, placeholder in columns.items()}
    casts = {"number": "float64", "text": "string", "position": "string"}
    return rows.select(
        **{column: read[column].cast(casts[kind]) if kind in casts else read[column] for column, kind in kinds.items()}
    )


def _written(name: str, dialect: str, argument: str) -> str:
    """A name as the engine stores it: in Snowflake plain names are upper-case, unless typed in double quotes."""
    if dialect == "snowflake":
        typed = len(name) > 2 and name[0] == name[-1] == '"'
        plain = name.isascii() and name.isidentifier()
        name = name[1:-1] if typed else name.upper() if plain else name
    if not name or not name.isprintable():
        raise InputError(argument, "names in SQL must be printable and not empty", got=repr(name))
    if dialect in _BACKTICKS and not {"`", "\\"}.isdisjoint(name):
        raise InputError(argument, f"must not hold a backtick or a backslash in {dialect}", got=repr(name))
    return name
