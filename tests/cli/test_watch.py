"""`confide watch`: batch by batch from files, with an exit code for schedulers, one JSON document, and a page."""

from pathlib import Path

import numpy as np
import pytest

import confide
from confide.cli.exit_codes import ALARM, CLAIM_FAILED, DONE, REFUSED, USAGE
from confide.watching import Watch
from tests.calibrations import calibration_at
from tests.files import class_table, write

COLUMNS = ("--score-column", "s")
FIRST = ("--epsilon", 1, "--batch", 500)


@pytest.fixture
def look(confide_run, folder):
    calibration_at(float(confide.Candidates.unit(10).values[4]), score=None).save("cal.json")

    def run(name, covered, missed, *options, columns=COLUMNS):
        path = write(folder / "batch.csv", {"s": np.repeat([0.1, 0.9], [covered, missed])})
        return confide_run(
            "watch", path, "--calibration", "cal.json", "--state", "watch.json", "--look", name, *columns, *options
        )

    return run


@pytest.mark.long
def test_a_watch_from_the_first_look_to_an_alarm_and_a_page(look, confide_run, folder):
    first = look("Monday", 460, 40, *FIRST)
    assert first.code == DONE
    assert "its first look fixes these settings" in first.out
    assert "52 looks of 500 records planned" in first.out
    assert "no alarm" in first.out
    for day in range(8):
        ran = look(f"<b>day {day}</b>", 400, 100, "--json", "--out", "course.html", "--force")
    assert (ran.code, ran.err) == (ALARM, "")
    assert ran.json["alarm"] is True
    assert ran.json["alarm_since"].startswith("<b>day")
    assert ran.json["evidence"] > ran.json["alarm_at"] == 20
    assert ran.json["looks"] == 9
    assert ran.json["settings"]["least_coverage"] == {"all": pytest.approx(0.88)}
    assert ran.json["counts"] == list(Watch.load("watch.json").looks[-1].counts)
    page = (folder / "course.html").read_text(encoding="utf-8")
    assert "ALARM since look" in page
    assert "<b>day" not in page
    assert confide_run("report", "watch.json", "--out", "again.html").code == DONE
    assert (folder / "again.html").read_text(encoding="utf-8") == page
    assert confide_run("show", "watch.json", "--json").json["alarm"] == ran.json["alarm_since"]
    assert confide_run("verify", "watch.json").code == DONE
    assert confide_run("predict", "batch.csv", "--calibration", "watch.json", "--out", "x.csv").code != DONE
    good = look("good", 500, 0)
    assert good.code == ALARM
    assert f"ALARM since look {ran.json['alarm_since']!r}" in good.out


def test_refusals_are_one_line_and_change_nothing(look, folder):
    assert look("Monday", 460, 40).refused == (REFUSED, "--epsilon")
    assert look("Monday", 460, 40, *FIRST).code == DONE
    before = (folder / "watch.json").read_text()
    again = look("Monday", 460, 40)
    assert again.refused == (REFUSED, "--look")
    other = look("Tuesday", 460, 40, "--set", "tolerance=0.1")
    assert other.refused == (REFUSED, "tolerance")
    assert (folder / "watch.json").read_text() == before


@pytest.mark.long
def test_private_evaluation_is_reference_for_sizes(confide_run, folder):
    confide.calibrate(np.linspace(0, 0.8, 900), 0.1, 1.0, score="lac", classes=["cat", "dog", "emu"]).save("cal.json")
    path = write(folder / "batch.parquet", class_table(600, lists=False))
    columns = ("--probabilities", "p_*")
    words = ("evaluate", path, *columns, "--label", "name", "--calibration", "cal.json", "--epsilon", 1)
    assert confide_run(*words, "--out", "ev.json").code == DONE
    watch = ("watch", path, "--calibration", "cal.json", "--state", "sizes.json", *columns, "--unlabelled", *FIRST)
    first = confide_run(*watch, "--look", "1", "--set", "reference=ev.json")
    assert first.code == DONE
    assert "against those of a private evaluation" in first.out
    assert confide_run(*words, "--out", "other.json").code == DONE
    assert confide_run(*watch, "--look", "2", "--set", "reference=other.json").refused == (REFUSED, "reference")


def test_corrected_thresholds_are_written_and_applied(look, confide_run, folder):
    """`--in-force` is a file of its own kind: for predictions, and never taken for a guarantee."""
    first = look("1", 440, 60, *FIRST, "--set", "looks=400", "--set", "correct=auto", "--in-force", "now.json")
    assert first.code == DONE
    assert "in force now: threshold" in first.out
    assert "at worst" in first.out
    second = look("2", 440, 60, "--in-force", "now.json", "--json")
    assert second.json["corrected"]["coverage"] is None
    one = confide.CorrectedRelease.load("now.json")
    assert second.json["corrected"]["thresholds"] == {"all": one.threshold}
    assert one == confide.CorrectedRelease(confide.load("cal.json"), Watch.load("watch.json"))
    shown = confide_run("show", "now.json")
    assert "no promise for one record" in shown.out
    assert "coverage at least" not in shown.out
    checked = confide_run("verify", "now.json", "--coverage-at-least", 0.5)
    assert checked.code == CLAIM_FAILED
    assert "promised: none for one record" in checked.err
    for arguments in (
        ("recalibrate", "batch.csv", "--calibration", "now.json", "--epsilon", 1, "--out", "new.json", *COLUMNS),
        ("watch", "batch.csv", "--calibration", "now.json", "--state", "other.json", "--look", "1", *FIRST, *COLUMNS),
        ("show", "now.json", "cal.json"),
    ):
        assert confide_run(*arguments).code in (REFUSED, USAGE)
    page = confide_run("report", "now.json", "--out", "page.html")
    assert page.code == DONE
    text = Path("page.html").read_text(encoding="utf-8")
    assert "No single look and no person is promised anything" in text
    assert "missed minus alpha times all records" in text
    assert "The thresholds in force" in text
