"""The ledger on the command line: charges, refusals before the data are read, lists and exports."""

import json

import pytest

from confide.cli.exit_codes import REFUSED, USAGE
from confide.ledger import Ledger
from tests.files import class_table, write

ASK = ("--probabilities", "p_*", "--label", "name", "--alpha", 0.1, "--epsilon", 1)


@pytest.fixture
def records(folder):
    return write(folder / "records.parquet", class_table())


def calibrate(confide_run, records, out, *options):
    return confide_run(
        "calibrate", records, *ASK, "--out", out, "--ledger", "budget.db", "--dataset", "patients", *options
    )


@pytest.mark.slow
def test_what_was_charged_spent_and_is_left_is_said(confide_run, records, folder):
    """Every command that charges prints the charge, also in JSON; the same request is answered at no cost."""
    first = calibrate(confide_run, records, "one.json", "--json")
    assert "created the ledger budget.db in the current folder" in first.err
    assert (first.json["earlier"], first.json["ledger"]["new"]) == ([], True)
    made = Ledger("budget.db").account("patients").entries[0].charged_at
    Ledger("budget.db").set_limit("patients", 2.5)
    two = calibrate(confide_run, records, "two.json")
    assert (two.code, two.err) == (0, "")
    assert f"earlier release of {made} returned; nothing was charged\n" in two.out
    assert "charged 0 to 'patients': spent 1 in 1 release (add_remove); limit 2.5, 1.5 left\n" in two.out
    assert (folder / "one.json").read_text() == (folder / "two.json").read_text()
    assert calibrate(confide_run, records, "three.json", "--json").json["earlier"] == [made]
    levels = calibrate(confide_run, records, "four.json", "--alpha", "0.1,0.2", "--json").json
    assert levels["ledger"] == {
        "ledger": "budget.db", "new": False, "charged": 1.0, "dataset": "patients", "spent": 2.0, "remaining": 0.5,
        "limit": {"epsilon": 2.5, "dp_delta": 0.0},
    }  # fmt: skip
    groups = ("--set", "by_class=true", "--set", "partition=class", "--epsilon", 0.5, "--json")
    assert calibrate(confide_run, records, "five.json", *groups).json["ledger"]["charged"] == 0.5
    assert confide_run("calibrate", records, *ASK, "--out", "six.json", "--json").json["ledger"] is None
    listed = confide_run("ledger", "list", "budget.db", "--json").json["datasets"]
    assert [(row["dataset"], row["spent"], row["releases"]) for row in listed] == [("patients", 2.5, 5)]
    printed = confide_run("ledger", "export", "budget.db").json
    assert confide_run("ledger", "export", "budget.db", "--out", "all.json").code == 0
    assert json.loads((folder / "all.json").read_text()) == printed
    released = json.loads((folder / "one.json").read_text())
    entry = printed["datasets"][0]["entries"][0]["release"]
    assert entry == {name: released[name] for name in ("thresholds", "versions")}


def test_a_default_ledger(confide_run, records, folder, monkeypatch):
    """`CONFIDE_LEDGER` names the ledger of --dataset and of the commands of ledgers."""
    monkeypatch.setenv("CONFIDE_LEDGER", "budget.db")
    assert confide_run("ledger", "limit", "patients").code == REFUSED  # no ledger, so no limit to remove
    assert confide_run("ledger", "limit", "patients", "4x").code == USAGE
    assert "limit 2, 2 left" in confide_run("ledger", "limit", "patients", 2).out
    assert "no limit" in confide_run("ledger", "limit", "patients").out
    assert "limit 1.5, 1.5 left" in confide_run("ledger", "limit", "patients", 1.5).out
    assert confide_run("calibrate", records, *ASK, "--out", "one.json", "--dataset", "patients").code == 0
    assert confide_run("ledger", "list").out == confide_run("ledger", "list", "budget.db").out
    assert "limit: 1.5" in confide_run("ledger", "show", "patients").out
    assert confide_run("ledger", "export").json["datasets"][0]["spent"] == 1.0
    assert confide_run("calibrate", records, *ASK, "--out", "two.json").code == 0  # without a data set none is charged
    assert Ledger("budget.db").account("patients").spent().epsilon == 1.0
    monkeypatch.delenv("CONFIDE_LEDGER")
    assert confide_run("ledger", "list").code != 0


def test_what_was_spent_before_is_entered(confide_run, folder):
    ran = confide_run("ledger", "init", "new.db", "--dataset", "patients", "--spent", 2.5)
    assert "spent 2.5 in 1 release (1 transfer) (add_remove); no limit" in ran.out
    assert confide_run("ledger", "init", "new.db", "--spent", 2.5).code == REFUSED
    assert confide_run("ledger", "init", "new.db", "--charge-role", "jobs").code == REFUSED
    assert Ledger("new.db").account("patients").spent().epsilon == 2.5


@pytest.mark.slow
def test_other_data_are_refused_and_again_charges_them(confide_run, records, folder):
    assert calibrate(confide_run, records, "one.json").code == 0
    other = write(folder / "july.parquet", class_table().slice(1))
    ran = calibrate(confide_run, other, "two.json")
    assert ran.refused == (REFUSED, "--dataset")
    assert "--again" in ran.error
    assert not (folder / "two.json").exists()
    ran = calibrate(confide_run, other, "two.json", "--again")
    assert ran.code == 0
    assert "earlier release" not in ran.out + ran.err
    assert "spent 2 in 2 releases" in confide_run("ledger", "list", "budget.db").out


@pytest.mark.parametrize("alpha", ["0.1", "0.1,0.2"])
def test_over_the_limit_the_file_is_not_even_opened(confide_run, folder, alpha):
    assert "limit 0.5, 0.5 left" in confide_run("ledger", "limit", "budget.db", "patients", 0.5).out
    ran = calibrate(confide_run, folder / "does-not-exist.parquet", "one.json", "--alpha", alpha)
    assert ran.refused == (REFUSED, "--dataset")
    assert not (folder / "one.json").exists()


def test_groups_and_bindings(confide_run, records, folder):
    (folder / "key").write_bytes(bytes(range(32)))
    for cell in ("north", "south"):
        ran = calibrate(confide_run, records, f"{cell}.json", "--group", f"region={cell}", "--set", "ledger_key=key")
        assert ran.code == 0, ran.err
    shown = confide_run("ledger", "show", "budget.db", "patients", "--dp-delta", "1e-6")
    assert "spent 1 in 2 releases" in shown.out
    assert "region=north" in shown.out
    assert "of disjoint groups the largest counts" in shown.out
    other = write(folder / "other.parquet", class_table().slice(1))
    assert calibrate(confide_run, other, "x.json", "--set", "ledger_key=key").refused == (REFUSED, "--dataset")
    document = confide_run("ledger", "show", "budget.db", "patients", "--json").json
    assert {bound["rule"] for bound in document["together"]} == {"sum"}
