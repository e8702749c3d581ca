"""What happens, on stderr: `confide --verbose COMMAND`, or the environment variable CONFIDE_LOG for jobs."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from confide.support import harmless, one_line

LOG = "CONFIDE_LOG"
_LEVELS = ("info", "debug")


def wanted_level(times: int) -> str | None:
    """The level that is asked for: once verbose is `info`, twice `debug`; else what the environment says, or nothing.

    Examples
    --------
    >>> wanted_level(2)
    'debug'
    """
    if times:
        return _LEVELS[min(times, len(_LEVELS)) - 1]
    named = os.environ.get(LOG, "").strip().lower()
    if named and named not in _LEVELS:
        raise click.UsageError(f"the environment variable {LOG} must be {' or '.join(_LEVELS)}; found another text")
    return named or None


@contextmanager
def told_on_stderr(level: str) -> Iterator[None]:
    """Within the block the library's events of this level and above are lines on stderr."""
    import logging

    class Lines(logging.Formatter):
        """A line for each event that cannot steer a terminal, with its time in UTC."""

        def format(self, record: logging.LogRecord) -> str:
            """`2026-11-22T10:00:00Z INFO confide.ledger charged dataset=a`."""
            return harmless(one_line(super().format(record)))

    import time

    handler, logger = logging.StreamHandler(sys.stderr), logging.getLogger("confide")
    lines = Lines("%(asctime)s %(levelname)s %(name)s %(message)s", "%Y-%m-%dT%H:%M:%SZ")
    lines.converter = time.gmtime
    handler.setFormatter(lines)
    before, passes = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(level.upper())
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
        logger.propagate = passes
