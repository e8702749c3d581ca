"""The fingerprint of a model on the command line: stated by calibrate and recalibrate, compared by all others."""

from pathlib import Path

import numpy as np
import pytest

import confide
from confide.cli.exit_codes import REFUSED
from tests.files import write

RNG = np.random.default_rng(0)
MODEL, RETRAINED = RNG.dirichlet([2, 1], 60), RNG.dirichlet([2, 1], 60)
COLUMNS, LABEL = ("--probabilities", "p_*"), ("--label", "label")
WATCHED = ("--state", "watch.json", "--look", "1", "--epsilon", 1, "--batch", 1000)


def columns(p):
    return {"p_no": p[:, 0], "p_yes": p[:, 1]}


@pytest.fixture
def run(confide_run, folder):
    """Run a command in a folder with a table of records, a release, and the outputs of two models."""
    p = RNG.dirichlet([2, 1], 2000)
    y = np.where(p[:, 1] > RNG.random(2000), "yes", "no")
    write(folder / "records.csv", columns(p) | {"label": y})
    write(folder / "probe.csv", columns(MODEL))
    write(folder / "probe.parquet", columns(MODEL))
    write(folder / "retrained.csv", columns(RETRAINED))
    stated = (*COLUMNS, *LABEL, "--alpha", 0.1, "--epsilon", 1, "--set", "fingerprint=probe.csv", "--out", "cal.json")
    done = confide_run("calibrate", "records.csv", *stated)
    assert done.code == 0, done.err
    assert "model: outputs rounded to 3 decimals, SHA-256" in done.out
    assert done.err.count("warning") == 0
    return confide_run


COMMANDS = {
    "predict": ("predict", "records.csv", "--calibration", "cal.json", *COLUMNS, "--out", "sets.csv"),
    "evaluate": ("evaluate", "records.csv", "--calibration", "cal.json", *COLUMNS, *LABEL),
    "evaluate privately": ("evaluate", "records.csv", "--calibration", "cal.json", *COLUMNS, *LABEL, "--epsilon", 1),
    "watch": ("watch", "records.csv", "--calibration", "cal.json", *COLUMNS, *LABEL, *WATCHED),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_compares(run, folder, name):
    """Another model is rejected before anything is read, charged or written; without the option there is a reminder."""
    before = sorted(folder.iterdir())
    for other in ("retrained.csv", "records.csv", "cal.json", "missing.csv"):
        assert run(*COMMANDS[name], "--set", f"fingerprint={other}").code == REFUSED
        assert sorted(folder.iterdir()) == before
    ran = run(*COMMANDS[name], "--set", "fingerprint=retrained.csv")
    assert ran.refused == (REFUSED, "fingerprint")
    assert "Recalibrate for this model" in ran.error
    same = run(*COMMANDS[name], "--set", "fingerprint=probe.parquet")
    assert same.code == 0, same.err
    assert "compared" not in same.err
    for made in set(folder.iterdir()) - set(before):
        made.unlink()
    without = run(*COMMANDS[name])
    assert without.code == 0
    assert without.err.count("the model was not compared") == 1


@pytest.mark.slow
def test_renewals(run):
    renewed = ("recalibrate", "records.csv", "--calibration", "cal.json", *COLUMNS, *LABEL)
    assert run(*renewed, "--out", "kept.json").code == 0
    assert run(*renewed, "--set", "fingerprint=retrained.csv", "--out", "other.json").code == 0
    model, retrained = (confide.ModelFingerprint.of(outputs) for outputs in (MODEL, RETRAINED))
    assert confide.load("kept.json").for_model(model)
    assert confide.load("other.json").for_model(retrained)
    assert "fingerprint" in run("show", "other.json").out
    assert run("report", "other.json", "--out", "page.html").code == 0
    assert "fingerprint of the model" in Path("page.html").read_text(encoding="utf-8")


def test_the_file_of_a_model(run, folder):
    (folder / "model.onnx").write_bytes(b"model")
    stated = ("calibrate", "records.csv", *COLUMNS, *LABEL, "--alpha", 0.1, "--epsilon", 1)
    assert run(*stated, "--set", "fingerprint=model.onnx", "--out", "file.json").code == 0
    used = ("evaluate", "records.csv", "--calibration", "file.json", *COLUMNS, *LABEL, "--set")
    assert run(*used, "fingerprint=model.onnx").code == 0
    assert run(*used, "fingerprint=probe.csv").refused == (REFUSED, "fingerprint")
    (folder / "model.onnx").write_bytes(b"retrained")
    assert run(*used, "fingerprint=model.onnx").refused == (REFUSED, "fingerprint")


def test_private_records_and_other_tables_are_rejected(run, folder):
    stated = ("calibrate", "records.csv", *COLUMNS, *LABEL, "--alpha", 0.1, "--epsilon", 1, "--out", "new.json")
    assert run(*stated, "--set", "fingerprint=records.csv").refused == (REFUSED, "fingerprint")
    assert run(*stated, "--set", f"fingerprint={folder / 'records.csv'}").refused == (REFUSED, "fingerprint")
    write(folder / "text.csv", columns(MODEL) | {"label": ["no"] * 60})
    write(folder / "gaps.csv", {"p": [0.5, None, *range(10)]})
    assert (
        run(*stated, "--set", "fingerprint=text.csv").error
        == "column: 'label' must hold numbers; got 60 missing or other values"
    )
    assert run(*stated, "--set", "fingerprint=gaps.csv").refused == (REFUSED, "column")
    assert not (folder / "new.json").exists()
