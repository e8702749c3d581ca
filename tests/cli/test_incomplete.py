"""`--skip-incomplete` on every command that reads records: its count is printed only if it is public."""

import numpy as np
import pytest

from confide.cli.exit_codes import REFUSED
from confide.core import load_release
from tests.files import classified, write

N, HOLES = 600, 7
COLUMNS = ("--probabilities", "p_*", "--label", "label")
ASKED = (*COLUMNS, "--alpha", 0.2, "--epsilon", 1000, "--out", "cal.json", "--force")
SKIP = ("--set", "skip_incomplete=true")
LEFT_OUT = f"left out: {HOLES} records with missing values\n"


@pytest.fixture
def records(folder):
    p, y = classified(N, dtype=np.float64)
    p[3 : 3 + HOLES, 1] = np.nan
    names = np.array(["a", "b", "c"])
    return write(folder / "records.csv", {f"p_{name}": p[:, k] for k, name in enumerate(names)} | {"label": names[y]})


@pytest.mark.slow
def test_left_out_records_are_counted_only_where_n_is_public(confide_run, records):
    refused = confide_run("calibrate", records, *ASKED)
    assert refused.refused == (REFUSED, "table")
    skip = SKIP
    secret = confide_run("calibrate", records, *ASKED, *SKIP)
    assert secret.code == 0
    assert "left out" not in secret.out + secret.err
    assert "left_out" not in confide_run("calibrate", records, *ASKED, *SKIP, "--json").json
    public = confide_run("calibrate", records, *ASKED, *SKIP, "--neighbors", "replace_one")
    assert LEFT_OUT in public.out
    assert load_release("cal.json").n == N - HOLES
    public = confide_run("calibrate", records, *ASKED, *SKIP, "--neighbors", "replace_one", "--json").json
    assert public["left_out"] == HOLES
    without = confide_run("calibrate", records, *ASKED, "--neighbors", "replace_one", "--json")
    assert without.code == REFUSED

    measured = ("evaluate", records, *COLUMNS, "--calibration", "cal.json")
    assert confide_run(*measured).code == REFUSED
    assert LEFT_OUT in confide_run(*measured, *skip).out
    found = confide_run(*measured, *skip, "--json").json
    assert (found["left_out"], found["found"]["release"]["coverage"]["n"]) == (HOLES, N - HOLES)

    predicted = ("predict", records, *COLUMNS[:2], "--calibration", "cal.json", "--out", "sets.csv", "--force")
    assert confide_run(*predicted).refused == (REFUSED, "table")
    assert LEFT_OUT in confide_run(*predicted, *skip).out
    done = confide_run(*predicted, *skip, "--json").json
    assert (done["left_out"], done["rows"]) == (HOLES, N - HOLES)
