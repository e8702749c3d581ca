"""Score, classes and public metadata of a calibration on the command line."""

import numpy as np
import pytest

import confide
from tests.files import NAMES, classified, write

P, Y = classified(3000, dtype=np.float64)
COLUMNS = {f"p_{name}": P[:, k] for k, name in enumerate(NAMES)} | {"code": Y, "name": np.array(NAMES)[Y]}
MADE = ("--alpha", 0.1, "--epsilon", 1, "--out", "cal.json")
SAID = ("--about", "model=resnet 50", "--about", "date=2026-11-21", "--about", "responsible=A = B")


@pytest.fixture
def records(folder):
    return write(folder / "records.parquet", COLUMNS)


def test_classes_and_words_are_kept_and_shown(confide_run, records, folder):
    done = confide_run("calibrate", records, "--probabilities", "p_*", "--label", "name", *MADE, *SAID)
    assert done.code == 0, done.err
    released = confide.Calibration.load("cal.json")
    assert released.classes == NAMES
    assert released.about == {"model": "resnet 50", "responsible": "A = B", "date": "2026-11-21"}
    shown = confide_run("show", "cal.json").out
    for line in ("classes", "3: cat, dog, emu", "resnet 50", "A = B", "2026-11-21"):
        assert line in shown
    assert confide_run("show", "cal.json", "--json").json["calibration"]["about"]["model"] == "resnet 50"
    html = confide.report(released).html
    assert [word for word in SAID[1::2] if word.partition("=")[2] not in html] == []


@pytest.mark.parametrize(
    ("about", "says"),
    [
        (["model"], "--about must be KEY=TEXT, such as model=NAME; got 'model'"),
        (["model=a", "model=b"], "--about must name every key once"),
        (
            ["colour=red"],
            "must have the keys model, version, outputs, data, purpose, responsible, contact, date; got 'colour'",
        ),
        (["model="], "must be 1 to 500 printable characters"),
    ],
)
def test_invalid_metadata(confide_run, records, about, says):
    options = [part for text in about for part in ("--about", text)]
    done = confide_run("calibrate", records, "--probabilities", "p_*", "--label", "name", *MADE, *options)
    assert done.code != 0
    assert says in done.err


def test_integer_labels_need_label_positions(confide_run, records, folder):
    asked = ("calibrate", records, "--probabilities", "p_*", "--label", "code", *MADE)
    said = confide_run(*asked).error
    assert "column: 'code' holds integers, and the classes are named cat, dog, emu." in said
    assert said.endswith("counted from 0, set --label-positions")
    assert not (folder / "cal.json").exists()
    assert confide_run(*asked, "--label-positions").code == 0
    done = confide_run("evaluate", records, "--calibration", "cal.json", *asked[2:6], "--label-positions", "--json")
    assert done.json["coverage"]["value"] > 0.85


def test_other_classes_are_refused(confide_run, records, folder):
    confide_run("calibrate", records, "--probabilities", "p_*", "--label", "name", *MADE)
    two = write(folder / "two.parquet", {"p_cat": [0.5], "p_dog": [0.5]})
    said = confide_run("predict", two, "--calibration", "cal.json", "--probabilities", "p_*", "--out", "s.csv").error
    assert "1 missing (the first: 'emu')" in said
    assert not (folder / "s.csv").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "columns", [("--probabilities", "p_*", "--label", "name"), ("--prediction", "p_cat", "--target", "p_dog")]
)
def test_a_release_without_a_name_is_refused(confide_run, records, columns):
    assert confide_run("calibrate", records, "--score-column", "p_cat", *MADE).code == 0
    asked = ("--calibration", "cal.json", *columns[:2])
    for command in (("predict", records, *asked, "--out", "s.csv"), ("evaluate", records, *asked, *columns[2:])):
        said = confide_run(*command).error
        assert "does not name its score" in said
        assert "Calibrate with --score NAME" in said
    assert confide_run("evaluate", records, "--calibration", "cal.json", "--score-column", "p_cat").code == 0
