"""Silos that exchange files: three commands per hospital, and every wrong file refused by name."""

import csv
import json

import numpy as np
import pytest

import confide
from confide import federated
from confide.cli import main
from confide.releases.calibration import Calibration


def run(*arguments):
    return main([str(a) for a in arguments])


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    for name, n in [("north", 200), ("south", 150), ("east", 180)]:
        with (tmp_path / f"{name}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([["s"], *[[x] for x in rng.random(n)]])
        assert (
            run(
                "federated",
                "keygen",
                name,
                "--keys",
                tmp_path / f"{name}.key",
                "--public",
                tmp_path / f"{name}.json",
                "--size",
                n,
            )
            == 0
        )
    assert run("federated", "keygen", "coordinator", "--keys", tmp_path / "c.key", "--public", tmp_path / "c.json") == 0
    return tmp_path


def make_plan(files, *options):
    silos = [part for name in ("north", "south", "east") for part in ("--silo", files / f"{name}.json")]
    return run(
        "federated",
        "plan",
        *silos,
        "--keys",
        files / "c.key",
        "--alpha",
        0.1,
        "--candidates",
        "unit:51",
        "--out",
        files / "plan.json",
        *options,
    )


def answer(files, name, *options):
    silo = ["--plan", files / "plan.json", "--keys", files / f"{name}.key", "--coordinator", files / "c.json"]
    memory = ["--ledger", files / f"{name}.db", "--budget", 4, "--out", files / f"{name}-answer.json"]
    others = []
    for other in {"north", "south", "east"} - {name}:
        others += ["--peer", files / f"{other}.json"]
    table = files / f"{name}.csv"
    return run("federated", "answer", table, "--score-column", "s", *silo, *memory, *others, *options)


def aggregate(files, *names, options=()):
    paths = [files / f"{name}-answer.json" for name in names]
    return run(
        "federated",
        "aggregate",
        *paths,
        "--plan",
        files / "plan.json",
        "--out",
        files / "released.json",
        "--force",
        *options,
    )


@pytest.mark.some(1)
@pytest.mark.parametrize("method", ["private-qq", "secure-sum"])
def test_whole_way_over_files(files, capsys, method):
    assert make_plan(files, "--epsilon", 2, "--method", method) == 0
    assert "coverage at least 0.9" in capsys.readouterr().out
    for name in ("north", "south", "east"):
        assert answer(files, name) == 0
    capsys.readouterr()
    assert answer(files, "north", "--force") == 0
    told = capsys.readouterr()
    assert "returned; nothing was charged" in told.out
    assert told.err == ""
    (files / "north.csv").write_text("s\n" + "0.5\n" * 200)
    assert answer(files, "north", "--force") == 0
    assert "made from other data than these" in capsys.readouterr().err
    assert aggregate(files, "north", "south", "east") == 0
    told = capsys.readouterr().out
    assert "3 of 3 silos answered" in told
    texts = [(files / f"{name}-answer.json").read_text() for name in ("north", "south", "east")]
    found = federated.replies((files / "plan.json").read_text(), texts)
    ends = [f"{value:.6g} ({name})" for name, value in found.items()]
    assert list(found.values()) == sorted(found.values())
    assert len(found) == (3 if method == "private-qq" else 0)
    assert ("replies: " in told) == bool(found)
    assert not found or f"replies: from {ends[0]} to {ends[-1]};" in told
    released = Calibration.load(files / "released.json")
    assert released.coverage >= 0.9
    assert (files / "north-answer.json").stat().st_size < 20_000
    capsys.readouterr()
    assert run("show", files / "released.json") == 0
    assert f"{method}, in 3 silos" in capsys.readouterr().out


def test_a_unit_of_residuals_reaches_the_candidates_of_every_silo(files, capsys):
    silos = [part for name in ("north", "south", "east") for part in ("--silo", files / f"{name}.json")]
    asked = [*silos, "--keys", files / "c.key", "--alpha", 0.1, "--epsilon", 2, "--unit", 25]
    plan = ["federated", "plan", *asked, "--out", files / "plan.json"]
    assert run(*plan, "--score", "lac") != 0
    assert "--unit must be left out for the score 'lac', which has a scale of its own" in capsys.readouterr().err
    assert run(*plan, "--score", "absolute_residual", "--candidates", "geometric") != 0
    assert "--unit must be left out with candidates of your own" in capsys.readouterr().err
    assert run(*plan, "--score", "absolute_residual") == 0
    made = confide.Candidates.spread("residual", 180, unit=25.0)  # as private-qq takes for silos of about 180 records
    said = capsys.readouterr().out
    assert f"candidate thresholds: {made.size}, by the decade, densest around the unit 25\n" in said
    stated = json.loads((files / "plan.json").read_text())["content"]["candidates"]
    assert stated == {"kind": "spread", "of": "residual", "size": 180, "unit": 25.0}
    for name in ("north", "south", "east"):
        assert answer(files, name, "--score", "absolute_residual") == 0
    assert aggregate(files, "north", "south", "east") == 0
    released = Calibration.load(files / "released.json")
    assert released.recipe == stated
    assert released.threshold in made.values


def test_wrong_files_are_refused_by_name(files, capsys):
    assert make_plan(files, "--epsilon", 2, "--dropouts", 1) == 0
    for name in ("north", "south", "east"):
        assert answer(files, name) == 0
    first = (files / "north-answer.json").read_text()
    capsys.readouterr()
    assert answer(files, "north", "--force") == 0
    assert "earlier answer of 20" in capsys.readouterr().out
    assert (files / "north-answer.json").read_text() == first  # the same answer again
    altered = json.loads(first)
    altered["content"]["candidate"] = 3
    (files / "north-answer.json").write_text(json.dumps(altered))
    capsys.readouterr()
    assert aggregate(files, "north", "south", "east") != 0
    assert "altered" in capsys.readouterr().err
    assert aggregate(files, "north", "south", "east", options=["--drop-refused"]) == 0
    assert "left out: message 1, of no silo of the plan (altered)" in capsys.readouterr().out
    assert aggregate(files, "south", "east", "south") == 0  # a copy
    assert "2 of 3 silos answered" in capsys.readouterr().out
    assert make_plan(files, "--epsilon", 2) != 0  # the plan exists already
    assert make_plan(files, "--epsilon", 2, "--force") == 0
    assert aggregate(files, "south", "east") != 0
    assert "foreign" in capsys.readouterr().err
    assert make_plan(files, "--method", "fedcp-qq", "--force") == 0
    assert answer(files, "south", "--force") != 0
    assert "not-allowed" in capsys.readouterr().err


def report(files, name, *options, epsilon=1.0, columns=("--score-column", "s")):
    memory = ["--ledger", files / f"{name}.db", "--budget", 4, "--out", files / f"{name}-report.json"]
    asked = ["--calibration", files / "released.json", "--silo", name, "--epsilon", epsilon]
    return run("federated", "report", files / f"{name}.csv", *columns, *asked, *memory, *options)


@pytest.mark.some(1)
@pytest.mark.parametrize("method", ["private-qq", "fedcp-avg"])
def test_a_silos_own_report_from_its_table_to_the_page(files, capsys, method):
    from confide.federated.silo_report import SiloReport
    from confide.ledger import Ledger

    private = method == "private-qq"
    assert make_plan(files, "--method", method, *(("--epsilon", 2) if private else ())) == 0
    for name in ("north", "south", "east"):
        assert answer(files, name, *(() if private else ("--allow", method))) == 0
    assert aggregate(files, "north", "south", "east") == 0
    released = Calibration.load(files / "released.json")
    whose = "calibration records"
    if not private:
        assert "spent so far: +inf, for an answer was not private; the budget was 4" in capsys.readouterr().out
        assert report(files, "north") != 0
        assert "a release without privacy was made from it" in capsys.readouterr().err
        whose = "new records"
    assert report(files, "north", "--dataset", whose) == 0
    assert f"spent so far: {3 if private else 1} of 4" in capsys.readouterr().out
    made = SiloReport.load(files / "north-report.json")
    scores = np.loadtxt(files / "north.csv", skiprows=1)
    covered = np.mean(scores <= released.threshold)
    assert (made.silo, made.epsilon, made.estimate.n) == ("north", 1.0, 200)
    assert abs(made.estimate.value - covered) <= 40 / 200  # discrete Laplace noise of scale 1: beyond with 1e-17
    # Asked the same again, the same noise and no new cost; another epsilon is another release.
    capsys.readouterr()
    assert report(files, "north", "--force", "--dataset", whose) == 0
    assert "earlier release of 20" in capsys.readouterr().out
    assert SiloReport.load(files / "north-report.json") == made
    spent = Ledger(files / "north.db").account(whose).spent().epsilon
    assert spent == (3.0 if private else 1.0)
    assert report(files, "north", "--force", "--dataset", whose, epsilon=3.5) != 0
    assert f"has {1 if private else 3} left of its limit" in capsys.readouterr().err
    assert SiloReport.load(files / "north-report.json") == made
    assert report(files, "north", "--force", "--dataset", "new patients", epsilon=3.5) == 0
    assert report(files, "north", "--force", "--dataset", "newer patients", epsilon=4.5) != 0
    assert "4" in capsys.readouterr().err
    (files / "north.csv").write_text("s\n" + "\n".join(map(str, scores / 2)))  # as many other records
    assert report(files, "north", "--force", "--dataset", "new patients", epsilon=0.25) == 0
    (files / "north.csv").write_text("s\n" + "\n".join(map(str, np.ones(200))))
    capsys.readouterr()
    assert report(files, "north", "--force", "--dataset", "new patients", epsilon=0.25) != 0
    assert "made from other data than these; nothing was charged" in (said := capsys.readouterr().err)
    assert "give --again, which" in said
    assert report(files, "north", "--force", "--dataset", "new patients", "--again", epsilon=0.25) == 0
    assert Ledger(files / "north.db").account("new patients").spent().epsilon == 4.0
    page = files / "page.html"
    shown = run("report", files / "released.json", "--silo-report", files / "north-report.json", "--out", page)
    assert shown == 0
    assert "Coverage by silo" in page.read_text(encoding="utf-8")


def test_reports_that_cannot_be_made_cost_nothing(files, capsys):
    def refused(*arguments, **more):
        capsys.readouterr()
        assert report(files, *arguments, **more) == 3
        assert not (files / "north.db").exists()
        assert not (files / "north-report.json").exists()
        return capsys.readouterr().err

    assert make_plan(files, "--epsilon", 2) == 0
    for name in ("south", "east", "north"):
        assert answer(files, name) == 0
    assert aggregate(files, "south", "east", "north") == 0
    (files / "north.db").unlink()
    for leftover in files.glob("north.db-*"):
        leftover.unlink()
    assert "one of the plan's silos, north, south, east; found 'west'" in refused("north", "--silo", "west")
    assert "the threshold names no score; these columns give 'lac': leave --score out" in refused(
        "north", "--score", "lac"
    )
    assert "epsilon must" in refused("north", epsilon=-1)
    good = (files / "released.json").read_text()
    confide_calibration = confide.calibrate(np.linspace(0, 1, 1000), 0.1, 1.0)
    (files / "released.json").write_text(confide_calibration.to_json())
    assert "must be federated" in refused("north")
    (files / "released.json").write_text(good)
    with (files / "north.csv").open("a") as file:
        file.write("nan\r\n")
    assert "column 's' must hold a number" in refused("north")


def test_an_infinite_threshold_needs_no_report(files, capsys):
    assert (
        make_plan(
            files,
            "--epsilon",
            2,
            "--arbitrary",
        )
        == 0
    )
    assert answer(files, "north") == 0
    assert aggregate(files, "north") == 0
    assert Calibration.load(files / "released.json").threshold == np.inf
    assert report(files, "north") == 3
    assert "covers everything; there is nothing to estimate" in capsys.readouterr().err


@pytest.mark.slow
def test_a_number_of_records_that_is_secret_stays_so(files, capsys):
    for name in ("north", "south", "east"):
        for suffix in ("key", "json"):
            (files / f"{name}.{suffix}").unlink()
        keys = ["--keys", files / f"{name}.key", "--public", files / f"{name}.json"]
        assert run("federated", "keygen", name, *keys) == 0
    assert make_plan(files, "--epsilon", 3.5) == 0
    for name in ("north", "south", "east"):
        assert answer(files, name) == 0
    assert aggregate(files, "north", "south", "east") == 0
    assert report(files, "north") == 3
    assert "keeps the number of records of 'calibration records' secret" in capsys.readouterr().err
    assert not (files / "north-report.json").exists()
    assert report(files, "north", "--dataset", "new patients") == 0
