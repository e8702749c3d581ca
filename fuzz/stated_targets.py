"""Texts that accompany others' data (labels, names of scores, keys, addresses, versions) and their properties."""

import json
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from confide import federated
from confide.errors import ConfideError
from confide.ledger import Server
from confide.scores import score_kind, score_name
from fuzz.source import Source, change, one_line


def name_of_a_score(data: bytes) -> None:
    """`score_kind` on arbitrary text: a custom score is used unchanged, and an included one is written back."""
    text = data.decode("utf-8", "surrogateescape")
    try:
        kind = score_kind(text)
    except ConfideError as error:
        one_line(error)
        return
    if kind.task == "any":
        assert kind.name == text
        return
    assert kind.low <= kind.high
    again = score_kind(score_name(kind.family, randomised=kind.randomised, **kind.parameters))
    assert (again.family, again.randomised, again.parameters) == (kind.family, kind.randomised, kind.parameters)


@cache
def key_file() -> tuple[Path, Any]:
    """A path in memory, if available, and the contents that `SiloKeys.save` writes."""
    shared = Path("/dev/shm")  # noqa: S108
    folder = Path(tempfile.mkdtemp(dir=shared if shared.is_dir() else None))
    federated.SiloKeys.generate("north").save(folder / "saved.key")
    return folder / "north.key", json.loads((folder / "saved.key").read_text(encoding="utf-8"))


def private_keys(data: bytes) -> None:
    """`SiloKeys.load` on a file with changed fields, or on arbitrary bytes: no error shows a key."""
    path, saved = key_file()
    source = Source(data)
    path.write_bytes(json.dumps(change(saved, source)).encode() if source.byte() % 4 else data)
    try:
        read = federated.SiloKeys.load(path)
    except ConfideError as error:
        one_line(error)
        shown = str(error)
    else:
        shown = repr(read)
        assert (len(read.signing), len(read.agreement)) == (32, 32)
    assert not any(saved[part] in shown for part in ("signing", "agreement")), "a key is shown"


def server_address(data: bytes) -> None:
    """Addresses of ledgers on a server, with a password in any of its places: no password is shown."""
    source, secret = Source(data), "hidden"
    parts = ["postgresql://", "me", f":{secret}", "@", "host", ":5432", "/", "db", "?", f"sslpassword={secret}", "&x=y"]
    for _ in range(source.byte() % 4):
        parts[source.below(len(parts))] = bytes(source.byte() for _ in range(source.byte() % 4)).decode("latin-1")
    address = "".join(parts)
    server = Server(address)
    if f"//me:{secret}@" in address or f"password={secret}" in address:
        assert secret not in str(server), "a password is shown"
    assert str(server).isprintable()
