"""From a Spark master, a server of Spark Connect, or an existing session to an Ibis table; errors in fixed words.

With Spark Connect a session is on a server and supports only the DataFrame API, so no Java is needed here. Databricks'
clusters and serverless compute support it, too. There is no `sparkContext`, no `_jvm`, no RDD and no Hadoop `Path`, and
a server may reject settings.
"""

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from confide.errors import ConfideError, FormatError, InputError
from confide.tables.failures import EngineError

Result = TypeVar("Result")

_LOGS = "the reason is in its logs, which may quote records, so show them to the owner of the data only"
_WORDS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("PATH_NOT_FOUND", "Path does not exist"), "the path does not exist, or not where Spark looks for it"),
    (("TABLE_OR_VIEW_NOT_FOUND", "TableNotFound"), "there is no table of that name"),
    (("UNABLE_TO_INFER_SCHEMA",), "the path holds no Parquet files"),
    (("PATH_ALREADY_EXISTS",), "the output folder exists; choose another or overwrite it"),
    (("CANNOT_READ_FILE", "is not a Parquet file", "FAILED_READ_FILE"), "a file is damaged, or is not a Parquet file"),
    (("No module named 'confide'",), "the executors' Python has no confide; install it there, or ship an environment"),
    (
        ("S3AFileSystem not found", "UnsupportedFileSystemException", "No FileSystem for scheme"),
        "Spark lacks the package for such addresses; start it with one, for s3a:// by PYSPARK_SUBMIT_ARGS='--packages "
        "org.apache.hadoop:hadoop-aws:VERSION pyspark-shell' with Spark's version of Hadoop",
    ),
    (("PYTHON_VERSION_MISMATCH",), "the executors run another version of Python than this process"),
    (("OutOfMemoryError", "MEMORY_LIMIT_EXCEEDED"), "the executors or the driver need more memory"),
    (("JAVA_GATEWAY_EXITED",), "Java did not start; Spark needs Java 17 or newer"),
    (("All masters are unresponsive",), "the master does not answer"),
    (("UNAUTHENTICATED",), "the server rejected the token; check the one behind ;token= of its address"),
    (("PERMISSION_DENIED", "INSUFFICIENT_PERMISSIONS"), "the user has no right to do that"),
    (
        ("UNAVAILABLE", "Connection refused", "SparkContext was shut down", "stopped SparkContext"),
        "the connection to Spark was lost",
    ),
)


def run_on_spark(
    work: Callable[[], Result],
    argument: str = "source",
    subject: str = "Spark",
    otherwise: str = f"a Spark job failed; {_LOGS}",
) -> Result:
    """Run a function on Spark; every error is replaced by one that cannot quote data.

    pyspark logs an error's text before it raises it, so its logger is turned off meanwhile.

    Parameters
    ----------
    work
        Called once.
    argument
        The argument at fault.
    subject
        The master or path that the caller named.
    otherwise
        The text for an unknown error.
    """
    try:
        with _quiet():
            return work()
    except ConfideError:
        raise
    except Exception as error:
        refusal = as_refusal(error, argument, subject, otherwise)
    raise refusal  # outside the handler: otherwise the error would be attached as the context


@contextmanager
def _quiet() -> Iterator[None]:
    """No log lines from pyspark."""
    from pyspark.logger import PySparkLogger

    loggers = [PySparkLogger.getLogger(name) for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger")]
    before = [logger.disabled for logger in loggers]
    try:
        for logger in loggers:
            logger.disabled = True
        yield
    finally:
        for logger, disabled in zip(loggers, before, strict=True):
            logger.disabled = disabled


def as_refusal(error: Exception, argument: str, subject: str, otherwise: str) -> ConfideError:
    """The reason of the failure, without any data."""
    text = f"{type(error).__name__} {error}"
    for marks, words in _WORDS:
        if any(mark in text for mark in marks):
            kind = FormatError if "damaged" in words else InputError
            return kind(argument, f"{subject} cannot be used: {words}")
    spark = type(error).__module__.partition(".")[0] in ("pyspark", "py4j")
    return EngineError(
        argument, f"{subject} cannot be used: {otherwise if spark else f'its driver reports {type(error).__name__}'}"
    )


_PORT = 15002
_SECONDS = 5.0
_ADDRESS = re.compile(r"sc://(?P<host>\[[^\]]*\]|[^:/;?#@]+)(?::(?P<port>\d{1,5}))?/?(?:;.*)?", re.DOTALL)


def names_connect(source: str) -> bool:
    """Whether a text is the address of a server of Spark Connect.

    Examples
    --------
    >>> names_connect("sc://host:15002"), names_connect("spark://host:7077")
    (True, False)
    """
    return source.lower().startswith("sc://")


def shown_server(url: str) -> str:
    """The address for display: without its parameters, one of which may be a token.

    Examples
    --------
    >>> shown_server("sc://host:443/;token=secret;use_ssl=true"), shown_server("sc://secret@host")
    ('sc://host:443', 'sc://...')
    """
    found = _ADDRESS.fullmatch(url)
    if found is None:
        return "sc://..."
    return f"sc://{found['host']}" + (f":{found['port']}" if found["port"] else "")


def is_connect(session: Any) -> bool:
    """Whether a session is one of Spark Connect, including Databricks Connect, whose class derives from Spark's."""
    return any(base.__module__.startswith("pyspark.sql.connect") for base in type(session).__mro__)


def check_connect() -> None:
    """Raise an error if pyspark or a package of its client is missing; Java is not needed."""
    missing = [name for name in ("pyspark", "pandas", "grpc", "grpc_status") if find_spec(name) is None]
    if missing:
        raise InputError(
            "pyspark",
            f"Spark Connect needs the package {missing[0]}",
            remedy="Install the extra: pip install 'confide[spark]'",
        )


@contextmanager
def open_connect(url: str) -> Iterator[Any]:
    """A session on a server, closed at the end of the block.

    Raises
    ------
    InputError
        If the address is invalid, or no server answers there; the client itself would try for minutes.
    """
    shown = shown_server(url)
    _check_reachable(url, shown)
    from pyspark.sql.connect.session import SparkSession

    def create() -> Any:
        session = SparkSession.builder.remote(url).create()
        _ = session.version  # the first call to the server, which checks tokens
        return session

    session = run_on_spark(
        create, "source", f"Spark server {shown!r}", "it does not answer as a server of Spark Connect does"
    )
    try:
        yield session
    finally:
        with suppress(Exception):  # a server that has gone has nothing to end
            session.stop()


def _check_reachable(url: str, shown: str) -> None:
    found = _ADDRESS.fullmatch(url)
    if found is None:
        raise InputError(
            "server", f"{shown!r} must be sc://host:port, with parameters behind /", remedy="As /;use_ssl=true"
        )
    if _answers(found["host"].strip("[]"), found["port"] or _PORT):
        return
    raise InputError(
        "server",
        f"{shown!r} cannot be reached",
        remedy=f"Check the host and the port (sc://host:{_PORT}), and that the server of Spark Connect runs",
    )


def _answers(host: str, port: str | int) -> bool:
    """Whether a connection is accepted there."""
    try:
        with socket.create_connection((host, int(port)), timeout=_SECONDS):
            return True
    except (OSError, ValueError, OverflowError):  # a host that cannot be encoded is a ValueError
        return False


def quiet_backend(session: Any) -> Any:
    """Ibis over a session of Connect; a setting that the server rejects is not changed."""
    import ibis

    _ = ibis.pyspark.connect  # registers its options
    from ibis.backends.pyspark import Backend

    class Quiet(Backend):  # type: ignore[misc]
        def do_connect(self, session: Any) -> None:
            self._mode, self._session = "batch", session
            with suppress(Exception):
                session.conf.set("spark.sql.session.timeZone", "UTC")

    made = Quiet(session)
    made.reconnect()
    return made


Frame = Any
"""A `pyspark.sql.DataFrame`."""


def frame_of(table: Any) -> Frame:
    """The data frame of an Ibis table on Spark; nothing is computed yet."""
    backend = table.get_backend()
    if backend.name != "pyspark":
        raise InputError("table", "must be one of Spark", remedy=f"It is one of {backend.name}")
    return backend.raw_sql(backend.compile(table))


def table_of(frame: Frame, backend: Any) -> Any:
    """An Ibis table over a data frame, on the same connection."""
    from ibis.util import gen_name

    name = gen_name("confide_spark")
    frame.createOrReplaceTempView(name)
    return backend.table(name)


def functions_of(frame: Frame) -> Any:
    """The column functions for a frame: those of Spark's session on Java, or of Spark Connect."""
    if is_connect(frame.sparkSession):
        from pyspark.sql.connect import functions as of_connect

        return of_connect
    from pyspark.sql import functions

    return functions


_SETTINGS = {
    "spark.log.level": "OFF",  # Spark's log lines may quote records
    "spark.ui.showConsoleProgress": "false",
    "spark.ui.enabled": "false",  # a web page with every query, open to everyone who reaches the port
}
_SPARK = re.compile(r"spark://.+|local(\[.*\])?")
_SECONDS_FOR_EXECUTORS = 120.0


@contextmanager
def open_session(master: str) -> Iterator[Any]:
    """A Spark session on a master or server, closed at the end of the block unless it was active before.

    Java's output is discarded, because Spark writes rows into its messages. The user's settings (memory, cores,
    authentication) are read from Spark's configuration files and from PYSPARK_SUBMIT_ARGS, as usual.

    Parameters
    ----------
    master
        `spark://host:port` or `local[2]`, as Spark accepts them. Or `sc://host:port`, a server of Spark Connect, which
        needs no Java here and always gets a new session.

    Raises
    ------
    InputError
        If pyspark, or Java for a master, is missing, or the master cannot be reached or provides no executor.
    """
    if names_connect(master):
        check_connect()
        with open_connect(master) as session:
            yield session
        return
    check_installed()
    from pyspark.sql import SparkSession

    check_reachable(master)
    active = SparkSession.getActiveSession()
    if active is not None:
        found = active.sparkContext.master
        if found != master:
            raise InputError(
                "master", f"a Spark session on {found!r} is active in this process", remedy=f"Stop it to use {master!r}"
            )
        yield active
        return
    conf = _configuration(master)
    if master.startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # otherwise its workers use the "python3" on the path
    with _java(conf):
        session = run_on_spark(
            SparkSession.builder.config(conf=conf).getOrCreate,
            "master",
            f"Spark master {master!r}",
            "Spark did not start; check its settings, version and memory",
        )
        try:
            run_on_spark(lambda: await_executor(session, _SECONDS_FOR_EXECUTORS), "master", f"Spark master {master!r}")
            yield session
        finally:
            session.stop()


def spark_table(session: Any, source: str) -> Any:
    """An Ibis table on an existing session; see `backend_of` for its time zone.

    Parameters
    ----------
    session
        A `pyspark.sql.SparkSession`, also one of Spark Connect.
    source
        A Parquet file, a folder or a glob of them, or an address, as seen by the *executors*; or the name of a table.
    """

    def connect() -> Any:
        backend = backend_of(session)
        return backend.read_parquet(source) if is_path(source) else backend.table(source)

    return run_on_spark(connect, "source", f"source {source!r}")


def backend_of(session: Any) -> Any:
    """Ibis over a session; its time zone becomes UTC, which Ibis needs, if the server permits the setting."""
    if is_connect(session):
        check_connect()
        return quiet_backend(session)
    check_installed()
    import ibis

    return ibis.pyspark.connect(session)


def names_spark(source: str) -> bool:
    """Whether a text names a Spark master or a server of Spark Connect.

    Examples
    --------
    >>> names_spark("spark://host:7077"), names_spark("local[2]"), names_spark("postgresql://me@host/db")
    (True, True, False)
    """
    return bool(_SPARK.fullmatch(source)) or names_connect(source)


def is_path(source: str) -> bool:
    """Whether a source is a path or an address, and not a table name.

    Examples
    --------
    >>> is_path("scores/*.parquet"), is_path("s3a://bucket/scores"), is_path("hospital.scores")
    (True, True, False)
    """
    return "/" in source or os.sep in source or "*" in source or source.endswith((".parquet", ".pq"))


def check_installed() -> None:
    """Raise an error if pyspark or Java is missing."""
    if find_spec("pyspark") is None:
        raise InputError(
            "pyspark", "Spark needs the package pyspark", remedy="Install the extra: pip install 'confide[spark]'"
        )
    home = os.environ.get("JAVA_HOME")
    if not (shutil.which("java") or (home and (Path(home) / "bin" / "java").exists())):
        raise InputError(
            "java", "Spark needs Java 17 or newer, and none was found", remedy="Install it, or set JAVA_HOME"
        )


def check_reachable(master: str) -> None:
    """Reject a standalone master if none of its addresses accepts a connection; Spark itself would try for minutes."""
    if not master.startswith("spark://"):
        return
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.rpartition(":")
        if _answers(host, port):
            return
    raise InputError(
        "master",
        f"{master!r} cannot be reached",
        remedy="Check the host and the port (spark://host:7077), and that the master runs",
    )


def await_executor(session: Any, seconds: float) -> None:
    """Raise an error if the cluster provides no executor in this time; Spark itself would wait forever."""
    master = session.sparkContext.master
    if not master.startswith("spark://"):
        return
    tracker = session.sparkContext._jsc.sc().statusTracker()
    end = time.monotonic() + seconds
    while len(tracker.getExecutorInfos()) < 2:  # the driver is one
        if time.monotonic() > end:
            raise InputError(
                "master",
                f"{master!r} gave no executor within {seconds:g} s",
                remedy=(
                    "Free cores or memory on its workers, or ask for less with spark.executor.memory and "
                    "spark.cores.max"
                ),
            )
        time.sleep(0.1)


def _configuration(master: str) -> Any:
    from pyspark import SparkConf

    return SparkConf().setMaster(master).setAppName("confide").setAll(list(_SETTINGS.items()))


@contextmanager
def _java(conf: Any) -> Iterator[None]:
    """A Java process without terminal output that ends with the block; one that runs already is not changed."""
    from pyspark import SparkContext, java_gateway

    if SparkContext._gateway is not None:
        yield
        return
    launch: Any = java_gateway.launch_gateway
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    gateway = run_on_spark(lambda: launch(conf, silent), "Spark", "Java did not start; Spark needs Java 17 or newer")
    try:
        SparkContext._ensure_initialized(gateway=gateway, conf=conf)
        yield
    finally:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait()
        SparkContext._gateway = SparkContext._jvm = None
