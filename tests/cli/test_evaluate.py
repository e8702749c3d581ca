"""`confide evaluate` for releases of several thresholds: from a file to numbers, an evaluation file and a page."""

import numpy as np
import pytest

import confide
from confide.cli.exit_codes import REFUSED, USAGE
from confide.evaluation import evaluate_intervals, evaluate_scores, evaluate_sets, load_evaluation, read_evaluation
from tests.builders import slow
from tests.files import NAMES, classified, write

COLUMNS = ("--probabilities", "p_*", "--label", "label")


def wards(n, seed=5):
    return np.random.default_rng(seed).choice(["north", "south"], n)


def table(path, n=20000, seed=1):
    """Labelled records over several batches, in wards of two names and numbers."""
    p, y = classified(n, seed)
    ward, s = wards(n), confide.lac_score(p, y)
    columns = {f"p_{name}": p[:, k] for k, name in enumerate(NAMES)}
    own = {"label": np.array(NAMES)[y], "ward": ward, "number": (ward == "south").astype(np.int64), "s": s}
    return write(path, columns | own), p, y, ward


def kept(confide_run, release, *arguments):
    release.save("release.json", overwrite=True)
    done = confide_run("evaluate", *arguments, "--calibration", "release.json", "--out", "ev.json", "--force")
    assert done.code == 0, done.err
    page = confide_run("report", "release.json", "--evaluation", "ev.json", "--out", "report.html", "--force")
    assert page.code == 0, page.err
    return done.out


@pytest.mark.slow
def test_levels(confide_run, folder):
    path, p, y, _ = table(folder / "records.parquet")
    released = confide.calibrate_levels(confide.lac_score(*classified()), [0.2, 0.1], epsilon=1.0, score="lac")
    out = kept(confide_run, released, path, *COLUMNS, "--examples", 3)
    found = load_evaluation("ev.json")
    assert found == evaluate_sets(released, p, np.array(NAMES)[y], NAMES, examples=3)
    for alpha, one in found.levels.items():
        assert f"alpha {float(alpha):g}:\n  coverage  " in out
        assert str(one.coverage) in out
    assert str(released[0.1].guarantee) in out
    html = (folder / "report.html").read_text(encoding="utf-8")
    assert "Coverage by level" in html
    assert html.count('class="level"') == 2
    assert html.count("contains the true label") + html.count("misses the true label") == 6
    kept(confide_run, released, path, "--score-column", "s")
    assert [len(one.sizes) for one in load_evaluation("ev.json").levels.values()] == [0, 0]


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_groups(confide_run, folder, suffix):
    path, p, y, ward = table(folder / f"records.{suffix}")
    if suffix == "csv":  # the file has fewer digits
        columns = np.loadtxt(path, delimiter=",", skiprows=1, usecols=range(3))
        p = columns.astype(np.float64)
    q, truth = classified()
    released = confide.calibrate_groups(
        confide.lac_score(q, truth), wards(3000, 6), ["south", "north"], 0.1, 1.0, score="lac"
    )
    out = kept(confide_run, released, path, *COLUMNS, "--by", "ward", "--examples", 2)
    found = load_evaluation("ev.json")
    assert found == evaluate_sets(released, p, np.array(NAMES)[y], NAMES, groups=ward, examples=2)
    for part in found.groups:
        assert f"group {part.name}" in out
        assert str(part.coverage) in out
    assert "for each group: coverage at least 0.9" in out
    assert "Coverage by group" in (folder / "report.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_groups_by_number_and_what_is_no_group(confide_run, folder):
    path, _, _, ward = table(folder / "records.parquet")
    q, truth = classified()
    scores, place = confide.lac_score(q, truth), (wards(3000, 6) == "south").astype(int)
    released = confide.calibrate_groups(scores, place, [1, 0], 0.1, 1.0, score="lac")
    kept(confide_run, released, path, *COLUMNS, "--by", "number")
    found = load_evaluation("ev.json")
    assert {part.name: part.n for part in found.groups} == {"1": (ward == "south").sum(), "0": (ward == "north").sum()}
    asked = ("evaluate", path, "--calibration", "release.json", *COLUMNS)
    assert confide_run(*asked).refused == (USAGE, "--by")
    assert confide_run(*asked, "--by", "ward").refused == (REFUSED, "table")
    assert confide_run(*asked, "--by", "warden").refused == (REFUSED, "column")
    by_text = confide.calibrate_groups(scores, np.array(["a", "b"])[place], ["a", "b"], 0.1, 1.0, score="lac")
    by_text.save("release.json", overwrite=True)
    assert confide_run(*asked, "--by", "number").refused == (REFUSED, "--groups")
    predict = ("predict", path, "--calibration", "one.json", "--probabilities", "p_*", "--out", "s.parquet")
    confide.calibrate(scores, 0.1, 1.0, score="lac").save("one.json")
    assert confide_run(*predict, "--by", "ward").refused == (USAGE, "--by")


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["parquet", *slow(["csv"])])
def test_any_column_is_a_check_of_subgroups(confide_run, folder, suffix):
    path, _, _, ward = table(folder / f"records.{suffix}", 3000)
    released = confide.calibrate(confide.lac_score(*classified()), 0.1, 1.0, score="lac")
    for by, names in (("ward", ["north", "south"]), ("number", ["0", "1"])):
        out = kept(confide_run, released, path, *COLUMNS, "--by", by)
        found = load_evaluation("ev.json")
        assert [part.name for part in found.subgroups] == names
        assert [part.n for part in found.subgroups] == [(ward == "north").sum(), (ward == "south").sum()]
        assert all(f"group {part.name}" in out and str(part.coverage) in out for part in found.subgroups)
        assert out.count("group north") == 1 - (by == "number"), "and not once more among the worst"
    assert "Coverage by group" in (folder / "report.html").read_text(encoding="utf-8")
    kept(confide_run, released, path, "--score-column", "s", "--by", "ward")
    assert [part.name for part in load_evaluation("ev.json").subgroups] == ["north", "south"]
    refused = confide_run("evaluate", path, "--calibration", "release.json", *COLUMNS, "--by", "s")
    assert refused.refused == (REFUSED, "column" if suffix == "parquet" else "--by")


def test_a_record_without_a_group_is_refused(confide_run, folder):
    p, y = classified(100)
    columns = {f"p_{name}": p[:, k] for k, name in enumerate(NAMES)} | {"label": np.array(NAMES)[y]}
    path = write(folder / "r.parquet", columns | {"ward": [None] + ["north"] * 99})
    confide.calibrate(confide.lac_score(*classified()), 0.1, 1.0, score="lac").save("release.json")
    refused = confide_run("evaluate", path, "--calibration", "release.json", *COLUMNS, "--by", "ward")
    assert refused.refused == (REFUSED, "table")
    assert "'ward'" in refused.error


@pytest.mark.slow
def test_output_lists_the_parts_with_least_coverage(confide_run, folder):
    """A class with half of the promised coverage, and a worse one with too few records for certainty."""
    rng = np.random.default_rng(0)
    label = np.array(["a"] * 2000 + ["stroma"] * 240 + ["rare"] * 3)
    right = np.concatenate([rng.random(2000) < 0.98, np.arange(240) % 2 == 0, [True, False, False]])
    own = np.where(right, 0.98, 0.01)
    columns = {f"p_{name}": np.where(label == name, own, (1 - own) / 2) for name in ("a", "stroma", "rare")}
    path = write(folder / "r.parquet", columns | {"label": label})
    released = confide.calibrate([0.3] * 2000, 0.1, 1.0, score="lac", candidates=confide.Candidates.unit(3))
    released.save("one.json")
    done = confide_run("evaluate", path, "--calibration", "one.json", *COLUMNS)
    assert done.code == 0, done.err
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert "worst class rare: 0.333 (95 % interval 0.008 to 0.906, n=3)" in lines
    assert "class stroma 0.500 (95 % interval 0.435 to 0.565, n=240), below 0.9 beyond chance" in lines
    assert "worst set size" in done.out
    assert "1 of 3 classes is covered less than 0.9 beyond chance (95 %, all classes at once): stroma. " in done.out
    assert "Calibrate by class" in done.out
    output = confide_run("evaluate", path, "--calibration", "one.json", *COLUMNS, "--json")
    worst = {one["kind"]: one for one in output.json["worst"]}
    assert [worst["class"][name] for name in ("name", "n", "parts", "promised")] == ["rare", 3, 3, 0.9]
    assert worst["class"]["surely_below"] == ["stroma"]
    assert worst["class"]["sentence"] in done.out
    assert set(worst) == {"class", "set size"}
    assert output.json["warnings"] == []
    assert read_evaluation(output.out).classes, "what --json prints can be kept and reported, too"
    kept(confide_run, released, path, *COLUMNS)
    words = (folder / "report.html").read_text(encoding="utf-8")
    assert "1 of 3 classes is covered less than 0.9 beyond chance (95 %, all classes at once): stroma." in words
    assert "Not everyone is covered as often as that." in words
    assert "Below, beyond chance" in words
    assert "Triangles" in words


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::confide.CoverageWarning")
def test_json_contains_the_warnings_of_the_text(confide_run, folder):
    path, *_ = table(folder / "records.parquet", 500)
    confide.calibrate([0.5] * 5, 0.1, 1.0, neighbors="replace_one", score="lac").save("inf.json")
    done = confide_run("evaluate", path, "--calibration", "inf.json", *COLUMNS, "--json")
    assert [f"warning: {one}\n" for one in done.json["warnings"]] == [done.err]
    assert done.json["warnings"][0].startswith("the threshold is +inf")
    levels = confide.calibrate_levels(confide.lac_score(*classified()), [0.2, 0.1], epsilon=1.0, score="lac")
    levels.save("levels.json")
    output = confide_run("evaluate", path, "--calibration", "levels.json", *COLUMNS, "--json").json
    assert [(one["alpha"], one["kind"]) for one in output["worst"]] == [
        (alpha, kind) for alpha in ("1/5", "1/10") for kind in ("class", "set size")
    ]


def test_losses_by_subgroup(confide_run, folder):
    rng = np.random.default_rng(0)
    p = rng.random((4000, 3))
    truth, site = rng.random(p.shape) < p, rng.choice(["x", "y"], 4000)
    released = confide.calibrate_false_negatives(p, truth, 0.1, 1.0)
    scores = confide.calibration.risk.false_negative_thresholds(p, truth)
    path = write(folder / "r.parquet", {"s": np.where(site == "y", 0.99, scores), "site": site})
    out = kept(confide_run, released, path, "--score-column", "s", "--by", "site")
    assert "group y" in out
    assert "1.000 (95 % interval" in out
    assert "above what is promised beyond chance" in out
    assert "worst" not in out
    output = confide_run("evaluate", path, "--calibration", "release.json", "--score-column", "s", "--json").json
    assert output["worst"] == []
    assert "Loss by group" in (folder / "report.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_classes(confide_run, folder):
    path, p, y, _ = table(folder / "records.parquet")
    q, truth = classified()
    labels = np.array(NAMES)[truth]
    released = confide.calibrate_groups(
        confide.lac_score(q, truth), labels, ["emu", "cat", "dog"], 0.1, 1.0, by="class", score="lac"
    )
    out = kept(confide_run, released, path, *COLUMNS)
    found = load_evaluation("ev.json")
    assert found == evaluate_sets(released, p, np.array(NAMES)[y], NAMES)
    assert "class dog" in out
    kept(confide_run, released, path, "--score-column", "s", "--by", "label")
    by_score = load_evaluation("ev.json")
    assert by_score == evaluate_scores(released, confide.lac_score(p, y), groups=np.array(NAMES)[y])
    asked = ("evaluate", path, "--calibration", "release.json", "--score-column", "s")
    assert confide_run(*asked).refused == (USAGE, "--by")
    assert confide_run("evaluate", path, "--calibration", "release.json", *COLUMNS[:2], "--classes", "a,b,c",
                    "--label", "label").refused == (REFUSED, "--classes")  # fmt: skip


@pytest.mark.slow
def test_sides_and_other_quantiles(confide_run, folder):
    rng = np.random.default_rng(0)
    y = rng.normal(size=4000)
    quantiles = np.stack([np.full(4000, -1.0), rng.random(4000)], axis=1)
    path = write(folder / "records.feather", {"low": quantiles[:, 0], "high": quantiles[:, 1], "y": y})
    columns = ("--prediction", "low, high", "--target", "y")
    sides = confide.calibrate_sides(quantiles, y, 0.1, 1.0)
    out = kept(confide_run, sides, path, *columns)
    found = load_evaluation("ev.json")
    assert found == evaluate_intervals(sides, quantiles, y)
    assert "upper end" in out
    assert "0.95 is promised" in out
    one = confide.calibrate(confide.cqr_score(quantiles, y), 0.1, 1.0, score="cqr")
    kept(confide_run, one, path, *columns)
    assert load_evaluation("ev.json") == evaluate_intervals(one, quantiles, y)
    asked = ("evaluate", path, "--calibration", "release.json")
    said = confide_run(*asked, "--prediction", "low", "--target", "y").error
    assert said.endswith("Name the columns with --prediction LOWER,UPPER")
    sides.save("release.json", overwrite=True)
    assert confide_run(*asked, "--score-column", "y").refused == (USAGE, "--prediction")


def test_losses_by_critical_thresholds(confide_run, folder):
    rng = np.random.default_rng(0)
    p = rng.random((4000, 6))
    truth = rng.random(p.shape) < p
    released = confide.calibrate_false_negatives(p, truth, 0.1, 1.0)
    scores = confide.calibration.risk.false_negative_thresholds(p, truth)
    path = write(folder / "records.parquet", {"s": scores, "p_a": p[:, 0], "p_b": p[:, 1], "y": truth[:, 0] + 0})
    out = kept(confide_run, released, path, "--score-column", "s")
    found = load_evaluation("ev.json")
    assert found == evaluate_scores(released, scores)
    c = found.coverage
    assert f"loss 'false_negative_rate'  {1 - c.value:.3f} (95 % interval {1 - c.high:.3f} to {1 - c.low:.3f}" in out
    assert "at most 10 % of a record's true labels are missed on average" in out
    html = (folder / "report.html").read_text(encoding="utf-8")
    assert f"{1 - c.value:.3f} (95 % interval" in html
    asked = ("evaluate", path, "--calibration", "release.json", "--probabilities", "p_*", "--label", "y")
    assert confide_run(*asked).refused == (REFUSED, "--calibration")


@pytest.mark.slow
def test_an_evaluation_of_another_release_is_refused(confide_run, folder):
    path, *_ = table(folder / "records.parquet", 2000)
    scores = confide.lac_score(*classified())
    levels = confide.calibrate_levels(scores, [0.2, 0.1], epsilon=1.0, score="lac")
    kept(confide_run, levels, path, *COLUMNS)
    confide.calibrate_levels(scores, [0.3, 0.1], epsilon=1.0, score="lac").save("other.json")
    levels[0.1].save("one.json")
    for other in ("other.json", "one.json"):
        done = confide_run("report", other, "--evaluation", "ev.json", "--out", "r.html")
        assert done.refused == (REFUSED, "--evaluation")
    assert not (folder / "r.html").exists()


def test_columns_that_only_count_are_named_with_classes(confide_run, folder):
    """As in predict, columns p_0, p_1, ... are the release's classes; the names of labels must be given."""
    p, y = classified(300)
    path = write(folder / "counted.parquet", {**{f"p_{k}": p[:, k] for k in range(3)}, "label": np.array(NAMES)[y]})
    released = confide.calibrate(confide.lac_score(*classified()), 0.1, 1.0, neighbors="replace_one", classes=NAMES)
    released.save("release.json")
    asked = ("evaluate", path, *COLUMNS, "--calibration", "release.json")
    assert "(other)" in confide_run(*asked).out  # no label is 0, 1 or 2
    assert confide_run(*asked, "--classes", ",".join(NAMES)).code == 0


def other_clinic(folder):
    """A release, and records of another clinic, of which about half are covered."""
    path, p, y, _ = table(folder / "records.parquet", 3000)
    names = np.array(NAMES)
    released = confide.calibrate(confide.lac_score(*classified()), 0.1, 1.0, score="lac")
    released.save("release.json", overwrite=True)
    columns = {f"p_{name}": p[:, k] for k, name in enumerate(NAMES)} | {"label": names[(y + 1) % len(NAMES)]}
    return released, path, write(folder / "other.parquet", columns)


@pytest.mark.slow
def test_coverage_below_the_promise_is_reported_first(confide_run, folder):
    """As text, as JSON, and on the page, before the parts, whose advice would be wrong."""
    released, own, other = other_clinic(folder)
    asked = ("--calibration", "release.json", *COLUMNS)
    done = confide_run("evaluate", other, *asked)
    assert (done.code, done.err) == (0, "")
    first, *_ = done.out.splitlines()
    assert first.startswith("Covered surely less than promised: ")
    assert first.endswith(
        " Possible causes: other records than the calibration records, another model, or a wrong column."
    )
    assert "classes at once): " in done.out
    assert "calibrate by class" not in done.out
    assert "aps_deterministic" not in done.out
    output = confide_run("evaluate", other, *asked, "--json")
    (short,) = output.json["shortfalls"]
    assert (short["of"], short["broken"], short["promised"], short["chance"]) == ("", True, 0.9, 0.001)
    assert 0 < short["from_records"] < 1000
    assert output.json["warnings"] == [short["sentence"]] == [first]
    assert first in output.err
    assert read_evaluation(output.out).shortfall.luck == "not read", "files do not say what luck explains"
    kept(confide_run, released, other, *COLUMNS)
    assert "whether luck in calibrating explains this" in str(load_evaluation("ev.json"))
    page = (folder / "report.html").read_text(encoding="utf-8")
    head = page[page.index("<h1>") : page.index("<nav")]
    assert "this release does not keep its promise" in head
    assert "On average, the true label is in" not in head
    assert first.split(".")[0] in head
    assert "Not everybody" not in head
    fair = confide_run("evaluate", own, *asked)
    assert "surely less" not in fair.out
    assert confide_run("evaluate", own, *asked, "--json").json["shortfalls"] == []


@pytest.mark.slow
def test_a_pipeline_fails_below_the_promise(confide_run, folder):
    _, own, other = other_clinic(folder)
    asked = ("--calibration", "release.json", *COLUMNS, "--fail-below-promise")
    assert confide_run("evaluate", own, *asked).code == 0
    assert confide_run("evaluate", other, *asked).code == 5
    assert confide_run("evaluate", other, *asked, "--json").code == 5
    private = confide_run("evaluate", other, *asked, "--epsilon", "1", "--out", "private.json")
    assert private.code == 5
    assert private.out.startswith("Covered surely less than promised: ")
    assert "(0 " not in private.out
    output = confide_run("evaluate", other, *asked, "--epsilon", "1", "--json")
    assert [one["broken"] for one in output.json["shortfalls"]] == [True]
    assert output.json["warnings"] == [output.json["shortfalls"][0]["sentence"]]
    assert confide_run("report", "release.json", "--evaluation", "private.json", "--out", "p.html").code == 0
    head = (folder / "p.html").read_text(encoding="utf-8").split("<nav")[0]
    assert "this release does not keep its promise" in head
    weights = confide.calibrate(
        confide.lac_score(*classified()), 0.1, 1.0, class_weights=dict.fromkeys(NAMES, 1), score="lac",
        labels=np.array(NAMES)[classified()[1]],
    )  # fmt: skip
    weights.save("shift.json")
    refused = confide_run("evaluate", own, "--calibration", "shift.json", *COLUMNS, "--fail-below-promise")
    assert refused.refused == (REFUSED, "--fail-below-promise")


def test_a_guarantee_about_labels_is_printed_as_one(confide_run, folder):
    rng = np.random.default_rng(0)
    p = rng.random((3000, 3))
    confide.calibrate_false_negatives(p, rng.random(p.shape) < p, 0.2, 1.0).save("release.json")
    path = write(folder / "new.parquet", {f"p_{k}": p[:, k] for k in range(3)})
    done = confide_run("predict", path, "--calibration", "release.json", "--probabilities", "p_*", "--out", "s.csv")
    assert "promise: at most 20 % of a record's true labels are missed on average over calibration data" in done.out
    assert "coverage" not in done.out


@pytest.mark.slow
def test_empty_sets_are_counted_and_too_many_are_a_warning(confide_run, folder):
    confide.calibrate([0.3] * 2000, 0.1, 1.0, score="lac", candidates=confide.Candidates.unit(3)).save("release.json")
    for empty, warned in ((60, False), (600, True)):
        own = np.where(np.arange(1000) < empty, 0.4, 0.8)
        path = write(folder / "new.parquet", {"p_a": own, "p_b": 0.2 + 0 * own, "p_c": 0.8 - own})
        done = confide_run(
            "predict", path, "--calibration", "release.json", "--probabilities", "p_*", "--out", "s.csv", "--force"
        )
        assert done.code == 0, done.err
        assert f"empty sets: {empty} of 1,000 ({empty // 10} %)" in done.out
        assert ("an empty set never contains the true label" in done.err) == warned


def test_too_many_groups_name_their_column(confide_run, folder):
    other_clinic(folder)
    many = write(folder / "many.parquet", {"s": np.linspace(0, 1, 1500), "TEMP": np.arange(1500)})
    refused = confide_run("evaluate", many, "--calibration", "release.json", "--score-column", "s", "--by", "TEMP")
    assert refused.refused == (REFUSED, "--by")
