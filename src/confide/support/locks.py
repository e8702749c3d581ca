"""One process at a time: the others wait, and then read what it has written."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confide.errors import InputError

WAIT = 60.0
_AGAIN = 0.05


def has_locks() -> bool:
    """Whether the system has locks that end with their process; Windows has none."""
    try:
        import fcntl  # noqa: F401
    except ImportError:
        return False
    return True


@contextmanager
def locked(path: Path, what: str, wait: float = WAIT) -> Iterator[None]:
    """Hold the lock of a file: an empty file NAME.lock beside it, which stays; the lock ends with its process.

    `what` is the file in messages.

    Raises
    ------
    InputError
        If another process or thread holds it for longer than `wait` seconds, or the folder cannot be written.
    """
    import fcntl

    try:
        handle = os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise InputError(f"{what} {str(path)!r} cannot be locked: {error.strerror}") from None
    try:
        until = time.monotonic() + wait
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if time.monotonic() > until:
                    raise InputError(
                        f"{what} {str(path)!r} is in use by another process, which has not ended in {wait:g} seconds; "
                        "try again later"
                    ) from None
                time.sleep(_AGAIN)
        yield
    finally:
        os.close(handle)
