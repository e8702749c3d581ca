"""Every kind of file in every schema has a sample that can be read, and raises an error if changed.

A kind or a schema number that is new in the code fails here until a file of it is kept in a folder `samples`. Other
tests say what the samples of `0.2` mean; what only this one knows is read, written again and changed here.
"""

import json
import re
import sqlite3
from collections import defaultdict
from contextlib import closing
from pathlib import Path

import pytest

from confide.errors import ConfideError
from confide.evaluation import read_evaluation
from confide.ledger import Ledger
from confide.releases import Document
from confide.releases import documents as kinds
from confide.support import files
from confide.warehouse import CountingPlan
from confide.watching import take_look
from tests.files import documents
from tests.refused import refused

federated = pytest.importorskip("confide.federated")
envelope = pytest.importorskip("confide.federated.envelope")

TESTS = Path(__file__).parent
SAMPLES = sorted(path for path in TESTS.glob("*/samples/**/*.json"))
NEW = TESTS / "federated" / "samples" / "0.2"
for name in set(kinds._ABOVE.values()):
    __import__(name)
COMMON = {kind.form.kind: kind for kind in kinds._WRITERS.values()}

SCHEMAS = {
    **{name: {*range(1, 2 + len(kind.form.later))} for name, kind in COMMON.items()},
    "confide.federated.plan": {2},
    "confide.federated.calibration": {1, 2},
    "confide.federated.several": {1, 2},
    "confide.evaluation": {1, 2},
    "confide.ledger": {2},
    "confide.federated.answer": {1, 2},
    "confide.federated.silo": {1, 2},
    "confide.counting-plan": {1, 2},
    "confide.federated.private-keys": {None},
    "confide.federated.policy": {None},
}
"""Which schemas a kind has; of the others there is schema 1."""


@pytest.fixture(scope="module")
def kept():
    """The documents in all samples, by kind and schema."""
    found = defaultdict(list)
    for path in SAMPLES:
        for one in documents(json.loads(path.read_text(encoding="utf-8"))):
            found[one["kind"], one.get("schema")].append(one)
    return found


def test_every_kind_has_a_sample_in_every_schema(kept):
    known = {f"confide.{name}" for name in files._DOCUMENTS} | kinds._READERS.keys() | {take_look.LOOK_KIND}
    wanted = {(name, schema) for name in known for schema in SCHEMAS.get(name, {1})}
    assert wanted - kept.keys() == set()
    assert kept.keys() - wanted == set()


def has(document, path):
    if isinstance(document, list):
        return any(has(one, path) for one in document)
    inner = document.get(path[0])
    return path[0] in document if len(path) == 1 else isinstance(inner, dict | list) and has(inner, path[1:])


def test_every_field_of_a_later_schema_is_in_a_sample(kept):
    for name, kind in COMMON.items():
        for schema, later in enumerate(kind.form.later, 2):
            for field in later:
                assert any(has(one, field.split(".")) for one in kept[name, schema]), f"{field} of {name}"
    contents = [
        one["content"] for (_, schema), some in kept.items() for one in some if schema == 2 and "content" in one
    ]
    assert envelope._SINCE_2 - {field for content in contents for field in content} == set()


def test_ledgers_of_every_schema_are_read(tmp_path):
    found = set()
    for path in TESTS.glob("ledger/samples/*/*.ledger"):
        copied = tmp_path / f"{path.parent.name}-{path.name}"
        copied.write_bytes(path.read_bytes())
        with closing(sqlite3.connect(copied)) as connection:
            (schema,) = connection.execute("PRAGMA user_version").fetchone()
        found.add(schema)
        exported, read = path.with_suffix(".export.json"), Ledger(copied, create=False).export()
        assert not exported.exists() or read == json.loads(exported.read_text(encoding="utf-8"))
    assert found == {2}


READERS = {
    "releases/samples/other/spread.json": Document.from_json,
    "releases/samples/other/noisy-size.json": Document.from_json,
    "releases/samples/other/chosen.json": Document.from_json,
    "releases/samples/other/fingerprint.json": Document.from_json,
    "releases/samples/other/last-rule.json": Document.from_json,
    "releases/samples/other/published-counts.json": Document.from_json,
    "releases/samples/other/counts-calibration.json": Document.from_json,
    "evaluation/samples/other/subgroups.json": read_evaluation,
    "evaluation/samples/other/private-versions.json": Document.from_json,
    "watching/samples/other/watch-versions.json": Document.from_json,
    "watching/samples/other/watch-correction.json": Document.from_json,
    "watching/samples/other/corrected.json": Document.from_json,
    "warehouse/samples/other/scores.json": CountingPlan.from_json,
    "warehouse/samples/other/classes-by-ward.json": CountingPlan.from_json,
    "warehouse/samples/other/own-list-of-people.json": CountingPlan.from_json,
    "warehouse/samples/other/few-lists.json": CountingPlan.from_json,
    "federated/samples/0.2/silo.json": federated.Silo.from_json,
    "federated/samples/0.2/policy.json": federated.Policy.from_json,
    "federated/samples/0.2/own-share.json": Document.from_json,
    **{f"federated/samples/0.2/{name}/released.json": Document.from_json for name in
       ("levels", "groups", "opened", "private-qq")},
}  # fmt: skip
CHANGES = {
    "spread": ('"threshold": 0', '"threshold": 1'),
    "noisy-size": ('"counted": ', '"counted": 1'),
    "chosen": ('"share": "1/5"', '"share": "1/4"'),
    "fingerprint": ('"tolerance": ', '"tolerance": 1'),
    "last-rule": ('"rule": "last"', '"rule": "first"'),
    "published-counts": ('"n": 3000', '"n": 3001'),
    "counts-calibration": ('"offset": "', '"offset": "1'),
    "subgroups": ('"covered": ', '"covered": 9'),
    "scores": ('"s"', '"t"'),
    "classes-by-ward": ('"ward"', '"word"'),
    "own-list-of-people": ('"most": 2', '"most": 3'),
    "few-lists": ('"longest": 3842', '"longest": 1922'),
    **dict.fromkeys(
        ("private-versions", "watch-versions"),
        ('"opendp": "0.16.0"', '"opendp": "0.16.1"'),
    ),
    "watch-correction": ('"gamma": "1/10"', '"gamma": "1/20"'),
    "corrected": ('"thresholds": [\n    0.5', '"thresholds": [\n    0.6'),
    "silo": ('"size": 150', '"size": 151'),
    "policy": ('"budget": ', '"budget": -'),
    "own-share": ('"silo": "', '"silo": "s'),
    "released": ('"confide": "0.2.0"', '"confide": "0.2.1"'),
}


@pytest.mark.parametrize("name", READERS)
def test_a_sample_is_read_written_byte_by_byte_and_refused_if_changed(name):
    text, read = (TESTS / name).read_text(encoding="utf-8"), READERS[name]
    assert read(text).to_json() == text
    before, after = CHANGES[Path(name).stem]
    changed = text.replace(before, after, 1)
    assert changed != text
    with pytest.raises(ConfideError):
        read(changed)
    newer = re.sub(r'"schema": \d+', '"schema": 99', text, count=1)
    if newer != text:  # a policy, which its owner alone reads, has none
        with pytest.raises(ConfideError):
            read(newer)


def test_a_look_that_a_ledger_kept_is_read():
    text = (TESTS / "watching" / "samples" / "other" / "look.json").read_text(encoding="utf-8")
    assert take_look._kept(text, "a") == ((91, -2), "2026-11-22T00:00:00+00:00", {})
    with pytest.raises(ConfideError):
        take_look._kept(text, "b")


def content_of(case, part):
    return (NEW / case / f"{part}.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("case", sorted(path.parent.name for path in NEW.glob("*/plan.json")))
def test_messages_of_a_federation_are_signed_again_to_the_same_bytes(case):
    owners = {path.stem: federated.SiloKeys.load(path) for path in (NEW / "keys").glob("*.json")}
    plan, answers = content_of(case, "plan"), json.loads(content_of(case, "answers"))
    read, _ = federated.read_plan(plan)
    assert read.sign(owners["coordinator"]) == plan
    parts = json.loads(content_of(case, "parts")) if (NEW / case / "parts.json").exists() else None
    asked = json.loads(content_of(case, "openings")) if parts else []
    intact = answers[3:] if case == "private-qq-left-out" else answers  # the others were altered
    for kind, texts in (("answer", intact), ("opening", asked), ("part", parts or [])):
        for text in texts:
            content, signer = envelope.verify_message(kind, text)
            (owner,) = [one for one in owners.values() if one.public().signing == signer]
            assert envelope.sign_message(kind, content, owner.signing) == text
            with refused(federated.Refusal, "altered"):
                envelope.verify_message(kind, text.replace(read.session, "0" * 32))
    if asked:
        assert set(federated.openings(plan, answers, owners["coordinator"]).values()) == set(asked)
