"""Every command takes a release by --calibration; errors name the kind of a file and similar options."""

import json
from pathlib import Path

import numpy as np
import pytest

import confide
from confide.cli.exit_codes import DONE, REFUSED, USAGE
from tests.files import NAMES, classified, write
from tests.refused import refused

P, Y = classified(3000, dtype=np.float64)
COLUMNS = ("--probabilities", "p_*", "--label", "name")


@pytest.fixture
def records(folder):
    columns = {f"p_{name}": P[:, k] for k, name in enumerate(NAMES)} | {"name": np.array(NAMES)[Y]}
    released = confide.calibrate(confide.lac_score(P, Y), 0.1, 1.0, score="lac", classes=list(NAMES))
    released.save("cal.json")
    return write(folder / "records.parquet", columns)


FIRST = ("--state", "watch.json", "--look", "1", "--epsilon", 1, "--batch", 500)


@pytest.mark.parametrize(
    "words",
    [
        ("watch", "records.parquet", *COLUMNS, *FIRST),
        ("recalibrate", "records.parquet", *COLUMNS, "--out", "new.json"),
        ("evaluate", "records.parquet", *COLUMNS),
        ("predict", "records.parquet", "--probabilities", "p_*", "--out", "sets.csv"),
        pytest.param(("report", "--out", "page.html"), marks=pytest.mark.slow),
        ("card", "--out", "README.md"),
        ("show",),
        ("verify",),
    ],
    ids=lambda words: words[0],
)
def test_every_command_takes_the_release_by_one_option(confide_run, records, words):
    missing = confide_run(*words)
    assert missing.refused == (USAGE, "--calibration")
    ran = confide_run(*words, "--calibration", "cal.json")
    assert ran.code == DONE, ran.err


@pytest.mark.parametrize(
    "words",
    [
        ("watch", "cal.json", "records.parquet", *COLUMNS, *FIRST),
        ("recalibrate", "cal.json", "records.parquet", *COLUMNS, "--out", "new.json"),
        ("report", "cal.json", "--out", "page.html"),
        ("card", "cal.json", "--out", "README.md"),
        ("show", "cal.json"),
        ("verify", "cal.json"),
    ],
    ids=lambda words: words[0],
)
def test_the_release_may_come_first_and_is_named_once(confide_run, records, words):
    twice = confide_run(*words, "--calibration", "cal.json")
    assert twice.refused == (USAGE, "--calibration")
    assert confide_run(*words).code == DONE
    usage = confide_run(words[0], "--help").out.splitlines()[0]
    assert "SECOND" not in usage


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("watch t.csv --again-and-again", "--again-and-again"),
        ("sql --calibration r.json", "--calibration"),
        ("watch t.csv --probs p", "--probs"),
        ("evaluate t.csv --lables y", "--lables"),
        ("recalibrate t.csv --alpha 0.1", "--alpha"),
        ("recalibrate t.csv --score lac", "--score"),
    ],
)
def test_only_similar_options_are_suggested(confide_run, words, says):
    ran = confide_run(*words.split())
    assert ran.refused == (USAGE, says)


def test_an_evaluation_is_shown(confide_run, records):
    assert confide_run("evaluate", records, "--calibration", "cal.json", *COLUMNS, "--out", "found.json").code == DONE
    shown = confide_run("show", "found.json")
    assert shown.code == DONE, shown.err
    for words in ("coverage", "not private", confide.load("cal.json").checksum):
        assert words in shown.out
    document = json.loads(Path("found.json").read_text(encoding="utf-8"))
    assert confide_run("show", "found.json", "--json").json == {"evaluation": document}
    assert confide_run("show", "found.json", "--records", 2).refused == (REFUSED, "--records")


def test_other_files_are_named_by_their_kind(confide_run, records):
    assert confide_run("evaluate", records, "--calibration", "cal.json", *COLUMNS, "--out", "found.json").code == DONE
    counting = ("--dialect", "duckdb", "--table", "t", "--classes", ",".join(NAMES), *COLUMNS, "--alpha", 0.1)
    assert confide_run("sql", *counting, "--epsilon", 1, "--plan", "plan.json").code == DONE
    confide.report(confide.load("cal.json")).save("page.html")
    ledger = confide.Ledger("budget.db")
    ledger.set_limit("patients", 1.0)
    assert confide_run("ledger", "export", "budget.db", "--out", "export.json").code == DONE
    predict = ("predict", records, "--probabilities", "p_*", "--out", "sets.csv", "--calibration")
    assert confide_run(*predict, "found.json").refused == (REFUSED, "file")
    assert confide_run(*predict, "plan.json").refused == (REFUSED, "file")
    for name in ("page.html", "budget.db", "export.json", "records.parquet"):
        ran = confide_run("show", name)
        assert ran.refused == (REFUSED, "path")
    with refused(confide.FormatError, "file"):
        confide.load_evaluation("cal.json")


@pytest.mark.slow
def test_one_function_reads_every_release(folder):
    scores = np.random.default_rng(0).random(3000)
    levels = confide.calibrate_levels(scores, [0.2, 0.1], 1.0)
    levels.save("levels.json")
    assert confide.load("levels.json") == levels
    with refused(confide.FormatError, "file"):
        confide.Calibration.load("levels.json")


@pytest.mark.parametrize("alpha", ["0,1", "0,05", "0.2, 1", "0,1,0,2"])
@pytest.mark.parametrize("command", ["calibrate", "sql", "plan"])
def test_a_decimal_comma_is_not_several_levels(confide_run, command, alpha):
    source = {"calibrate": ("t.csv", "--out", "x.json"), "sql": ("--dialect", "duckdb", "--table", "t"), "plan": ()}
    columns = () if command == "plan" else (*COLUMNS, "--classes", ",".join(NAMES))
    ran = confide_run(command, *source[command], *columns, "--alpha", alpha, "--epsilon", 1)
    assert ran.refused == (USAGE, "--alpha")


def test_a_privacy_budget_is_required(confide_run, records):
    asked = ("calibrate", records, *COLUMNS, "--alpha", 0.1, "--out", "new.json")
    assert confide_run(*asked).refused == (REFUSED, "--epsilon")
    assert confide_run(*asked, "--person", "id", "--sample", "x").refused == (REFUSED, "--sample")


@pytest.mark.parametrize(
    ("name", "content", "remedy"),
    [
        ("t.xlsx", b"PK", "Excel"),
        ("t.XLS", b"PK", "Excel"),
        ("t.txt", b"a,b\n1,2\n", ".csv"),
        ("t.foo", b"a,b\n1,2\n", "'.foo'"),
        ("t.csv", "s,name\n0.5,Müller\n".encode("latin-1"), "UTF-8"),
    ],
)
def test_errors_of_unreadable_files_have_a_remedy(confide_run, folder, name, content, remedy):
    (folder / name).write_bytes(content)
    ran = confide_run("calibrate", name, "--score-column", "s", "--alpha", 0.1, "--epsilon", 1, "--out", "new.json")
    assert ran.refused == (REFUSED, "path")
    assert remedy in ran.error
