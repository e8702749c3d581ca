"""A checkpoint in a file: the head of a ledger, stored elsewhere to detect missing records.

A restored backup, or a standby that took over before it had everything, is a whole and valid ledger of an earlier day.
It does not show that later charges are missing. A later record that was stored elsewhere shows it. Another machine
stores one by `confide ledger check --head`; the keys of a silo have one next to their file.
"""

import json
from pathlib import Path

from confide.errors import FormatError
from confide.ledger.identity import is_hexadecimal
from confide.ledger.ledger import Ledger
from confide.ledger.state import Checkpoint, check_checkpoint
from confide.support import Fields, new_file, parse_document, read_as, shapes, to_disk
from confide.support import FileKind as FileKind

KIND = "confide.ledger-head"
_MOST_CHARACTERS = 10_000


def check_head(ledger: Ledger, file: str | Path) -> Checkpoint:
    """Check that a ledger still has the last record stored in a file, and store the current last record.

    The first call creates the file. The checkpoint is on disk when this returns. For a ledger that was moved it is the
    last record that the new location also has.

    Parameters
    ----------
    ledger
        The ledger; a role that may read suffices.
    file
        A small JSON file; store it apart from the ledger and its backups. It contains a number and a hash, nothing
        secret.

    Returns
    -------
    Checkpoint
        The number of records, and the hash of the last one.

    Raises
    ------
    LedgerError
        If the stored record is missing or differs: charges are missing in the ledger. The file is not changed.
    FormatError
        If the file is not a checkpoint.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = Ledger(Path(folder) / "budget.db")
    ...     _ = ledger.set_limit("patients", 1.0)
    ...     check_head(ledger, Path(folder) / "head.json").number
    2
    """
    path = Path(file)
    known = (
        read_as(path, _read) if path.exists() else Checkpoint(0, "")
    )  # read before the ledger, which is written first
    state = ledger.snapshot()
    check_checkpoint(ledger.path, state.hashes, known, repr(str(path)))
    now = state.checkpoint
    with new_file(path, overwrite=True, kind=FileKind.HEAD) as part:
        part.write_text(json.dumps({"kind": KIND, "schema": 1, "number": now.number, "seal": now.record_hash}) + "\n")
        to_disk(part)
    to_disk(path.parent)
    return now


_SHAPE: shapes.Shape = {
    "kind": shapes.choice(KIND),
    "schema": shapes.integer(1),
    "number": shapes.integer(2**63 - 1, 0),
    "seal": shapes.TEXT,
}


def _read(text: str) -> Checkpoint:
    hint = "`confide ledger check --head` writes one"
    content = parse_document(text, "checkpoint", _MOST_CHARACTERS, hint=hint)
    values = shapes.read_shape(Fields("checkpoint", content), _SHAPE)
    number, seal = values["number"], values["seal"]
    if not (is_hexadecimal(seal, least=64) if number else seal == ""):
        raise FormatError("checkpoint.seal", "must be 64 hexadecimal digits, or empty before the first record")
    return Checkpoint(number, seal)
