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
from confide.support import Fields, new_file, parse_object, read_as, to_disk
from confide.support import Kind as FileKind

KIND = "confide.ledger-head"


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


def _read(text: str) -> Checkpoint:
    try:
        fields = Fields("head of a ledger", parse_object(text))
    except ValueError:
        raise FormatError("it is no head of a ledger") from None
    kind, schema = fields.take("kind", str), fields.take("schema", int)
    known = Checkpoint(fields.take("number", int), fields.take("seal", str))
    fields.finish()
    if (kind, schema) != (KIND, 1):
        raise FormatError("it is not a ledger's head, as `confide ledger check --head` writes it")
    if known.number < 0 or not (is_hexadecimal(known.seal, least=64) if known.number else known.seal == ""):
        raise FormatError("it is a damaged head of a ledger")
    return known
