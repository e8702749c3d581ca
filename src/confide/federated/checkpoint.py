"""The checkpoint next to the keys of a silo: the last charge of its ledger, which detects a restored copy of it.

A restored backup, or a standby that took over too early, is a whole and valid ledger of an earlier day: only a later
charge that was stored elsewhere shows that charges are missing.
"""

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import msgspec

from confide.errors import FormatError, InputError, LedgerError
from confide.federated.refusals import Refusal
from confide.ledger import Ledger, MissingRecordsError, is_hexadecimal
from confide.support import (
    SCHEMA,
    FileKind,
    check_schema,
    has_locks,
    locked,
    new_file,
    parse_document,
    read_as,
    refused_content,
    to_disk,
)

KIND = "confide/federated.checkpoint"
_MOST_CHARACTERS = 10_000

# Suffix of the file next to a key file with the checkpoint of its ledger
CHECKPOINT = ".checkpoint"


class Checkpoint(NamedTuple):
    """The last charge of a ledger at some time: its number from 1 (0 if there is none), and its seal."""

    number: int
    seal: str


class _Content(msgspec.Struct, forbid_unknown_fields=True):
    kind: Literal["confide/federated.checkpoint"]
    schema: Literal[1]
    number: Annotated[int, msgspec.Meta(ge=0)]
    seal: str


def update_checkpoint(file: Path | None, ledger: Ledger, *, charged: bool) -> None:
    """Compare a ledger with the keys' checkpoint and write the new checkpoint, which is on disk when this returns.

    A ledger that was restored from a copy lacks the answers that were given since: a second answer to the same plan
    would cost a second loss that is not counted. So keys sign nothing if the ledger lacks the charge of their last
    answer, or if the checkpoint cannot be written. A loss of both files together cannot be detected.

    Call it before a charge and, with `charged`, after it, before anything is drawn. Keys that were not read from a file
    have no checkpoint.

    Raises
    ------
    LedgerError
        If the ledger lacks the charge of the checkpoint: an older copy of it was restored, or it is another ledger.
    Refusal
        `internal` if the checkpoint cannot be written, for example on a full disk. Then nothing may be signed.
    """
    if file is None:
        return
    try:
        with locked(file, "checkpoint") if has_locks() else nullcontext():
            store_checkpoint(ledger, file)
    except FormatError:
        raise
    except MissingRecordsError as error:
        lost = "If it is lost, make new keys: with these keys the lost answers could be given again"
        raise LedgerError(error.argument, error.requirement, remedy=f"{error.remedy}. {lost}") from None
    # The file cannot be written
    except (InputError, OSError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        if charged:
            then = "so nothing was signed; the charge stands, and a charged answer needs a new plan"
        else:
            then = (
                "and a restored ledger would not be detected; nothing was charged. Keep the keys in a folder that this "
                "program can write"
            )
        raise Refusal("internal", f"the checkpoint next to the keys cannot be written ({why}), {then}") from None


def store_checkpoint(ledger: Ledger, path: Path) -> Checkpoint:
    """Check that a ledger still has the last charge stored in a file, and store the current last charge.

    The first call creates the file. It contains a number and a hash, nothing secret, and is on disk when this returns.

    Raises
    ------
    LedgerError
        If the stored charge is missing or differs: charges are missing in the ledger. The file is not changed.
    FormatError
        If the file is not a checkpoint.
    """
    # The file is read before the ledger, which is written first
    known = read_as(path, _read) if path.exists() else Checkpoint(0, "")
    now = Checkpoint(*ledger.checkpoint(known, repr(str(path))))

    # On disk, the file and its name
    with new_file(path, overwrite=True, kind=FileKind.CHECKPOINT) as temporary:
        content = {"kind": KIND, "schema": SCHEMA, "number": now.number, "seal": now.seal}
        temporary.write_text(json.dumps(content) + "\n")
        to_disk(temporary)
    to_disk(path.parent)
    return now


def _read(text: str) -> Checkpoint:
    content = parse_document(text, "checkpoint", _MOST_CHARACTERS, hint="Restore the file with the keys")
    check_schema(content, KIND, "checkpoint")
    with refused_content("checkpoint", "checkpoint"):
        stated = msgspec.convert(content, _Content, strict=True)
    number, seal = stated.number, stated.seal
    if not (is_hexadecimal(seal, least=64) if number else seal == ""):
        raise FormatError("checkpoint.seal", "must be 64 hexadecimal digits, or empty before the first charge")
    return Checkpoint(number, seal)
