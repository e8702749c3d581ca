"""Predictions of a table, in batches or written by its engine, and their summary.

DuckDB and PostgreSQL write a new table in one transaction. An existing table is never replaced.
"""

from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from confide.errors import InputError
from confide.sets import warn_of_widths
from confide.support import OutputExistsError
from confide.tables.arrow import ColumnRef
from confide.tables.buffers import to_numpy
from confide.tables.expressions import identifier, select
from confide.tables.failures import ColumnError, engine_errors_in_fixed_words
from confide.tables.predictors import LOWER, SIZE, Added, Predictor
from confide.tables.readers import Reasons
from confide.tables.records import checked_batches
from confide.tables.table import Progress, Table


@dataclass(frozen=True)
class Predictions:
    """The kept columns of a table with predictions, written in batches or by its engine.

    Parameters
    ----------
    table
        The table that is read.
    keep
        The columns that are kept.
    predictors
        The predictors of the added columns.
    """

    table: Table
    keep: tuple[str, ...]
    predictors: tuple[Predictor, ...]

    def batches(self, *, as_text: bool, progress: Progress) -> Generator[Any]:
        """Record batches of all columns; with `as_text`, texts that fit into CSV cells.

        A table without rows gives one batch without rows.

        Raises
        ------
        InputError
            At the end, if rows have no prediction.
        """
        import pyarrow as pa

        kept = [ColumnRef(name, "text" if as_text else "value") for name in self.keep]
        names = [*self.keep, *(name for one in self.predictors for name in one.adds)]
        reader = _AllPredictors(self.predictors, as_text)
        checked = checked_batches(self.table, reader, progress, keep=kept, skips=True, shows_types=True)
        with closing(checked) as batches:
            for batch, added in batches:
                columns = [batch.column(read.alias) for read in kept]
                yield pa.RecordBatch.from_arrays([*columns, *added], names=names)

    @property
    def proof(self) -> str:
        """The column that is null if a row has no prediction."""
        return self.predictors[0].adds[-1]

    @property
    def counts_members(self) -> bool:
        """Whether the sizes of sets are summed; only for one level."""
        return self.proof == SIZE

    @property
    def ends(self) -> tuple[str, str] | None:
        """The columns of the interval ends of the first level; None for sets."""
        lower, upper = self.predictors[0].adds
        return (lower, upper) if lower.startswith(LOWER) else None


@dataclass(frozen=True, eq=False)
class _AllPredictors:
    """All predictors of a release; each finds the same errors in a record."""

    predictors: tuple[Predictor, ...]
    as_text: bool

    @property
    def reads(self) -> tuple[ColumnRef, ...]:
        return tuple(dict.fromkeys(read for one in self.predictors for read in one.reads))

    @property
    def width(self) -> int:
        return self.predictors[0].width

    @property
    def requirements(self) -> tuple[str, ...]:
        return self.predictors[0].requirements

    def read(self, batch: Any) -> tuple[list[Any], Reasons]:
        made = [one.read(batch, as_text=self.as_text) for one in self.predictors]
        return [column for columns, _ in made for column in columns], made[0][1]

    def column_errors(self, batch: Any) -> list[ColumnError]:
        return self.predictors[0].column_errors(batch)


Summary: TypeAlias = dict[str, float]
"""Summary of written predictions: `rows`, and for sets, if there are any, `mean_set_size` and `empty_sets`."""


class PredictionCounts:
    """Count rows and the members of sets batch by batch; for intervals, keep their widths and positions."""

    def __init__(self, predictions: Predictions) -> None:
        self._proof = predictions.proof if predictions.counts_members else None
        self._ends = predictions.ends
        self.rows = self._members = self._empty = 0
        self._halves = np.array([np.inf, np.inf, -np.inf])

    def add(self, batch: Any) -> None:
        """Count a `pyarrow.RecordBatch`."""
        self.rows += batch.num_rows
        if self._proof is not None:
            sizes = to_numpy(batch.column(self._proof))
            self._members, self._empty = self._members + int(sizes.sum()), self._empty + int((sizes == 0).sum())
        if self._ends is not None and batch.num_rows:
            low, high = (to_numpy(batch.column(name)) / 2 for name in self._ends)
            with np.errstate(invalid="ignore"):
                width, centre = high - low, high + low
            width_so_far, least, most = self._halves
            self._halves = np.array([min(width_so_far, width.min()), min(least, centre.min()), max(most, centre.max())])

    def summary(self) -> Summary:
        """Rows, mean set size and empty sets."""
        sizes = None if self._proof is None else (self._members, self._empty)
        return _summary(self.rows, sizes, None if self._ends is None else tuple(self._halves.tolist()))


def summary_of(
    predictions: Predictions, rows: int, missing: int, sizes: tuple[int, int] | None, halves: Any = None
) -> Summary:
    """The summary from counts of an engine: of members of sets and of empty sets.

    Rows without a prediction raise `InputError` with the number of such rows. For intervals, `halves` is a tuple: half
    of the smallest width, the smallest centre, and the largest centre. It is None for sets.
    """
    if missing:
        wanted = "; ".join(predictions.predictors[0].requirements)
        raise InputError("table", f"{wanted} in every row", got=f"{missing} of {rows} that do not")
    return _summary(rows, sizes, halves)


_EXACT = 1e14
"""Centres are computed from ends. If the ends are this many times farther apart, centres differ only by rounding."""


def _summary(rows: int, sizes: tuple[int, int] | None, halves: Any) -> Summary:
    """The members of sets as a mean, if there are rows; warns of uninformative intervals."""
    if rows and halves is not None and None not in halves:
        half, least, most = halves
        if 2 * half < _EXACT * (most - least):
            warn_of_widths(rows, 2 * half, least, most)
    if not rows or sizes is None:
        return {"rows": rows}
    members, empty = sizes
    return {"rows": rows, "mean_set_size": members / rows, "empty_sets": empty}


_ROWS = 2**14
_TYPES: dict[Added, str] = {
    "texts": "text[]",
    "integers": "bigint[]",
    "size": "integer",
    "number": "double precision",
}


def write_duckdb(connection: Any, predictions: Predictions, name: str, progress: Progress) -> Summary:
    """Write into a new DuckDB table, in a transaction of a second connection to the same database."""
    import duckdb
    import pyarrow as pa

    tally, quoted = PredictionCounts(predictions), identifier(name)
    with connection.cursor() as writing, closing(predictions.batches(as_text=False, progress=progress)) as batches:
        writing.execute("BEGIN")
        try:
            for batch in batches:
                with engine_errors_in_fixed_words(f"writing table {name!r}"):
                    writing.register("confide_batch", pa.Table.from_batches([batch]))
                    rows = select("*", "confide_batch")
                    if tally.rows:
                        writing.execute(f"INSERT INTO {quoted} {rows}")
                    else:
                        try:
                            writing.execute(f"CREATE TABLE {quoted} AS {rows}")
                        except duckdb.CatalogException:
                            raise table_exists_error(name) from None
                    writing.unregister("confide_batch")
                tally.add(batch)
            summary = tally.summary()
            writing.execute("COMMIT")
        except BaseException:
            writing.execute("ROLLBACK")
            raise
    return summary


def write_postgres(expression: Any, predictions: Predictions, name: str, progress: Progress) -> Summary:
    """Write into a new PostgreSQL table, in one transaction: by SQL where that computes the predictions."""
    backend = expression.get_backend()
    with engine_errors_in_fixed_words(f"writing table {name!r}"):
        import psycopg.errors

        try:
            with backend.con.transaction(), backend.con.cursor() as cursor:
                if all(one.in_sql for one in predictions.predictors):
                    made = in_sql(expression, predictions)
                    cursor.execute(f"CREATE TABLE {identifier(name)} AS {backend.compile(made)}")
                    return engine_summary(backend.table(name), predictions)
                return _copied(expression, predictions, name, progress, cursor)
        except psycopg.errors.DuplicateTable:
            raise table_exists_error(name) from None


def in_sql(expression: Any, predictions: Predictions) -> Any:
    """The kept columns with the predictions, as an expression of the engine."""
    for one in predictions.predictors:
        expression = one.added(expression)
    return expression.select(*predictions.keep, *(name for one in predictions.predictors for name in one.adds))


def engine_summary(written: Any, predictions: Predictions) -> Summary:
    """The number of written rows and the mean size of sets, counted by the engine."""
    return checked_summary(count_expression(written, predictions).to_pyarrow().to_pylist()[0], predictions)


def count_expression(written: Any, predictions: Predictions) -> Any:
    """An expression with one row: the number of rows, of rows without a prediction, of members of sets, of empty sets.

    For intervals it has half of the smallest width, and the smallest and the largest centre.
    """
    proof = written[predictions.proof]
    found = {"rows": written.count(), "missing": proof.isnull().sum()}
    if predictions.counts_members:
        found |= {"members": proof.cast("int64").sum(), "empty": (proof == 0).sum()}
    if predictions.ends is not None:
        low, high = (written[name] / 2 for name in predictions.ends)  # sums of halves do not overflow
        found |= {"half": (high - low).min(), "least": (high + low).min(), "most": (high + low).max()}
    return written.aggregate(**found)


def checked_summary(row: dict[str, Any], predictions: Predictions) -> Summary:
    """The summary of written predictions; raises `InputError` if rows have none."""
    sizes = (int(row["members"] or 0), int(row["empty"] or 0)) if "members" in row else None
    halves = None if predictions.ends is None else (row["half"], row["least"], row["most"])
    return summary_of(predictions, int(row["rows"]), int(row["missing"] or 0), sizes, halves)


def table_exists_error(name: str) -> OutputExistsError:
    """The error for a table name that exists already."""
    return OutputExistsError("out_table", f"{name!r} exists already", remedy="Choose another name")


def _copied(expression: Any, predictions: Predictions, name: str, progress: Progress, writing: Any) -> Summary:
    """Read by a server-side cursor, write by COPY; kept columns pass as text, which the server reads back unchanged."""
    import pyarrow as pa

    backend = expression.get_backend()
    source, target = f"({backend.compile(expression)}) AS source", identifier(name)
    reads = list(dict.fromkeys(read for one in predictions.predictors for read in one.reads))
    schema = expression.select(**{read.alias: expression[read.column] for read in reads}).schema().to_pyarrow()
    kept = [identifier(column) for column in predictions.keep]
    added = [column for one in predictions.predictors for column in one.adds]
    expressions = ", ".join([*(f"{column}::text" for column in kept), *(identifier(read.column) for read in reads)])
    writing.execute(f"CREATE TABLE {target} AS {select(', '.join(kept) or '1 AS nothing', source)} WITH NO DATA")
    for one in predictions.predictors:
        for column, kind in zip(one.adds, one.kinds, strict=True):
            writing.execute(f"ALTER TABLE {target} ADD COLUMN {identifier(column)} {_TYPES[kind]}")
    tally, rows, missing = PredictionCounts(predictions), 0, 0
    with backend.con.cursor(name="confide_reading") as reading:
        reading.execute(select(expressions, source))
        while fetched := reading.fetchmany(_ROWS):
            fields = zip(*(row[len(kept) :] for row in fetched), strict=True)
            arrays = [pa.array(values, field.type) for values, field in zip(fields, schema, strict=True)]
            batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
            found = [column for one in predictions.predictors for column in one.read(batch)[0]]
            columns = [column.to_pylist() for column in found]
            with writing.copy(f"COPY {target} ({', '.join([*kept, *map(identifier, added)])}) FROM STDIN") as copy:
                for row, *values in zip(fetched, *columns, strict=True):
                    copy.write_row([*row[: len(kept)], *values])
            missing += found[added.index(predictions.proof)].null_count
            if not missing:
                tally.add(pa.RecordBatch.from_arrays(found, names=added))
            rows += len(fetched)
            progress(len(fetched))
    return summary_of(predictions, rows, missing, None) if missing else tally.summary()
