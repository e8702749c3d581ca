"""Predictions as a new table of DuckDB or PostgreSQL, in one transaction; what one program wrote is not replaced."""

from contextlib import closing
from typing import Any

from confide.support import OutputExistsError
from confide.tables.failures import of_engine
from confide.tables.figures import Figures, Tally, figures_of
from confide.tables.predictions import Predictions
from confide.tables.predictors import Added
from confide.tables.progress import Progress
from confide.tables.sql import identifier, select

_ROWS = 2**14
_TYPES: dict[Added, str] = {
    "texts": "text[]",
    "integers": "bigint[]",
    "size": "integer",
    "number": "double precision",
}


def write_duckdb(connection: Any, predictions: Predictions, name: str, progress: Progress) -> Figures:
    """Write into a new DuckDB table, in a transaction of a second connection to the same database."""
    import duckdb
    import pyarrow as pa

    tally, quoted = Tally(predictions), identifier(name)
    with connection.cursor() as writing, closing(predictions.batches(as_text=False, progress=progress)) as batches:
        writing.execute("BEGIN")
        try:
            for batch in batches:
                with of_engine(f"writing table {name!r}"):
                    writing.register("confide_batch", pa.Table.from_batches([batch]))
                    rows = select("*", "confide_batch")
                    if tally.rows:
                        writing.execute(f"INSERT INTO {quoted} {rows}")
                    else:
                        try:
                            writing.execute(f"CREATE TABLE {quoted} AS {rows}")
                        except duckdb.CatalogException:
                            raise exists(name) from None
                    writing.unregister("confide_batch")
                tally.add(batch)
            figures = tally.figures()
            writing.execute("COMMIT")
        except BaseException:
            writing.execute("ROLLBACK")
            raise
    return figures


def write_postgres(expression: Any, predictions: Predictions, name: str, progress: Progress) -> Figures:
    """Write into a new PostgreSQL table, in one transaction: by SQL where that computes the predictions."""
    backend = expression.get_backend()
    with of_engine(f"writing table {name!r}"):
        import psycopg.errors

        try:
            with backend.con.transaction(), backend.con.cursor() as cursor:
                if all(one.in_sql for one in predictions.predictors):
                    made = in_sql(expression, predictions)
                    cursor.execute(f"CREATE TABLE {identifier(name)} AS {backend.compile(made)}")
                    return asked_figures(backend.table(name), predictions)
                return _copied(expression, predictions, name, progress, cursor)
        except psycopg.errors.DuplicateTable:
            raise exists(name) from None


def in_sql(expression: Any, predictions: Predictions) -> Any:
    """The kept columns with the predictions, as an expression of the engine."""
    for one in predictions.predictors:
        expression = one.added(expression)
    return expression.select(*predictions.keep, *(name for one in predictions.predictors for name in one.adds))


def asked_figures(written: Any, predictions: Predictions) -> Figures:
    """The number of rows that were written and the mean size of sets, counted by the engine."""
    return approved(counted(written, predictions).to_pyarrow().to_pylist()[0], predictions)


def counted(written: Any, predictions: Predictions) -> Any:
    """An expression with one row: how many rows there are, without a prediction, members of sets, and empty sets.

    Of intervals it has half the least width, and the least and the largest centre.
    """
    proof = written[predictions.proof]
    found = {"rows": written.count(), "missing": proof.isnull().sum()}
    if predictions.counts_members:
        found |= {"members": proof.cast("int64").sum(), "empty": (proof == 0).sum()}
    if predictions.ends is not None:
        low, high = (written[name] / 2 for name in predictions.ends)  # halves, whose sum and difference do not overflow
        found |= {"half": (high - low).min(), "least": (high + low).min(), "most": (high + low).max()}
    return written.aggregate(**found)


def approved(row: dict[str, Any], predictions: Predictions) -> Figures:
    """What is told of written predictions; refuses rows without one."""
    sizes = (int(row["members"] or 0), int(row["empty"] or 0)) if "members" in row else None
    halves = None if predictions.ends is None else (row["half"], row["least"], row["most"])
    return figures_of(predictions, int(row["rows"]), int(row["missing"] or 0), sizes, halves)


def exists(name: str) -> OutputExistsError:
    """A table of that name exists already."""
    return OutputExistsError(f"table {name!r} exists already; choose another name")


def _copied(expression: Any, predictions: Predictions, name: str, progress: Progress, writing: Any) -> Figures:
    """A server-side cursor reads, COPY writes; kept columns go through as text, which the server reads back alike."""
    import pyarrow as pa

    backend = expression.get_backend()
    source, target = f"({backend.compile(expression)}) AS source", identifier(name)
    reads = list(dict.fromkeys(read for one in predictions.predictors for read in one.reads))
    schema = expression.select(**{read.alias: expression[read.column] for read in reads}).schema().to_pyarrow()
    kept = [identifier(column) for column in predictions.keep]
    added = [column for one in predictions.predictors for column in one.adds]
    asked = ", ".join([*(f"{column}::text" for column in kept), *(identifier(read.column) for read in reads)])
    writing.execute(f"CREATE TABLE {target} AS {select(', '.join(kept) or '1 AS nothing', source)} WITH NO DATA")
    for one in predictions.predictors:
        for column, kind in zip(one.adds, one.kinds, strict=True):
            writing.execute(f"ALTER TABLE {target} ADD COLUMN {identifier(column)} {_TYPES[kind]}")
    tally, rows, missing = Tally(predictions), 0, 0
    with backend.con.cursor(name="confide_reading") as reading:
        reading.execute(select(asked, source))
        while fetched := reading.fetchmany(_ROWS):
            fields = zip(*(row[len(kept) :] for row in fetched), strict=True)
            arrays = [pa.array(values, field.type) for values, field in zip(fields, schema, strict=True)]
            batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
            found = [column for one in predictions.predictors for column in one.columns(batch)[0]]
            columns = [column.to_pylist() for column in found]
            with writing.copy(f"COPY {target} ({', '.join([*kept, *map(identifier, added)])}) FROM STDIN") as copy:
                for row, *values in zip(fetched, *columns, strict=True):
                    copy.write_row([*row[: len(kept)], *values])
            missing += found[added.index(predictions.proof)].null_count
            if not missing:
                tally.add(pa.RecordBatch.from_arrays(found, names=added))
            rows += len(fetched)
            progress(len(fetched))
    return figures_of(predictions, rows, missing, None) if missing else tally.figures()
