"""Silos that exchange files: three commands per hospital, and an error that names every wrong file."""

import json
from pathlib import Path

import pytest

import confide
from confide import federated
from confide.releases.calibration import Calibration
from tests.builders import slow
from tests.federated.by_files import Files

SIZES = {"north": 200, "south": 150, "east": 180}
NORTH = Path("north-answer.json")


@pytest.fixture
def files(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    return Files(run, SIZES, asked=("--alpha", 0.1, "--candidates", "unit:51"))


def released_of(files, *options, answers=()):
    """Return a calibration of all silos."""
    files.plan(*options)
    for name in files.names:
        files.answer(name, *answers)
    files.aggregate()
    return Calibration.load("released.json")


def table(values):
    Path("north.csv").write_text("s\n" + "\n".join(map(str, values)) + "\n")


@pytest.mark.slow
@pytest.mark.parametrize("method", ["private-qq", *slow(["secure-sum"])])
def test_whole_way_over_files(files, run, method):
    assert "coverage at least 0.9" in files.plan("--epsilon", 2, "--method", method)
    for name in files.names:
        files.answer(name)
    first = NORTH.read_text()
    files.answer("north", "--force")
    assert NORTH.read_text() == first
    table([0.5] * 200)
    assert run.err == ""
    table([0.5] * 200)
    files.answer("north", "--force")
    assert run.err.startswith("warning: ")  # the data differ
    assert NORTH.read_text() == first
    assert federated.SiloLedger("north.db").spent == 2.0
    said = files.aggregate()
    found = federated.replies(Path("plan.json").read_text(), [Path(file).read_text() for file in files.answers()])
    ends = [f"{value:.6g} ({name})" for name, value in found.items()]
    assert list(found.values()) == sorted(found.values())
    assert len(found) == (3 if method == "private-qq" else 0)
    assert ("replies: " in said) == bool(found)
    assert not found or f"replies: from {ends[0]} to {ends[-1]};" in said
    assert Calibration.load("released.json").coverage >= 0.9
    assert NORTH.stat().st_size < 20_000
    assert f"{method}, 3 of 3 silos" in run("show", "released.json")


@pytest.mark.slow
def test_a_unit_of_residuals_reaches_the_candidates_of_every_silo(files):
    files.asked = ("--alpha", 0.1, "--epsilon", 2, "--unit", 25)
    assert "--unit" in files.plan("--score", "lac", code=None)
    assert "--unit" in files.plan("--score", "absolute_residual", "--candidates", "unit:50", code=None)
    released = released_of(files, "--score", "absolute_residual", answers=("--score", "absolute_residual"))
    made = confide.Candidates.spread("residual", 180, unit=25.0)  # as private-qq takes for silos of about 180 records
    stated = json.loads(Path("plan.json").read_text())["content"]["candidates"]
    assert stated == {"kind": "spread", "of": "residual", "size": 180, "unit": 25.0}
    assert released.recipe == stated
    assert released.threshold in made.values


@pytest.mark.slow
def test_wrong_files_are_refused_by_name(files):
    files.plan("--epsilon", 2, "--dropouts", 1)
    for name in files.names:
        files.answer(name)
    altered = json.loads(NORTH.read_text())
    altered["content"]["candidate"] = 3
    NORTH.write_text(json.dumps(altered))
    assert "altered" in files.aggregate(code=None)
    assert "left out: message 1, of no silo of the plan (altered)" in files.aggregate("--drop-refused")
    assert "2 of 3 silos answered" in files.aggregate(names=["south", "east", "south"])  # with a copy of one answer
    files.plan("--epsilon", 2, code=None)  # the plan file exists
    files.plan("--epsilon", 2, "--force")
    assert "foreign" in files.aggregate(names=["south", "east"], code=None)
    files.plan("--epsilon", 30, "--force")
    assert "not-allowed" in files.answer("south", "--force", code=None)
