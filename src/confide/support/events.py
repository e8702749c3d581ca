"""What the library reports to the program that runs it: log events, and the place that warnings refer to.

Events are logged by the loggers of `logging` below "confide", one line for each event. A line contains the event and
public facts, such as `charged dataset=patients epsilon=1 left=2`. A log record has the same as `record.event` and
`record.facts`. Facts never contain a score, label, secret number of records, noise or threshold. No event is an error
or a warning: those are raised, or issued with `warnings`.
"""

import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from logging import Handler, Logger

# Values of `logging`, which is imported only if a program uses it
INFO = 20
DEBUG = 10

# A value without quotation marks
_PLAIN = re.compile(r"[\w.,:;/@+*-]+")


def log_event(package: str, event: str, level: int = INFO, /, **facts: Any) -> None:
    """Log an event of a subpackage with public facts; facts that are None are omitted.

    Values that are more than one plain word are quoted as in JSON.
    """
    if listening(package, level):
        import logging

        stated = {name: value for name, value in facts.items() if value is not None}
        line = " ".join([event, *(f"{name}={_value(value)}" for name, value in stated.items())])
        extra = {"event": event, "facts": stated}
        logging.getLogger(f"confide.{package}").log(level, "%s", line, extra=extra, stacklevel=2)


def listening(package: str, level: int = INFO) -> bool:
    """Whether a program listens to events of a subpackage, for facts that take time to compute.

    If the logger "confide" has no handler, it receives one that ignores events, as libraries should give theirs.
    """
    if "logging" not in sys.modules:
        return False
    import logging

    top = logging.getLogger("confide")
    if not top.handlers:
        top.addHandler(logging.NullHandler())
    return logging.getLogger(f"confide.{package}").isEnabledFor(level)


@contextmanager
def handled(logger: "Logger", handler: "Handler", level: int | str) -> Iterator[None]:
    """Within the block, hand the events of a logger of this level and above to a handler, too."""
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(level)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


def _value(value: Any) -> str:
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return text if _PLAIN.fullmatch(text) else json.dumps(text)


# Warnings: the caller of the library

# This package, and packages that call its estimators for a user: pipelines, searches, their threads
_BETWEEN = (__name__.partition(".")[0], "sklearn", "joblib")


def caller_stacklevel() -> int:
    """The `stacklevel` for a warning that refers to the first caller outside this package and scikit-learn."""
    level = 1
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _BETWEEN:
        level += 1
        frame = frame.f_back
    return level
