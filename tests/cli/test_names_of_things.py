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
    ],
    ids=lambda words: words[0],
)
def test_every_command_takes_the_release_by_one_option(confide_run, records, words):
    missing = confide_run(*words)
    assert missing.refused == (USAGE, "--calibration")
    ran = confide_run(*words, "--calibration", "cal.json")
    assert ran.code == DONE, ran.err


def test_an_evaluation_is_shown(confide_run, records):
    assert confide_run("evaluate", records, "--calibration", "cal.json", *COLUMNS, "--out", "found.json").code == DONE
    shown = confide_run("show", "found.json")
    assert shown.code == DONE, shown.err
    for words in ("coverage", "not private", confide.load("cal.json").checksum):
        assert words in shown.out
    document = json.loads(Path("found.json").read_text(encoding="utf-8"))
    shown = confide_run("show", "found.json", "--json").json["evaluation"]
    assert shown["found"]["release"]["coverage"]["value"] == confide.load("found.json").coverage.value
    assert {name: shown[name] for name in document} == document
    assert confide_run("show", "found.json", "--records", 2).refused == (REFUSED, "--records")


def test_other_files_are_named_by_their_kind(confide_run, records):
    assert confide_run("evaluate", records, "--calibration", "cal.json", *COLUMNS, "--out", "found.json").code == DONE
    confide.report(confide.load("cal.json")).save("page.html")
    ledger = confide.Ledger("budget.db")
    ledger.set_limit("patients", 1.0)
    assert confide_run("ledger", "export", "budget.db", "--out", "export.json").code == DONE
    predict = ("predict", records, "--probabilities", "p_*", "--out", "sets.csv", "--calibration")
    assert confide_run(*predict, "found.json").refused == (REFUSED, "--calibration")
    for name in ("page.html", "budget.db", "export.json", "records.parquet"):
        ran = confide_run("show", name)
        assert ran.refused == (REFUSED, "path")
    with refused(confide.FormatError, "file"):
        confide.Evaluation.load("cal.json")


def test_a_privacy_budget_is_required(confide_run, records):
    asked = ("calibrate", records, *COLUMNS, "--alpha", 0.1, "--out", "new.json")
    assert confide_run(*asked).refused == (REFUSED, "--epsilon")
    assert confide_run(*asked, "--set", "people.person=id", "--set", "people.sample=x").refused == (
        REFUSED,
        "people.most",
    )
