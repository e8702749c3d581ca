"""Sets of scores that SQL cannot count, from every table, equal those of `predict_set`."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import confide
from confide.errors import InputError
from confide.tables import ClassColumns, open_table, predict_table
from tests.files import figures_of, in_order_of
from tests.refused import Refused
from tests.tables.class_records import NAMES, RNG, WARD, N, P, Y, calibrated

NOTE = [None if i % 7 == 0 else f"it's \\N, \t{i} 100%" for i in range(N)]
PRICE = np.exp(np.random.default_rng(5).normal(size=N))
DATA = pa.table(
    {
        "id": np.arange(N),
        "ward": WARD,
        "note": NOTE,
        "f": np.append([np.inf, -0.0, 5e-324], RNG.normal(size=N - 3)),
        "price": PRICE,
        "p": pa.array(P.tolist(), pa.list_(pa.float32())),
        **{f"p_{name}": P[:, k] for k, name in enumerate(NAMES)},
    }
)
COLUMNS = tuple(f"p_{name}" for name in NAMES)
SCORES = [
    "aps_deterministic",
    "raps_deterministic(penalty=0.01,k_reg=2)",
    "saps_deterministic(penalty=0.1)",
    "margin",
    "top_k",
    "lac(temperature=2)",
]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the threshold is:confide.CoverageWarning")  # many true labels have the largest RAPS
@pytest.mark.parametrize("by", [None, "group", "class"])
def test_sets_in_a_file(engine, tmp_path, by):
    table = engine.table(DATA if engine.lists else DATA.drop_columns("p"))
    p = P if engine.single else P.astype(np.float64)
    for number, (score, read) in enumerate(zip(SCORES, ["p", COLUMNS, "p", "p_*", "p", COLUMNS], strict=True)):
        calibration, out = calibrated(score, by), tmp_path / f"{number}.parquet"
        what = ClassColumns(read if engine.lists else COLUMNS, classes=NAMES)
        group = "ward" if by == "group" else None
        figures = predict_table(table, what, calibration, out, by=group, keep=("id",))
        expected = confide.predict_set(p, calibration, NAMES, groups=WARD if by == "group" else None)
        found = in_order_of(pq.read_table(out), "id")
        assert found.column_names == ["id", "prediction_set", "set_size"]
        assert found["prediction_set"].to_pylist() == expected.labels()
        assert found["set_size"].to_pylist() == expected.sizes.tolist()
        assert figures == figures_of(expected)


@pytest.mark.slow
def test_columns_are_checked_before_anything_is_read(tmp_path):
    calibration, out = calibrated("aps_deterministic"), tmp_path / "out.parquet"
    with open_table(DATA) as table:
        good = {"source": table, "what": ClassColumns("p", classes=NAMES), "release": calibration, "out": out}
        for change, argument in (
            ({"what": ClassColumns("q")}, "column"),
            ({"keep": ("q",)}, "column"),
            ({"what": ClassColumns(COLUMNS, classes=NAMES[:4])}, "classes"),
            ({"release": calibrated("aps_deterministic", "group")}, "by"),
        ):
            Refused(predict_table, good, change, argument, kind=InputError).check()
    assert not out.exists()


@pytest.mark.slow
def test_randomised_scores_draw_fresh_numbers(tmp_path):
    calibration = confide.calibrate(confide.class_score(P, Y, "aps"), 0.2, 10.0, score="aps")
    sizes = []
    with open_table(DATA) as table:
        for name in ("one", "two"):
            out = tmp_path / f"{name}.parquet"
            predict_table(table, ClassColumns("p", classes=NAMES), calibration, out, keep=("id",))
            sizes.append(in_order_of(pq.read_table(out), "id")["set_size"].to_numpy())
    assert (sizes[0] != sizes[1]).any()
    drawn = confide.predict_set(P, calibration, NAMES).sizes
    spread = np.sqrt((sizes[0].var() + drawn.var()) / N)
    assert abs(sizes[0].mean() - drawn.mean()) < 5 * spread
