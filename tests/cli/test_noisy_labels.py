"""Randomised labels on the command line, from the annotator's table to a page."""

import numpy as np
import pyarrow.csv
import pytest

import confide
from confide.cli.exit_codes import EXISTS, REFUSED
from tests.files import write

NAMES = ("cat", "dog", "owl")


@pytest.mark.slow
def test_from_labels_to_sets(folder, confide_run):
    rng = np.random.default_rng(0)
    n = 1500
    p = rng.dirichlet([3, 2, 1], n)
    y = (p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    columns = {f"p_{name}": column for name, column in zip(NAMES, p.T, strict=True)}
    write(folder / "records.csv", {"id": np.arange(n), **columns, "label": np.array(NAMES)[y]})
    asked = ("--label", "label", "--classes", "cat,dog,owl", "--epsilon", "3", "--out", "noisy.csv")
    done = confide_run("randomise-labels", "records.csv", *asked, "--ledger", "b.db", "--dataset", "annotators")
    assert done.code == 0, done.err
    assert "1500 labels" in done.out
    held = pyarrow.csv.read_csv(folder / "noisy.csv")
    assert held.column_names == ["id", "p_cat", "p_dog", "p_owl", "label"]
    assert held["id"].to_pylist() == list(range(n))
    changed = np.mean(np.array(held["label"].to_pylist()) != np.array(NAMES)[y])
    assert 0.02 < changed < 0.2  # 2/(e^3 + 2) = .0905 of them; beyond once in 10^20 runs
    assert confide_run("randomise-labels", "records.csv", *asked).refused == (EXISTS, "--out")
    assert "not protected" in confide_run("show", "noisy.csv.labels.json").out
    truth = ("--probabilities", "p_*", "--label", "label")
    options = ("--alpha", "0.2", "--label-epsilon", "noisy.csv.labels.json", "--out", "cal.json")
    made = confide_run("calibrate", "noisy.csv", *truth, *options)
    assert made.code == 0, made.err
    assert "3-differential privacy of each label, local" in made.out
    released = confide.Calibration.load(folder / "cal.json")
    noisy = np.searchsorted(NAMES, held["label"].to_pylist())
    assert released.threshold == confide.calibrate_noisy_labels(p, noisy, 0.2, 3.0).threshold
    assert released.classes == NAMES
    assert "not protected" in confide_run("show", "cal.json").out
    assert confide_run("show", "cal.json", "--json").json["losses"]["replace_label"] == 3.0
    assert "they hold" in confide_run("verify", "cal.json").out
    predicted = confide_run("predict", "records.csv", "--calibration", "cal.json", *truth[:2], "--out", "sets.csv")
    assert predicted.code == 0, predicted.err
    again = confide_run(
        "calibrate", "noisy.csv", *truth, *options[:2], "--label-epsilon", "3", "--out", "b.json", "--json"
    )
    assert again.json["calibration"]["threshold"] == released.threshold
    assert len(confide.Ledger(folder / "b.db").account("annotators").entries) == 1


def test_options_that_do_not_apply_raise_errors(folder, confide_run):
    write(folder / "r.csv", {"p_a": [0.5], "p_b": [0.5], "label": ["a"], "s": [0.5]})
    base = ("calibrate", "r.csv", "--alpha", "0.1", "--label-epsilon", "1", "--out", "cal.json")
    truth = ("--probabilities", "p_*", "--label", "label")
    refused = confide_run(*base, *truth, "--epsilon", "1").error
    assert refused.startswith("--epsilon must be left out with --label-epsilon: its cost was paid when the labels were")
    other = ("randomise-labels", "r.csv", "--label", "label", "--classes", "b,c", "--epsilon", "1", "--out", "n.csv")
    assert confide_run(*other).refused == (REFUSED, "table")
    assert not list(folder.glob("n.csv*"))
