"""A small file beside a ledger's users that remembers its head, so that a ledger which has forgotten is noticed.

A backup that was put back, or a standby that took over before it had everything, is a whole and valid ledger of an
earlier day. Nothing in it tells that later charges are missing; whoever remembers a later head can tell.
"""

import json
from pathlib import Path

from confide.errors import FormatError
from confide.ledger.book import Ledger
from confide.ledger.identity import is_hexadecimal
from confide.ledger.state import Head, refuse_forgotten
from confide.support import Fields, new_file, parse_object, read_as
from confide.support import Kind as FileKind

KIND = "confide.ledger-head"


def check_head(ledger: Ledger, file: str | Path) -> Head:
    """Check that a ledger still has the record that a file remembers as its last, and remember the last one now.

    The first time the file is made.

    Parameters
    ----------
    ledger
        The ledger; a role that may read is enough.
    file
        A small JSON file, kept apart from the ledger and its backups. It holds a number and a seal, nothing secret.

    Returns
    -------
    Head
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
    path, seals = Path(file), ledger.seals()
    if path.exists():
        known = read_as(path, _read)
        refuse_forgotten(ledger.path, seals, known, repr(str(path)))
    head = Head(len(seals), seals[-1] if seals else "")
    with new_file(path, overwrite=True, kind=FileKind.HEAD) as part:
        part.write_text(json.dumps({"kind": KIND, "schema": 1, "number": head.number, "seal": head.seal}) + "\n")
    return head


def _read(text: str) -> Head:
    try:
        fields = Fields("head of a ledger", parse_object(text))
    except ValueError:
        raise FormatError("it is no head of a ledger") from None
    kind, schema = fields.take("kind", str), fields.take("schema", int)
    head = Head(fields.take("number", int), fields.take("seal", str))
    fields.finish()
    if (kind, schema) != (KIND, 1):
        raise FormatError("it is not a ledger's head, as `confide ledger check --head` writes it")
    if head.number < 0 or not (is_hexadecimal(head.seal, least=64) if head.number else head.seal == ""):
        raise FormatError("it is a damaged head of a ledger")
    return head
