"""Every command on valid input equals the results of the library; commands of docs/migrating.md run."""

import csv
import json
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import get_type_hints

import click
import numpy as np
import pandas as pd
import pytest

import confide
from confide.cli import options as names
from confide.cli.app import app
from confide.cli.exit_codes import DONE, EXISTS, IN_WORDS, REFUSED, USAGE
from confide.cli.options import OPTIONS
from confide.core import RENEWED, RULES, Pilot, budget_plan
from confide.evaluation import PrivateRequest
from confide.federated import METHODS, PlanChoices
from confide.mechanisms import NEIGHBORS
from confide.selection import noisy_counts
from confide.tables import DIALECTS
from confide.watching import FirstLook
from tests.files import NAMES, class_table, classified, write

COLUMNS = ("--probabilities", "p_*", "--label", "name")
LEVELS = ("--alpha", 0.1, "--epsilon", 1)


@pytest.mark.slow
def test_the_way_from_records_to_sets(confide_run, folder):
    records = write(folder / "records.csv", class_table(lists=False))
    new = write(folder / "new.csv", class_table(500, seed=1, lists=False))
    made = confide_run("calibrate", records, *COLUMNS, *LEVELS, "--out", "cal.json")
    assert (made.code, made.err) == (0, "")
    released = confide.Release.load("cal.json")
    assert (released.score, released.n) == ("lac", None)
    lines = made.out.splitlines()
    assert "\n".join(lines[:5]) == str(released)
    assert re.fullmatch(r"records: about [\d,]+ \(\+-15 at 95 %\), a noisy number, .*", lines[3])
    assert lines[4].startswith(f"records needed: about {confide.plan(0.1, 1.0).records_needed}; with fewer, ")
    design = released.size.design_for
    cost = confide.plan(0.1, 1.0, design).expected_coverage
    assert lines[5] == f"cost of privacy: {100 * cost:.4g} % expected coverage instead of 90 %"
    assert f"with {design} records, which the noisy number suggests" in lines[6]
    alone = "no ledger: the losses of all runs about the same people add up, and --ledger records the sum"
    assert lines[7:] == [alone, "saved: cal.json"]

    done = confide_run("predict", new, "--calibration", "cal.json", "--probabilities", "p_*", "--out", "sets.parquet")
    assert (done.code, done.err) == (0, "")
    sets = confide.predict_set(classified(500, seed=1)[0], released, NAMES)
    assert done.out.splitlines()[0] == f"500 sets, {sets.sizes.mean():.2f} classes each on average"
    assert done.out.splitlines()[-1] == "saved: sets.parquet"


def test_help_and_version(confide_run):
    text = confide_run("--help").out
    for code in IN_WORDS:
        assert f" {code} " in text
    assert confide_run("--version").out.startswith("confide 0.")


@pytest.mark.parametrize(("option", "name"), [("--delta", "delta"), ("--person", "people.person")])
def test_an_option_that_is_an_argument_is_stated_by_set(confide_run, folder, option, name):
    ran = confide_run("calibrate", "records.parquet", *COLUMNS, *LEVELS, option, 0.1, "--out", "new.json")
    assert ran.error == f"No such option: {option}; state it as --set {name}=VALUE; see `confide calibrate --help`"
    assert ran.code == USAGE
    assert "--label" in confide_run("calibrate", "records.parquet", "--lable", "name").error


# One line of JSON

PAID = ("--ledger", "l.db", "--dataset", "a")
AGAIN = ("--calibration", "r.json", *COLUMNS)
LINES = {
    "plan": (*LEVELS, "--n", 500, "--neighbors", "replace_one"),
    "calibrate": ("t.csv", *COLUMNS, *LEVELS, "--neighbors", "replace_one", *PAID, "--out", "r.json"),
    "recalibrate": ("u.csv", *AGAIN, *PAID, "--out", "r2.json"),
    "predict": ("t.csv", "--probabilities", "p_*", "--calibration", "r.json", "--out", "sets.csv"),
    "evaluate": ("t.csv", *AGAIN),
    "watch": ("t.csv", *AGAIN, "--state", "w.json", "--look", "may", "--epsilon", 1, "--batch", 500),
    "show": ("r.json",),
    "verify": ("r2.json",),
    "ledger list": ("l.db",),
    "ledger show": ("l.db", "a"),
    "ledger limit": ("l.db", "a", 9, "--neighbors", "replace_one"),
    "budget plan": ("--epsilon", 3, "--looks", 2, "--rule", "basic"),
}
"""A small case of every command with --json, in an order in which each has the files of earlier ones."""


def with_json(command, path=()):
    """The words of every command with --json."""
    if isinstance(command, click.Group):
        return {name for key, one in command.commands.items() for name in with_json(one, (*path, key))}
    return {" ".join(path)} if any("--json" in one.opts for one in command.params) else set()


@pytest.mark.long
def test_every_command_prints_one_line(confide_run, folder):
    """A job that is tried again is answered from the ledger, and charged once."""
    write(folder / "t.csv", class_table(500, lists=False))
    write(folder / "u.csv", class_table(500, seed=1, lists=False))
    assert with_json(app) == {*LINES}
    for name, words in LINES.items():
        done = confide_run("-v", *name.split(), *words, "--json")
        assert done.code == 0, f"{name}: {done.err}"
        assert done.out.endswith("}\n"), name
        assert done.out.count("\n") == 1, name
        assert isinstance(json.loads(done.out), dict)
        assert all(line.startswith(("2", "warning: ", "note: ")) for line in done.err.splitlines()), done.err
    first = json.loads((folder / "r.json").read_text())
    again = confide_run("calibrate", *LINES["calibrate"], "--force", "--json").json
    assert (again["calibration"], len(again["earlier"])) == (first, 1)
    assert len(confide_run("ledger", "show", "l.db", "a", "--json").json["entries"]) == 2


# Documents


@pytest.mark.long
def test_the_way_from_records_to_documents(confide_run, folder):
    """Pages and a card; what may be published is said; foreign names are escaped."""
    p, y = classified(3000)
    names = np.array(["benign", "malignant", "<script>alert(1)</script>"])
    records = write(folder / "r.csv", {f"p_{name}": p[:, k] for k, name in enumerate(names)} | {"name": names[y]})
    confide_run("calibrate", records, *COLUMNS, *LEVELS, "--out", "cal.json")
    evaluate = ("evaluate", records, *COLUMNS, "--calibration", "cal.json", "--out")
    assert "saved: ev.json" in confide_run(*evaluate, "ev.json").out
    assert confide_run(*evaluate, "private.json", "--epsilon", 1).code == DONE
    words = ("--evaluation", "ev.json", "--title", "Lesions", "--out")
    done = confide_run("report", "cal.json", *words, "report.html")
    assert done.out == "saved: report.html\nThe page shows numbers from labelled records: this part is not private.\n"
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "<h1>Lesions</h1>" in page
    assert "<script>alert(1)" not in page
    assert "confide show cal.json" in page
    assert confide_run("report", "cal.json", "--out", "report.html").code == EXISTS
    assert confide_run("report", "cal.json", "--out", "report.html", "--force").out == "saved: report.html\n"
    assert "Measured on labelled" not in (folder / "report.html").read_text(encoding="utf-8")

    done = confide_run("card", "cal.json", *words, "README.md")
    assert done.out == "saved: README.md\nThe card shows numbers from labelled records: this part is not private.\n"
    again = ("card", "cal.json", "--evaluation", "private.json", "--task", "t", "--out", "README.md")
    assert confide_run(*again).code == EXISTS
    done = confide_run(*again, "--force")
    assert done.out == "saved: README.md\nThe card shows a private evaluation: the whole card may be published.\n"
    assert "private: true" in (folder / "README.md").read_text(encoding="utf-8")


def test_files_are_shown_by_their_kind(confide_run, folder):
    records = write(folder / "records.parquet", class_table(600, lists=False))
    confide.calibrate(np.linspace(0, 1, 900), 0.1, 1.0, score="lac", classes=NAMES).save("cal.json")
    evaluated = confide_run("evaluate", records, "--calibration", "cal.json", *COLUMNS, "--out", "found.json")
    assert evaluated.code == DONE
    shown = confide_run("show", "found.json")
    for words in ("coverage", "not private", confide.load("cal.json").checksum):
        assert words in shown.out
    document = confide_run("show", "found.json", "--json").json["evaluation"]
    assert document["found"]["release"]["coverage"]["value"] == confide.load("found.json").coverage.value
    assert confide_run("show", "found.json", "--records", 2).refused == (REFUSED, "--records")
    predict = ("predict", records, "--probabilities", "p_*", "--out", "sets.csv", "--calibration")
    assert confide_run(*predict, "found.json").refused == (REFUSED, "--calibration")
    confide.report(confide.load("cal.json")).save("page.html")
    confide.Ledger("budget.db").set_limit("patients", 1.0)
    assert confide_run("ledger", "export", "budget.db", "--out", "export.json").code == DONE
    for name in ("page.html", "budget.db", "export.json"):
        assert confide_run("show", name).refused == (REFUSED, "path")


# Plans


@pytest.mark.long
def test_a_public_sample_estimates_sets_and_intervals(confide_run, folder):
    rng = np.random.default_rng(0)
    p, y = classified(400, dtype=np.float64)
    f, t = rng.normal(size=(2, 400))
    numbers = {"name": np.array(NAMES)[y], "f": f, "lower": f - 1, "upper": f + 2, "y": f + t}
    pd.DataFrame({f"p_{name}": p[:, k] for k, name in enumerate(NAMES)} | numbers).to_csv("records.csv", index=False)
    plan, score = ("plan", *LEVELS, "--n", 300), "aps_deterministic"
    pilot = Pilot(confide.class_score(p, y, score), confide.all_scores(p, score))
    expected = confide.plan(0.1, 1.0, 300, score=score, pilot=pilot).on_pilot
    sets = (*plan, "--pilot", "records.csv", *COLUMNS, "--score", score)
    found = confide_run(*sets, "--json").json["pilot"]
    assert found["records"] == 400
    for name in ("ratio", "size", "chance_beyond"):
        assert found[name] == pytest.approx(getattr(expected, name))
    assert f"sets are {expected.ratio:.3f} times as large as without" in confide_run(*sets, "--out", "plan.html").out
    assert f"{expected.ratio:.3f} times as large as without" in (folder / "plan.html").read_text()

    intervals = (*plan, "--pilot", "records.csv", "--target", "y", "--json", "--prediction")
    made = confide.plan(0.1, 1.0, 300, score="absolute_residual", unit=2.0, pilot=np.abs(t))
    found = confide_run(*intervals, "f", "--set", "unit=2").json
    assert found["pilot"]["ratio"] == pytest.approx(made.on_pilot.ratio)
    assert found["candidates"]["size"] == made.candidates.size
    both = confide_run(*intervals, "lower,upper").json["pilot"]
    assert both["ratio"] == pytest.approx((3 + 2 * both["threshold"]) / (3 + 2 * both["plain_threshold"]))
    own = confide_run(*plan, "--pilot", "records.csv", "--score-column", "f", "--json").json["pilot"]
    assert (own["records"], own["ratio"], own["size"]) == (400, None, None)
    assert confide_run(*plan, "--json").json["pilot"] is None


@pytest.mark.slow
def test_a_year_states_budgets_and_expected_coverage(confide_run):
    words = ("budget", "plan", "--releases", 2, "--looks", 52, "--looks-per-person", 1, "--epsilon", 2, "--n",
             "200,300", "--rule", "basic", "--dp-delta", 0)  # fmt: skip
    year = budget_plan(2.0, releases=2, looks=52, looks_per_person=1, dp_delta=0)
    coverage = ", ".join(f"{year.plan(n).expected_coverage:.3f}" for n in (200, 300))
    said = confide_run(*words).out
    assert year.statement in said
    assert f"  2 releases  epsilon 0.5 each; expected coverage {coverage} with 200, 300 records\n" in said
    output = confide_run(*words, "--json").json
    entries = [(one["kind"], one["count"], one["per_person"], one["epsilon"]) for one in output["plan"]["entries"]]
    assert entries == [("calibration", 2, 2, 0.5), ("look", 52, 1, 1.0)]
    assert output["rules"]["basic"][1] == {"kind": "look", "epsilon": 1.0, "records": 21}


# Counts that another engine made

LAW = "discrete_laplace(scale=2,copies=2)"


def test_published_counts(folder, confide_run):
    """From DAP's JSON, from CSV and from a file that states everything; n is public, or a noisy number of its own."""
    unit = confide.Candidates.unit(64)
    exact = confide.ScoreHistogram.from_scores(np.random.default_rng(0).random(5000), unit).counts
    drawn = noisy_counts(noisy_counts(exact, 2.0), 2.0).tolist()
    (folder / "counts.csv").write_text("bin,count\n" + "".join(f"{k},{count}\n" for k, count in enumerate(drawn)))
    (folder / "dap.json").write_text(json.dumps({"report_count": 5000, "aggregate_result": drawn}))
    secret = {"n_noisy": 4987, "n_noise": confide.Noise.discrete_laplace(20.0)}
    public, own = (
        confide.PublishedCounts(drawn, unit, confide.Noise.parse(LAW), n, "lac", ["no", "yes"], **number)
        for n, number in ((5000, {}), (None, secret))
    )
    own.save("own.json")
    stated = ("--set", f"noise={LAW}", "--set", "candidates=unit:64", "--score", "lac", "--classes", "no,yes")
    noisy_n = ("--set", "n_noisy=4987", "--set", "n_noise=discrete_laplace(scale=20)")
    asked = ("--alpha", "0.1", "--out", "cal.json", "--force")
    for source, counts in (
        (("dap.json", *stated), public),
        (("counts.csv", *stated, "--n", "5000"), public),
        (("own.json",), own),
        (("counts.csv", *stated, *noisy_n), own),
    ):
        ran = confide_run("calibrate", "--noisy-counts", *source, *asked)
        assert ran.code == 0, ran.err
        assert "as the maker of the counts states" in ran.out
        assert confide.Release.load("cal.json") == confide.calibrate_counts(counts, 0.1)
    assert "every count has independent discrete Laplace noise of scale 2" in confide_run("show", "cal.json").out
    assert "64 bins, a secret number of records" in confide_run("show", "own.json").out
    assert "they hold" in confide_run("verify", "cal.json", "--epsilon-at-most", "1.1").out
    calibrate = ("calibrate", "--noisy-counts", "own.json", "--alpha", "0.1", "--out", "other.json")
    assert confide_run(*calibrate, "--set", "delta=0.1").refused == (REFUSED, "delta")
    assert confide_run(*calibrate, "--ledger", "l.db", "--dataset", "d").refused == (REFUSED, "--ledger")


def test_the_table_of_new_forms_names_what_exists(confide_run):
    """Options and arguments of docs/tables/options.csv are in the help of their command."""
    with (Path(__file__).parents[2] / "docs" / "tables" / "options.csv").open(encoding="utf-8", newline="") as file:
        stated = [words for _, row in csv.reader(file) for words in re.findall(r"`(\w[^`]*)`", row)]
    commands = [words for words in stated if re.search(r" (--|cal)", words) and not re.search(r"\bFILE\b", words)]
    assert len(commands) >= 22
    for words in commands:
        command = words.split(" --")[0].removesuffix(" cal.json").split()
        known = set(confide_run(*command, "--help").out.replace(",", " ").split())
        assert set(re.findall(r"(?<!\S)--[a-z][\w-]*", words)) <= known, words
        assert {name.partition(".")[0] for name in re.findall(r"--set '?([\w.]+)", words)} <= known, words


# --- help, options and completion


def commands(command=None, path=()):
    command = app if command is None else command
    below = getattr(command, "commands", {})
    return [(path, command), *(one for name, sub in below.items() for one in commands(sub, (*path, name)))]


@pytest.fixture(autouse=True)
def narrow(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


def test_names_that_help_states_are_those_of_the_api():
    """`confide.cli.options` states them, so that help imports nothing that computes."""
    of_request = {field.name for field in fields(PrivateRequest)} - {"ledger", "dataset", "again"}
    assert set(names.PRIVATE_NAMES) == of_request
    assert set(names.LOOK_NAMES) == set(FirstLook.__annotations__)
    assert set(names.RENEWED) > set(RENEWED)
    assert set(names.PLAN_NAMES) == set(get_type_hints(PlanChoices)) - {"by", "names"} | {"method"}
    assert names.METHODS == METHODS
    assert (NEIGHBORS, RULES, tuple(DIALECTS)) == (names.NEIGHBORS, names.RULES, names.DIALECTS)


def test_every_option_has_its_row_and_is_in_the_help_of_its_command(confide_run):
    assert {parameter.name for _, command in commands() for parameter in command.params} == {
        "verbose",
        *OPTIONS,
        "version",
    }
    for path, command in commands():
        text = confide_run(*path, "--help").out
        options = {name for parameter in command.params for name in parameter.opts if name.startswith("-")}
        assert options <= set(text.replace(",", " ").split())
        assert max(map(len, text.splitlines())) <= 80


@pytest.mark.slow
def test_help_of_every_command_imports_nothing_that_computes():
    code = (
        "import sys; from confide.cli import main\n"
        "for line in sys.argv[1:]: main([*line.split(), '--help'])\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    lines = [" ".join(path) for path, _ in commands()]
    ran = subprocess.run([sys.executable, "-c", code, *lines], capture_output=True, text=True, check=True)
    loaded = {name for name in ran.stderr.split() if name.startswith("confide.")}
    assert {name for name in loaded if not name.startswith("confide.cli")} == {"confide.errors"}
    assert not {"numpy", "pyarrow", "duckdb", "msgspec"} & set(ran.stderr.split())
