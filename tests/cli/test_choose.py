"""`confide calibrate --choose`: one of several scores or models, chosen privately on a share of the records."""

import numpy as np
import pytest

import confide
from confide.cli.exit_codes import REFUSED, USAGE
from confide.ledger import Ledger
from tests.builders import slow
from tests.files import class_table, write

PLAIN = ("--alpha", 0.1, "--epsilon", 2)
COLUMNS = ("--probabilities", "p_*", "--label", "name")
TWO = ("--choose", "lac", "--choose", "aps")


@pytest.fixture
def records(folder):
    """Records with the probabilities of a good model, p_*, and of another one, q_*, for other records."""
    table = class_table(lists=False)
    for name in [name for name in table.column_names if name.startswith("p_")]:
        table = table.append_column(name.replace("p_", "q_"), [np.roll(table[name].to_numpy(), 7)])
    rng = np.random.default_rng(0)
    target = rng.normal(0, 10, len(table))
    for name, column in {"good": target + rng.normal(size=len(table)), "poor": 0 * target, "t": target}.items():
        table = table.append_column(name, [column])
    return write(folder / "records.parquet", table)


def test_model_is_chosen_and_the_release_is_verified(confide_run, records):
    options = (*COLUMNS, "--choose", "lac", "--choose", "q_*:lac", *PLAIN, "--ledger", "l.db", "--dataset", "people")
    made = confide_run("calibrate", records, *options, "--out", "cal.json")
    assert made.code == 0, made.err
    released = confide.Calibration.load("cal.json")
    assert released.chosen.among == ("lac", "q_*:lac")
    assert released.chosen.name == "lac"  # otherwise with probability below 1e-10
    assert released.score == "lac"
    assert "'lac', chosen among 2 (lac, q_*:lac) on a share of 1/5 of the records, at epsilon 2" in made.out
    assert Ledger("l.db").account("people").spent().epsilon == 2.0
    assert confide_run("verify", "cal.json").code == 0
    shown = confide_run("show", "cal.json")
    assert "chosen among 2" in shown.out
    predicted = confide_run("predict", records, "--calibration", "cal.json", *COLUMNS[:2], "--out", "sets.parquet")
    assert predicted.code == 0, predicted.err


@pytest.mark.slow
def test_regression_chooses_among_predictions(confide_run, records):
    options = ("--prediction", "poor", "--target", "t", "--choose", "absolute_residual")
    options += ("--choose", "good:absolute_residual", "--largest-size", 60, "--unit", 1, "--choice-share", "1/4")
    made = confide_run("calibrate", records, *options, *PLAIN, "--out", "cal.json", "--json")
    assert made.code == 0, made.err
    assert made.json["calibration"]["chosen"] == {
        "name": "good:absolute_residual",
        "among": ["absolute_residual", "good:absolute_residual"],
        "share": "1/4",
        "epsilon": 2.0,
    }


@pytest.mark.parametrize(
    ("options", "expected"),
    slow(
        [
            (("--choose", "lac"), (USAGE, "--choose")),
            ((*TWO, "--score", "lac"), (USAGE, "--score")),
            ((*TWO, "--rho", 0.1), (USAGE, "--rho")),
            ((*TWO, "--by", "name", "--groups", "a,b"), (USAGE, "--by")),
            (("--largest-size", 3), (USAGE, "--largest-size")),
            ((*TWO, "--largest-size", 99), (REFUSED, "most")),
            ((*TWO, "--choice-share", 0.7), (REFUSED, "share")),
            ((*TWO, "--neighbors", "replace_one"), (REFUSED, "--neighbors")),
            (("--choose", "lac", "--choose", "absent"), (USAGE, "--score")),
        ],
    ),
)
def test_impossible_options_raise(confide_run, records, options, expected):
    ran = confide_run("calibrate", records, *COLUMNS, *PLAIN, *options, "--out", "cal.json")
    assert ran.refused == expected
