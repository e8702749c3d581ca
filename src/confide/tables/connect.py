"""From what somebody typed to a table: a glob of Parquet files, a database URL, or a Spark master."""

import glob
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from confide.errors import InputError
from confide.tables.engine_failures import fixed_words

_SPARK = re.compile(r"spark://.+|local(\[.*\])?")
_URL = re.compile(r"([a-z][a-z0-9+.-]*)://", re.IGNORECASE)
_POSTGRES = ("postgresql", "postgres")


def names_an_engine(source: str) -> bool:
    """Whether this names something else than a single file.

    Examples
    --------
    >>> [names_an_engine(s) for s in ("a.parquet", "part-*.parquet", "postgresql://me@host/db", "local[2]")]
    [False, True, True, True]
    """
    return bool(_URL.match(source) or _SPARK.fullmatch(source)) or any(mark in source for mark in "*?[")


def names_spark(source: str) -> bool:
    """Whether this names a Spark master.

    Examples
    --------
    >>> names_spark("spark://host:7077"), names_spark("postgresql://me@host/db")
    (True, False)
    """
    return bool(_SPARK.fullmatch(source))


def without_password(source: str) -> str:
    """The source as it may be shown: no password, no query.

    Examples
    --------
    >>> without_password("postgresql://me:secret@host:5432/db?sslkey=x")
    'postgresql://me@host:5432/db'
    """
    if not _URL.match(source):
        return source
    scheme, _, rest = source.partition("://")
    rest = rest.partition("?")[0]
    account, at, place = rest.rpartition("@")
    return f"{scheme}://{account.partition(':')[0]}{at}{place}"


@contextmanager
def open_source(
    source: str, table: str | None = None, *, write: bool = False, threads: int | None = None
) -> Iterator[Any]:
    """The table that a source names, as an Ibis expression; its connection is closed at the end of the block.

    Parameters
    ----------
    source
        A Parquet file or a glob of them; `postgresql://user@host/database` or `duckdb://file`, with `table`; or
        `spark://host:port` or `local[k]`, with `table` a table's name or a path of Parquet files.
    table
        The table, perhaps with its schema: `schema.table`.
    write
        Whether tables are to be written; by default the connection is read-only where the engine knows such a thing.
    threads
        Threads of DuckDB's own; by default one per core. For counting a column one is best: two threads of this
        process take turns at reading, and a batch is counted by the core that read it.

    Raises
    ------
    InputError
        If there is no such source, or its driver is not installed.
    EngineError
        If the engine refuses or cannot be reached; the message holds neither password nor data.
    """
    shown = without_password(source)
    if names_spark(source):
        from confide.tables.spark import open_spark

        with open_spark(source, _needed(table, shown)) as opened:
            yield opened
        return
    scheme = match[1].lower() if (match := _URL.match(source)) else None
    if scheme is not None and scheme not in (*_POSTGRES, "duckdb"):
        raise InputError(f"source {shown!r} must be a file, postgresql://, duckdb:// or spark://; found {scheme}://")
    with fixed_words(f"opening {shown!r}"):
        if scheme in _POSTGRES:
            connection = _postgres(source, write)
        elif scheme == "duckdb":
            connection = _duckdb(source.partition("://")[2], write, threads)
        else:
            connection = _duckdb(":memory:", True, threads)
    try:
        with fixed_words(f"opening {shown!r}"):
            opened = _parquet(connection, source, table) if scheme is None else _table(connection, shown, table)
        yield opened
    finally:
        connection.disconnect()


def _postgres(url: str, write: bool) -> Any:
    import ibis

    connection = ibis.connect(url)
    if not write:
        connection.raw_sql("SET default_transaction_read_only = on").close()
    return connection


def _duckdb(path: str, write: bool, threads: int | None) -> Any:
    import ibis

    offline = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    memory = path == ":memory:"
    connection = ibis.duckdb.connect(path, read_only=not (write or memory), **offline)
    for setting in ("SET temp_directory = ''", "SET enable_progress_bar = false"):  # records are never spilled to disk
        connection.raw_sql(setting)
    if threads is not None:
        connection.raw_sql(f"SET threads = {threads:d}")
    return connection


def _parquet(connection: Any, source: str, table: str | None) -> Any:
    if table is not None:
        raise InputError("table must be left out for files; it belongs to a database or to Spark")
    if not source.endswith((".parquet", ".pq")):
        raise InputError(f"source {source!r} must name Parquet files, as 'folder/*.parquet' does")
    if not glob.glob(source, recursive=True):  # noqa: PTH207 - the engine reads the same pattern
        raise InputError(f"source {source!r} matches no file")
    return connection.read_parquet(source, union_by_name=False)


def _table(connection: Any, shown: str, name: str | None) -> Any:
    from ibis.common.exceptions import TableNotFound

    schema, _, table = _needed(name, shown).rpartition(".")
    try:
        return connection.table(table, database=schema or None)
    except TableNotFound:
        raise InputError(f"table {name!r} is not in {shown!r}, or this role may not see it") from None


def _needed(table: str | None, shown: str) -> str:
    if not table:
        raise InputError(f"table must be given: which table of {shown!r} to read")
    return table
