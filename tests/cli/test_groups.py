"""Thresholds per group and per class, the public number of records, and scores other than LAC, from single files."""

import numpy as np
import pytest

import confide
from confide.cli.exit_codes import REFUSED
from confide.ledger import Ledger
from tests.files import FORMATS, NAMES, class_table, classified, read, write

SURE = ("--alpha", 0.1, "--epsilon", 1000, "--set", "candidates=unit:1000")
PLAIN = ("--alpha", 0.1, "--epsilon", 1)
COLUMNS = ("--probabilities", "p_*", "--label", "name")
WARD = np.where(np.arange(3000) % 3 == 0, "south", "north")


@pytest.fixture
def records(folder):
    return lambda suffix="parquet": write(
        folder / f"records.{suffix}",
        class_table(lists=False).append_column("ward", [WARD]).append_column("site", [np.where(WARD == "south", 7, 1)]),
    )


def predict(confide_run, path, out, *options):
    ran = confide_run("predict", path, "--probabilities", "p_*", "--keep", "id", *options, "--out", out)
    assert ran.code == 0, ran.err
    return ran, read(out)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", FORMATS)
def test_per_group(confide_run, records, folder, suffix):
    path, (p, y) = records(suffix), classified()
    for column, names in (("ward", ("north", "south")), ("site", (1, 7))):
        options = ("--by", column, "--groups", ",".join(map(str, names)))
        made = confide_run("calibrate", path, *COLUMNS, *SURE, *options, "--out", "cal.json", "--force")
        assert (made.code, made.err) == (0, "")
        released = confide.Release.load("cal.json")
        *said, _, _ = made.out.splitlines()
        assert said == str(released).splitlines()
        for name, ward in zip(names, ("north", "south"), strict=True):
            mine = ward == WARD
            expected = np.quantile(confide.lac_score(p[mine], y[mine]), 0.9, method="higher")
            assert released[name].threshold == pytest.approx(expected, abs=0.02)
        out = folder / f"{column}.parquet"
        said, found = predict(confide_run, path, out, "--calibration", "cal.json", "--by", column)
        place = dict(zip(("north", "south"), names, strict=True))
        sets = confide.predict_set(p, released, NAMES, groups=[place[ward] for ward in WARD])
        assert found["prediction_set"].to_pylist() == sets.labels()
        assert "promise for each group: coverage at least 0.9" in said.out


@pytest.mark.slow
def test_the_public_number(confide_run, records):
    """Another number raises an error without a charge. Beyond the limit the file is not opened."""
    asked = (*COLUMNS, *PLAIN, "--neighbors", "replace_one", "--ledger", "budget.db", "--dataset", "d", "--out")
    wrong = confide_run("calibrate", records(), *asked, "a.json", "--n", 2999)
    assert wrong.refused == (REFUSED, "--n")
    assert Ledger("budget.db").accounts() == {}
    assert confide_run("calibrate", records(), *asked, "a.json", "--n", 3000).code == 0
    assert confide_run("calibrate", records(), *asked, "b.json").code == 0  # the same request: the file says 3000, too
    assert Ledger("budget.db").account("d").spent().epsilon == 1
    Ledger("budget.db").set_limit("d", 1, neighbors="replace_one")
    assert confide_run("calibrate", "nowhere.parquet", *asked, "c.json", "--n", 3001).refused == (REFUSED, "--dataset")
    assert confide_run("calibrate", "nowhere.parquet", *asked, "c.json").refused == (REFUSED, "path")


def test_groups_that_do_not_fit(confide_run, records, folder):
    path = records()
    options = ("--by", "site", "--groups", "north,south")
    refused = confide_run("calibrate", path, *COLUMNS, *PLAIN, *options, "--out", "a.json")
    assert refused.refused == (REFUSED, "--groups")
    options = ("--by", "p_cat", "--groups", "north,south")
    refused = confide_run("calibrate", path, *COLUMNS, *PLAIN, *options, "--out", "a.json")
    assert refused.refused == (REFUSED, "column")
    options = ("--by", "ward", "--groups", "north,north")
    assert confide_run("calibrate", path, *COLUMNS, *PLAIN, *options, "--out", "a.json").refused == (
        REFUSED,
        "--groups",
    )
    refused = confide_run(
        "calibrate",
        path,
        *COLUMNS,
        "--alpha",
        0.1,
        "--set",
        "mechanism=none",
        "--set",
        "by_class=true",
        "--out",
        "a.json",
    )
    assert refused.refused == (REFUSED, "mechanism")
    p, y = classified()
    confide.calibrate(confide.lac_score(p, y), 0.1, 1.0, score="lac").save("one.json")
    confide.calibrate(confide.lac_score(p, y), 0.1, 1.0, groups=WARD, names=["north", "south"], score="lac").save(
        "two.json"
    )
    asked = ("predict", path, "--probabilities", "p_*", "--out", "s.parquet", "--calibration")
    assert confide_run(*asked, "two.json").refused == (REFUSED, "--by")
    assert confide_run(*asked, "one.json", "--by", "ward").refused == (REFUSED, "--by")
    assert confide_run(*asked, "two.json", "--by", "id").refused == (REFUSED, "groups")
    assert not (folder / "s.parquet").exists()
