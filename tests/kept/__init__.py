"""One kept file of every kind and form that 0.4 writes, in schema 1.

`python -m tests.kept` writes those that are missing. Noise cannot be drawn again, so files that exist are left as they
are.
"""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from confide import federated
from confide.core import Document
from confide.support import kind_stated

FOLDER = Path(__file__).parent / "files"

READERS: dict[str, Callable[[str], Any]] = {
    "confide/federated.plan": federated.read_plan,
    "confide/federated.silo": federated.Silo.from_json,
    "confide/federated.policy": federated.Policy.from_json,
}
"""Readers of kinds that are no releases."""


def path_of(name: str) -> Path:
    """The path of a kept file."""
    return FOLDER / f"{name}.json"


def text_of(name: str) -> str:
    """The text of a kept file."""
    return path_of(name).read_text(encoding="utf-8")


def content_of(name: str) -> dict[str, Any]:
    """The fields of a kept file."""
    content: dict[str, Any] = json.loads(text_of(name))
    return content


def keys_of(name: str) -> federated.SiloKeys:
    """The keys of the coordinator or of a silo: they follow from the name, and protect nothing."""
    signing, agreement = (hashlib.sha256(f"{use} {name}".encode()).digest() for use in ("signing", "agreement"))
    return federated.SiloKeys(name, signing, agreement)


def read(text: str) -> Any:
    """The value in a text of any kind that has a reader of its own."""
    return READERS.get(kind_stated(json.loads(text)), Document.from_json)(text)


def names(*kinds: str) -> list[str]:
    """The kept files of these kinds; of all that `read` reads without kinds."""
    found = {
        path.stem: kind_stated(json.loads(path.read_text(encoding="utf-8"))) for path in sorted(FOLDER.glob("*.json"))
    }
    other = ("answer", "checkpoint", "private-keys", "look")
    return [
        name
        for name, kind in found.items()
        if (kind in kinds if kinds else kind.rpartition("/")[2].rpartition(".")[2] not in other)
    ]


RELEASES = ("confide/release",)
"""The kind of releases of this library's own mechanisms."""
