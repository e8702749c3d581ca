"""Silos that exchange files: three commands per hospital, and an error that names every wrong file."""

from pathlib import Path

import pytest

from confide import federated
from confide.core import Release
from tests.federated.by_files import Files

SIZES = {"north": 200, "south": 150, "east": 180}
NORTH = Path("north-answer.json")


@pytest.fixture
def files(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    return Files(run, SIZES, asked=("--alpha", 0.1, "--set", "candidates=unit:51"))


def table(values):
    Path("north.csv").write_text("s\n" + "\n".join(map(str, values)) + "\n")


@pytest.mark.slow
@pytest.mark.parametrize("method", ["private-qq", "secure-sum"])
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
    assert Release.load("released.json").coverage >= 0.9
    assert NORTH.stat().st_size < 20_000
    assert f"{method}, 3 of 3 silos" in run("show", "released.json")
