"""`confide recalibrate`: monthly renewals of a release, which fix everything but the records and the budget."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import confide
from confide.cli.exit_codes import REFUSED
from confide.core import load_release
from tests.files import write

N = 500
COLUMNS = ("--probabilities", "p_*", "--label", "y")
PAID = ("--ledger", "l.db", "--dataset", "d")


def records(k):
    rng = np.random.default_rng(k)
    p = rng.dirichlet([4, 2, 1], N)
    y = (p.cumsum(axis=1) > rng.random((N, 1))).argmax(axis=1)
    rows = {f"p_{i}": p[:, i] for i in range(3)} | {"y": y, "ward": np.array(["a", "b"])[np.arange(N) % 2]}
    rows |= {"low": -np.ones(N), "high": np.ones(N), "target": rng.normal(size=N)}
    missed = rng.random(N)
    return pa.table(rows | {f"l_{i}": np.clip(missed - (i + 1) / 3, 0, 1) for i in range(2)})


def scores_of(k):
    table = records(k)
    return confide.lac_score(np.column_stack([table[f"p_{i}"] for i in range(3)]), table["y"].to_numpy())


@pytest.fixture
def renew(folder, confide_run):
    """Renew a release from the table of another month."""
    for k in (1, 2, 3):
        pq.write_table(records(k), folder / f"{k}.parquet")

    def run(previous, month, *options, out="x.json", columns=COLUMNS):
        words = ("recalibrate", f"{month}.parquet", "--calibration", f"{previous}.json", *columns, *options)
        return confide_run(*words, "--out", out)

    return run


@pytest.mark.slow
def test_a_year_begins(renew, confide_run):
    """The ledger charges new records, and recognises a renewal that was made."""
    public = ("--neighbors", "replace_one", "--alpha", "0.1", "--epsilon", "1", "--set", "about.date=2026-01")
    assert confide_run("calibrate", "1.parquet", *COLUMNS, *public, *PAID, "--out", "1.json").code == 0
    ran = renew("1", 2, *PAID, "--set", "about.date=2026-02", out="2.json")
    assert ran.code == 0, ran.err
    assert "cost of privacy: 90." in ran.out
    first, second = load_release("1.json"), load_release("2.json")
    assert (second.renews, second.about["date"]) == (first.checksum, "2026-02")
    assert (second.alpha, second.score, second.recipe) == (first.alpha, "lac", first.recipe)
    shown = " ".join(confide_run("show", "2.json").out.split())
    assert f" renews the release with SHA-256 {first.checksum} " in shown
    again = renew("1", 2, *PAID, "--set", "about.date=2026-02", out="again.json")
    assert "nothing was charged" in again.out
    assert load_release("again.json") == second
    ran = renew("2", 3, *PAID, "--json", out="3.json")
    third = load_release("3.json")
    assert ran.json["calibration"] == json.loads(third.to_json())
    assert third.renews == second.checksum
    assert renew("3", 1, *PAID, out="4.json").code == 0
    assert confide.Ledger("l.db").account("d").spent().epsilon == 4.0
    confide.Ledger("l.db").set_limit("d", 4.5, neighbors="replace_one")
    assert renew("3", 2, *PAID, "--n", N).refused == (REFUSED, "--dataset")


@pytest.mark.long
def test_groups_sides_classes_and_levels_are_read_off_the_release(renew, confide_run):
    table, public = records(1), {"neighbors": "replace_one"}
    ward, labels = table["ward"].to_pylist(), table["y"].to_numpy()
    quantiles = np.column_stack([table["low"], table["high"]])
    losses, few = np.column_stack([table["l_0"], table["l_1"]]), confide.Candidates.unit(3)
    wards, sides = ("--by", "ward"), ("--prediction", "low,high", "--target", "target")
    for name, release, options in (
        ("wards", confide.calibrate(scores_of(1), 0.2, 2.0, groups=ward, names=["a", "b"]), (*COLUMNS, *wards)),
        ("classes", confide.calibrate(scores_of(1), 0.3, 4.0, groups=labels, names=[0, 1, 2], by="class"), COLUMNS),
        ("sides", confide.calibrate_sides(quantiles, table["target"].to_numpy(), 0.2, 2.0, **public), sides),
        ("levels", confide.calibrate(scores_of(1), [0.3, 0.1], 2.0, **public), COLUMNS),
        ("risk", confide.calibrate_losses(losses, few, 0.3, 2.0, loss="shortfall", **public), ("--set", "losses=l_*")),
    ):
        release.save(f"{name}.json")
        ran = renew(name, 2, out=f"{name}-2.json", columns=options)
        assert ran.code == 0, ran.err
        after = load_release(f"{name}-2.json")
        assert (after.by, after.parts.keys(), after.loss) == (release.by, release.parts.keys(), release.loss)
        assert confide_run("verify", f"{name}-2.json").code == 0
    assert renew("risk", 2).refused == (REFUSED, "--label")
    assert renew("wards", 2).refused == (REFUSED, "--by")
    assert renew("wards", 2, *wards, "--n", N).refused == (REFUSED, "--n")
    assert renew("wards", 2, *wards, *PAID).refused == (REFUSED, "partition")
    assert renew("wards", 2, *wards, *PAID, "--set", "partition=ward").code == 0
    assert confide.Ledger("l.db").account("d").spent().epsilon == 2.0


def test_the_file_of_the_request_again(renew, folder, confide_run):
    """The columns are those of the file; what the release states must be equal, and the budget may be another."""
    request = folder / "r.toml"
    text = 'probabilities = "p_*"\nlabel = "y"\nalpha = 0.1\nneighbors = "replace_one"\ncandidates = "around:0.8"\n'
    request.write_text(text)
    asked = ("--request", "r.toml", "--epsilon")
    assert confide_run("calibrate", "1.parquet", *asked, 1, "--out", "1.json").code == 0
    assert dict(load_release("1.json").recipe)["around"] == 0.8
    ran = renew("1", 2, *asked, 2, columns=(), out="2.json")
    assert ran.code == 0, ran.err
    assert load_release("2.json").epsilon == 2.0
    assert load_release("2.json").renews == load_release("1.json").checksum
    assert renew("1", 2, *asked, 2).refused == (REFUSED, "--probabilities")
    for name, changed in (
        ("alpha", text.replace("alpha = 0.1", "alpha = 0.2")),
        ("delta", f"{text}delta = 0.1\n"),
        ("score", f'{text}score = "aps"\n'),
    ):
        request.write_text(changed)
        assert renew("1", 2, *asked, 2, columns=()).refused == (REFUSED, name)


# --- the fingerprint of a model: stated by calibrate and recalibrate, compared by all others

RNG = np.random.default_rng(0)
MODEL, RETRAINED, P = (RNG.dirichlet([2, 1], n) for n in (60, 60, 2000))
LABELLED = ("--probabilities", "p_*", "--label", "label")
CALIBRATE = ("calibrate", "records.csv", *LABELLED, "--alpha", 0.1, "--epsilon", 1, "--out")


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
    renewed = ("recalibrate", "records.csv", "--calibration", "cal.json", *LABELLED, "--out", "new.json")
    assert run(*renewed, "--set", "fingerprint=model.onnx").code == 0
    used = ("evaluate", "records.csv", "--calibration", "new.json", *LABELLED, "--set")
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
