"""Every command on valid input: its output equals the results of the library."""

import json
import math
import re
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import confide
from confide.calibration import Request
from confide.cli.app import app
from confide.cli.calibrate import expected_plan
from confide.cli.exit_codes import IN_WORDS, REFUSED
from confide.planning import needed_by_scores
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
def test_options_reach_the_library(confide_run, folder):
    records = write(folder / "records.parquet", class_table())
    options = ("--neighbors", "replace_one", "--delta", 0.05, "--records-per-person", 2, "--candidates", "unit:500")
    assert confide_run("calibrate", records, *COLUMNS, *LEVELS, *options, "--out", "a.json").code == 0
    a = confide.Calibration.load("a.json")
    assert (a.n, a.guarantee.kind, a.guarantee.delta) == (3000, "training_conditional", 0.05)
    assert (a.privacy.records_per_person, a.candidates) == (2, 500)
    options = ("--rho", 0.125, "--n-min", 200, "--n-typical", 2000)
    assert confide_run("calibrate", records, *COLUMNS, "--alpha", "1/10", *options, "--out", "b.json").code == 0
    b = confide.Calibration.load("b.json")
    assert b.privacy.rho == pytest.approx(0.125)
    assert b.guarantee.n_min == 200


def test_class_names(confide_run, folder):
    records = write(folder / "records.parquet", class_table())
    classes = ("--probabilities", "p", "--classes", "cat, dog,emu")
    assert confide_run("calibrate", records, *classes, "--label", "name", *LEVELS, "--out", "cal.json").code == 0
    for arguments in (classes, ("--probabilities", "p_*")):
        out = ("--out", "sets.arrow", "--force")
        assert confide_run("predict", records, "--calibration", "cal.json", *arguments, *out).code == 0
        assert {m for s in read(folder / "sets.arrow")["prediction_set"].to_pylist() for m in s} == set(NAMES)


def test_two_classes_and_one_column(confide_run, folder):
    """One column, as in data frames of binary classifiers: every command works with it."""
    p = np.random.default_rng(0).random(3000)
    truth = np.where(np.random.default_rng(1).random(3000) < p, "yes", "no")
    records = write(folder / "records.csv", {"p": p, "label": truth})
    column, levels = ("--probabilities", "p"), (*LEVELS, "--out", "cal.json")
    refused = confide_run("calibrate", records, *column, "--label", "label", *levels)
    assert refused.refused == (REFUSED, "column")
    pair = (*column, "--classes", "no,yes")
    assert confide_run("calibrate", records, *pair, "--label", "label", *levels).code == 0
    released = confide.Calibration.load("cal.json")
    assert released.classes == ("no", "yes")
    assert confide_run("predict", records, "--calibration", "cal.json", *pair, "--out", "s.parquet").code == 0
    made = read(folder / "s.parquet")
    assert made.column_names == ["label", "prediction_set", "set_size"]
    seen = confide_run("evaluate", records, "--calibration", "cal.json", *pair, "--label", "label", "--json").json
    held = [one in some for one, some in zip(truth, made["prediction_set"].to_pylist(), strict=True)]
    assert seen["coverage"]["value"] == np.mean(held)
    assert np.mean(held) > 0.85


@pytest.mark.slow
def test_regression(confide_run, folder):
    rng = np.random.default_rng(0)
    f = rng.normal(size=4000)
    records = write(folder / "records.csv", {"f": f, "y": f + rng.normal(size=4000)})
    pair = ("--prediction", "f", "--target", "y")
    assert confide_run("calibrate", records, *pair, *LEVELS, "--out", "cal.json").code == 0
    released = confide.Calibration.load("cal.json")
    assert released.score == "absolute_residual"
    done = confide_run(
        "predict", records, "--calibration", "cal.json", "--prediction", "f", "--out", "intervals.feather"
    )
    assert done.out.startswith("4,000 intervals\n")
    assert read(folder / "intervals.feather").column_names == ["f", "y", "lower", "upper"]
    seen = confide_run("evaluate", records, "--calibration", "cal.json", *pair, "--json").json
    assert seen["coverage"]["value"] == pytest.approx(0.91, abs=0.02)
    assert seen["mean_width"] == pytest.approx(2 * released.threshold)
    assert "width of intervals" in confide_run("evaluate", records, "--calibration", "cal.json", *pair).out


@pytest.mark.slow
@pytest.mark.parametrize("score", [None, *slow(["cqr_high"])])
@pytest.mark.parametrize("ending", ["parquet", *slow(["csv"])])
def test_quantile_regression(confide_run, folder, score, ending):
    rng = np.random.default_rng(0)
    width = rng.exponential(size=4000)
    quantiles, y = np.stack([-width, width / 2], axis=1), width * rng.normal(size=4000)
    columns = {"id": np.arange(4000), "low": quantiles[:, 0], "high": quantiles[:, 1], "y": y}
    records, chosen = write(folder / f"records.{ending}", columns), () if score is None else ("--score", score)
    pair, truth = ("--prediction", "low,high"), ("--target", "y")
    assert confide_run("calibrate", records, *pair, *truth, *chosen, *LEVELS, "--out", "cal.json").code == 0
    released = confide.Calibration.load("cal.json")
    assert released.score == (score or "cqr")
    share = np.mean(confide.interval_score(quantiles, y, released.score) <= released.threshold)
    assert share == pytest.approx(0.91, abs=0.02)
    done = confide_run("predict", records, "--calibration", "cal.json", *pair, "--out", "i.arrow", "--keep", "id")
    assert done.out.startswith("4,000 intervals\n")
    found, expected = read(folder / "i.arrow"), confide.predict_interval(quantiles, released)
    assert found.column_names == ["id", "lower", "upper"]
    assert (found["lower"].to_pylist(), found["upper"].to_pylist()) == tuple(end.tolist() for end in expected)
    seen = confide_run("evaluate", records, "--calibration", "cal.json", *pair, *truth, "--json").json
    assert seen["coverage"]["value"] == share
    one = confide_run("predict", records, "--calibration", "cal.json", "--prediction", "low", "--out", "j.arrow")
    assert one.refused == (REFUSED, "--calibration")


@pytest.mark.slow
def test_quantiles_by_group(confide_run, folder):
    rng = np.random.default_rng(1)
    ward = rng.choice(["north", "south"], 6000)
    y = rng.normal(size=6000) * np.where(ward == "south", 3, 1)
    pairs = np.tile([-1.0, 1.0], (6000, 1))
    records = write(folder / "r.parquet", {"ward": ward, "low": pairs[:, 0], "high": pairs[:, 1], "y": y})
    asked = ("--prediction", "low, high", "--by", "ward")
    done = confide_run(
        "calibrate", records, *asked, "--target", "y", "--groups", "north,south", *LEVELS, "--out", "cal.json"
    )
    assert done.code == 0, done.err
    released = confide.GroupCalibration.load("cal.json")
    assert released["south"].threshold > released["north"].threshold + 1
    assert confide_run("predict", records, *asked, "--calibration", "cal.json", "--out", "i.parquet").code == 0
    lower, upper = confide.predict_interval(pairs, released, groups=ward)
    found = read(folder / "i.parquet")
    assert (found["lower"].to_pylist(), found["upper"].to_pylist()) == (lower.tolist(), upper.tolist())


@pytest.mark.slow
def test_ready_made_scores(confide_run, folder):
    scores = np.random.default_rng(0).gumbel(size=4000)
    records = write(folder / "records.parquet", {"s": scores})
    column = ("--score-column", "s", "--neighbors", "replace_one")
    options = (*column, "--score", "energy", "--unit", 1)
    assert confide_run("calibrate", records, *options, *LEVELS, "--out", "cal.json").code == 0
    released = confide.Calibration.load("cal.json")
    assert released.score == "energy"
    seen = confide_run("evaluate", records, "--calibration", "cal.json", *column[:2], "--json").json
    assert seen["coverage"]["value"] == np.mean(scores <= released.threshold)
    assert confide_run("calibrate", records, *column, *LEVELS, "--out", "unnamed.json").code == 0
    assert confide.Calibration.load("unnamed.json").score is None
    unit = ("--score", "normalised_residual", "--unit", 2.5)
    sizes = write(folder / "sizes.parquet", {"s": np.abs(scores)})
    assert confide_run("calibrate", sizes, *column, *unit, *LEVELS, "--out", "unit.json").code == 0
    assert confide.Calibration.load("unit.json").recipe["unit"] == 2.5


def test_no_cost_is_expected_of_a_useless_threshold():
    released = confide.calibrate(np.linspace(0, 1, 2000), 0.1, 1.0, score="lac")
    request = Request(alpha=0.1, epsilon=1.0, score="lac")
    assert expected_plan(released, request) is not None
    assert expected_plan(replace(released, threshold=math.inf), request) is None


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


@pytest.mark.slow
def test_records_needed_and_cost_are_printed_where_useful(confide_run, folder):
    """No cost for coarse candidates, and no number of records needed if n is large enough."""
    rng = np.random.default_rng(0)
    f = rng.normal(size=2000)
    records = write(folder / "r.csv", {"f": f, "y": f + 1e40 * rng.normal(size=2000)})
    arguments = ("calibrate", records, "--prediction", "f", "--target", "y", *LEVELS, "--out")
    far = confide_run(*arguments, "far.json")
    assert "state a public typical size of the scores (unit=, --unit)" in far.err
    assert "cost of privacy:" not in far.out
    near = confide_run(*arguments, "unit.json", "--unit", 1e40).out
    design = confide.Calibration.load("unit.json").size.design_for
    said = f"on Gaussian residuals of the size of the unit, with {design} records, which the noisy number suggests"
    assert said in near
    assert "cost of privacy: 90." in near
    guess = confide_run(*arguments, "guess.json", "--unit", 1e40, "--n-typical", 1000).out
    assert "on Gaussian residuals of the size of the unit, with 1000 records, a public guess" in guess
    assert "cost of privacy: 90." in guess
    enough = confide_run(*arguments, "n.json", "--unit", 1e40, "--neighbors", "replace_one").out
    assert "cost of privacy:" in enough
    assert "records needed" not in enough
    few = write(folder / "few.parquet", class_table(100))
    made = confide_run("calibrate", few, *COLUMNS, *LEVELS, "--neighbors", "replace_one", "--out", "few.json")
    assert "records needed: about " in made.out or made.err.startswith("warning: the threshold ")
    expected = confide_run(*arguments, "c.json", "--unit", 1e40, "--json").json["expected"]
    assert expected["records_needed"] == confide.plan(0.1, 1.0, score="absolute_residual", unit=1e40).records_needed


@pytest.mark.slow
def test_infinite_intervals_are_valid_json(confide_run, folder):
    records = write(folder / "records.parquet", {"f": [1.0], "y": [2.0]})
    pair = ("--prediction", "f", "--target", "y")
    made = confide_run("calibrate", records, *pair, *LEVELS, "--neighbors", "replace_one", "--out", "cal.json")
    assert made.code == 0
    assert math.isinf(confide.Calibration.load("cal.json").threshold)
    seen = confide_run("evaluate", records, "--calibration", "cal.json", *pair, "--json").json
    assert seen["mean_width"] == "+inf"
    done = confide_run("predict", records, "--calibration", "cal.json", *pair[:2], "--out", "i.parquet", "--json").json
    assert done["threshold"] == "+inf"


@pytest.mark.slow
def test_plan_states_how_many_records_common_scores_need(confide_run):
    asked = ("plan", "--alpha", 0.1, "--epsilon", 3, "--needed")
    numbers = needed_by_scores(0.1, 3.0)
    shown = confide_run(*asked).out.splitlines()[-3:]
    assert [line.split()[-2:] for line in shown] == [[str(one) for one in both] for both in numbers.values()]
    assert all(line.strip().startswith(name) for line, name in zip(shown, numbers, strict=True))
    document = confide_run(*asked, "--json").json
    assert document["records_needed_by_scores"] == {name: list(both) for name, both in numbers.items()}
    assert confide_run("plan", *LEVELS, "--json").json["records_needed_by_scores"] is None


@pytest.mark.slow
def test_plan_states_the_cost(confide_run):
    text = confide_run("plan", *LEVELS, "--n", 1000).out
    for words in ("promise: coverage at least 0.9", "target rank", "rank without privacy  901", "records needed"):
        assert words in text
    public = confide_run("plan", *LEVELS, "--neighbors", "replace_one", "--candidates", "unit:500:logit").out
    assert "unlimited: the number of records is public" in public
    assert "gaps in the scores    a draw may cross one, half of the candidates wide, that starts within" in text
    residuals = confide_run("plan", *LEVELS, "--score", "absolute_residual", "--unit", 25).out
    assert "log-spaced, densest around the unit 25" in residuals
    assert "on Gaussian residuals of the size of the unit" in residuals
    assert "500, unit, spacing logit" in public
    for fewest in (("--n", 5), ("--n", 20, "--n-typical", 1000)):
        assert "+inf is the likely answer" in confide_run("plan", *LEVELS, *fewest).out
    few = confide_run("plan", *LEVELS, "--n", 5, "--neighbors", "replace_one")
    assert "none suffices: the answer is +inf" in few.out
    document = confide_run("plan", *LEVELS, "--n", 5, "--neighbors", "replace_one", "--json").json
    assert document["target_rank"] == "+inf"
    assert document["privacy"]["add_remove"] == "+inf"


@pytest.mark.slow
def test_show_states_every_loss(confide_run, folder):
    confide.calibrate(classified()[0][:, 0], 0.1, 1.0, neighbors="replace_one", score="mine").save("cal.json")
    text = confide_run("show", "cal.json", "--records", 4).out
    for words in (
        "score 'mine'",
        "one record replaced",
        "4 records replaced",
        "unlimited",
        "3,000",
        "slopes",
    ):
        assert words in text


def test_keep_and_force(confide_run, folder):
    records = write(folder / "records.parquet", class_table())
    confide_run("calibrate", records, *COLUMNS, *LEVELS, "--out", "cal.json")
    arguments = ("predict", records, "--calibration", "cal.json", "--probabilities", "p_*", "--out", "s.parquet")
    assert confide_run(*arguments, "--keep", "id,name", "--keep", "text").code == 0
    assert read(folder / "s.parquet").column_names == ["id", "name", "text", "prediction_set", "set_size"]
    assert confide_run(*arguments, "--force").code == 0
    assert "label" in read(folder / "s.parquet").column_names


@pytest.mark.slow
def test_arrow_of_one_batch_and_csv_give_the_same_calibration_counts(confide_run, folder):
    table = pa.table({"s": np.linspace(0, 1, 2000)}).combine_chunks()
    for suffix in ("arrow", "csv"):
        path = write(folder / f"r.{suffix}", table)
        seen = confide_run(
            "calibrate", path, "--score-column", "s", *LEVELS, "--epsilon", 1000, "--out", f"{suffix}.json"
        )
        assert seen.code == 0
    a, b = (confide.Calibration.load(f"{suffix}.json").threshold for suffix in ("arrow", "csv"))
    assert a == pytest.approx(b, abs=0.01)


@pytest.mark.parametrize("command", ["calibrate", "predict", "evaluate", "plan", "show", "demo"])
def test_help_has_an_example(confide_run, command):
    text = confide_run(command, "--help").out
    assert f"confide {command} " in text
    assert "Example:" in text


def test_help_explains_every_argument_and_option():
    def parameters(command, path):
        for parameter in command.params:
            yield " ".join(path), parameter
        for name, below in getattr(command, "commands", {}).items():
            yield from parameters(below, [*path, name])

    found = list(parameters(app, ["confide"]))
    assert len(found) > 100
    assert [(path, parameter.name) for path, parameter in found if not parameter.help] == []


def test_help_and_version(confide_run):
    text = confide_run("--help").out
    for code in IN_WORDS:
        assert f" {code} " in text
    assert confide_run("--version").out.startswith("confide 0.")
