"""Ctrl-C and SIGTERM end a command at once, and unwind it, so that unfinished files are removed.

The exception alone is not enough: libraries that import others on the way (pyarrow looks for pandas) swallow it. So the
signal is remembered, and looked at after every batch.
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
    """Raise `KeyboardInterrupt` if a signal was received, even if the first exception got lost."""
    if _received:
        raise KeyboardInterrupt


def received() -> int | None:
    """The signal that was received, if any."""
    return _received[0] if _received else None


def say_interrupted() -> int:
    """Say that the command was ended by a signal, and return its exit code."""
    word, code = ("terminated", TERMINATED) if received() == signal.SIGTERM else ("interrupted", INTERRUPTED)
    sys.stderr.write(f"error: {word}: unfinished output was removed\n")
    return code


def _receive(number: int, frame: FrameType | None) -> NoReturn:
    _received.append(number)
    raise KeyboardInterrupt
