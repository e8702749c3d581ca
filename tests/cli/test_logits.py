"""`--logits`: columns of logits on the command line."""

import numpy as np

import confide
from confide.cli.exit_codes import REFUSED
from tests.files import write

NAMES = ("ant", "bee", "cat")


def test_logits_are_what_their_softmax_is(tmp_path, confide_run, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    z = 2 * rng.standard_normal((400, 3))
    e = np.exp(z - z.max(axis=1, keepdims=True))
    p = e / e.sum(axis=1, keepdims=True)
    truth = (p.cumsum(axis=1) < rng.random(400)[:, None]).sum(axis=1)
    labels = np.array(NAMES)[truth]
    for name, columns in (("z", z), ("p", p)):
        held = {f"{name}_{of}": column for of, column in zip(NAMES, columns.T, strict=True)}
        write(tmp_path / f"{name}.csv", {**held, "label": labels})
    columns = ("--probabilities", "z_*", "--label", "label")
    options = ("--alpha", "0.2", "--set", "mechanism=none", "--neighbors", "replace_one", "--out", "cal.json")
    made = confide_run("calibrate", "z.csv", *columns, "--set", "logits=true", *options)
    assert made.code == 0, made.err
    released = confide.Release.load(tmp_path / "cal.json")
    as_softmax = confide_run("calibrate", "p.csv", "--probabilities", "p_*", *columns[2:], *options[:-1], "p.json")
    assert as_softmax.code == 0, as_softmax.err
    assert confide.Release.load(tmp_path / "p.json").threshold == released.threshold
    assert released.about["outputs"].startswith("logits")
    applied = ("--calibration", "cal.json")
    figures = [
        confide_run("evaluate", "z.csv", *applied, *columns, "--set", "logits=true", "--json"),
        confide_run("evaluate", "p.csv", *applied, "--probabilities", "p_*", "--label", "label", "--json"),
    ]
    assert figures[0].json["found"] == figures[1].json["found"]
    assert "warning" not in figures[0].err
    assert "'cal.json' was made from logits; softmax in double precision; 'p_*' is read as" in figures[1].err
    assert (
        confide_run("predict", "z.csv", *applied, *columns[:2], "--set", "logits=true", "--out", "sets.csv").code == 0
    )
    refused = confide_run(
        "predict", "p.csv", *applied, "--probabilities", "p_*", "--set", "logits=true", "--out", "other.csv"
    )
    assert refused.refused == (REFUSED, "table")


def test_errors_for_non_probabilities_mention_logits(folder, confide_run):
    z = np.random.default_rng(0).normal(size=(50, 3))
    held = {f"z_{name}": column for name, column in zip(NAMES, z.T, strict=True)}
    truth = {f"t_{name}": (column > 0).astype(int) for name, column in zip(NAMES, z.T, strict=True)}
    write(folder / "z.csv", {**held, **truth, "label": np.array(NAMES)[np.argmax(z, axis=1)]})
    asked = ("calibrate", "z.csv", "--probabilities", "z_*", "--alpha", 0.2, "--epsilon", 1, "--out", "r.json")
    assert confide_run(*asked, "--label", "label").refused == (REFUSED, "table")
    assert confide_run(*asked, "--set", "truth=t_*").refused == (REFUSED, "table")
