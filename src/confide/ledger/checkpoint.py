"""A checkpoint in a file: how far a ledger reached, remembered elsewhere, so that one that has forgotten is noticed.

A backup that was put back, or a standby that took over before it had everything, is a whole and valid ledger of an
earlier day. Nothing in it tells that later charges are missing; whoever remembers a later record can tell. Another
machine remembers one by `confide ledger check --head`, the keys of a silo one beside their file.
"""

import json
from pathlib import Path

from confide.errors import FormatError
from confide.ledger.book import Ledger
from confide.ledger.identity import is_hexadecimal
from confide.ledger.state import Checkpoint, refuse_forgotten
from confide.support import Fields, new_file, parse_document, read_as, shapes, to_disk
from confide.support import Kind as FileKind

KIND = "confide.ledger-head"
_MOST_CHARACTERS = 10_000


def check_head(ledger: Ledger, file: str | Path) -> Checkpoint:
    """Check that a ledger still has the record that a file remembers as its last, and remember the last one now.

    The first time the file is made. What is remembered is on disk when this returns. Of a ledger that was moved it is
    the last record that the new place has, too.

    Parameters
    ----------
    ledger
        The ledger; a role that may read is enough.
    file
        A small JSON file, kept apart from the ledger and its backups. It holds a number and a seal, nothing secret.

    Returns
    -------
    Checkpoint
        How many records there are, and the seal of the last.

    Raises
    ------
    LedgerError
        If the remembered record is missing or another: the ledger has forgotten charges. The file stays as it is.
    FormatError
        If the file is none of these.

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
    known = read_as(path, _read) if path.exists() else Checkpoint(0, "")  # before the ledger, which is written first
    state = ledger.snapshot()
    refuse_forgotten(ledger.path, state.seals, known, repr(str(path)))
    now = state.checkpoint
    with new_file(path, overwrite=True, kind=FileKind.HEAD) as part:
        part.write_text(json.dumps({"kind": KIND, "schema": 1, **now._asdict()}) + "\n")
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
    found = shapes.read_shape(Fields("checkpoint", content), _SHAPE)
    number, seal = found["number"], found["seal"]
    if not (is_hexadecimal(seal, least=64) if number else seal == ""):
        raise FormatError("checkpoint.seal", "must be 64 hexadecimal digits, or empty before the first record")
    return Checkpoint(number, seal)
