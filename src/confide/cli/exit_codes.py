"""How a command ends: its exit code, and its end by Ctrl-C or SIGTERM.

Exit codes are part of the interface: a code never changes its meaning.
"""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

DONE = 0
USAGE = 2
REFUSED = 3
EXISTS = 4
CLAIM_FAILED = 5
ALARM = 6
INTERNAL = 70  # EX_SOFTWARE of sysexits.h
INTERRUPTED = 128 + signal.SIGINT
PIPE_CLOSED = 128 + 13  # of SIGPIPE, which Windows lacks
TERMINATED = 128 + signal.SIGTERM

IN_WORDS = {
    DONE: "done (warnings, if any, are on stderr)",
    USAGE: "the command line was not understood",
    REFUSED: "an input was rejected, or a file cannot be read or written",
    EXISTS: "the output already exists; --force replaces it if it is of the same kind",
    CLAIM_FAILED: "a checked claim or a requested condition does not hold",
    ALARM: "a monitor raised its alarm: a result, not an error; its state was written",
    INTERNAL: "an internal error, please report it",
    INTERRUPTED: "interrupted",
    PIPE_CLOSED: "the reader of the output closed it",
    TERMINATED: "terminated",
}

# Interruption
#
# A signal raises `KeyboardInterrupt`, which stops a command at once and removes its unfinished files. The exception
# alone does not suffice, because libraries that import others (pyarrow imports pandas) swallow it. The signal is
# therefore stored, and checked after every batch.

_received: list[int] = []


@contextmanager
def interruptible() -> Iterator[None]:
    """Turn SIGINT and SIGTERM into `KeyboardInterrupt` within the block, unless they are ignored (as under nohup)."""
    _received.clear()
    before = {}
    if threading.current_thread() is threading.main_thread():  # no other thread may set handlers
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) != signal.SIG_IGN:
                before[number] = signal.signal(number, _receive)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _receive(number: int, frame: FrameType | None) -> NoReturn:
    _received.append(number)
    raise KeyboardInterrupt


def received() -> int | None:
    """The first signal that was received, if any."""
    return _received[0] if _received else None


def check_interruption() -> None:
    """Raise `KeyboardInterrupt` if a signal was received, even if the first exception was swallowed."""
    if _received:
        raise KeyboardInterrupt


def say_interrupted() -> int:
    """Report on stderr that a signal ended the command, and return its exit code."""
    code = TERMINATED if received() == signal.SIGTERM else INTERRUPTED
    sys.stderr.write(f"error: {IN_WORDS[code]}: unfinished output was removed\n")
    return code
