"""The sources of tables: each stores an Arrow table in its own way."""

import gzip
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from tests.tables import postgres_server

_names = count()


class Engine:
    """Creates sources."""

    needs: tuple[str, ...] = ()
    lists = True
    """Whether there are columns of lists."""

    decimals = True
    """Whether there are decimals of 38 digits."""

    single = True
    """Whether single precision stays single precision."""

    ranks = True
    """Whether it can number the records of each person."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def table(self, data: pa.Table) -> Any:
        """A source with the rows of an Arrow table."""
        raise NotImplementedError

    def next(self, ending: str = "") -> Path:
        return self.folder / f"t{next(_names)}{ending}"


class InMemory(Engine):
    """An Arrow table."""

    def table(self, data: pa.Table) -> Any:
        return data


class PandasFrame(Engine):
    needs = ("pandas",)

    def table(self, data: pa.Table) -> Any:
        import pandas as pd

        return data.to_pandas(types_mapper=pd.ArrowDtype)


class Batches(Engine):
    """An iterable of batches of few rows."""

    def table(self, data: pa.Table) -> Any:
        return data.to_batches(max_chunksize=700) or [pa.RecordBatch.from_pylist([], schema=data.schema)]


class Dataset(Engine):
    """A pyarrow data set."""

    def table(self, data: pa.Table) -> Any:
        import pyarrow.dataset as ds

        return ds.dataset(data)


class Folder(Engine):
    """A folder of two Parquet files, and of files that other programs leave there."""

    def table(self, data: pa.Table) -> Any:
        folder = self.next()
        (folder / "_logs").mkdir(parents=True)
        for i, part in enumerate(halves(data)):
            pq.write_table(part, folder / f"part-{i}.parquet")
        (folder / "_SUCCESS").touch()
        (folder / "_logs" / "other.parquet").write_text("of another program")
        return folder


class PackedCsv(Engine):
    """CSV compressed by gzip."""

    lists, decimals, single = False, False, False

    def table(self, data: pa.Table) -> Any:
        path = self.next(".csv.gz")
        columns = [widened(column) for column in data.columns]
        with gzip.open(path, "wb") as stream:
            pa.csv.write_csv(pa.table(columns, names=data.column_names), stream)
        return path


class DuckDB(Engine):
    """A table of an Ibis connection."""

    def __init__(self, folder: Path) -> None:
        import ibis

        super().__init__(folder)
        self.connection = ibis.duckdb.connect()

    def table(self, data: pa.Table) -> Any:
        name = f"t{next(_names)}"
        self.connection.con.register("arriving", data)
        self.connection.con.execute(f"CREATE TABLE {name} AS SELECT * FROM arriving")  # noqa: S608
        self.connection.con.unregister("arriving")
        return self.connection.table(name)


class DuckDBInSQL(DuckDB):
    """The same table, counted by a GROUP BY as in PostgreSQL."""

    def table(self, data: pa.Table) -> Any:
        from confide.tables import open_table
        from confide.tables.engine_counts import grouped_counts
        from confide.tables.ibis_table import IbisTable

        class InSQL(IbisTable):
            def count(self, jobs: Any, progress: Any) -> Any:
                if not all(job.columns.reader.in_sql for job in jobs):
                    return None
                return [grouped_counts(self.expression, job, progress) for job in jobs]

            def batches(self, columns: Any, rows: int) -> Any:
                with open_table(self.expression) as table:
                    yield from table.batches(columns, rows)

        return InSQL("the table", super().table(data))


class SQLite(Engine):
    """A table of an Ibis connection to a file."""

    lists, decimals, single = False, False, False

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.path = folder / "db.sqlite"

    def table(self, data: pa.Table) -> Any:
        import ibis

        return ibis.sqlite.connect(self.path).table(self.create(data))

    def create(self, data: pa.Table) -> str:
        """The name of a new table of the file."""
        import sqlite3
        from contextlib import closing

        name = f"t{next(_names)}"
        kinds = {"double": "REAL", "float": "REAL", "string": "TEXT"}
        columns = ", ".join(f'"{field.name}" {kinds.get(str(field.type), "INTEGER")}' for field in data.schema)
        with closing(sqlite3.connect(self.path)) as connection, connection:
            connection.execute(f"CREATE TABLE {name} ({columns})")
            marks = ", ".join("?" * data.num_columns)
            rows = zip(*(column.to_pylist() for column in data.columns), strict=True)
            connection.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)  # noqa: S608
        return name


class Polars(Engine):
    """Ibis on polars."""

    needs, ranks = ("polars",), False

    def table(self, data: pa.Table) -> Any:
        import ibis

        return ibis.polars.connect().create_table(f"t{next(_names)}", data)


class DataFusion(Engine):
    """Ibis on DataFusion."""

    needs = ("datafusion",)

    def table(self, data: pa.Table) -> Any:
        import ibis

        path = self.next().with_suffix(".parquet")
        pq.write_table(data, path)
        return ibis.datafusion.connect().read_parquet(path)


class Postgres(Engine):
    """Tables that a role with read permission only reads."""

    def __init__(self, server: postgres_server.Server) -> None:
        import ibis

        self._server = server
        self.connection = ibis.connect(server.url(postgres_server.READER))

    def table(self, data: pa.Table) -> Any:
        return self.connection.table(self.create(data))

    def create(self, data: pa.Table) -> str:
        """The name of a new table."""
        import psycopg

        name = f"t{next(_names)}"
        columns = ", ".join(f'"{column.name}" {_type(column.type)}' for column in data.schema)
        with psycopg.connect(self._server.url(postgres_server.OWNER), autocommit=True) as connection:
            connection.execute(f"CREATE TABLE {name} ({columns})")
            with connection.cursor() as cursor, cursor.copy(f"COPY {name} FROM STDIN") as copying:
                for row in zip(*(column.to_pylist() for column in data.columns), strict=True):
                    copying.write_row(row)
        return name


class Spark(Engine):
    """Data frames of two Parquet files each, so that both workers have rows."""

    def __init__(self, session: Any, folder: Path) -> None:
        super().__init__(folder)
        self.session = session

    def table(self, data: pa.Table) -> Any:
        folder = self.next()
        folder.mkdir()
        for i, part in enumerate(halves(data)):
            pq.write_table(part, folder / f"{i}.parquet")
        return self.session.read.parquet(str(folder))


EMBEDDED: dict[str, type[Engine]] = {
    "memory": InMemory,
    "pandas": PandasFrame,
    "batches": Batches,
    "dataset": Dataset,
    "folder": Folder,
    "csv.gz": PackedCsv,
    "duckdb": DuckDB,
    "duckdb_sql": DuckDBInSQL,
    "sqlite": SQLite,
    "ibis.polars": Polars,
    "ibis.datafusion": DataFusion,
}


EVERYDAY = ("memory", "batches", "csv.gz", "duckdb_sql", "sqlite", "postgres")
"""Where a test does not name its own: an engine of each way of reading, which together reach all of its lines."""


def engines(*everyday: str) -> list[Any]:
    """All engines, as cases; those that are not named are slow, and Spark is long."""
    named = everyday or EVERYDAY
    cases = [name if name in named else pytest.param(name, marks=pytest.mark.slow) for name in (*EMBEDDED, "postgres")]
    return [*cases, pytest.param("spark", marks=[pytest.mark.long, pytest.mark.xdist_group("spark")])]


def everyday_on(*names: str) -> pytest.MarkDecorator:
    """Every engine has the test's cases; the everyday suite runs those of these engines."""
    return pytest.mark.parametrize("engine", engines(*names), indirect=True)


def halves(data: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The first and the second half of the rows."""
    return data.slice(0, len(data) // 2), data.slice(len(data) // 2)


def widened(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Single precision as double precision, so that its shortest text reads back as the same number."""
    return column.cast(pa.float64()) if pa.types.is_float32(column.type) else column


def _type(kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        return f"{_type(kind.value_type)}[]"
    if pa.types.is_decimal(kind):
        return f"numeric({kind.precision},{kind.scale})"
    names = {"double": "float8", "float": "float4", "int64": "int8", "int32": "int4", "string": "text", "bool": "bool"}
    return names[str(kind)]
