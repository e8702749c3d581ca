"""`confide calibrate --choose`: one of several scores or models, chosen privately on a share of the records."""

import numpy as np
import pyarrow as pa
import pytest

import confide
from confide.cli.exit_codes import REFUSED
from confide.ledger import Ledger
from tests.files import class_table, write

PLAIN = ("--alpha", 0.1, "--epsilon", 2)
COLUMNS = ("--probabilities", "p_*", "--label", "name")
TWO = ("--set", "choose=lac,aps_deterministic")


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


@pytest.mark.slow
def test_model_is_chosen_and_the_release_is_verified(confide_run, records):
    options = (*COLUMNS, "--set", "choose=lac,q_*:lac", *PLAIN, "--ledger", "l.db", "--dataset", "people")
    made = confide_run("calibrate", records, *options, "--out", "cal.json")
    assert made.code == 0, made.err
    released = confide.Release.load("cal.json")
    assert released.chosen.among == ("lac", "q_*:lac")
    assert released.chosen.name == "lac"  # otherwise with probability below 1e-10
    assert released.score == "lac"
    assert (
        "'lac', chosen among 2 (lac, q_*:lac) by the mean size, each at most 3, on a share of "
        "1/5 of the records, at epsilon 2" in made.out
    )
    assert Ledger("l.db").account("people").spent().epsilon == 2.0
    assert confide_run("verify", "cal.json").code == 0
    assert "chosen among 2" in confide_run("show", "cal.json").out
    predict = ("predict", records, "--calibration", "cal.json", *COLUMNS[:2], "--out", "sets.parquet")
    assert confide_run(*predict).code == 0


@pytest.mark.parametrize(("name", "value"), [("n_min", 10**15), ("records_per_person", 0)])
def test_threshold_that_cannot_be_released_is_found_before_the_choice_is_charged(confide_run, records, name, value):
    paid = ("--ledger", "l.db", "--dataset", "people")
    done = confide_run(
        "calibrate", records, *COLUMNS, *TWO, *PLAIN, "--set", f"{name}={value}", *paid, "--out", "cal.json"
    )
    assert (done.code, name in done.err) == (REFUSED, True)
    assert not Ledger("l.db").accounts()


@pytest.mark.slow
def test_records_that_are_incomplete_for_one_model_are_left_out_for_all(confide_run, folder, monkeypatch):
    """Every model has the scores of the same records: those with values for all models."""
    seen = []

    def choosing(scores, *args, **how):
        seen.append((scores, how["sizes"]))
        return confide.choose_score(scores, *args, **how)

    monkeypatch.setattr("confide.cli.calibrate.choose_score", choosing)
    rng = np.random.default_rng(0)
    p = {"p": rng.random(9).tolist(), "q": rng.random(9).tolist()}
    p["p"][3], p["q"][4] = None, None
    names, columns = ["a", "b", "b"] * 3, {}
    for letter, own in p.items():
        columns |= {f"{letter}_a": own, f"{letter}_b": [None if x is None else 1 - x for x in own]}
    records = write(folder / "records.parquet", pa.table(columns | {"name": names}))
    options = (*COLUMNS, "--set", "choose=lac,q_*:lac,aps_deterministic", *PLAIN, "--out", "cal.json")
    refused = confide_run("calibrate", records, *options)
    assert refused.code == REFUSED
    for name, row in (("p_a", 3), ("q_a", 4)):
        assert refused.err.count(f"column {name!r}") == 1
        assert f"1 does not, row {row}" in refused.err
    made = confide_run("calibrate", records, *options, "--set", "skip_incomplete=true")
    assert made.code == 0, made.err
    ((scores, sizes),) = seen
    kept = [0, 1, 2, 5, 6, 7, 8]
    for name, letter in (("lac", "p"), ("q_*:lac", "q")):
        expected = [1 - columns[f"{letter}_{names[row]}"][row] for row in kept]
        assert scores[name] == pytest.approx(expected, abs=1e-15)
    assert [sizes[name].shape for name in scores] == [(7, 2)] * 3
