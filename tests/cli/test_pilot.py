"""`confide plan --pilot`: estimates of sets and intervals from a public sample in a table."""

import numpy as np
import pandas as pd
import pytest

import confide
from confide.core import Pilot

LEVELS = ("plan", "--alpha", "0.1", "--epsilon", 1, "--n", 300)


@pytest.fixture
def records(folder):
    """400 records with probabilities, a label, two quantiles, a prediction and a target, in records.csv."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(4) / 3, 400).round(6)
    frame = pd.DataFrame(p / p.sum(axis=1, keepdims=True), columns=[f"p_{name}" for name in "abcd"])
    frame["label"] = np.array(list("abcd"))[(np.cumsum(p, axis=1) < rng.random((400, 1))).sum(axis=1).clip(0, 3)]
    frame["f"] = rng.normal(size=400)
    frame["lower"], frame["upper"] = frame.f - 1, frame.f + 2
    frame["y"] = frame.f + rng.normal(size=400)
    frame.to_csv("records.csv", index=False)
    return frame


def probabilities(frame):
    return frame[["p_a", "p_b", "p_c", "p_d"]].to_numpy(), frame.label.map(list("abcd").index).to_numpy()


@pytest.mark.slow
def test_sets(confide_run, folder, records):
    (p, y), score = probabilities(records), "aps_deterministic"
    pilot = Pilot(confide.class_score(p, y, score), confide.all_scores(p, score))
    expected = confide.plan(0.1, 1.0, 300, score=score, pilot=pilot).on_pilot
    columns = ("--pilot", "records.csv", "--probabilities", "p_*", "--label", "label", "--score", score)
    found = confide_run(*LEVELS, *columns, "--json").json["pilot"]
    assert found["records"] == 400
    for name in ("ratio", "size", "chance_beyond"):
        assert found[name] == pytest.approx(getattr(expected, name))
    words = confide_run(*LEVELS, *columns, "--out", "plan.html").out
    assert f"sets are {expected.ratio:.3f} times as large as without" in words
    assert f"{expected.ratio:.3f} times as large as without" in (folder / "plan.html").read_text()


@pytest.mark.slow
def test_intervals(confide_run, records):
    residuals = np.abs(records.y - records.f).to_numpy()
    made = confide.plan(0.1, 1.0, 300, score="absolute_residual", unit=2.0, pilot=residuals)
    columns = ("--pilot", "records.csv", "--target", "y")
    found = confide_run(*LEVELS, *columns, "--prediction", "f", "--set", "unit=2", "--json").json
    assert found["pilot"]["ratio"] == pytest.approx(made.on_pilot.ratio)
    assert found["candidates"]["size"] == made.candidates.size
    both = confide_run(*LEVELS, *columns, "--prediction", "lower,upper", "--json").json["pilot"]
    assert both["ratio"] == pytest.approx((3 + 2 * both["threshold"]) / (3 + 2 * both["plain_threshold"]))
    own = confide_run(*LEVELS, "--pilot", "records.csv", "--score-column", "f", "--json").json["pilot"]
    assert (own["records"], own["ratio"], own["size"]) == (400, None, None)
    assert confide_run(*LEVELS, "--json").json["pilot"] is None
