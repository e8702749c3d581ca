"""Spark Connect: a session on a server, by the DataFrame API alone: no Java here, and nothing of Java's there.

Databricks' clusters and serverless compute speak it, too. There is no `sparkContext`, no `_jvm`, no RDD and no Hadoop
`Path`, and a server may refuse settings.
"""

import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import Any

from confide.errors import InputError
from confide.tables.spark.failures import in_words

_PORT = 15002
_SECONDS = 5.0
_ADDRESS = re.compile(r"sc://(?P<host>\[[^\]]*\]|[^:/;?#@]+)(?::(?P<port>\d{1,5}))?/?(?:;.*)?", re.DOTALL)


def names_connect(source: str) -> bool:
    """Whether this is the address of a server of Spark Connect.

    Examples
    --------
    >>> names_connect("sc://host:15002"), names_connect("spark://host:7077")
    (True, False)
    """
    return source.lower().startswith("sc://")


def shown_server(url: str) -> str:
    """The address as it may be shown: without its parameters, of which a token is one.

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
    """Whether a session is one of Spark Connect, also of Databricks Connect, whose class derives from Spark's."""
    return any(base.__module__.startswith("pyspark.sql.connect") for base in type(session).__mro__)


def check_connect() -> None:
    """Refuse without pyspark and what its client needs; Java is not asked for."""
    missing = [name for name in ("pyspark", "pandas", "grpc", "grpc_status") if find_spec(name) is None]
    if missing:
        raise InputError(
            f"Spark Connect needs the package {missing[0]}; install the extra: pip install 'confide[spark]'"
        )


@contextmanager
def open_connect(url: str) -> Iterator[Any]:
    """A session on a server, which ends with the block.

    Raises
    ------
    InputError
        If the address is none, or nobody answers there: the client itself would try for minutes.
    """
    shown = shown_server(url)
    _check_reachable(url, shown)
    from pyspark.sql.connect.session import SparkSession

    def create() -> Any:
        session = SparkSession.builder.remote(url).create()
        _ = session.version  # the first word with the server: tokens are looked at
        return session

    session = in_words(create, f"Spark server {shown!r}", "it does not answer as a server of Spark Connect does")
    try:
        yield session
    finally:
        with suppress(Exception):  # a server that has gone has nothing left to end
            session.stop()


def _check_reachable(url: str, shown: str) -> None:
    found = _ADDRESS.fullmatch(url)
    if found is None:
        raise InputError(f"Spark server {shown!r} must be sc://host:port, with parameters behind /; as /;use_ssl=true")
    try:
        with socket.create_connection((found["host"].strip("[]"), int(found["port"] or _PORT)), timeout=_SECONDS):
            return
    except (OSError, OverflowError, UnicodeError):
        pass
    raise InputError(
        f"Spark server {shown!r} cannot be reached; check the host and the port (sc://host:{_PORT}), and that the "
        "server of Spark Connect runs"
    )


def quiet_backend(session: Any) -> Any:
    """Ibis over a session of Connect; a setting that the server refuses is left as it is."""
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
