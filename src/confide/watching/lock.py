"""One process at a time works with a file: the others wait, and then read what it has written."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confide.errors import InputError

WAIT = 60.0
_AGAIN = 0.05


@contextmanager
def locked(path: Path, wait: float = WAIT) -> Iterator[None]:
    """Hold the lock of a file: an empty file NAME.lock beside it, which stays; the lock ends with its process.

    Raises
    ------
    InputError
        If another process holds it for longer than `wait` seconds, the folder cannot be written, or the system has no
        locks that end with their process.
    """
    try:
        import fcntl
    except ImportError:
        raise InputError(
            f"state {str(path)!r} cannot be locked: this system has no fcntl, whose locks end with their process; take "
            "looks on Linux or macOS, one at a time; `confide show` and `confide report` read the state everywhere"
        ) from None
    try:
        handle = os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise InputError(f"state {str(path)!r} cannot be locked: {error.strerror}") from None
    try:
        until = time.monotonic() + wait
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if time.monotonic() > until:
                    raise InputError(
                        f"state {str(path)!r} is in use by another process, which has not ended in {wait:g} seconds; "
                        "try again later"
                    ) from None
                time.sleep(_AGAIN)
        yield
    finally:
        os.close(handle)
