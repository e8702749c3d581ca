"""How a table is read, in every command: records with missing values, and logits."""

import numpy as np
import pytest

import confide
from confide.cli.exit_codes import REFUSED
from confide.core import load_release
from tests.files import classified, write

N, HOLES = 600, 7
COLUMNS = ("--probabilities", "p_*", "--label", "label")
ASKED = (*COLUMNS, "--alpha", 0.2, "--epsilon", 1000, "--out", "cal.json", "--force")
SKIP = ("--set", "skip_incomplete=true")
LEFT_OUT = f"left out: {HOLES} records with missing values\n"
NAMES = np.array(["a", "b", "c"])


@pytest.mark.slow
def test_left_out_records_are_counted_only_where_n_is_public(confide_run, folder):
    p, y = classified(N, dtype=np.float64)
    p[3 : 3 + HOLES, 1] = np.nan
    columns = {f"p_{name}": p[:, k] for k, name in enumerate(NAMES)}
    records = write(folder / "records.csv", columns | {"label": NAMES[y]})
    calibrate = ("calibrate", records, *ASKED)
    assert confide_run(*calibrate).refused == (REFUSED, "table")
    secret = confide_run(*calibrate, *SKIP)
    assert secret.code == 0
    assert "left out" not in secret.out + secret.err
    assert "left_out" not in confide_run(*calibrate, *SKIP, "--json").json
    public = ("--neighbors", "replace_one")
    assert LEFT_OUT in confide_run(*calibrate, *SKIP, *public).out
    assert load_release("cal.json").n == N - HOLES
    assert confide_run(*calibrate, *SKIP, *public, "--json").json["left_out"] == HOLES

    measured = ("evaluate", records, *COLUMNS, "--calibration", "cal.json")
    assert confide_run(*measured).code == REFUSED
    assert LEFT_OUT in confide_run(*measured, *SKIP).out
    found = confide_run(*measured, *SKIP, "--json").json
    coverage = found["found"]["release"]["coverage"]
    assert (found["left_out"], coverage["covered"] + coverage["missed"]) == (HOLES, N - HOLES)
    assert "left_out" not in confide_run(*measured, *SKIP, "--epsilon", 1, "--json").json

    predicted = ("predict", records, *COLUMNS[:2], "--calibration", "cal.json", "--out", "sets.csv", "--force")
    assert confide_run(*predicted).refused == (REFUSED, "table")
    done = confide_run(*predicted, *SKIP, "--json").json
    assert (done["left_out"], done["rows"]) == (HOLES, N - HOLES)


LOGITS = ("--set", "logits=true")


def test_logits_are_what_their_softmax_is(folder, confide_run):
    rng = np.random.default_rng(0)
    z = 2 * rng.standard_normal((400, 3))
    e = np.exp(z - z.max(axis=1, keepdims=True))
    p = e / e.sum(axis=1, keepdims=True)
    label = NAMES[(p.cumsum(axis=1) < rng.random(400)[:, None]).sum(axis=1)]
    for name, columns in (("z", z), ("p", p)):
        held = {f"{name}_{of}": column for of, column in zip(NAMES, columns.T, strict=True)}
        write(folder / f"{name}.csv", {**held, "label": label})
    of_logits, of_softmax = ("z.csv", "--probabilities", "z_*"), ("p.csv", "--probabilities", "p_*")
    asked = ("--label", "label", "--alpha", 0.2, "--set", "mechanism=none", "--neighbors", "replace_one", "--out")
    assert confide_run("calibrate", *of_logits, *asked, "no.json").refused == (REFUSED, "table")
    assert confide_run("calibrate", *of_logits, *LOGITS, *asked, "cal.json").code == 0
    assert confide_run("calibrate", *of_softmax, *asked, "p.json").code == 0
    released = confide.Release.load("cal.json")
    assert confide.Release.load("p.json").threshold == released.threshold
    assert released.about["outputs"].startswith("logits")
    applied = ("--calibration", "cal.json")
    measured = [
        confide_run("evaluate", *of_logits, *applied, *LOGITS, *asked[:2], "--json"),
        confide_run("evaluate", *of_softmax, *applied, *asked[:2], "--json"),
    ]
    assert measured[0].json["found"] == measured[1].json["found"]
    assert "warning" not in measured[0].err
    assert "'cal.json' was made from logits; softmax in double precision; 'p_*' is read as" in measured[1].err
    assert confide_run("predict", *of_logits, *applied, *LOGITS, "--out", "sets.csv").code == 0
    refused = confide_run("predict", *of_softmax, *applied, *LOGITS, "--out", "other.csv")
    assert refused.refused == (REFUSED, "table")
