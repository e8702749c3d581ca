"""The table of docs/migrating.md "From confide 0.3": every command in its new form runs."""

import csv
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import confide
from confide.cli.exit_codes import DONE
from confide.federated import SiloKeys
from tests.files import write

TABLE = Path(__file__).parents[2] / "docs" / "tables" / "options.csv"
with TABLE.open(encoding="utf-8", newline="") as file:
    NEW = [words for _, row in csv.reader(file) for words in re.findall(r"`(\w[^`]*)`", row)]
COMMANDS = [words for words in NEW if re.search(r" (--|cal)", words) and not re.search(r"\bFILE\b", words)]

CLASSES, VALUES = ("--probabilities", "p_*", "--label", "y"), ("--prediction", "f", "--target", "t")
ASKED, NEW_FILE = ("--alpha", "0.2", "--epsilon", "2"), ("--out", "new.json", "--force")
OF = ("t.csv", "--calibration", "cal.json")
REST = {
    "calibrate": ("t.csv", *CLASSES, *ASKED, *NEW_FILE),
    "recalibrate": (*OF, *CLASSES, *NEW_FILE),
    "predict": (*OF, *CLASSES[:2], "--out", "sets.csv", "--force"),
    "evaluate": (*OF, *CLASSES),
    "watch": (*OF, *CLASSES, "--state", "w.json", "--look", "1", "--epsilon", "1"),
    "sql": ("--dialect", "duckdb", "--table", "t"),
    "federated": ("--silo", "north.json", "--keys", "north.key", "--score", "absolute_residual", *ASKED, "--compare"),
    "show": (),
}
"""What each command needs besides the words of the table."""

INSTEAD = {
    "truth=t_*": ("t.csv", *CLASSES[:2], *ASKED, *NEW_FILE),
    "choose=lac,aps": ("t.csv", *CLASSES, *ASKED, *NEW_FILE),
    "noise=": ("--score", "lac", "--n", "500", "--alpha", "0.2", *NEW_FILE),
    "width_bins": ("t.csv", "--calibration", "widths.json", *VALUES),
    "unlabelled": (*OF, *CLASSES[:2], "--state", "w.json", "--look", "1", "--epsilon", "1"),
    "decimal=,": ("comma.csv", "--calibration", "widths.json", *VALUES),
    "candidates=unit:5": ("t.csv", "--calibration", "losses.json", "--set", "losses=l_*"),
    "rho=": (*OF, *CLASSES, *NEW_FILE),
    "--help": (),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A table, releases of each kind, and the other files that the table names."""
    folder, rng = tmp_path_factory.mktemp("migrating"), np.random.default_rng(0)
    p, f = rng.dirichlet([2, 2], 500), rng.normal(size=500)
    losses = np.clip(rng.random((500, 1)) - np.linspace(0.2, 0.8, 4), 0, 1)
    columns = {"p_a": p[:, 0], "p_b": p[:, 1], "y": np.where(p[:, 1] > rng.random(500), "b", "a"), "f": f, "t": f + 1}
    columns |= {"t_a": (p[:, 0] > 0.5).astype(int), "t_b": (p[:, 1] > 0.5).astype(int), "w": np.ones(500)}
    columns |= {"person": np.arange(500) // 4, "visit": np.arange(500) % 4}
    write(folder / "t.csv", columns | {f"l_{k}": losses[:, k] for k in range(4)})
    write(folder / "probe.csv", {"p_a": p[:20, 0], "p_b": p[:20, 1]})
    model = confide.ModelFingerprint.of(p[:20])
    scores, asked = rng.random(900), {"score": "lac", "classes": ["a", "b"]}
    released = confide.calibrate(scores, 0.1, 2.0, fingerprint=model, **asked)
    released.save(folder / "cal.json")
    confide.calibrate(scores, 0.1, 2.0, score="absolute_residual", unit=1.0).save(folder / "widths.json")
    few = confide.Candidates.unit(5)
    confide.calibrate_losses(losses, few, 0.3, 2.0, loss="shortfall", neighbors="replace_one").save(
        folder / "losses.json"
    )
    confide.evaluate(released, probabilities=p, labels=columns["y"], classes=["a", "b"], epsilon=1.0).save(
        folder / "ev.json"
    )
    (folder / "comma.csv").write_text("f;t\n" + "0,5;0,75\n1,25;1\n" * 20)
    (folder / "counts.csv").write_text("bin,count\n0,100\n1,100\n2,300\n")
    (folder / "request.toml").write_text('column = "s"\nscore = "lac"\nalpha = 0.1\nepsilon = 1.0\n')
    silo = SiloKeys.generate("north")
    silo.save(folder / "north.key")
    (folder / "north.json").write_text(silo.public(size=500).to_json())
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("words", COMMANDS)
def test_every_command_in_its_new_form(confide_run, files, monkeypatch, words):
    monkeypatch.chdir(files)
    (files / "w.json").unlink(missing_ok=True)
    first, *typed = shlex.split(words)
    rest = next((rest for part, rest in INSTEAD.items() if part in words), REST[first])
    ran = confide_run(first, *typed, *rest)
    assert ran.code == DONE, ran.err


def test_the_table_is_read_as_a_whole():
    assert len(COMMANDS) >= 22
    assert {words.split()[0] for words in COMMANDS} == {*REST}
