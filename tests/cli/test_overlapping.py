"""Groups that overlap on the command line: calibrate, show, verify, predict, evaluate and recalibrate."""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from scipy import stats

import confide
from confide.cli.exit_codes import REFUSED, USAGE
from confide.mechanisms import Slopes
from tests.calibrations import fix_noisy_number

NAMES = {"sex": ["f", "m"], "age": [1, 2, 3], "site": ["a", "b"]}
N = 3000
rng = np.random.default_rng(0)
GROUPS = {name: rng.choice(values, N) for name, values in NAMES.items()}
F = rng.normal(size=N)
TABLE = pa.table({"f": F, "y": F + (1 + (GROUPS["sex"] == "f")) * rng.normal(size=N), **GROUPS})


@pytest.mark.slow
def test_the_command_line(confide_run, folder):
    pyarrow.csv.write_csv(TABLE, folder / "t.csv")
    columns = ("--prediction", "f", "--target", "y")
    by = ("--by", "sex,age,site", "--groups", "f,m;1,2,3;a,b")
    budget = ("--ledger", "l.db", "--dataset", "d", "--partition", "people")
    made = confide_run(
        "calibrate", "t.csv", *columns, "--alpha", 0.1, "--epsilon", 3, "--unit", 1, *by, *budget, "--out", "cal.json"
    )
    assert made.code == 0, made.err
    written = confide.OverlappingCalibration.load("cal.json")
    assert str(written) in made.out
    assert confide.Ledger("l.db").account("d").spent().epsilon <= 3
    shown = confide_run("show", "cal.json")
    assert "not for intersections of groups" in shown.out
    assert "any shares of the groups" not in shown.out
    assert "claims: recomputed, and they hold" in confide_run("verify", "cal.json").out
    listed = confide_run("ledger", "show", "l.db", "d")
    assert listed.out.count("group people: ") == len(written.parts)
    assert "group people: sex=f" in listed.out
    reported = confide_run("report", "cal.json", "--ledger", "l.db", "--out", "report.html")
    assert reported.code == 0, reported.err
    assert "not for intersections of groups" in (folder / "report.html").read_text(encoding="utf-8")
    columns_again = ("--calibration", "cal.json", "--by", "sex,age,site")
    predicted = confide_run("predict", "t.csv", "--prediction", "f", *columns_again, "--out", "i.parquet")
    assert predicted.code == 0, predicted.err
    lower, _ = confide.predict_interval(F, written, groups=GROUPS)
    assert pq.read_table("i.parquet")["lower"].to_pylist() == lower.tolist()
    evaluated = confide_run("evaluate", "t.csv", *columns, *columns_again, "--json")
    assert len(evaluated.json["groups"]) == 7
    private = confide_run("evaluate", "t.csv", *columns, *columns_again, "--epsilon", 5, "--json")
    assert private.code == 0, private.err
    renewed = confide_run("recalibrate", "t.csv", *columns, *columns_again, "--out", "again.json")
    assert renewed.code == 0, renewed.err
    assert confide.load("again.json").overlap == written.overlap


@pytest.mark.parametrize(
    ("by", "groups", "code", "argument"),
    [
        ("sex,age", "f,m", REFUSED, "--groups"),
        ("sex,age", "f,m;1,2,3;a,b", REFUSED, "--groups"),
        ("sex,age", "f,m;1,2", REFUSED, "table"),
        ("sex,other", "f,m;1,2", REFUSED, "column"),
        ("sex,sex", "f,m;f,m", REFUSED, "--by"),
    ],
)
def test_bad_options_are_refused(confide_run, folder, by, groups, code, argument):
    pyarrow.csv.write_csv(TABLE, folder / "t.csv")
    options = ("--prediction", "f", "--target", "y", "--alpha", 0.1, "--epsilon", 1)
    ran = confide_run("calibrate", "t.csv", *options, "--by", by, "--groups", groups, "--out", "cal.json")
    assert ran.code in (code, USAGE), ran.out
    assert ran.refused[1] == argument


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    place = tmp_path_factory.mktemp("released") / "cal.json"
    scores = np.abs(TABLE["y"].to_numpy() - F)
    options = {"score": "absolute_residual", "unit": 1.0, "n_typical": 1000}
    confide.calibrate_groups(scores, GROUPS, NAMES, 0.1, 3.0, **options).save(place)
    return place


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_tables_in_batches_are_read_like_arrays(confide_run, folder, released, kind):
    """Row groups, and columns in another order, change nothing; groups are covered by exact binomial tests."""
    if kind == "csv":
        pyarrow.csv.write_csv(TABLE, folder / "t.csv")
    else:
        pq.write_table(TABLE.select(["site", "y", "age", "f", "sex"]), folder / "t.parquet", row_group_size=400)
    written = confide.load(released)
    options = ("--calibration", released, "--prediction", "f", "--by", "site,sex,age")
    predicted = confide_run("predict", f"t.{kind}", *options, "--out", "i.parquet")
    assert predicted.code == 0, predicted.err
    lower, _ = confide.predict_interval(F, written, groups=GROUPS)
    assert pq.read_table("i.parquet")["lower"].to_pylist() == lower.tolist()
    found = confide_run("evaluate", f"t.{kind}", *options, "--target", "y", "--json").json
    exact = confide.evaluate_intervals(written, F, TABLE["y"].to_numpy(), groups=GROUPS)
    assert [(part["name"], part["covered"]) for part in found["groups"]] == [
        (part.name, part.covered) for part in exact.groups
    ]
    for part in found["groups"]:  # the records also calibrated, so that this is a check of the whole, not of the law
        assert stats.binomtest(part["covered"], part["n"], 0.9, alternative="less").pvalue > 1e-6 / 7


@pytest.mark.parametrize(
    ("by", "argument"),
    [
        ("sex,age", "--by"),
        ("sex", "--by"),
        ("sex,age,site,f", "--by"),
        ("sex,age,other", "column"),
        ("sex,age,sex", "--by"),
    ],
)
@pytest.mark.parametrize("command", ["predict", "evaluate", "recalibrate"])
def test_other_columns_are_refused_in_one_line(confide_run, folder, released, command, by, argument):
    pyarrow.csv.write_csv(TABLE, folder / "t.csv")
    target = () if command == "predict" else ("--target", "y")
    out = () if command == "evaluate" else ("--out", "out.json" if command == "recalibrate" else "out.csv")
    ran = confide_run(command, "t.csv", "--calibration", released, "--prediction", "f", *target, "--by", by, *out)
    assert ran.code == REFUSED
    assert ran.refused[1] == argument
    assert ran.out == ""


@pytest.mark.slow
@pytest.mark.parametrize("value", ["x", ""])
def test_records_of_unknown_or_missing_groups_are_refused_in_one_line(confide_run, folder, released, value):
    """Nothing is written, and the value is not shown."""
    sites = [f"{value}123456789" if value else None, *GROUPS["site"][1:].tolist()]
    table = TABLE.set_column(TABLE.schema.get_field_index("site"), "site", pa.array(sites))
    pq.write_table(table, folder / "t.parquet")
    by = ("--by", "sex,age,site")
    columns = ("t.parquet", "--prediction", "f", "--target", "y", *by)
    groups = ("--groups", "f,m;1,2,3;a,b", "--alpha", 0.1, "--epsilon", 1)
    ledger = ("--ledger", "l.db", "--dataset", "d", "--partition", "people")
    for ran in (
        confide_run("calibrate", *columns, *groups, *ledger, "--out", "cal.json"),
        confide_run("predict", *columns[:3], *by, "--calibration", released, "--out", "out.csv"),
        confide_run("evaluate", *columns, "--calibration", released, "--out", "out.json"),
        confide_run("recalibrate", *columns, "--calibration", released, "--out", "cal.json"),
    ):
        assert ran.code == REFUSED
        assert ran.refused[1] == "table"
        assert "123456789" not in ran.err + ran.out
    assert {path.name for path in folder.iterdir()} <= {"t.parquet", "l.db"}


def test_a_ledger_needs_the_name_of_the_partition(confide_run, folder):
    pyarrow.csv.write_csv(TABLE, folder / "t.csv")
    ran = confide_run(
        "calibrate", "t.csv", "--prediction", "f", "--target", "y", "--alpha", 0.1, "--epsilon", 1, "--by", "sex,site",
        "--groups", "f,m;a,b", "--ledger", "l.db", "--dataset", "d", "--out", "cal.json",
    )  # fmt: skip
    assert ran.code == USAGE
    assert "--partition" in ran.err
    assert not (folder / "cal.json").exists()


@pytest.mark.slow
def test_with_a_fixed_sampler_the_same_is_printed_for_other_records(confide_run, folder, monkeypatch):
    """Output, warnings and files of 3000 records and of 5 are equal if the sampler selects the same candidates."""
    fix_noisy_number(monkeypatch, 1234)
    monkeypatch.setattr(Slopes, "choose", lambda *_: 30)
    outputs = []
    for name, rows in (("all", TABLE), ("few", TABLE.slice(0, 5))):
        (folder / name).mkdir()
        monkeypatch.chdir(folder / name)
        pq.write_table(rows, "t.parquet")
        ran = confide_run(
            "calibrate", "t.parquet", "--prediction", "f", "--target", "y", "--alpha", 0.1, "--epsilon", 1, "--unit", 1,
            "--by", "sex,age,site", "--groups", "f,m;1,2,3;a,b", "--out", "cal.json",
        )  # fmt: skip
        outputs.append((ran.code, ran.out, ran.err, (folder / name / "cal.json").read_text(encoding="utf-8")))
    assert outputs[0] == outputs[1]
