"""Groups on the command line: names that do not fit, the public number of records, and groups that overlap."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import confide
from confide.cli.exit_codes import REFUSED
from confide.ledger import Ledger
from tests.draws import always
from tests.files import class_table, write

PLAIN = ("--alpha", 0.1, "--epsilon", 1)
COLUMNS = ("--probabilities", "p_*", "--label", "name")
WARD = np.where(np.arange(3000) % 3 == 0, "south", "north")


@pytest.fixture
def records(folder):
    table = (
        class_table(lists=False).append_column("ward", [WARD]).append_column("site", [np.where(WARD == "south", 7, 1)])
    )
    return write(folder / "records.parquet", table)


@pytest.mark.slow
def test_the_public_number(confide_run, records):
    """Another number raises an error without a charge. Beyond the limit the file is not opened."""
    asked = (*COLUMNS, *PLAIN, "--neighbors", "replace_one", "--ledger", "budget.db", "--dataset", "d", "--out")
    assert confide_run("calibrate", records, *asked, "a.json", "--n", 2999).refused == (REFUSED, "--n")
    assert Ledger("budget.db").accounts() == {}
    assert confide_run("calibrate", records, *asked, "a.json", "--n", 3000).code == 0
    assert confide_run("calibrate", records, *asked, "b.json").code == 0  # the same request: the file says 3000, too
    assert Ledger("budget.db").account("d").spent().epsilon == 1
    Ledger("budget.db").set_limit("d", 1, neighbors="replace_one")
    assert confide_run("calibrate", "nowhere.parquet", *asked, "c.json", "--n", 3001).refused == (REFUSED, "--dataset")
    assert confide_run("calibrate", "nowhere.parquet", *asked, "c.json").refused == (REFUSED, "path")


# Groups that overlap

NAMES = {"sex": ["f", "m"], "age": [1, 2, 3], "site": ["a", "b"]}
N = 3000
rng = np.random.default_rng(0)
GROUPS = {name: rng.choice(values, N) for name, values in NAMES.items()}
F = rng.normal(size=N)
TABLE = pa.table({"f": F, "y": F + (1 + (GROUPS["sex"] == "f")) * rng.normal(size=N), **GROUPS})
VALUES, BY = ("--prediction", "f", "--target", "y"), ("--by", "sex,age,site")
OVERLAPPING = ("calibrate", "t.csv", *VALUES, "--alpha", 0.1, "--set", "unit=1", *BY, "--groups", "f,m;1,2,3;a,b")


@pytest.mark.slow
def test_groups_that_overlap(confide_run, folder):
    """Calibrate, show, verify, charge, report, predict, evaluate and recalibrate."""
    write(folder / "t.csv", TABLE)
    budget = ("--ledger", "l.db", "--dataset", "d", "--set", "partition=people")
    made = confide_run(*OVERLAPPING, "--epsilon", 3, *budget, "--out", "cal.json")
    assert made.code == 0, made.err
    written = confide.Release.load("cal.json")
    assert str(written) in made.out
    assert Ledger("l.db").account("d").spent().epsilon <= 3
    assert "not for intersections of groups" in confide_run("show", "cal.json").out
    assert "claims: recomputed, and they hold" in confide_run("verify", "cal.json").out
    listed = confide_run("ledger", "show", "l.db", "d").out
    assert listed.count("group people: ") == len(written.parts)
    assert "group people: sex=f" in listed
    assert confide_run("report", "cal.json", "--ledger", "l.db", "--out", "report.html").code == 0
    again = ("--calibration", "cal.json", *BY)
    assert confide_run("predict", "t.csv", *VALUES[:2], *again, "--out", "i.parquet").code == 0
    lower, _ = confide.predict_interval(F, written, groups=GROUPS)
    assert pq.read_table("i.parquet")["lower"].to_pylist() == lower.tolist()
    (groups,) = confide_run("evaluate", "t.csv", *VALUES, *again, "--json").json["found"]["release"]["tables"]
    assert len(groups["parts"]) == 7
    assert confide_run("evaluate", "t.csv", *VALUES, *again, "--epsilon", 5).code == 0
    assert confide_run("recalibrate", "t.csv", *VALUES, *again, "--out", "again.json").code == 0
    assert confide.load("again.json").overlap == written.overlap


@pytest.mark.slow
def test_with_a_fixed_sampler_the_same_is_printed_for_other_records(confide_run, folder, monkeypatch, draw_with):
    """Output, warnings and files of 3000 records and of 5 are equal if the sampler selects the same candidates."""
    draw_with(noisy_number=always(1234), select=always(30))
    outputs = []
    for name, rows in (("all", TABLE), ("few", TABLE.slice(0, 5))):
        (folder / name).mkdir()
        monkeypatch.chdir(folder / name)
        write(folder / name / "t.csv", rows)
        ran = confide_run(*OVERLAPPING, "--epsilon", 1, "--out", "cal.json")
        outputs.append((ran.code, ran.out, ran.err, (folder / name / "cal.json").read_text(encoding="utf-8")))
    assert outputs[0] == outputs[1]
