"""Counts that another engine made, on the command line: from its file to a page."""

import json

import numpy as np
import pytest

import confide
from confide.cli.exit_codes import REFUSED
from confide.selection import noisy_counts

LAW = "discrete_laplace(scale=2,copies=2)"
STATED = ("--set", f"noise={LAW}", "--set", "candidates=unit:64", "--score", "lac", "--classes", "no,yes")


@pytest.fixture
def noisy(folder):
    exact = confide.ScoreHistogram.from_scores(
        np.random.default_rng(0).random(5000), confide.Candidates.unit(64)
    ).counts
    drawn = noisy_counts(noisy_counts(exact, 2.0), 2.0).tolist()
    (folder / "counts.csv").write_text("bin,count\n" + "".join(f"{k},{count}\n" for k, count in enumerate(drawn)))
    (folder / "dap.json").write_text(json.dumps({"report_count": 5000, "aggregate_result": drawn}))
    return drawn


@pytest.mark.slow
def test_from_counts_to_a_page(folder, confide_run, noisy):
    made = confide_run("calibrate", "--noisy-counts", "dap.json", *STATED, "--alpha", "0.1", "--out", "cal.json")
    assert made.code == 0, made.err
    assert "as the maker of the counts states" in made.out
    released = confide.Release.load(folder / "cal.json")
    counts = confide.PublishedCounts(
        noisy, confide.Candidates.unit(64), confide.Noise.parse(LAW), 5000, "lac", ["no", "yes"]
    )
    assert released == confide.calibrate_counts(counts, 0.1)
    assert "every count has independent discrete Laplace noise of scale 2" in confide_run("show", "cal.json").out
    assert "they hold" in confide_run("verify", "cal.json", "--epsilon-at-most", "1").out
    assert confide_run("report", "cal.json", "--out", "cal.html").code == 0
    asked = ("--n", "5000", "--alpha", "0.1", "--out", "b.json", "--json")
    read = confide_run("calibrate", "--noisy-counts", "counts.csv", *STATED, *asked)
    assert read.json["calibration"]["thresholds"][0]["threshold"] == released.threshold


def test_a_secret_number_of_records(folder, confide_run, noisy):
    """By options, and by a file that states everything; choices that such counts leave no room for are rejected."""
    number = {"n_noisy": 4987, "n_noise": confide.Noise.discrete_laplace(20.0)}
    counts = confide.PublishedCounts(
        noisy, confide.Candidates.unit(64), confide.Noise.parse(LAW), None, "lac", ["no", "yes"], **number
    )
    counts.save(folder / "own.json")
    stated = ("--set", "n_noisy=4987", "--set", "n_noise=discrete_laplace(scale=20)")
    for source in (("own.json",), ("counts.csv", *STATED, *stated)):
        ran = confide_run("calibrate", "--noisy-counts", *source, "--alpha", "0.1", "--out", "cal.json")
        assert ran.code == 0, ran.err
        assert confide.Release.load(folder / "cal.json") == confide.calibrate_counts(counts, 0.1)
        (folder / "cal.json").unlink()
    assert "64 bins, a secret number of records" in confide_run("show", "own.json").out
    for name, value in (("n_min", 1000), ("delta", 0.1)):
        other = ("--set", f"{name}={value}", "--out", "other.json")
        ran = confide_run("calibrate", "--noisy-counts", "own.json", "--alpha", "0.1", *other)
        assert ran.refused == (REFUSED, name)
    paid = ("calibrate", "--noisy-counts", "own.json", "--alpha", "0.1", "--out", "x.json", "--ledger", "l.db")
    assert confide_run(*paid, "--dataset", "d").refused == (REFUSED, "--ledger")
