"""Files below a path: with what they were made, which advisories concern them, and what cannot be used."""

import json
import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("packaging")

import confide
from confide.checkup import Advisory, advisories, folders
from confide.federated import SiloKeys
from tests.refused import refused
from tests.releases.test_samples import signed

SAMPLES = Path(__file__).parents[1]
RELEASES = SAMPLES / "releases" / "samples" / "0.2"
BIASED = "opendp-2638"


def made_with(path: Path, opendp: str = "0.16.0", confide: str = "0.2.0") -> str:
    """A sample as if it had been made with other versions."""
    text = path.read_text(encoding="utf-8").replace('"opendp": "0.16.0"', f'"opendp": "{opendp}"')
    content = json.loads(text.replace('"confide": "0.2.0"', f'"confide": "{confide}"'))
    for part in content.get("parts", []):
        part["calibration"] = json.loads(signed(part["calibration"]))
    return signed(content)


def looked(*paths):
    found, others = folders.find_files(paths, advisories())
    return {Path(one.path).name: one for one in found}, others


def test_samples_can_be_read():
    found, others = looked(RELEASES)
    assert found.keys() == {path.name for path in RELEASES.glob("*.json")} - {"expected.json"}
    assert others == 1
    assert [one.path for one in found.values() if one.wrong] == []
    stated = {name: {dict(made.versions)["confide"] for made in one.made} for name, one in found.items()}
    assert stated["groups.json"] == stated["risk.json"] == {"0.2.0"}


@pytest.mark.parametrize("name", ["calibration.json", "groups.json", "levels.json", "sides.json", "pps-laplace.json"])
@pytest.mark.parametrize(("version", "hit"), [("0.14.1", True), ("0.14.2a3", True), ("0.14.2", False), ("odd", False)])
def test_files_of_biased_sampler_are_named(tmp_path, name, version, hit):
    (tmp_path / name).write_text(made_with(RELEASES / name, version), encoding="utf-8")
    found, _ = looked(tmp_path)
    assert (BIASED in found[name].advisories) is hit
    assert version in found[name].making
    assert ("opendp" in found[name].doubt) is (version == "odd")


@pytest.mark.slow
def test_missing_or_odd_versions_are_findings(tmp_path):
    """A calibration has always stated its versions; one that states none, or texts that are none, is not fine."""
    plain = json.loads((RELEASES / "calibration.json").read_text(encoding="utf-8"))
    for name, versions in {
        "none": {},
        "odd": {"confide": "0.2.0", "opendp": "x"},
        "other": {"OpenDP": "0.14.1"},
    }.items():
        (tmp_path / f"{name}.json").write_text(signed(plain | {"versions": versions}), encoding="utf-8")
    checkup = confide.doctor(tmp_path)
    assert sum("no advisory can be excluded" in line for line in checkup.findings) == 3
    assert all(one["doubt"] for one in checkup.fields()["files"])
    samples, _ = looked(SAMPLES)
    assert [one.path for one in samples.values() if one.doubt] == []


def test_odd_mechanism_counts_as_drawn(tmp_path):
    plain = json.loads((RELEASES / "none.json").read_text(encoding="utf-8"))
    changed = {"mechanism": "none", "versions": plain["versions"] | {"opendp": "0.14.1"}}
    (tmp_path / "odd.json").write_text(signed(plain | changed), encoding="utf-8")
    assert looked(tmp_path)[0]["odd.json"].advisories == (BIASED,)


@pytest.mark.parametrize("looks", [None, 5, "abc", {"a": 1}, [5]])
def test_watch_with_odd_looks_is_damaged(tmp_path, looks):
    (tmp_path / "watch.json").write_text(
        signed({"kind": "confide.watch", "schema": 1, "looks": looks}), encoding="utf-8"
    )
    assert looked(tmp_path)[0]["watch.json"].wrong.startswith("looks: ")


def test_damaged_ledger_is_named_by_path(tmp_path):
    head = bytearray(b"SQLite format 3\0" + bytes(200))
    head[68:72] = (0x436F6E66).to_bytes(4, "big")
    (tmp_path / "budget.db").write_bytes(head)
    assert str(tmp_path / "budget.db") in looked(tmp_path)[0]["budget.db"].wrong


@pytest.mark.parametrize("name", ["none.json", "calibration-infinite.json"])
def test_files_without_draws_are_not_affected(tmp_path, name):
    (tmp_path / name).write_text(made_with(RELEASES / name, "0.14.1"), encoding="utf-8")
    found, _ = looked(tmp_path)
    assert found[name].advisories == ()
    assert "they drew no numbers" in found[name].making


def test_advisory_about_score_or_method(tmp_path):
    summed = SAMPLES / "federated" / "samples" / "0.2" / "opened" / "released.json"
    for path in (RELEASES / "risk.json", RELEASES / "calibration.json", summed):
        (tmp_path / path.name).write_text(made_with(path, confide="0.1.0"), encoding="utf-8")
    found, _ = looked(tmp_path)
    assert found["risk.json"].advisories == ("confide-2026-1",)
    assert found["calibration.json"].advisories == ()
    assert found["released.json"].advisories == ("confide-2026-2",)


@pytest.mark.slow
def test_evaluations_watches_and_ledgers(tmp_path, monkeypatch):
    """What a ledger keeps says what drew it; what was made before versions were stated says that."""
    ledger = confide.Ledger(tmp_path / "budget.db")
    biased = {"confide": "0.2.0", "opendp": "0.14.1"}
    by_module = sys.modules["confide.calibration.release"]  # the package calls its function so
    monkeypatch.setattr(by_module, "library_versions", lambda: biased)
    confide.calibrate(np.linspace(0, 1, 900), 0.1, 1.0, ledger=ledger, dataset="scores")
    monkeypatch.setattr("confide.calibration.noisy_labels.library_versions", lambda: biased)
    confide.randomise_labels([0, 1], 2, 1.0).statement.save(tmp_path / "labels.json")
    (tmp_path / "export.json").write_text(json.dumps(ledger.export()), encoding="utf-8")
    shutil.copy(SAMPLES / "watching" / "samples" / "0.2" / "coverage.json", tmp_path / "watch.json")
    found, _ = looked(tmp_path)
    for name in ("budget.db", "labels.json", "export.json"):
        assert found[name].advisories == (BIASED,), name
    assert found["watch.json"].making == folders.UNKNOWN


@pytest.mark.slow
def test_an_answer_of_a_silo(tmp_path):
    from confide import federated

    boss, silos = SiloKeys.generate("boss"), [SiloKeys.generate(name) for name in ("a", "b")]
    plan = federated.plan([one.public(size=300) for one in silos], 0.1, 4.0, method="private-qq", score="lac")
    policy = federated.Policy(boss.public().identity, budget=4.0, per_plan=4.0)
    scores, text = np.linspace(0, 1, 300), plan.sign(boss)
    answers = [
        federated.answer(text, scores, keys, policy, federated.SiloLedger(tmp_path / f"{keys.name}.db"))
        for keys in silos
    ]
    (tmp_path / "answer.json").write_text(answers[0], encoding="utf-8")
    (tmp_path / "forged.json").write_text(answers[1].replace('"opendp": "', '"opendp": "9'), encoding="utf-8")
    federated.aggregate(text, answers, keys=boss).save(tmp_path / "signed.json")
    silos[0].save(tmp_path / "a.key")
    head = federated.message_head(answers[0])
    assert "opendp" in head.versions
    found, others = looked(tmp_path)
    assert dict(found["answer.json"].made[0].versions) == head.versions
    assert found["signed.json"].made[-1] == found["answer.json"].made[0]
    assert "signature" in found["forged.json"].wrong
    assert "a.key" not in found
    assert others >= 1


@pytest.mark.parametrize(
    ("change", "argument"),
    [
        (lambda text: text[:200], "file"),
        (lambda text: text.replace('"alpha": "1/10"', '"alpha": "1/11"'), ""),
        (lambda text: signed(json.loads(text) | {"schema": 99}), "schema"),
        (lambda text: signed(json.loads(text) | {"schema": "\x1b[2J"}), "schema"),
        (lambda text: signed(json.loads(text) | {"versions": {"opendp": "\x1b[2J"}}), ""),
        (lambda text: text.replace("{", '{"kind": "confide.calibration", "x": ' + "[" * 5000, 1), "file"),
    ],
)
def test_damage_is_reported(tmp_path, change, argument):
    text = (RELEASES / "calibration.json").read_text(encoding="utf-8")
    (tmp_path / "one.json").write_text(change(text), encoding="utf-8")
    found, others = looked(tmp_path)
    assert found["one.json"].wrong.startswith(argument)
    assert found["one.json"].wrong
    assert "\x1b" not in found["one.json"].wrong
    assert others == 0


def test_other_files_are_counted(tmp_path, monkeypatch):
    for name, content in {"a.json": "{}", "b.csv": "p,q", "c.json": '{"kind": "other"}', "empty": ""}.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    (tmp_path / "loop").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    os.mkfifo(tmp_path / "pipe")
    shutil.copy(RELEASES / "calibration.json", tmp_path / "one.json")
    (tmp_path / "again.json").symlink_to(tmp_path / "one.json")
    found, others = looked(tmp_path, tmp_path / "one.json")
    assert len(found) == 1
    assert others == 6
    monkeypatch.setattr(folders, "MOST_BYTES", 100)
    found, _ = looked(tmp_path)
    assert next(iter(found.values())).wrong.startswith("file: must have at most 100 bytes")


def test_unreadable_files_are_named(tmp_path, monkeypatch):
    shutil.copy(RELEASES / "calibration.json", tmp_path / "one.json")
    opened = Path.open

    def refused(path, *given, **named):
        if path.name == "one.json":
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *given, **named)

    monkeypatch.setattr(Path, "open", refused)
    found, _ = looked(tmp_path)
    assert found["one.json"].wrong == "cannot be read: Permission denied"


def test_missing_path_raises(tmp_path):
    with refused(confide.InputError, "path"):
        confide.doctor(tmp_path / "gone")


def test_advisories_are_complete():
    from packaging.specifiers import SpecifierSet

    known = advisories()
    assert len({one.id for one in known}) == len(known)
    for one in known:
        assert {part.operator for part in SpecifierSet(one.versions)} <= {">=", "<"}
        assert one.package in ("confide", "opendp")
        assert set(one.concerns) <= {"drawn", "score", "method", "kind"}
        assert all(len(text) > 10 for text in (one.what, one.releases, one.remedy, one.reference))
    assert isinstance(known[0], Advisory)


@pytest.mark.slow
def test_result_about_files_comes_first(tmp_path):
    shutil.copy(RELEASES / "calibration.json", tmp_path / "one.json")
    about_a_file, alone = str(confide.doctor(tmp_path / "one.json")), str(confide.doctor())
    blocks = about_a_file.split("\n\n")
    assert blocks[0].startswith("findings: ")
    assert "one.json: a release" in blocks[1]
    assert "pip install" not in about_a_file
    assert len(about_a_file.splitlines()) < 20
    assert "optional parts:\n" in alone
    assert alone.splitlines()[-1].startswith("findings: ")
