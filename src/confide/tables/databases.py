"""Databases by their address: PostgreSQL, SQLite, DuckDB, and others that Ibis supports."""

import glob
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from confide.errors import InputError
from confide.support import names_server, require, shown_address
from confide.tables.deferred import duckdb, ibis
from confide.tables.duckdb_table import DuckTable, embedded
from confide.tables.expressions import identifier, select
from confide.tables.failures import engine_errors_in_fixed_words
from confide.tables.ibis_table import IbisTable
from confide.tables.table import Table

# The schemes of addresses: of PostgreSQL, of engines that read Parquet files, and of files that are not read from here.
_POSTGRES = ("postgresql", "postgres")
_IN_MEMORY = ("polars", "datafusion")
_ELSEWHERE = ("s3n", "hdfs", "dbfs", "http", "https", "ftp", "hf", "wasb", "wasbs", "oss", "cos")


def without_password(source: str) -> str:
    """The address for display: without password and query.

    Examples
    --------
    >>> without_password("postgresql://me:secret@host:5432/db?sslkey=x")
    'postgresql://me@host:5432/db'
    """
    if names_server(source):
        return shown_address(source)
    scheme, separator, rest = source.partition("://")
    if not separator:
        return source
    account, at, place = rest.partition("?")[0].rpartition("@")
    return f"{scheme}://{account.partition(':')[0]}{at}{place}"


def files_behind(url: str) -> tuple[Path, ...]:
    """The files on this machine that an address refers to; empty for a server.

    Examples
    --------
    >>> [path.name for path in files_behind("duckdb://clinic.duckdb")], files_behind("postgresql://me@host/db")
    (['clinic.duckdb'], ())
    """
    scheme, _, path = url.partition("://")
    if scheme.lower() not in ("duckdb", "sqlite", *_IN_MEMORY):
        return ()
    return tuple(map(Path, dict.fromkeys([path, *glob.glob(path)])))  # noqa: PTH207 - Path.glob takes no absolute


@contextmanager
def open_database(url: str, table: str | None) -> Iterator[Table]:
    """Open a table of the database at an address; `polars://FILE` reads Parquet files by that engine."""
    scheme = url.partition("://")[0].lower()
    shown = without_password(url)
    _check_scheme(shown, scheme)
    require("table", scheme in _IN_MEMORY or table, f"must be given: which table of {shown!r} to read")
    opening = _open_duckdb(url, shown, str(table)) if scheme == "duckdb" else _open_by_ibis(url, scheme, shown, table)
    with opening as opened:
        opened.files = files_behind(url)
        yield opened


def _check_scheme(shown: str, scheme: str) -> None:
    """Raise `InputError` for addresses that are not read from here, and for schemes that are no engine of Ibis."""
    must = f"{shown!r} is not on this machine and is not read from there: copy the files here, or into a bucket of"
    remedy = "Or hand over pyarrow.dataset.dataset(...), or a data frame of Spark, in Python"
    require("source", scheme not in _ELSEWHERE, f"{must} s3://, gs:// or az://", remedy=remedy)
    if scheme in (*_POSTGRES, *_IN_MEMORY, "duckdb", "sqlite"):
        return
    with engine_errors_in_fixed_words(f"opening {shown!r}", "install ibis-framework"):
        engines = {entry.name for entry in ibis.util.backend_entry_points()}
    must = "must be a file or a database, or in Python a data frame of Spark"
    remedy = "Open it by Spark: calibrate_table(session.read.parquet(...), ...)"
    require("source", scheme not in ("spark", "sc"), must, got=f"{scheme}://", remedy=remedy)
    must = f"{shown!r} must be a file, postgresql://, duckdb://, sqlite:// or another engine of Ibis"
    require("source", scheme in engines, must, got=f"{scheme}://")


@contextmanager
def _open_duckdb(url: str, shown: str, table: str) -> Iterator[Table]:
    """A table of a DuckDB file, which is read like any file, by the DuckDB of this process."""
    with ExitStack() as opening:
        with engine_errors_in_fixed_words(f"opening {shown!r}"):
            connection = opening.enter_context(embedded(url.partition("://")[2]))
            opened = _duckdb_table(connection, shown, table)
        yield opened


@contextmanager
def _open_by_ibis(url: str, scheme: str, shown: str, table: str | None) -> Iterator[Table]:
    doing = f"opening {shown!r}"
    path = url.partition("://")[2]
    extra = "confide[postgres]" if scheme in _POSTGRES else f"ibis-framework[{scheme}]"
    if scheme == "databricks":
        extra += ", which brings the rows here; or hand over a data frame of Databricks Connect, which counts there"
    with engine_errors_in_fixed_words(doing, f"install {extra}"):
        connection = _connect(url, scheme, path)
    try:
        with engine_errors_in_fixed_words(doing):
            in_memory = scheme in _IN_MEMORY
            expression = connection.read_parquet(path) if in_memory else _table(connection, shown, str(table))
        yield IbisTable(f"table {table!r}" if table else repr(shown), expression)
    finally:
        connection.disconnect()


def _connect(url: str, scheme: str, path: str) -> Any:
    if scheme in _IN_MEMORY:
        return getattr(ibis, scheme).connect()
    if scheme == "sqlite":
        require("path", Path(path).is_file(), f"{path!r} does not exist")
        return ibis.sqlite.from_connection(sqlite3.connect(path))
    connection = ibis.connect(url)
    if scheme in _POSTGRES:
        connection.raw_sql("SET default_transaction_read_only = on").close()
    return connection


def _table(connection: Any, shown: str, name: str) -> Any:
    from ibis.common.exceptions import TableNotFound

    schema, _, table = name.rpartition(".")
    try:
        return connection.table(table, database=schema or None)
    except TableNotFound:
        raise _no_such_table(name, shown) from None


def _no_such_table(name: str, shown: str) -> InputError:
    return InputError("table", f"{name!r} is not in {shown!r}, or this role may not see it")


def _duckdb_table(connection: Any, shown: str, name: str) -> DuckTable:
    source = ".".join(map(identifier, name.split(".")))
    try:
        schema = connection.sql(select("*", source, "LIMIT 0")).to_arrow_table().schema
    except duckdb.CatalogException:
        raise _no_such_table(name, shown) from None
    return DuckTable(
        f"table {name!r}",
        schema,
        connection,
        source,
        partial(engine_errors_in_fixed_words, f"reading table {name!r}"),
        stated_rows=lambda: int(connection.sql(select("count(*)", source)).fetchall()[0][0]),
    )
