"""Spark's errors in fixed words: their texts may quote records, and go no further."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from confide.errors import ConfideError, FormatError, InputError
from confide.tables.failures import EngineError

Result = TypeVar("Result")

_LOGS = "its logs say why; they may quote records, so show them to the owner of the data only"
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
    (("UNAUTHENTICATED",), "the server refused the token; check the one behind ;token= of its address"),
    (("PERMISSION_DENIED", "INSUFFICIENT_PERMISSIONS"), "the user has no right to do that"),
    (
        ("UNAVAILABLE", "Connection refused", "SparkContext was shut down", "stopped SparkContext"),
        "the connection to Spark was lost",
    ),
)


def in_words(
    work: Callable[[], Result], subject: str = "Spark", otherwise: str = f"a Spark job failed; {_LOGS}"
) -> Result:
    """Do some work on Spark; every error of it is replaced by one that says no more than is safe.

    pyspark logs an error's text before it raises it: its logger is off meanwhile.

    Parameters
    ----------
    work
        Called once.
    subject
        What the caller named: a master, a path.
    otherwise
        What to say of an error that is not known.
    """
    try:
        with _quiet():
            return work()
    except ConfideError:
        raise
    except Exception as error:
        refusal = as_refusal(error, subject, otherwise)
    raise refusal  # not while the error is handled: it would hang on as the context


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


def as_refusal(error: Exception, subject: str, otherwise: str) -> ConfideError:
    """What went wrong, without a word of the data."""
    text = f"{type(error).__name__} {error}"
    for marks, words in _WORDS:
        if any(mark in text for mark in marks):
            kind = FormatError if "damaged" in words else InputError
            return kind(f"{subject} cannot be used: {words}")
    spark = type(error).__module__.partition(".")[0] in ("pyspark", "py4j")
    return EngineError(
        f"{subject} cannot be used: {otherwise if spark else f'its driver reports {type(error).__name__}'}"
    )
