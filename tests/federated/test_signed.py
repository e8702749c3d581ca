"""Signatures: signed releases of one machine are read as they were; those of a federation say which answers count."""

import json
from pathlib import Path

import numpy as np
import pytest

import confide
from confide import federated
from confide.cli.app import main
from confide.core import Document, Release
from confide.errors import FormatError, InputError, InputTypeError
from confide.federated.messages import sign
from confide.support import FileKind, checksum, kind_of, kind_stated
from tests.federated.helpers import Federation, content_of
from tests.federated.test_conditions import FILES
from tests.kept import path_of
from tests.refused import refused

RELEASES = [path for path in FILES if kind_of(path) is FileKind.RELEASE]
FEDERATED = "confide/federated.release"
OFFICE = federated.SiloKeys("office", b"\1" * 32, b"\2" * 32)


def text_of(path):
    return path.read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    p = rng.dirichlet([6, 2, 1], 500)
    labels = (p.cumsum(axis=1) > rng.random((500, 1))).argmax(axis=1)
    rows = [",".join(map(str, [*row, "abc"[k]])) for row, k in zip(p, labels, strict=True)]
    Path("t.csv").write_text("\n".join(["p_a,p_b,p_c,y", *rows]) + "\n")
    scores = confide.lac_score(p, labels)
    confide.calibrate(scores, 0.1, 1.0, classes=["a", "b", "c"]).save("r.json")
    OFFICE.save("office.key")
    Path("office.json").write_text(OFFICE.public().to_json())
    Path("other.json").write_text(federated.SiloKeys.generate("other").public().to_json())
    return tmp_path


@pytest.mark.parametrize("path", RELEASES, ids=lambda path: path.stem)
def test_every_kept_release_is_signed_and_read_as_it_was(path, tmp_path):
    text = text_of(path)
    release = Release.from_json(text)
    if kind_stated(json.loads(text)) == FEDERATED:
        with refused(InputError, "released"):
            federated.sign(release, OFFICE)
        return
    signed = federated.sign(release, OFFICE)
    (tmp_path / "signed.json").write_text(signed, encoding="utf-8")
    assert kind_of(tmp_path / "signed.json") is FileKind.SIGNED
    found, signer = federated.read_signed(signed)
    assert signer == OFFICE.public().signing
    assert type(found) is type(release)
    assert found.to_json() == text
    assert found.checksum == release.checksum
    assert federated.read_signed(text) == (release, None)


def test_a_signature_makes_no_claim_true():
    """A holder of keys can sign anything; the reader refuses a release whose statements do not follow."""
    release = json.loads(confide.calibrate(np.linspace(0, 1, 500), 0.1, 1.0, score="lac").to_json())
    signed = json.loads(federated.sign(Release.from_json(json.dumps(release)), OFFICE))
    evaluation = json.loads(text_of(path_of("private-sets")))
    common = json.loads(text_of(path_of("federated-levels")))
    claimed = {**release, "thresholds": [{**release["thresholds"][0], "coverage": 0.99}]}
    del claimed["sha256"]
    for content in (
        {},
        {"release": release},
        {**release, "more": 1},
        {**claimed, "sha256": checksum(claimed)},
        signed,
        evaluation,
        common,
    ):
        with pytest.raises(FormatError):
            Document.from_json(sign("signed-release", content, OFFICE.signing))


def test_what_cannot_be_signed_is_refused():
    watch = Document.from_json(text_of(path_of("watch-sizes")))
    with refused(InputTypeError, "released"):
        federated.sign(watch, OFFICE)


def test_on_the_command_line(folder, capsys):
    assert main(["sign", "r.json", "--keys", "office.key", "--out", "s.json"]) == 0
    assert main(["sign", "r.json", "--keys", "office.key", "--out", "s.json"]) == 4
    assert main(["sign", "r.json", "--keys", "office.key", "--out", "s.json", "--force"]) == 0
    assert main(["sign", "s.json", "--keys", "office.key", "--out", "r.json", "--force"]) == 3
    capsys.readouterr()
    for option in ("--signer", "--coordinator"):
        assert main(["verify", "s.json", option, "office.json", "--signed"]) == 0
        assert "signed by 'office'" in capsys.readouterr().out
    assert main(["verify", "s.json", "--signed"]) == 0
    assert f"signed with the key {OFFICE.public().signing}" in capsys.readouterr().out
    assert main(["verify", "s.json", "--signer", "other.json"]) == 5
    assert "signed with another key than that of 'other'" in capsys.readouterr().err
    assert main(["verify", "r.json", "--signer", "office.json"]) == 5
    assert "not signed" in capsys.readouterr().err
    assert main(["verify", "s.json", "--answer", "office.json"]) == 3
    text = Path("s.json").read_text()
    Path("s.json").write_text(text.replace('"payload": "ew', '"payload": "fw'))
    capsys.readouterr()
    for command in ("verify", "show"):
        assert main([command, "s.json"]) == 3
        assert "the signature of the signed-release does not match" in capsys.readouterr().err


# Releases of a federation: who signed, and which answers count


@pytest.fixture
def four(tmp_path):
    return Federation.uniform(tmp_path, *[200] * 4)


@pytest.mark.slow
def test_who_signed_must_be_the_plans_coordinator(four):
    plan = four.plan(epsilon=5.0, dropouts=1)
    answers = four.answers(plan, [0, 1, 2])
    released = federated.aggregate(plan, answers, keys=four.coordinator)
    with pytest.raises(FormatError):
        confide.Release.from_json(sign("release", content_of(released.to_json()), four.keys[0].signing))
    with refused(InputError, "keys"):
        federated.aggregate(plan, answers, keys=four.keys[0])


def test_another_answer_of_the_silo_does_not_count(four):
    plan = four.plan(epsilon=5.0, dropouts=1)
    answers = four.answers(plan)
    released = federated.aggregate(plan, answers[1:], keys=four.coordinator)
    changed = content_of(answers[1]) | {"answered": "2020-01-01T00:00:00Z"}
    two = sign("answer", changed, four.keys[1].signing)
    output = federated.verify(released, None, [answers[0], two, "garbage", answers[2]])
    assert output.failures[:2] == (
        "the answer of 'silo 0' does not count",
        "another answer of 'silo 1' counts than this one",
    )
    assert output.failures[2].startswith("an answer cannot be used: malformed")
    assert output.statements[-1] == "the answer of 'silo 2' counts"
