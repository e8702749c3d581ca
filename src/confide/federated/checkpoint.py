"""The checkpoint next to the keys of a silo: the last charge of its ledger, which detects a restored copy of it.

A restored backup, or a standby that took over too early, is a whole and valid ledger of an earlier day: only a later
charge that was stored elsewhere shows that charges are missing.
"""

import json
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import msgspec

from confide.errors import FormatError
from confide.ledger import Ledger, is_hexadecimal
from confide.support import SCHEMA, FileKind, check_schema, new_file, parse_document, read_as, refused_content, to_disk

KIND = "confide/federated.checkpoint"
_MOST_CHARACTERS = 10_000


class Checkpoint(NamedTuple):
    """The last charge of a ledger at some time: its number from 1 (0 if there is none), and its seal."""

    number: int
    seal: str


class _Content(msgspec.Struct, forbid_unknown_fields=True):
    kind: Literal["confide/federated.checkpoint"]
    schema: Literal[1]
    number: Annotated[int, msgspec.Meta(ge=0)]
    seal: str


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
