"""What private keys have signed, remembered beside their file: so that a ledger which has forgotten it is noticed.

A ledger that was restored from a copy, or another one, does not know the answers that were given since. With the same
keys an answer to the same plan would cost a second loss that nobody counts, and under masks, which follow from keys and
session, the two messages would differ by what the data differ by. So keys that were read from a file keep a list of
sessions in a second file beside it, and sign nothing where that file cannot be written. It holds no secret. Restored
together with the ledger it forgets, too.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from confide.federated.refusals import Refusal
from confide.support import to_disk

ENDING = ".sessions"
_SESSION = re.compile(r"([0-9a-f]{32}) ([0-9a-f]{64})")
"""A line. It is also found behind one that a crash tore: version 0.2 wrote the next one there without a break."""


def served(memory: Path | None) -> dict[str, str]:
    """What these keys have served: requests by token. To be read before the ledger, which is written first.

    Raises
    ------
    Refusal
        `internal` if the list cannot be read.
    """
    try:
        return {} if memory is None else dict(_SESSION.findall(memory.read_text(encoding="ascii")))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        raise Refusal("internal", "the list of sessions beside the keys cannot be read; put it back") from None


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


def refuse_unwritable(memory: Path | None) -> None:
    """Refuse keys beside whose file no session can be kept; to be asked before anything is charged.

    Raises
    ------
    Refusal
        `internal`.
    """
    if memory is None:
        return
    try:
        os.close(_opened(memory))
    except OSError as error:
        raise Refusal(
            "internal",
            f"the list of sessions beside the keys cannot be written ({error.strerror}), and a restored ledger would "
            "not be noticed; nothing was charged. Keep the keys in a folder that this program can write",
        ) from None


def remember(memory: Path | None, token: str, request: str) -> None:
    """Keep a session, on disk when this returns; keys that are in no file keep nothing.

    Raises
    ------
    Refusal
        `internal` if the list cannot be written, as on a full disk; then nothing may be signed.
    """
    if memory is None or served(memory).get(token) == request:
        return
    try:
        with os.fdopen(_opened(memory), "rb+") as file:
            begin = b"\n" if _torn(file) else b""
            file.write(begin + f"{token} {request}\n".encode("ascii"))
            file.flush()
            os.fsync(file.fileno())
        to_disk(memory.parent)
    except OSError as error:
        raise Refusal(
            "internal",
            f"the session cannot be kept beside the keys ({error.strerror}), so nothing was signed; what was charged "
            "stands, and a charged answer needs a new plan",
        ) from None


def _torn(file: BinaryIO) -> bool:
    """Whether the last line has no end, as after a crash."""
    if file.seek(0, os.SEEK_END) == 0:
        return False
    file.seek(-1, os.SEEK_END)
    return file.read(1) != b"\n"


def _opened(memory: Path) -> int:
    return os.open(memory, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
