"""The engines under test: each turns an Arrow table into an Ibis table in its own storage."""

from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.tables import postgres_server

_names = count()


class DuckDB:
    def __init__(self) -> None:
        import ibis

        self.connection = ibis.duckdb.connect()

    def table(self, data: pa.Table) -> Any:
        name = f"t{next(_names)}"
        self.connection.con.register("arriving", data)
        self.connection.con.execute(f"CREATE TABLE {name} AS SELECT * FROM arriving")  # noqa: S608
        self.connection.con.unregister("arriving")
        return self.connection.table(name)


class Postgres:
    def __init__(self, server: postgres_server.Server) -> None:
        import ibis

        self._server = server
        self.connection = ibis.connect(server.url(postgres_server.READER))

    def table(self, data: pa.Table) -> Any:
        import psycopg

        name = f"t{next(_names)}"
        columns = ", ".join(f'"{column.name}" {_type(column.type)}' for column in data.schema)
        with psycopg.connect(self._server.url(postgres_server.OWNER), autocommit=True) as connection:
            connection.execute(f"CREATE TABLE {name} ({columns})")
            with connection.cursor() as cursor, cursor.copy(f"COPY {name} FROM STDIN") as copying:
                for row in zip(*(column.to_pylist() for column in data.columns), strict=True):
                    copying.write_row(row)
        return self.connection.table(name)


class Spark:
    """Tables of two Parquet files each, so that both workers have something to do."""

    def __init__(self, session: Any, folder: Path) -> None:
        import ibis

        self.connection, self._folder = ibis.pyspark.connect(session), folder

    def table(self, data: pa.Table) -> Any:
        folder = self._folder / f"t{next(_names)}"
        folder.mkdir()
        for i, part in enumerate((data.slice(0, len(data) // 2), data.slice(len(data) // 2))):
            pq.write_table(part, folder / f"{i}.parquet")
        return self.connection.read_parquet(str(folder))


def _type(kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        return f"{_type(kind.value_type)}[]"
    if pa.types.is_decimal(kind):
        return f"numeric({kind.precision},{kind.scale})"
    names = {"double": "float8", "float": "float4", "int64": "int8", "int32": "int4", "string": "text", "bool": "bool"}
    return names[str(kind)]
