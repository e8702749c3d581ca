"""From a Spark master or server and the name of some data, or a session that exists, to an Ibis table."""

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from confide.errors import InputError
from confide.tables.spark.connect import check_connect, is_connect, names_connect, open_connect, quiet_backend
from confide.tables.spark.failures import in_words

_SETTINGS = {
    "spark.log.level": "OFF",  # Spark's log lines may quote records
    "spark.ui.showConsoleProgress": "false",
    "spark.ui.enabled": "false",  # a web page with every query, open to whoever reaches the port
}
_SPARK = re.compile(r"spark://.+|local(\[.*\])?")
_SECONDS_FOR_MASTER = 5.0
_SECONDS_FOR_EXECUTORS = 120.0


@contextmanager
def open_session(master: str) -> Iterator[Any]:
    """A Spark session on a master or server, which ends with the block; an active one of that master is used and left.

    Java's own output is discarded, since Spark writes rows into its messages. Settings of the user (memory, cores,
    authentication) are taken from Spark's configuration files and from PYSPARK_SUBMIT_ARGS, as always.

    Parameters
    ----------
    master
        `spark://host:port` or `local[2]`; whatever Spark accepts. Or `sc://host:port`, a server of Spark Connect, which
        needs no Java here and always gets a session of its own.

    Raises
    ------
    InputError
        If pyspark, or for a master Java, is missing, or it cannot be reached or gives no executor.
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
            raise InputError(f"a Spark session on {found!r} is active in this process; stop it to use {master!r}")
        yield active
        return
    conf = _configuration(master)
    if master.startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else its workers are whatever "python3" is
    with _java(conf):
        session = in_words(
            SparkSession.builder.config(conf=conf).getOrCreate,
            f"Spark master {master!r}",
            "Spark did not start; check its settings, version and memory",
        )
        try:
            in_words(lambda: await_executor(session, _SECONDS_FOR_EXECUTORS), f"Spark master {master!r}")
            yield session
        finally:
            session.stop()


def spark_table(session: Any, source: str) -> Any:
    """An Ibis table on a session that exists; see `backend_of` for its time zone.

    Parameters
    ----------
    session
        A `pyspark.sql.SparkSession`, also one of Spark Connect.
    source
        A Parquet file, a folder or a glob of them, or an address, as the *executors* see it; or the name of a table.
    """

    def connect() -> Any:
        backend = backend_of(session)
        return backend.read_parquet(source) if is_path(source) else backend.table(source)

    return in_words(connect, f"source {source!r}")


def backend_of(session: Any) -> Any:
    """Ibis over a session: its time zone becomes UTC, which Ibis needs, where a server lets it be set."""
    if is_connect(session):
        check_connect()
        return quiet_backend(session)
    check_installed()
    import ibis

    return ibis.pyspark.connect(session)


def names_spark(source: str) -> bool:
    """Whether this names a Spark master, or a server of Spark Connect.

    Examples
    --------
    >>> names_spark("spark://host:7077"), names_spark("local[2]"), names_spark("postgresql://me@host/db")
    (True, True, False)
    """
    return bool(_SPARK.fullmatch(source)) or names_connect(source)


def is_path(source: str) -> bool:
    """Whether a source is a path or an address, and no table name.

    Examples
    --------
    >>> is_path("scores/*.parquet"), is_path("s3a://bucket/scores"), is_path("hospital.scores")
    (True, True, False)
    """
    return "/" in source or os.sep in source or "*" in source or source.endswith((".parquet", ".pq"))


def check_installed() -> None:
    """Refuse without pyspark or Java."""
    if find_spec("pyspark") is None:
        raise InputError("Spark needs the package pyspark; install the extra: pip install 'confide[spark]'")
    home = os.environ.get("JAVA_HOME")
    if not (shutil.which("java") or (home and (Path(home) / "bin" / "java").exists())):
        raise InputError("Spark needs Java 17 or newer, and none was found; install it, or set JAVA_HOME")


def check_reachable(master: str) -> None:
    """Refuse a standalone master none of whose addresses accepts a connection; Spark itself would try for minutes."""
    if not master.startswith("spark://"):
        return
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.rpartition(":")
        try:
            with socket.create_connection((host, int(port)), timeout=_SECONDS_FOR_MASTER):
                return
        except (OSError, ValueError, OverflowError):
            continue
    raise InputError(
        f"Spark master {master!r} cannot be reached; check the host and the port (spark://host:7077), and that the "
        "master runs"
    )


def await_executor(session: Any, seconds: float) -> None:
    """Refuse if the cluster gives no executor in this time: Spark itself would wait for ever."""
    master = session.sparkContext.master
    if not master.startswith("spark://"):
        return
    tracker = session.sparkContext._jsc.sc().statusTracker()
    end = time.monotonic() + seconds
    while len(tracker.getExecutorInfos()) < 2:  # the driver is one
        if time.monotonic() > end:
            raise InputError(
                f"Spark master {master!r} gave no executor within {seconds:g} s; free cores or memory on its workers, "
                "or ask for less with spark.executor.memory and spark.cores.max"
            )
        time.sleep(0.1)


def _configuration(master: str) -> Any:
    from pyspark import SparkConf

    return SparkConf().setMaster(master).setAppName("confide").setAll(list(_SETTINGS.items()))


@contextmanager
def _java(conf: Any) -> Iterator[None]:
    """A Java machine that writes to nobody's terminal and ends with the block; one that runs already is left alone."""
    from pyspark import SparkContext, java_gateway

    if SparkContext._gateway is not None:
        yield
        return
    launch: Any = java_gateway.launch_gateway
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    gateway = in_words(lambda: launch(conf, silent), "Spark", "Java did not start; Spark needs Java 17 or newer")
    try:
        SparkContext._ensure_initialized(gateway=gateway, conf=conf)
        yield
    finally:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait()
        SparkContext._gateway = SparkContext._jvm = None
