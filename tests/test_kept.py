"""Every kind of file has a kept one: it is read, written byte for byte, and refused if changed or of another schema."""

import json
import re
import sqlite3
from contextlib import closing

import pytest

from confide import federated
from confide.core import documents as kinds
from confide.errors import ConfideError, FormatError
from confide.federated.answers import message_head
from confide.federated.silo_ledger import _read_checkpoint as read_checkpoint
from confide.ledger import Ledger
from confide.support import file_kinds, kind_stated
from confide.watching.looks import LOOK_KIND, stored_look
from tests.files import documents, signed
from tests.kept import FOLDER, content_of, keys_of, names, path_of, read, text_of
from tests.refused import refused

NAMES = names()
KEPT = sorted(path.stem for path in FOLDER.glob("*.json"))
OTHERS = {
    "federated-answer": message_head,
    "checkpoint": read_checkpoint,
    "look": lambda text: stored_look(text, "a"),
}
"""Readers of what is no value of its own."""


def test_every_kind_has_a_kept_file():
    for module in set(kinds._HOME_OF_KIND.values()):
        __import__(module)
    every = [one for name in KEPT for one in documents(content_of(name))]
    found = {kind_stated(one) for one in every}
    known = {f"confide/{name}" for name in file_kinds._DOCUMENTS} | kinds._READERS.keys() | {LOOK_KIND}
    assert found == known
    assert {one.get("schema", 1) for one in every} == {1}


@pytest.mark.parametrize("name", sorted({*NAMES} - {"ledger"}))
def test_a_kept_file_is_written_byte_for_byte_and_refused_if_changed(name):
    text = text_of(name)
    value = read(text)
    if name in ("federated-plan", "federated-plans"):
        assert value.sign(keys_of("coordinator")) == text
    elif name == "signed-release":
        assert federated.sign(value, keys_of("coordinator")) == text
    else:
        assert value.to_json() == text
    if json.loads(text).get("kind") == "confide/federated.policy":  # without checksum or signature
        return
    for found in (r'"(alpha|epsilon|size)": "?\d', r'"(digest|release|sig|payload)": "\w{9}'):
        if re.search(found, text):
            with pytest.raises(ConfideError):
                read(re.sub(found, lambda match: match[0][:-1] + ("7" if match[0][-1] != "7" else "6"), text, count=1))


@pytest.mark.parametrize("name", sorted({*KEPT} - {"ledger", "private-keys"}))
@pytest.mark.parametrize(("kind", "schema"), [("confide.", 1), ("confide.", 3), ("confide/", 2), ("confide/", True)])
def test_files_of_another_schema_are_refused(name, kind, schema):
    """The error states kind, schema and remedy, whatever else the file contains."""
    content = content_of(name)
    if "payloadType" in content:
        with pytest.raises(ConfideError):
            OTHERS.get(name, read)(text_of(name).replace("schema=1", f"schema={schema}0"))
        return
    content = {**content, "kind": content["kind"].replace("confide/", kind), "schema": schema}
    text = signed(content) if "sha256" in content else json.dumps(content)
    with pytest.raises(ConfideError) as caught:
        OTHERS.get(name, read)(text)
    said = str(caught.value)
    assert "alibrate again" in said
    if schema is not True:
        assert repr(content["kind"]) in said
        assert re.search(rf"\b{schema}\b", said)


def test_keys_are_read_and_those_of_another_schema_refused(tmp_path):
    assert federated.SiloKeys.load(path_of("private-keys")) == keys_of("coordinator")
    other = tmp_path / "old.key"
    other.write_text(text_of("private-keys").replace("confide/", "confide."))
    with refused(federated.Refusal, "malformed"):
        federated.SiloKeys.load(other)


@pytest.mark.parametrize("schema", [None, 0, 2, 3])
def test_a_kept_ledger_is_read_and_one_of_another_schema_never_counts_as_empty(tmp_path, schema):
    path = tmp_path / "kept.ledger"
    path.write_bytes((FOLDER / "kept.ledger").read_bytes())
    if schema is None:
        assert Ledger(path, create=False).export() == content_of("ledger")
        return
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version={schema}")
    before = path.read_bytes()
    with refused(FormatError, "ledger.schema") as caught:
        Ledger(path).set_limit("patients", 1.0)
    assert "confide ledger init --spent EPSILON" in str(caught.value)
    assert path.read_bytes() == before
