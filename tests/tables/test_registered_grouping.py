"""Thresholds per weekday by a grouping registered here: the same for arrays, tables and commands."""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import confide
from confide import Candidates, ScoreHistogram
from confide.cli import main
from confide.errors import InputError
from confide.tables import ClassColumns, calibrate_table, evaluate_table, group_histograms, predict_table
from confide.warehouse import CountingPlan
from tests.refused import bad_rows, refused
from tests.tables.engines import everyday_on

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
weekday = confide.register_grouping(
    "weekday", lambda dates: np.array(DAYS)[(np.asarray(dates, "datetime64[D]").astype(int) + 3) % 7]
)

RNG = np.random.default_rng(0)
DATES = np.datetime64("2026-01-01") + RNG.integers(0, 365, 3000)
P = RNG.dirichlet([4, 2, 1], 3000)
Y = (P.cumsum(1) < RNG.random((3000, 1))).sum(1).clip(0, 2)
LABELS = np.array(["a", "b", "c"])[Y]
SCORES, UNIT = confide.lac_score(P, Y), Candidates.unit(300)
NAMES = ("a", "b", "c")
WHAT = ClassColumns("p_*", "y", NAMES)
PAID = {"alpha": 0.1, "epsilon": 1000.0, "candidates": UNIT}
BY = {"by": "weekday(date)", "groups": DAYS}


def records(dates=DATES):
    columns = {f"p_{name}": P[:, place] for place, name in enumerate("abc")}
    return pa.table({"y": LABELS, "date": dates, **columns})


@pytest.mark.slow
def test_arrays_tables_and_the_command_line_release_the_same(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pa.csv.write_csv(records(), "records.csv")
    of_arrays = confide.calibrate_groups(SCORES, weekday(DATES), DAYS, score="lac", **PAID)
    of_table = calibrate_table(records(), WHAT, **PAID, **BY)
    columns = ("--probabilities", "p_*", "--classes", "a,b,c")
    named = ("--label", "y", "--by", "weekday(date)")
    choices = ("--alpha", "0.1", "--epsilon", "1000", "--candidates", "unit:300")
    own = ("--groups", ",".join(DAYS))
    assert main(["calibrate", "records.csv", *columns, *named, *own, *choices, "--out", "days.json"]) == 0
    thresholds = [part.threshold for part in of_arrays.parts.values()]
    for released in (of_table, confide.load("days.json")):
        assert list(released.parts) == list(DAYS)
        assert [part.threshold for part in released.parts.values()] == thresholds
    wanted = confide.predict_set(P, of_arrays, NAMES, groups=weekday(DATES)).labels()
    by = ("--by", "weekday(date)", "--calibration", "days.json")
    assert main(["predict", "records.csv", *columns, *by, "--out", "sets.parquet"]) == 0
    assert pa.parquet.read_table("sets.parquet")["prediction_set"].to_pylist() == wanted
    assert main(["evaluate", "records.csv", *columns, *named, "--calibration", "days.json", "--out", "all.json"]) == 0


@everyday_on("memory", "duckdb_sql", "postgres")
def test_every_source_counts_evaluates_and_predicts_by_a_registered_grouping(engine, tmp_path):
    table = records(DATES.astype(str))
    counts = group_histograms(engine.table(table), WHAT, "weekday(date)", DAYS, UNIT)
    for day in DAYS:
        own = ScoreHistogram.from_scores(SCORES[weekday(DATES) == day], UNIT)
        assert counts[day].counts.tolist() == own.counts.tolist()
    released = calibrate_table(engine.table(table), WHAT, **PAID, **BY)
    found = evaluate_table(engine.table(table), WHAT, released, by="weekday(date)")
    wanted = confide.evaluate_sets(released, P, LABELS, NAMES, groups=weekday(DATES))
    assert [part.coverage for part in found.groups] == [part.coverage for part in wanted.groups]
    one = calibrate_table(engine.table(table), WHAT, **PAID)
    found = evaluate_table(engine.table(table), WHAT, one, by="weekday(date)")
    assert {part.name for part in found.subgroups} == {*DAYS}
    predict_table(engine.table(table), WHAT, released, tmp_path / "out", by="weekday(date)", keep=["date", "p_a"])
    sets = pa.parquet.read_table(tmp_path / "out").to_pandas().sort_values(["date", "p_a"])
    order = np.lexsort((P[:, 0], DATES))
    labels = confide.predict_set(P, released, NAMES, groups=weekday(DATES)).labels()
    assert [list(one) for one in sets["prediction_set"]] == [labels[place] for place in order]


def test_records_without_a_group_are_counted_in_the_error():
    dates = pa.array(DATES, mask=np.arange(3000) == 0)
    with refused(InputError, "table") as caught:
        calibrate_table(records(dates), WHAT, **PAID, **BY)
    assert bad_rows(caught) == [(1, 0)]
    calibrate_table(records(dates), WHAT, **PAID, **BY, skip_incomplete=True)
    with refused(InputError, "table"):
        calibrate_table(records(), WHAT, **PAID, by="weekday(date)", groups=[day.lower() for day in DAYS])
    with refused(InputError, "column"):
        calibrate_table(records(), WHAT, **PAID, by="weekend(date)", groups=DAYS)
    with refused(InputError, "column"):
        calibrate_table(records(), WHAT, **PAID, by="weekday(day)", groups=DAYS)


def test_errors_of_a_function_contain_no_values(tmp_path):
    def calibrate_by(name, function):
        confide.register_grouping(name, function)
        return calibrate_table(records(), WHAT, **PAID, by=f"{name}(date)", groups=DAYS)

    with refused(InputError, "name") as caught:
        calibrate_by("fails", lambda dates: {}[dates[0]])
    assert caught.value.__suppress_context__
    with refused(InputError, "name"):
        calibrate_by("few", lambda dates: weekday(dates)[:3])
    with refused(InputError, "column"):
        calibrate_by("halves", lambda dates: np.full(len(dates), 0.5))
    with refused(InputError, "name"):
        confide.register_grouping("week day", weekday)
    with refused(InputError, "by"):
        CountingPlan.of(WHAT, 0.1, 1.0, **BY)


def test_packages_register_by_an_entry_point(monkeypatch):
    from confide.tables import groupings

    class Installed:
        load = staticmethod(lambda: weekday)

    monkeypatch.setattr(groupings, "_REGISTERED", {})
    monkeypatch.setattr(groupings, "entry_points", lambda group, name: [Installed] if name == "installed" else [])
    released = calibrate_table(records(), WHAT, **PAID, by="installed(date)", groups=DAYS)
    assert list(released.parts) == list(DAYS)


def test_a_column_of_that_name_is_a_column():
    table = records().append_column("weekday(date)", [np.repeat(["Mon", "Sun"], 1500)])
    counts = group_histograms(table, WHAT, "weekday(date)", ["Mon", "Sun"], UNIT)
    assert [one.total for one in counts.values()] == [1500, 1500]
