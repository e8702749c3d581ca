"""Every command on valid input: its output equals the results of the library."""

import json
import re

import numpy as np
import pytest

import confide
from confide.cli.exit_codes import IN_WORDS, REFUSED
from tests.builders import slow
from tests.files import FORMATS, NAMES, class_table, classified, read, write

COLUMNS = ("--probabilities", "p_*", "--label", "name")
LEVELS = ("--alpha", 0.1, "--epsilon", 1)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", slow(FORMATS, everyday=["parquet", "csv", "tsv", "arrow"]))
def test_the_way_from_records_to_sets(confide_run, folder, suffix):
    records = write(folder / f"records.{suffix}", class_table(lists=False))
    new = write(folder / f"new.{suffix}", class_table(500, seed=1, lists=False))
    made = confide_run("calibrate", records, *COLUMNS, *LEVELS, "--out", "cal.json")
    assert (made.code, made.err) == (0, "")
    released = confide.Calibration.load("cal.json")
    assert released.score == "lac"
    assert released.n is None
    lines = made.out.splitlines()
    assert "\n".join(lines[:5]) == str(released)
    assert re.fullmatch(r"records: about [\d,]+ \(\+-60 at 95 %\), a noisy number, .*", lines[3])
    assert lines[4].startswith(f"records needed: about {confide.plan(0.1, 1.0).records_needed}; with fewer, ")
    design = released.size.design_for
    cost = confide.plan(0.1, 1.0, design).expected_coverage
    assert lines[5] == f"cost of privacy: {100 * cost:.4g} % expected coverage instead of 90 %"
    assert f"with {design} records, which the noisy number suggests" in lines[6]
    alone = "no ledger: the losses of all runs about the same people add up, and --ledger records the sum"
    assert lines[7:] == [alone, "saved: cal.json"]

    guess = confide_run("calibrate", records, *COLUMNS, *LEVELS, "--n-typical", 1000, "--out", "guess.json")
    lines = guess.out.splitlines()
    assert "\n".join(lines[:4]) == str(confide.Calibration.load("guess.json"))
    assert lines[3].startswith("records needed: about 225; with fewer, ")
    assert lines[4] == "cost of privacy: 90.42 % expected coverage instead of 90 %"
    assert "with 1000 records, a public guess: the true number is secret" in lines[5]
    assert lines[6:] == [alone, "saved: guess.json"]

    done = confide_run("predict", new, "--calibration", "cal.json", "--probabilities", "p_*", "--out", "sets.parquet")
    assert (done.code, done.err) == (0, "")
    sets = confide.predict_set(classified(500, seed=1)[0], released, NAMES)
    assert read(folder / "sets.parquet")["prediction_set"].to_pylist() == sets.labels()
    assert done.out.splitlines()[0] == f"500 sets, {sets.sizes.mean():.2f} classes each on average"
    assert done.out.splitlines()[-1] == "saved: sets.parquet"

    seen = confide_run("evaluate", new, "--calibration", "cal.json", *COLUMNS)
    covered = confide.coverage(
        confide.predict_set(classified(500, seed=1)[0], released).contains(np.array(NAMES)[classified(500, 1)[1]])
    )
    assert (seen.code, seen.err) == (0, "")
    assert str(covered) in seen.out
    assert "they are not private" in seen.out


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::confide.CoverageWarning")
@pytest.mark.parametrize("suffix", ["csv", *slow(["parquet"])])
@pytest.mark.parametrize("more", [(), *slow([(("--by-class",),)])])
def test_empty_and_single_row_tables_end_the_same_way(confide_run, folder, suffix, more):
    """The existence of rows is as secret as their number."""
    for rows in (0, 1):
        records = write(folder / f"{rows}.{suffix}", class_table(lists=False).slice(0, rows))
        made = confide_run("calibrate", records, *COLUMNS, *LEVELS, *more, "--out", f"{suffix}{rows}.json")
        assert made.code == 0
        assert made.out.endswith(f"saved: {suffix}{rows}.json\n")
    refused = confide_run(
        "calibrate", f"0.{suffix}", *COLUMNS, *LEVELS, "--neighbors", "replace_one", "--out", "no.json"
    )
    assert refused.refused == (REFUSED, "source")


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_no_rows_are_no_sets(confide_run, folder, suffix):
    """The output has its columns, so that the next program can read it."""
    write(folder / "all.parquet", class_table(lists=False))
    confide_run("calibrate", "all.parquet", *COLUMNS, *LEVELS, "--out", "cal.json")
    records = write(folder / f"none.{suffix}", class_table(lists=False).slice(0, 0))
    asked = ("--calibration", "cal.json", "--probabilities", "p_*", "--keep", "id", "--out")
    made = confide_run("predict", records, *asked, f"sets.{suffix}")
    assert (made.code, made.out.splitlines()[0]) == (0, "0 sets")
    assert read(folder / f"sets.{suffix}").column_names == ["id", "prediction_set", "set_size"]
    output = confide_run("predict", records, *asked, f"again.{suffix}", "--json").json
    assert output["rows"] == 0
    assert "mean_set_size" not in output
    refused = confide_run("evaluate", records, *COLUMNS, "--calibration", "cal.json")
    assert refused.refused == (REFUSED, "source")


@pytest.mark.slow
def test_json_of_every_command(confide_run, folder):
    records = write(folder / "records.parquet", class_table(lists=False))
    made = confide_run("calibrate", records, *COLUMNS, *LEVELS, "--out", "cal.json", "--json").json
    released = confide.Calibration.load("cal.json")
    assert made["calibration"] == json.loads(released.to_json())
    assert made["out"] == "cal.json"
    assert made["warnings"] == []
    assert made["expected"]["records"] == released.size.design_for
    guess = ("--n-typical", 1000, "--out", "guess.json", "--json")
    assert confide_run("calibrate", records, *COLUMNS, *LEVELS, *guess).json["expected"]["records"] == 1000
    done = confide_run(
        "predict", records, "--calibration", "cal.json", "--probabilities", "p_*", "--out", "s.csv", "--json"
    ).json
    assert done["rows"] == 3000
    assert 1 <= done["mean_set_size"] <= 3
    seen = confide_run("evaluate", records, "--calibration", "cal.json", *COLUMNS, "--json").json
    sets = confide.predict_set(classified()[0], released)
    assert seen["coverage"]["value"] == pytest.approx(sets.contains(np.array(NAMES)[classified()[1]]).mean())
    assert seen["mean_size"] == pytest.approx(sets.sizes.mean())
    assert seen["singletons"] == pytest.approx((sets.sizes == 1).mean())
    assert seen["empty"] == pytest.approx((sets.sizes == 0).mean())
    assert seen["private"] is False
    shown = confide_run("show", "cal.json", "--records", 3, "--json").json
    assert shown["calibration"] == made["calibration"]
    assert shown["losses"] == {
        "add_remove": pytest.approx(released.privacy.loss("add_remove", 3)),
        "replace_one": pytest.approx(released.privacy.loss("replace_one", 3)),
    }
    planned = confide_run("plan", *LEVELS, "--n", 500, "--json").json
    plan = confide.plan(0.1, 1.0, 500)
    assert planned["target_rank"] == plan.target_rank
    assert planned["records_needed"] == plan.records_needed
    assert planned["chance_beyond"] == plan.chance_beyond
    assert planned["candidates"] == {"size": plan.request.m, "recipe": dict(plan.request.candidates.recipe)}
    assert planned["guarantee"]["coverage"] == 0.9


@pytest.mark.slow
def test_too_few_records_warn_and_succeed(confide_run, folder):
    records = write(folder / "records.parquet", class_table(5))
    arguments = ("calibrate", records, *COLUMNS, *LEVELS, "--neighbors", "replace_one", "--out")
    made = confide_run(*arguments, "a.json")
    assert made.code == 0
    assert made.err.startswith("warning: the threshold is +inf")
    assert made.err.count("\n") == 1
    document = confide_run(*arguments, "b.json", "--json").json
    assert len(document["warnings"]) == 1
    assert document["calibration"]["threshold"] == "+inf"
    done = confide_run("predict", records, "--calibration", "a.json", "--probabilities", "p_*", "--out", "s.parquet")
    assert done.out.startswith("5 sets, 3.00 classes each")
    assert done.err.startswith("warning: the threshold is +inf: every label is in every set; ")
    out = ("--out", "t.parquet", "--json")
    done = confide_run("predict", records, "--calibration", "a.json", "--probabilities", "p_*", *out)
    assert done.json["warnings"][0].startswith("the threshold is +inf")
    seen = confide_run("evaluate", records, "--calibration", "a.json", *COLUMNS)
    assert seen.err.startswith("warning: the threshold is +inf: every label is in every set; ")
    assert document["expected"] is None
    assert "cost:" not in made.out
    shown = confide_run("show", "a.json")
    assert "threshold +inf" in shown.out
    assert shown.err == seen.err
    shown = confide_run("show", "a.json", "--json").json
    assert shown["losses"]["replace_one"] == 0
    assert shown["warnings"] == done.json["warnings"]


def test_keep_and_force(confide_run, folder):
    records = write(folder / "records.parquet", class_table())
    confide_run("calibrate", records, *COLUMNS, *LEVELS, "--out", "cal.json")
    arguments = ("predict", records, "--calibration", "cal.json", "--probabilities", "p_*", "--out", "s.parquet")
    assert confide_run(*arguments, "--keep", "id,name", "--keep", "text").code == 0
    assert read(folder / "s.parquet").column_names == ["id", "name", "text", "prediction_set", "set_size"]
    assert confide_run(*arguments, "--force").code == 0
    assert "label" in read(folder / "s.parquet").column_names


def test_help_and_version(confide_run):
    text = confide_run("--help").out
    for code in IN_WORDS:
        assert f" {code} " in text
    assert confide_run("--version").out.startswith("confide 0.")
