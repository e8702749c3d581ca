"""`confide plan --pilot`: estimates of sets and intervals from a public sample in a table."""

import duckdb
import numpy as np
import pandas as pd
import pytest

import confide
from confide.cli.exit_codes import REFUSED, USAGE
from confide.planning import Pilot
from confide.tables import LossColumns, ScoreColumn, TargetColumns, read_pilot
from tests.builders import slow
from tests.refused import refused

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
@pytest.mark.parametrize("score", ["lac", *slow(["aps_deterministic"])])
def test_sets(confide_run, folder, records, score):
    p, y = probabilities(records)
    pilot = Pilot(confide.class_score(p, y, score), confide.all_scores(p, score))
    expected = confide.plan(0.1, 1.0, 300, score=score, pilot=pilot).on_pilot
    columns = ("--pilot", "records.csv", "--probabilities", "p_*", "--label", "label", "--score", score)
    found = confide_run(*LEVELS, *columns, "--json").json["pilot"]
    assert found["records"] == 400
    assert found["ratio"] == pytest.approx(expected.ratio)
    assert found["size"] == pytest.approx(expected.size)
    assert found["chance_beyond"] == pytest.approx(expected.chance_beyond)
    words = confide_run(*LEVELS, *columns, "--out", "plan.html").out
    assert f"sets are {expected.ratio:.3f} times as large as without" in words
    page = (folder / "plan.html").read_text()
    assert "Effect on the sets" in page
    assert f"{expected.ratio:.3f} times as large as without" in page


@pytest.mark.slow
def test_intervals(confide_run, records):
    residuals = np.abs(records.y - records.f).to_numpy()
    made = confide.plan(0.1, 1.0, 300, score="absolute_residual", unit=2.0, pilot=residuals)
    columns = ("--pilot", "records.csv", "--target", "y")
    found = confide_run(*LEVELS, *columns, "--prediction", "f", "--unit", 2, "--json").json
    assert found["pilot"]["ratio"] == pytest.approx(made.on_pilot.ratio)
    assert found["candidates"]["size"] == made.request.m
    both = confide_run(*LEVELS, *columns, "--prediction", "lower,upper", "--json").json["pilot"]
    assert both["ratio"] == pytest.approx((3 + 2 * both["threshold"]) / (3 + 2 * both["plain_threshold"]))
    own = confide_run(*LEVELS, "--pilot", "records.csv", "--score-column", "f", "--json").json["pilot"]
    assert (own["records"], own["ratio"], own["size"]) == (400, None, None)
    assert confide_run(*LEVELS, "--json").json["pilot"] is None


@pytest.mark.slow
def test_a_pilot_is_read_like_any_table(confide_run, folder, records):
    """With a decimal comma, without incomplete records, from a database: the same numbers as from the plain file."""
    columns = ("--prediction", "f", "--target", "y")
    plain = confide_run(*LEVELS, "--pilot", "records.csv", *columns, "--json").json
    assert "left_out" not in plain
    gaps = pd.concat([records[:7], records[:2].assign(f=[np.nan, 1.0], y=[0.0, np.nan]), records[7:]])
    gaps.to_csv("gaps.csv", index=False, sep=";", decimal=",")
    marked = ("--pilot", "gaps.csv", *columns, "--decimal", ",")
    assert confide_run(*LEVELS, *marked).refused == (REFUSED, "table")
    found = confide_run(*LEVELS, *marked, "--skip-incomplete", "--json").json
    assert found["left_out"] == 2
    assert found["pilot"] == plain["pilot"]
    assert "left out: 2 records with missing values" in confide_run(*LEVELS, *marked, "--skip-incomplete").out
    with duckdb.connect("clinic.duckdb") as database:
        database.execute("CREATE TABLE records AS SELECT * FROM 'records.csv'")
    stored = ("--pilot", "duckdb://clinic.duckdb", "--table", "records")
    assert confide_run(*LEVELS, *stored, *columns, "--json").json["pilot"] == pytest.approx(plain["pilot"])


def test_crossing_quantiles_of_a_pilot_have_width_zero():
    """Widths 4, 0 and 2, the second of quantiles that cross by 6."""
    quantiles = pd.DataFrame({"low": [0.0, 3.0, 1.0], "high": [4.0, -3.0, 3.0], "y": [2.0, 0.0, 9.0]})
    found = read_pilot(quantiles, TargetColumns(("low", "high"), "y"))
    assert found.width == pytest.approx(2.0)
    assert found.scores.tolist() == [-2.0, 3.0, 6.0]


@pytest.mark.slow
def test_unreadable_pilots_raise_errors(confide_run, records):
    assert confide_run(*LEVELS, "--pilot", "records.csv").refused == (USAGE, "--pilot")
    sides = ("--prediction", "lower,upper", "--target", "y", "--score", "cqr_sides")
    assert confide_run(*LEVELS, "--pilot", "records.csv", *sides).refused == (REFUSED, "--pilot")
    with refused(confide.InputError, "pilot"):
        read_pilot(records, LossColumns("f"))
    records.loc[[3, 5], "f"] = np.nan
    with refused(confide.InputError, "table"):
        read_pilot(records, TargetColumns("f", "y"))
    with refused(confide.InputError, "source"):
        read_pilot(records[:0], ScoreColumn("f"))
