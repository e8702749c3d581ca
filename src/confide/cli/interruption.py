"""Handling of Ctrl-C and SIGTERM: a command stops at once, and unfinished files are removed.

The exception alone does not suffice, because libraries that import others (pyarrow imports pandas) swallow it. The
signal is therefore stored, and checked after every batch.
"""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from confide.cli.exit_codes import INTERRUPTED, TERMINATED

_received: list[int] = []


@contextmanager
def interruptible() -> Iterator[None]:
    """Turn SIGINT and SIGTERM into `KeyboardInterrupt` within the block, unless they are ignored (as under nohup)."""
    # Only the main thread may set handlers.
    _received.clear()
    before = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) != signal.SIG_IGN:
                before[number] = signal.signal(number, _receive)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def check_interruption() -> None:
    """Raise `KeyboardInterrupt` if a signal was received, even if the first exception was swallowed."""
    if _received:
        raise KeyboardInterrupt


def received() -> int | None:
    """The signal that was received, if any."""
    return _received[0] if _received else None


def say_interrupted() -> int:
    """Report that a signal ended the command, and return its exit code."""
    word, code = ("terminated", TERMINATED) if received() == signal.SIGTERM else ("interrupted", INTERRUPTED)
    sys.stderr.write(f"error: {word}: unfinished output was removed\n")
    return code


def _receive(number: int, frame: FrameType | None) -> NoReturn:
    _received.append(number)
    raise KeyboardInterrupt
