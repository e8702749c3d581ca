"""Tables that this process never reads: the query that counts one, whose answer query_answers.py reads.

A request states all columns, so that the same readers as for other tables check the columns and write the expressions.
Types are not known: numbers are cast to double precision, and labels and groups to texts.
"""

import hashlib
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from confide.core import LONGEST
from confide.errors import InputError
from confide.support import FileLocation, one_of, require
from confide.tables.bin_counts import Counts, Job
from confide.tables.deferred import ibis, pa
from confide.tables.engine_counts import DOUBLES, binned_by_reason, scored_rows, with_trees
from confide.tables.ibis_table import IbisTable
from confide.tables.query_answers import answer_columns, read_counts
from confide.tables.source import Columns
from confide.tables.table import Progress

# The digits that identify a query, enough for queries that differ by mistake
_DIGEST = 12

_ENGINES = ("duckdb", "postgres", "spark", "databricks", "snowflake", "bigquery", "datafusion")

DIALECTS: Mapping[str, str] = MappingProxyType({engine: engine for engine in _ENGINES} | {"spark": "databricks"})
"""The engines whose queries are written, by name, and Ibis's name of their dialect."""

# The limit of one query in Snowflake and BigQuery.
MOST_BYTES = 1_000_000

# The dialects that quote names by backticks.
_BACKTICKS = ("spark", "databricks", "bigquery")


class UnreadTable(IbisTable):
    """A table that is known by its columns alone, and the files of its counts, if there are any.

    Parameters
    ----------
    columns
        The columns of each record.
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
        self, columns: Columns, name: str = "records", dialect: str = "duckdb", files: Sequence[FileLocation] = ()
    ) -> None:
        self.dialect = one_of("dialect", dialect, tuple(DIALECTS))
        kinds = _types(columns)
        types = {"number": pa.float64(), "position": pa.int64(), "text": pa.string(), "any": pa.string()}
        schema = pa.schema([(column, types[kind]) for column, kind in kinds.items()])
        self._placeholders = {column: f"confide_column_{place}" for place, column in enumerate(kinds)}
        super().__init__("the table of the query", _cast(name, self.dialect, self._placeholders, kinds), schema)
        self.files = tuple(files)
        self._skips_incomplete = columns.skip_incomplete

    @property
    def engine(self) -> str:
        """The engine's name; nothing is connected."""
        return DIALECTS[self.dialect]

    def row_count(self) -> None:
        """Unknown."""

    def count(self, jobs: Sequence[Job], progress: Progress) -> list[Counts]:
        """Read the counts from the files."""
        _check_in_sql(jobs)
        counted = read_counts(self.files, jobs, self.digest(jobs))
        progress(counted[0].records)
        return counted

    def digest(self, jobs: Sequence[Job]) -> str:
        """Twelve digits that identify what is counted, and the candidates; every row of an answer contains them."""
        counted = repr([self._skips_incomplete, *(job.columns for job in jobs)]).encode()
        return hashlib.sha256(counted + jobs[0].edges.tobytes()).hexdigest()[:_DIGEST]

    def query(self, jobs: Sequence[Job]) -> str:
        """The query that counts for several jobs over the same candidates: one statement.

        Raises
        ------
        InputError
            If SQL cannot compute the score, or the query would be longer than the engine permits.
        """
        _check_in_sql(jobs)
        digest = self.digest(jobs)
        # Write the statement, with trees of comparisons and the real names of columns
        sql = str(ibis.to_sql(self._counts(jobs, digest), self.engine, pretty=False))
        sql = with_trees(sql, jobs[0].edges, DOUBLES.get(self.engine, "DOUBLE"))
        sql = self._with_real_names(sql)
        size = len(sql.encode())
        must = f"would have {size:,} bytes, and {self.dialect} accepts at most {MOST_BYTES:,}"
        remedy = "Choose fewer candidates, for example 1000 of them, or fewer groups or classes"
        require("query", size <= MOST_BYTES or self.dialect not in ("snowflake", "bigquery"), must, remedy=remedy)
        return (
            f"-- Counts of nonconformity scores for `confide calibrate --counts`: query {digest}.\n"
            "-- The answer is PRIVATE, as the records are: keep it where they are kept.\n"
            f"{sql}\n"
        )

    def _counts(self, jobs: Sequence[Job], digest: str) -> Any:
        """The expression of the answer: the counts of all jobs, each with the number of its job."""
        scored = [
            scored_rows(self.expression, job.columns).mutate(part=ibis.literal(number))
            for number, job in enumerate(jobs)
        ]
        rows = binned_by_reason(ibis.union(*scored) if len(scored) > 1 else scored[0], jobs[0], self.engine)
        return rows.mutate(query=ibis.literal(digest)).select(*answer_columns(jobs))

    def _with_real_names(self, sql: str) -> str:
        """The statement with the names of the columns, some of which Ibis would change for BigQuery."""
        quote = "`" if self.dialect in _BACKTICKS else '"'
        for column, placeholder in self._placeholders.items():
            name = _written(column, self.dialect, "columns").replace(quote, 2 * quote)
            sql = sql.replace(f"{quote}{placeholder}{quote}", f"{quote}{name}{quote}")
        return sql


def _check_in_sql(jobs: Sequence[Job]) -> None:
    for job in jobs:
        if not job.columns.reader.in_sql:
            raise job.columns.reader.not_in_sql()


def _types(columns: Columns) -> dict[str, str]:
    """The columns of a request, and what each is taken for: a number, a text, a position, or what it is."""
    types = columns.what._types_in_sql
    if columns.weights is not None:
        types[columns.weights] = "number"
    by = () if columns.by is None else columns.by
    by = (by,) if isinstance(by, str) else by
    # Persons are ordered by the values as they are, so their columns are not read as texts as well
    texts = [*(name for name, kind in types.items() if kind != "number"), *by]
    people = columns.people
    if people is not None and (shared := sorted({*people.order} & {*texts})):
        must = "must name other columns than labels and groups, which are read as texts"
        raise InputError("order", must, got=shared[0])
    persons = () if people is None else (people.person, *people.order)
    return dict.fromkeys(persons, "any") | dict.fromkeys(by, "text") | types


def _cast(table: str, dialect: str, placeholders: Mapping[str, str], kinds: Mapping[str, str]) -> Any:
    """The columns of an unbound table, with numbers in double precision, and labels and groups as texts."""
    *spaces, name = (_written(word, dialect, "table") for word in table.split("."))
    require("table", len(spaces) <= 2, "must have at most three parts between points", got=repr(table))
    space = dict(zip(("database", "catalog"), reversed(spaces), strict=False))
    rows = ibis.table(dict.fromkeys(placeholders.values(), ibis.expr.datatypes.unknown), name=name, **space)
    casts = {"number": "float64", "text": "string", "position": "string"}
    read = {column: rows[placeholder] for column, placeholder in placeholders.items()}
    read |= {column: read[column].cast(casts[kind]) for column, kind in kinds.items() if kind in casts}
    return rows.select(**read)


def _written(name: str, dialect: str, argument: str) -> str:
    """A name as the engine stores it: in Snowflake plain names are upper-case, unless typed in double quotes."""
    if dialect == "snowflake":
        if len(name) > 2 and name[0] == name[-1] == '"':
            name = name[1:-1]
        elif name.isascii() and name.isidentifier():
            name = name.upper()
    require(argument, name and name.isprintable(), "names in SQL must be printable and not empty", got=repr(name))
    if dialect in _BACKTICKS and not {"`", "\\"}.isdisjoint(name):
        raise InputError(argument, f"must not hold a backtick or a backslash in {dialect}", got=repr(name))
    return name
