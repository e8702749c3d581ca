"""Every command on valid input: its output equals the results of the library."""

import re

import numpy as np
import pytest

import confide
from confide.cli.exit_codes import IN_WORDS
from tests.files import NAMES, class_table, classified, read, write

COLUMNS = ("--probabilities", "p_*", "--label", "name")
LEVELS = ("--alpha", 0.1, "--epsilon", 1)


@pytest.mark.slow
def test_the_way_from_records_to_sets(confide_run, folder):
    records = write(folder / "records.csv", class_table(lists=False))
    new = write(folder / "new.csv", class_table(500, seed=1, lists=False))
    made = confide_run("calibrate", records, *COLUMNS, *LEVELS, "--out", "cal.json")
    assert (made.code, made.err) == (0, "")
    released = confide.Release.load("cal.json")
    assert released.score == "lac"
    assert released.n is None
    lines = made.out.splitlines()
    assert "\n".join(lines[:5]) == str(released)
    assert re.fullmatch(r"records: about [\d,]+ \(\+-15 at 95 %\), a noisy number, .*", lines[3])
    assert lines[4].startswith(f"records needed: about {confide.plan(0.1, 1.0).records_needed}; with fewer, ")
    design = released.size.design_for
    cost = confide.plan(0.1, 1.0, design).expected_coverage
    assert lines[5] == f"cost of privacy: {100 * cost:.4g} % expected coverage instead of 90 %"
    assert f"with {design} records, which the noisy number suggests" in lines[6]
    alone = "no ledger: the losses of all runs about the same people add up, and --ledger records the sum"
    assert lines[7:] == [alone, "saved: cal.json"]

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
