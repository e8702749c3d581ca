"""`confide recalibrate`: monthly renewals of a release."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import confide
from confide.cli.exit_codes import REFUSED
from confide.core import load_release

N = 500
COLUMNS = ("--probabilities", "p_*", "--label", "y")


def renewing(previous, table):
    return "recalibrate", table, "--calibration", previous


def records(k):
    rng = np.random.default_rng(k)
    p = rng.dirichlet([4, 2, 1], N)
    y = (p.cumsum(axis=1) > rng.random((N, 1))).argmax(axis=1)
    rows = {f"p_{i}": p[:, i] for i in range(3)} | {"y": y, "ward": np.array(["a", "b"])[np.arange(N) % 2]}
    low, high = -np.ones(N), np.ones(N)
    return pa.table({**rows, "low": low, "high": high, "target": rng.normal(size=N), "s": rng.random(N)})


@pytest.fixture
def months(folder):
    for k in (1, 2, 3):
        pq.write_table(records(k), folder / f"{k}.parquet")
    return folder


def scores_of(k):
    table = records(k)
    p = np.column_stack([table[f"p_{i}"] for i in range(3)])
    return confide.lac_score(p, table["y"].to_numpy())


@pytest.fixture
def first(months):
    """The release of the first month."""
    about = {"date": "2026-01"}
    released = confide.calibrate(scores_of(1), 0.1, 1.0, neighbors="replace_one", about=about)
    released.save(months / "1.json")
    return released


@pytest.mark.slow
def test_a_year_begins(months, first, confide_run):
    ran = confide_run(*renewing("1.json", "2.parquet"), *COLUMNS, "--out", "2.json", "--set", "about.date=2026-02")
    assert ran.code == 0, ran.err
    second = load_release(months / "2.json")
    assert second.renews == first.checksum
    assert (second.alpha, second.score, second.recipe) == (first.alpha, "lac", first.recipe)
    assert "cost of privacy: 90." in ran.out
    shown = " ".join(confide_run("show", "2.json").out.split())
    assert f" renews the release with SHA-256 {first.checksum} " in shown
    ran = confide_run(*renewing("2.json", "3.parquet"), *COLUMNS, "--out", "3.json", "--json")
    third = load_release(months / "3.json")
    assert ran.json["calibration"] == json.loads(third.to_json())
    assert third.renews == second.checksum


@pytest.mark.slow
def test_the_ledger_charges_new_records_and_knows_the_same(months, confide_run):
    paid = ("--ledger", "ledger.db", "--dataset", "patients")
    public = ("--neighbors", "replace_one", "--alpha", "0.1", "--epsilon", "1")
    assert confide_run("calibrate", "1.parquet", *COLUMNS, *public, *paid, "--out", "1.json").code == 0
    renew = (*renewing("1.json", "2.parquet"), *COLUMNS, *paid)
    assert confide_run(*renew, "--out", "2.json").code == 0
    account = confide.Ledger("ledger.db").account("patients")
    assert account.spent().epsilon == 2.0
    again = confide_run(*renew, "--out", "again.json")
    assert "nothing was charged" in again.out
    assert (months / "again.json").read_bytes() == (months / "2.json").read_bytes()
    assert confide_run(*renewing("2.json", "3.parquet"), *COLUMNS, *paid, "--out", "3.json").code == 0
    assert confide_run(*renewing("3.json", "1.parquet"), *COLUMNS, *paid, "--out", "4.json").code == 0
    assert confide.Ledger("ledger.db").account("patients").spent().epsilon == 4.0
    confide.Ledger("ledger.db").set_limit("patients", 4.5, neighbors="replace_one")
    ran = confide_run(*renewing("3.json", "2.parquet"), *COLUMNS, *paid, "--n", N, "--out", "5.json")
    assert ran.refused == (REFUSED, "--dataset")
    assert not (months / "5.json").exists()


@pytest.mark.slow
def test_groups_sides_classes_and_levels_are_read_off_the_release(months, confide_run):
    table, public = records(1), {"neighbors": "replace_one"}
    ward = table["ward"].to_pylist()
    confide.calibrate(scores_of(1), 0.2, 2.0, groups=ward, names=["a", "b"]).save("wards.json")
    classes = confide.calibrate(scores_of(1), 0.3, 4.0, groups=table["y"].to_numpy(), names=[0, 1, 2], by="class")
    classes.save("classes.json")
    quantiles = np.column_stack([table["low"], table["high"]])
    confide.calibrate_sides(quantiles, table["target"].to_numpy(), 0.2, 2.0, **public).save("sides.json")
    confide.calibrate(scores_of(1), [0.3, 0.1], 2.0, **public).save("levels.json")
    asked = {
        "wards": (*COLUMNS, "--by", "ward"),
        "classes": COLUMNS,
        "sides": ("--prediction", "low,high", "--target", "target"),
        "levels": COLUMNS,
    }
    for name, columns in asked.items():
        ran = confide_run(*renewing(f"{name}.json", "2.parquet"), *columns, "--out", f"{name}-2.json")
        assert ran.code == 0, ran.err
        before, after = load_release(f"{name}.json"), load_release(f"{name}-2.json")
        assert (after.by, after.parts.keys()) == (before.by, before.parts.keys())
        assert confide_run("verify", f"{name}-2.json").code == 0
    missing = confide_run(*renewing("wards.json", "2.parquet"), *COLUMNS, "--out", "x.json")
    assert missing.refused == (REFUSED, "--by")
    paid = ("--ledger", "l.db", "--dataset", "d")
    assert confide_run(*renewing("wards.json", "2.parquet"), *asked["wards"], *paid, "--out", "x").refused == (
        REFUSED,
        "partition",
    )
    paid = (*paid, "--set", "partition=ward")
    assert confide_run(*renewing("wards.json", "2.parquet"), *asked["wards"], *paid, "--out", "x.json").code == 0
    assert confide.Ledger("l.db").account("d").spent().epsilon == 2.0


def test_losses_are_read_off_the_release(months, confide_run):
    few, rng = confide.Candidates.unit(5), np.random.default_rng(0)
    losses = np.clip(rng.random((N, 1)) - few.edges, 0, 1)
    pq.write_table(pa.table({f"l_{i}": losses[:, i] for i in range(4)}), "losses.parquet")
    confide.calibrate_losses(losses, few, 0.3, 2.0, loss="shortfall", neighbors="replace_one").save("risk.json")
    ran = confide_run(*renewing("risk.json", "losses.parquet"), "--set", "losses=l_*", "--out", "risk-2.json")
    assert ran.code == 0, ran.err
    assert load_release("risk-2.json").loss == "shortfall"
    assert confide_run(*renewing("risk.json", "2.parquet"), *COLUMNS, "--out", "x.json").refused == (
        REFUSED,
        "--label",
    )


def test_secret_numbers_stay_secret(months, confide_run):
    confide.calibrate(scores_of(1), 0.2, 2.0, groups=np.arange(N) % 2, names=[0, 1]).save("groups.json")
    ran = confide_run(*renewing("groups.json", "2.parquet"), *COLUMNS, "--by", "ward", "--n", N, "--out", "x.json")
    assert ran.refused == (REFUSED, "--n")


def test_the_file_of_the_request_again(months, confide_run):
    """The columns are those of the file; what the release states must be equal, and the budget may be another."""
    (months / "r.toml").write_text(
        'probabilities = "p_*"\nlabel = "y"\nalpha = 0.1\nneighbors = "replace_one"\ncandidates = "around:0.8"\n'
    )
    asked = ("--request", "r.toml", "--epsilon")
    assert confide_run("calibrate", "1.parquet", *asked, 1, "--out", "1.json").code == 0
    assert dict(load_release("1.json").recipe)["around"] == 0.8
    renew = (*renewing("1.json", "2.parquet"), *asked, 2)
    ran = confide_run(*renew, "--out", "2.json")
    assert ran.code == 0, ran.err
    assert load_release("2.json").epsilon == 2.0
    assert load_release("2.json").renews == load_release("1.json").checksum
    assert confide_run(*renew, "--label", "y", "--out", "x.json").refused == (REFUSED, "--label")
    text = (months / "r.toml").read_text()
    for line, name in (("alpha = 0.2", "alpha"), ("delta = 0.1", "delta"), ('score = "aps"', "--score")):
        (months / "r.toml").write_text(text.replace("alpha = 0.1", line) if name == "alpha" else f"{text}{line}\n")
        refused = confide_run(*renew, "--out", "x.json")
        assert refused.refused == (REFUSED, name.removeprefix("--")), refused.err
