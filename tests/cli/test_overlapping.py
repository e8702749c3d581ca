"""Groups that overlap on the command line: calibrate, show, verify, predict, evaluate and recalibrate."""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import confide
from confide.cli.exit_codes import REFUSED
from tests.draws import always

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
    budget = ("--ledger", "l.db", "--dataset", "d", "--set", "partition=people")
    made = confide_run(
        "calibrate",
        "t.csv",
        *columns,
        "--alpha",
        0.1,
        "--epsilon",
        3,
        "--set",
        "unit=1",
        *by,
        *budget,
        "--out",
        "cal.json",
    )
    assert made.code == 0, made.err
    written = confide.Release.load("cal.json")
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
    (groups,) = evaluated.json["found"]["release"]["tables"]
    assert len(groups["parts"]) == 7
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
    assert ran.refused == (code, argument)


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    place = tmp_path_factory.mktemp("released") / "cal.json"
    scores = np.abs(TABLE["y"].to_numpy() - F)
    options = {"score": "absolute_residual", "unit": 1.0}
    confide.calibrate(scores, 0.1, 3.0, groups=GROUPS, names=NAMES, **options).save(place)
    return place


@pytest.mark.slow
def test_with_a_fixed_sampler_the_same_is_printed_for_other_records(confide_run, folder, monkeypatch, draw_with):
    """Output, warnings and files of 3000 records and of 5 are equal if the sampler selects the same candidates."""
    draw_with(noisy_number=always(1234), select=always(30))
    outputs = []
    for name, rows in (("all", TABLE), ("few", TABLE.slice(0, 5))):
        (folder / name).mkdir()
        monkeypatch.chdir(folder / name)
        pq.write_table(rows, "t.parquet")
        ran = confide_run(
            "calibrate", "t.parquet", "--prediction", "f", "--target", "y", "--alpha", 0.1, "--epsilon", 1,
            "--set", "unit=1", "--by", "sex,age,site", "--groups", "f,m;1,2,3;a,b", "--out", "cal.json",
        )  # fmt: skip
        outputs.append((ran.code, ran.out, ran.err, (folder / name / "cal.json").read_text(encoding="utf-8")))
    assert outputs[0] == outputs[1]
