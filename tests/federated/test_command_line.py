"""Silos that exchange files: three commands per hospital, and an error that names every wrong file."""

import json
from pathlib import Path

import numpy as np
import pytest

import confide
from confide import federated
from confide.federated import SiloReport
from confide.ledger import Ledger
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
    assert "--unit" in files.plan("--score", "absolute_residual", "--candidates", "geometric", code=None)
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
    files.plan("--method", "fedcp-qq", "--force")
    assert "not-allowed" in files.answer("south", "--force", code=None)


def report(files, *options, silo="north", epsilon=1.0, code=0):
    memory = ("--ledger", "north.db", "--budget", 4, "--out", "north-report.json")
    asked = ("--calibration", "released.json", "--silo", silo, "--epsilon", epsilon)
    return files.run("federated", "report", "north.csv", *files.columns, *asked, *memory, *options, code=code)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["private-qq", *slow(["fedcp-avg"])])
def test_a_silos_own_report_from_its_table_to_the_page(files, run, method):
    private = method == "private-qq"
    allowed = () if private else ("--allow", method)
    released = released_of(files, "--method", method, *(("--epsilon", 2) if private else ()), answers=allowed)
    whose = "calibration records" if private else "new records"
    if not private:
        report(files, code=None)  # these records had a release without privacy
    report(files, "--dataset", whose)
    made = SiloReport.load("north-report.json")
    scores = np.loadtxt("north.csv", skiprows=1)
    assert (made.silo, made.epsilon, made.estimate.n) == ("north", 1.0, 200)
    covered = np.mean(scores <= released.threshold)
    assert abs(made.estimate.value - covered) <= 40 / 200  # noise of scale 1 exceeds this with probability 1e-17

    def spent(dataset):
        return Ledger("north.db").account(dataset).spent().epsilon

    # The same request returns the same noise at no cost; another epsilon makes another release.
    report(files, "--force", "--dataset", whose)
    assert SiloReport.load("north-report.json") == made
    assert spent(whose) == (3.0 if private else 1.0)
    report(files, "--force", "--dataset", whose, epsilon=3.5, code=None)
    assert SiloReport.load("north-report.json") == made
    report(files, "--force", "--dataset", "new patients", epsilon=3.5)
    report(files, "--force", "--dataset", "newer patients", epsilon=4.5, code=None)
    table(scores / 2)  # different records, same size
    report(files, "--force", "--dataset", "new patients", epsilon=0.25)
    table(np.ones(200))
    assert "--again" in report(files, "--force", "--dataset", "new patients", epsilon=0.25, code=None)
    report(files, "--force", "--dataset", "new patients", "--again", epsilon=0.25)
    assert spent("new patients") == 4.0
    run("report", "released.json", "--silo-report", "north-report.json", "--out", "page.html")
    assert "Coverage by silo" in Path("page.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_reports_that_cannot_be_made_cost_nothing(files):
    released_of(files, "--epsilon", 2)
    for left in Path().glob("north.db*"):
        left.unlink()
    assert "west" in report(files, silo="west", code=3)
    assert "--score" in report(files, "--score", "lac", code=3)
    assert "--epsilon" in report(files, epsilon=-1, code=3)
    good = Path("released.json").read_text()
    Path("released.json").write_text(confide.calibrate(np.linspace(0, 1, 1000), 0.1, 1.0).to_json())
    report(files, code=3)  # the release is not federated
    Path("released.json").write_text(good)
    with Path("north.csv").open("a") as file:
        file.write("nan\n")
    assert "'s'" in report(files, code=3)
    assert not Path("north.db").exists()
    assert not Path("north-report.json").exists()


@pytest.mark.slow
def test_an_infinite_threshold_needs_no_report(files):
    files.plan("--epsilon", 2, "--arbitrary")
    files.answer("north")
    files.aggregate(names=["north"])
    assert Calibration.load("released.json").threshold == np.inf
    report(files, code=3)


@pytest.mark.slow
def test_a_number_of_records_that_is_secret_stays_so(files):
    for name in files.names:
        Path("public", f"{name}.json").write_text(files.keys[name].public().to_json())
    released_of(files, "--epsilon", 3.5)
    report(files, code=3)
    assert not Path("north-report.json").exists()
    report(files, "--dataset", "new patients")
