"""Every setting of a command that is no option of its own runs with `--set`."""

import shlex

import numpy as np
import pytest

import confide
from confide.cli.exit_codes import DONE
from confide.federated import SiloKeys
from tests.files import write

COMMANDS = [
    "calibrate --set delta=0.05",
    "calibrate --set by_class=true",
    "evaluate --set skip_incomplete=true",
    "evaluate --set decimal=,",
    "calibrate --set 'truth=t_*'",
    "predict --set fingerprint=probe.csv",
    "calibrate --set people.person=person --set people.most=3 --set people.order=visit --set people.sample=x",
    "calibrate --set 'class_weights={a = 0.5, b = 2}'",
    "calibrate --set 'class_weights.source={a = 0.4, b = 0.6}' --set 'class_weights.target={a = 0.5, b = 0.5}'",
    "calibrate --set weights=w --set weight_bound=2",
    "recalibrate --set about.model=resnet",
    "calibrate --set choose=lac,aps --set choice_share=1/5 --set largest_size=2",
    "calibrate --noisy-counts counts.csv --set 'noise=discrete_laplace(scale=2)' --set candidates=unit:3",
    "sql --request request.toml",
    "evaluate --epsilon 1 --set confidence=0.9 --set parts=[]",
    "evaluate --epsilon 1 --set width_bins=1,2",
    "evaluate --set candidates=unit:5",
    "recalibrate --set rho=0.1",
    "watch --set tolerance=0.05 --set looks=12",
    "watch --set correct=auto --set delay=1",
    "watch --unlabelled --set reference=ev.json",
    "federated plan --set unit=25",
]

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
}
"""What each command needs besides the words of the list."""

INSTEAD = {
    "truth=t_*": ("t.csv", *CLASSES[:2], *ASKED, *NEW_FILE),
    "choose=lac,aps": ("t.csv", *CLASSES, *ASKED, *NEW_FILE),
    "noise=": ("--score", "lac", "--n", "500", "--alpha", "0.2", *NEW_FILE),
    "width_bins": ("t.csv", "--calibration", "widths.json", *VALUES),
    "unlabelled": (*OF, *CLASSES[:2], "--state", "w.json", "--look", "1", "--epsilon", "1"),
    "decimal=,": ("comma.csv", "--calibration", "widths.json", *VALUES),
    "candidates=unit:5": ("t.csv", "--calibration", "losses.json", "--set", "losses=l_*"),
    "rho=": (*OF, *CLASSES, *NEW_FILE),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A table, releases of each kind, and the other files that the commands name."""
    folder, rng = tmp_path_factory.mktemp("settings"), np.random.default_rng(0)
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
def test_every_setting_runs(confide_run, files, monkeypatch, words):
    monkeypatch.chdir(files)
    (files / "w.json").unlink(missing_ok=True)
    first, *typed = shlex.split(words)
    rest = next((rest for part, rest in INSTEAD.items() if part in words), REST[first])
    ran = confide_run(first, *typed, *rest)
    assert ran.code == DONE, ran.err
