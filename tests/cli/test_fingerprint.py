"""The fingerprint of a model on the command line: stated by calibrate and recalibrate, compared by all others."""

import numpy as np
import pytest

from confide.cli.exit_codes import REFUSED
from tests.files import write

RNG = np.random.default_rng(0)
MODEL, RETRAINED, P = (RNG.dirichlet([2, 1], n) for n in (60, 60, 2000))
COLUMNS = ("--probabilities", "p_*", "--label", "label")
CALIBRATE = ("calibrate", "records.csv", *COLUMNS, "--alpha", 0.1, "--epsilon", 1, "--out")


def columns(p):
    return {"p_no": p[:, 0], "p_yes": p[:, 1]}


@pytest.fixture
def run(confide_run, folder):
    """Run a command in a folder with a table of records, a release, and the outputs of two models."""
    write(folder / "records.csv", columns(P) | {"label": np.where(P[:, 1] > RNG.random(2000), "yes", "no")})
    write(folder / "probe.csv", columns(MODEL))
    write(folder / "probe.parquet", columns(MODEL))
    write(folder / "retrained.csv", columns(RETRAINED))
    done = confide_run(*CALIBRATE, "cal.json", "--set", "fingerprint=probe.csv")
    assert done.code == 0, done.err
    assert "model: outputs rounded to 3 decimals, SHA-256" in done.out
    assert done.err.count("warning") == 0
    return confide_run


APPLIED = ("records.csv", "--calibration", "cal.json", "--probabilities", "p_*")
COMMANDS = {
    "predict": ("predict", *APPLIED, "--out", "sets.csv"),
    "evaluate": ("evaluate", *APPLIED, "--label", "label"),
    "evaluate privately": ("evaluate", *APPLIED, "--label", "label", "--epsilon", 1),
    "watch": ("watch", *APPLIED, "--label", "label", "--state", "w.json", "--look", 1, "--epsilon", 1, "--batch", 1000),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_compares(run, folder, name):
    """Another model is rejected before anything is read, charged or written; without the option there is a reminder."""
    before = sorted(folder.iterdir())
    for other in ("records.csv", "cal.json", "missing.csv", "retrained.csv"):
        ran = run(*COMMANDS[name], "--set", f"fingerprint={other}")
        assert ran.code == REFUSED
        assert sorted(folder.iterdir()) == before
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


def test_a_renewal_with_the_file_of_another_model(run, folder):
    (folder / "model.onnx").write_bytes(b"model")
    renewed = ("recalibrate", "records.csv", "--calibration", "cal.json", *COLUMNS, "--out", "new.json")
    assert run(*renewed, "--set", "fingerprint=model.onnx").code == 0
    used = ("evaluate", "records.csv", "--calibration", "new.json", *COLUMNS, "--set")
    assert run(*used, "fingerprint=model.onnx").code == 0
    assert run(*used, "fingerprint=probe.csv").refused == (REFUSED, "fingerprint")
    (folder / "model.onnx").write_bytes(b"retrained")
    assert run(*used, "fingerprint=model.onnx").refused == (REFUSED, "fingerprint")


def test_private_records_and_other_tables_are_rejected(run, folder):
    write(folder / "text.csv", columns(MODEL) | {"label": ["no"] * 60})
    write(folder / "gaps.csv", {"p": [0.5, None, *range(10)]})
    for place, name in (
        ("records.csv", "fingerprint"),
        (folder / "records.csv", "fingerprint"),
        ("text.csv", "column"),
        ("gaps.csv", "column"),
    ):
        assert run(*CALIBRATE, "new.json", "--set", f"fingerprint={place}").refused == (REFUSED, name)
    assert not (folder / "new.json").exists()
