"""Evaluations, looks and renewals can be interrupted, and can be repeated."""

import hashlib
import json
import os
import signal
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import confide
from confide.cli.exit_codes import DONE
from confide.core import Document, Release, entry_checksums
from confide.ledger import Ledger
from confide.watching import Watch
from tests.builders import slow
from tests.calibrations import calibration_at
from tests.files import write

PAID = ("--ledger", "budget.db", "--dataset", "patients")
SIGNALS = [
    pytest.param(signal.SIGINT, 130, id="ctrl-c"),
    pytest.param(signal.SIGTERM, 143, id="terminated", marks=pytest.mark.slow),
]
COLUMNS = ("--score-column", "s")
COMMANDS = {
    "evaluate": ("evaluate", "batch.csv", "--calibration", "cal.json", *COLUMNS, "--out", "out.json"),
    "privately": (
        "evaluate", "batch.csv", "--calibration", "cal.json", *COLUMNS, "--epsilon", 1, *PAID, "--out", "out.json"
    ),
    "watch": (
        "watch", "batch.csv", "--calibration", "cal.json", "--state", "out.json", "--look", "Monday", *COLUMNS,
        "--epsilon", 1, "--batch", 500, *PAID,
    ),
    "recalibrate": ("recalibrate", "batch.csv", "--calibration", "cal.json", *COLUMNS, "--out", "out.json", *PAID),
}  # fmt: skip
KEPT = {
    "privately": "confide.support.write_text",
    "watch": "confide.watching.take_look.write_text",
    "recalibrate": "pathlib.Path.write_text",
}


@pytest.fixture
def files(folder):
    calibration_at(float(confide.Candidates.unit(10).values[4]), score=None).save("cal.json")
    write(folder / "batch.csv", {"s": np.repeat([0.1, 0.9], [460, 40])})
    return lambda: {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix in (".json", ".csv")}


@contextmanager
def stopping(monkeypatch, place, number):
    """Replace a function by one that sends a signal to this process."""

    def stop(*arguments, **options):
        os.kill(os.getpid(), number)
        pytest.fail("the signal was not heard")

    with monkeypatch.context() as patch:
        patch.setattr(place, stop)
        yield


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), SIGNALS)
@pytest.mark.parametrize("name", ["evaluate", "privately", "watch", *slow(["recalibrate"])])
def test_interrupted_while_it_reads(confide_run, files, monkeypatch, name, number, code):
    """Nothing is written or charged, and the same command then succeeds."""
    before = files()
    with stopping(monkeypatch, "confide.cli.output.check_interruption", number):
        stopped = confide_run(*COMMANDS[name])
    assert stopped.code == code
    assert stopped.err.endswith("unfinished output was removed\n")
    assert stopped.err.count("\n") == 1
    assert files() == before
    assert not Path("budget.db").exists() or "patients" not in Ledger("budget.db").accounts()
    assert confide_run(*COMMANDS[name]).code == DONE
    assert files().keys() == {*before, "out.json"}
    if name != "evaluate":
        assert [entry.release is not None for entry in Ledger("budget.db").account("patients").entries] == [True]


@pytest.mark.slow(unless="privately-ctrl-c")
@pytest.mark.parametrize(("number", "code"), SIGNALS)
@pytest.mark.parametrize("name", KEPT)
def test_interrupted_after_the_charge(confide_run, files, monkeypatch, name, number, code):
    """The charge stands, and nothing was shown; the next run charges again and stores its release."""
    before = files()
    with stopping(monkeypatch, "confide.ledger.Ledger.attach_all", number):
        assert confide_run(*COMMANDS[name]).code == code
    assert files() == before
    (entry,) = Ledger("budget.db").account("patients").entries
    assert entry.release is None
    assert confide_run(*COMMANDS[name]).code == DONE
    assert [one.release is not None for one in Ledger("budget.db").account("patients").entries] == [False, True]
    assert "the run ended before" in confide_run("ledger", "show", "budget.db", "patients").out


@pytest.mark.parametrize(("number", "code"), SIGNALS)
@pytest.mark.parametrize("name", KEPT)
def test_interrupted_before_it_is_written(confide_run, files, monkeypatch, name, number, code):
    """The ledger stored the draw: the next run returns it without a charge."""
    before = files()
    with stopping(monkeypatch, KEPT[name], number):
        assert confide_run(*COMMANDS[name]).code == code
    assert files() == before
    (entry,) = Ledger("budget.db").account("patients").entries
    assert "nothing was charged" in confide_run(*COMMANDS[name]).out
    assert Ledger("budget.db").account("patients").entries == (entry,)
    if name == "watch":
        (look,) = Watch.load("out.json").looks
        assert list(look.counts) == json.loads(entry.release)["counts"]
    elif name == "recalibrate":
        assert {hashlib.sha256(entry.release.encode()).hexdigest()} == entry_checksums(Release.load("out.json"))
    else:
        assert Document.load("out.json") == Document.from_json(entry.release)
