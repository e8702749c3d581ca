"""Groups that overlap, in tables of any kind and on the command line: as in arrays, with the same counts."""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import confide
from confide.errors import InputError
from confide.tables import TargetColumns, calibrate_table, evaluate_table, open_table, predict_table
from confide.tables.calibrate import TableRequest
from confide.tables.source import TableSource
from tests.files import in_order_of
from tests.refused import bad_rows, refused

NAMES = {"sex": ["f", "m"], "age": [1, 2, 3], "site": ["a", "b"]}
N = 3000
rng = np.random.default_rng(0)
GROUPS = {name: rng.choice(values, N) for name, values in NAMES.items()}
F = rng.normal(size=N)
Y = F + (1 + (GROUPS["sex"] == "f")) * (1 + 0.3 * GROUPS["age"]) * rng.normal(size=N)
P = rng.dirichlet([2, 1], N)
TABLE = pa.table({"f": F, "y": Y, **GROUPS, "p_no": P[:, 0], "p_yes": P[:, 1]})
WHAT = TargetColumns("f", "y")


@pytest.fixture(scope="module")
def released():
    options = {"score": "absolute_residual", "unit": 1.0}
    return confide.calibrate(np.abs(Y - F), 0.1, 6.0, groups=GROUPS, names=NAMES, **options)


@pytest.mark.long
def test_every_source_counts_and_predicts_alike(engine, released, tmp_path, monkeypatch):
    """One pass counts for all columns; the largest threshold is taken in Python, also on Spark's executors."""
    counted, seen, source = TableSource.count, {}, engine.table(TABLE)
    monkeypatch.setattr(TableSource, "count", lambda *given: seen.update(counted(*given)) or dict(seen))
    calibrate_table(source, WHAT, 0.1, 6.0, by=list(NAMES), groups=NAMES, unit=1.0)
    for name, value in ((name, value) for name, values in NAMES.items() for value in values):
        own, counts = np.abs(Y - F)[GROUPS[name] == value], seen[f"{name}={value}"]
        assert counts.counts.tolist() == confide.ScoreHistogram.from_scores(own, counts.candidates).counts.tolist()
    predict_table(source, TargetColumns("f"), released, tmp_path / "out.parquet", by=list(NAMES), keep=["f"])
    found = in_order_of(pq.read_table(tmp_path / "out.parquet"), "f")
    lower, _ = confide.predict_interval(F, released, groups=GROUPS)
    assert found["lower"].to_pylist() == lower[np.argsort(F)].tolist()
    found = evaluate_table(source, WHAT, released, by=list(NAMES)).groups
    exact = confide.evaluation.evaluate_intervals(released, F, Y, groups=GROUPS).groups
    assert [(one.name, one.covered, one.missed) for one in found] == [
        (one.name, one.covered, one.missed) for one in exact
    ]


@pytest.mark.slow(unless="by1")
@pytest.mark.parametrize("by", [("sex", "age", "site"), ["site", "sex", "age"]])
def test_predictions_and_evaluations_are_those_of_arrays(released, by, tmp_path):
    summary = predict_table(TABLE, TargetColumns("f"), released, tmp_path / "out.parquet", by=by)
    found = pq.read_table(tmp_path / "out.parquet")
    lower, upper = confide.predict_interval(F, released, groups=GROUPS)
    assert summary == {"rows": N}
    assert found["lower"].to_pylist() == lower.tolist()
    assert found["upper"].to_pylist() == upper.tolist()
    expected = confide.evaluation.evaluate_intervals(released, F, Y, groups=GROUPS)
    assert evaluate_table(TABLE, WHAT, released, by=by) == expected
    assert confide.Evaluation.from_json(expected.to_json()) == expected
    assert [part.name for part in expected.groups] == list(released.parts)
    assert sum(part.n for part in expected.groups) == 3 * N
    table = confide.evaluation.group_coverage(confide.predict_interval(F, released, groups=GROUPS), Y, GROUPS)
    assert [*zip(table.names, table.hits.tolist(), strict=True)] == [(one.name, one.covered) for one in expected.groups]
    assert table.size.tolist() == pytest.approx([part.mean_width for part in expected.groups])
    scores = confide.evaluation.evaluate_scores(released, np.abs(Y - F), groups=GROUPS)
    assert [part.value for part in scores.groups] == [part.value for part in expected.groups]


@pytest.mark.slow
def test_a_record_without_a_group_is_refused(released, tmp_path):
    """Each column reports its own; with skip_incomplete a missing value leaves the record out of all columns."""
    ages = pa.array([None, 7, *GROUPS["age"][2:].tolist()])
    table = TABLE.set_column(TABLE.schema.get_field_index("age"), "age", ages)
    options = {"by": list(NAMES), "groups": NAMES, "unit": 1.0}
    with refused(InputError, "table") as caught:
        calibrate_table(table, WHAT, 0.1, 1.0, **options)
    assert [count for count, _ in bad_rows(caught)] == [2]
    with refused(InputError, "table"):
        predict_table(table, TargetColumns("f"), released, tmp_path / "out.csv", by=list(NAMES))
    with refused(InputError, "table"):
        evaluate_table(table, WHAT, released, by=list(NAMES))
    table = table.set_column(table.schema.get_field_index("age"), "age", pa.array([None, *GROUPS["age"][1:].tolist()]))
    with open_table(table) as opened:
        request = TableRequest.of(WHAT, 0.1, 1.0, skip_incomplete=True, **options)
        found = request.columns.source(opened).histograms()
    assert [sum(counts.total for counts in one.values()) for one in found] == [N - 1] * 3


@pytest.mark.parametrize(
    ("argument", "change"),
    [
        *(("by", {"by": by}) for by in (["sex", "age"], ["sex", "sex", "age"], "sex", None)),
        *(("by", change) for change in ({"groups": None}, {"by_class": True}, {"alpha": [0.1, 0.2]})),
        *(("groups", {"groups": groups}) for groups in (["f", "m"], {**NAMES, "age": ["young"]})),
        ("names", {"groups": {}}),
        ("column", {"by": ["sex", "alter", "site"]}),
    ],
)
def test_bad_columns_are_refused(argument, change):
    arguments = {"alpha": 0.1, "by": list(NAMES), "groups": NAMES, "unit": 1.0, **change}
    with refused(InputError, argument):
        calibrate_table(TABLE, WHAT, epsilon=1.0, **arguments)
