"""What private keys have signed, remembered beside their file: so that a ledger which has forgotten it is noticed.

A ledger that was restored from a copy, or another one, does not know the answers that were given since. With the same
keys an answer to the same plan would cost a second loss that nobody counts, and under masks, which follow from keys and
session, the two messages would differ by what the data differ by. So keys that were read from a file keep a list of
sessions in a second file beside it. It holds no secret. Restored together with the ledger it forgets, too.
"""

import os
import warnings
from collections.abc import Mapping
from pathlib import Path

from confide.federated.refusals import Refusal
from confide.support import outside

ENDING = ".sessions"


def served(memory: Path | None) -> dict[str, str]:
    """What these keys have served: requests by token. To be read before the ledger, which is written first.

    Raises
    ------
    Refusal
        `internal` if the list cannot be read.
    """
    try:
        lines = [] if memory is None else memory.read_text(encoding="ascii").splitlines()
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        raise Refusal("internal", "the list of sessions beside the keys cannot be read; put it back") from None
    return dict(line.split(" ", 1) for line in lines if line.count(" ") == 1)


def refuse_forgotten(known: Mapping[str, str], token: str, request: str | None = None) -> None:
    """Refuse a session that the keys have served and the ledger does not know, unless it was for this very request.

    Raises
    ------
    Refusal
        `session-used`.
    """
    if known.get(token, request) != request:
        raise Refusal(
            "session-used",
            "these keys have served this session, and the ledger does not know it: it is another one or an older copy; "
            "put the newest ledger back, or ask for a new plan",
        )


def remember(memory: Path | None, token: str, request: str) -> None:
    """Keep a session, on disk when this returns; keys that are in no file keep nothing.

    Warns
    -----
    UserWarning
        If the file cannot be written, as where keys are on a medium that is only read.
    """
    if memory is None or served(memory).get(token) == request:
        return
    try:
        handle = os.open(memory, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(f"{token} {request}\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        text = f"sessions cannot be kept beside the keys ({error.strerror}): a restored ledger would not be noticed"
        warnings.warn(text, UserWarning, stacklevel=outside())
