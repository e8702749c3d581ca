"""Names on the command line: options and `--set`, errors that name what was typed, and files named by their kind."""

import numpy as np
import pytest

import confide
from confide.cli.exit_codes import DONE, REFUSED, USAGE
from tests.files import class_table, write

COLUMNS = ("--probabilities", "p_*", "--label", "name")
ASKED = (*COLUMNS, "--alpha", 0.1, "--epsilon", 1)
SET = "--set"


@pytest.fixture
def records(folder):
    confide.calibrate(np.linspace(0, 1, 900), 0.1, 1.0, score="lac", classes=["cat", "dog", "emu"]).save("cal.json")
    return write(folder / "records.parquet", class_table(600, lists=False))


@pytest.mark.parametrize(("option", "name"), [("--delta", "delta"), ("--person", "people.person")])
def test_an_option_that_is_an_argument_is_stated_by_set(confide_run, records, option, name):
    ran = confide_run("calibrate", records, *ASKED, option, 0.1, "--out", "new.json")
    assert ran.error == f"No such option: {option}; state it as --set {name}=VALUE; see `confide calibrate --help`"
    assert ran.code == USAGE
    assert "--label" in confide_run("calibrate", records, "--lable", "name").error


FIRST = ("--state", "watch.json", "--look", "1", "--epsilon", 1, "--batch", 500)


@pytest.mark.parametrize(
    "words",
    [
        ("watch", "records.parquet", *COLUMNS, *FIRST),
        ("recalibrate", "records.parquet", *COLUMNS, "--out", "new.json"),
        ("evaluate", "records.parquet", *COLUMNS),
        ("predict", "records.parquet", "--probabilities", "p_*", "--out", "sets.csv"),
    ],
    ids=lambda words: words[0],
)
def test_commands_on_a_table_take_the_release_by_one_option(confide_run, records, words):
    assert confide_run(*words).refused == (USAGE, "--calibration")
    assert confide_run(*words, "--calibration", "cal.json").code == DONE


def test_files_are_named_by_their_kind(confide_run, records):
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
    for name in ("page.html", "budget.db", "export.json", "records.parquet"):
        assert confide_run("show", name).refused == (REFUSED, "path")
