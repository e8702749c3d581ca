"""Weights of records and of classes, from every source: the sums equal those of the same calls on arrays."""

import numpy as np
import pyarrow as pa
import pytest

import confide
from confide.core import ClassShift, RecordWeights
from confide.errors import InputError
from confide.tables import ClassColumns, ScoreColumn, calibrate_table
from confide.tables.counting import Counting
from confide.tables.named_columns import WeightColumn
from confide.tables.open_table import as_open_table
from tests.calibrations import weighted_counts
from tests.files import NAMES, classified
from tests.refused import Refused, bad_rows, refused

P, Y = classified(1500, dtype=np.float64)
LABEL = np.array(NAMES)[Y]
WEIGHT = 0.25 * (np.arange(1500) % 9) + np.arange(1500) / 7000
BOUND = RecordWeights.bounded(2.5)
DATA = pa.table(
    {**{f"p_{name}": P[:, k] for k, name in enumerate(NAMES)}, "y": LABEL, "w": WEIGHT, "s": confide.lac_score(P, Y)}
)
CANDIDATES = confide.Candidates.unit(30)
WHAT = {
    "lac": ClassColumns("p_*", "y"),
    "aps_deterministic": ClassColumns("p_*", "y", score="aps_deterministic"),
    "scores": ScoreColumn("s", "lac"),
}


def counted(source, what):
    with as_open_table(source) as table:
        weight = WeightColumn.of(table, "w", BOUND)
        return Counting.of(table, what, weight=weight).run(CANDIDATES)[0][None]


@pytest.mark.slow(unless="postgres-scores")
@pytest.mark.parametrize("kind", ["scores", "lac", "aps_deterministic"])
def test_sums_are_those_of_arrays(engine, kind):
    scores = confide.aps_score(P, Y, randomised=False) if kind == "aps_deterministic" else confide.lac_score(P, Y)
    expected = weighted_counts(scores, CANDIDATES, kind if kind == "aps_deterministic" else "lac", BOUND, None, WEIGHT)
    found = counted(engine.table(DATA), WHAT[kind])
    np.testing.assert_array_equal(found.counts, expected.counts)
    assert found.records == expected.records == 1500  # the number, not the total weight


@pytest.mark.slow(unless="memory")
def test_unusable_weights_raise_an_error(engine):
    wrong = WEIGHT.copy()
    wrong[[7, 1100]] = 2.75, -0.5
    source = engine.table(DATA.set_column(DATA.column_names.index("w"), "w", pa.array(wrong)))
    with refused(InputError, "table") as caught:
        counted(source, WHAT["scores"])
    assert bad_rows(caught)[0][0] == 2
    assert "2.75" not in str(caught.value)


@pytest.mark.parametrize(
    ("what", "options"),
    [
        (WHAT["lac"], {"class_weights": {"emu": 2, "cat": 0.5, "dog": 1}}),
        (WHAT["scores"], {"class_weights": {"cat": 0.5, "dog": 1, "emu": 2}, "by": "y"}),
        (WHAT["scores"], {"weights": "w", "weight_bound": 2.5}),
    ],
)
def test_thresholds_of_tables_are_those_of_arrays(what, options):
    """With an epsilon that makes noise negligible the same candidate is drawn."""
    released = calibrate_table(DATA, what, 0.1, 1e4, candidates=CANDIDATES, **options)
    by_arrays = {key: value for key, value in options.items() if key != "by"}
    if "weights" in options:
        by_arrays["weights"] = WEIGHT
    else:
        by_arrays["labels"] = LABEL
    expected = confide.calibrate(confide.lac_score(P, Y), 0.1, 1e4, candidates=CANDIDATES, **by_arrays)
    assert released.threshold == expected.threshold
    assert released.mechanism == expected.mechanism
    assert released.population.heaviest == expected.population.heaviest


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"class_weights": {"cat": 1, "dog": 2}}, "class_weights"),
        ({"class_weights": {"cat": 1, "dog": 2, "emu": 3}, "by_class": True}, "groups"),
        ({"class_weights": {"cat": 1, "dog": 2, "emu": 3}, "neighbors": "replace_one"}, "neighbors"),
        ({"weights": "w"}, "weights"),
        ({"weights": "w", "weight_bound": 3, "by": "y"}, "by"),
        ({"weights": "y", "weight_bound": 3}, "column"),
        ({"weights": "no", "weight_bound": 3}, "column"),
        ({"weights": "w", "weight_bound": 3, "alpha": [0.1, 0.2]}, "weights"),
        ({"weights": "w", "weight_bound": 3, "n": 1500}, "n"),
        ({"what": WHAT["scores"], "class_weights": ClassShift.of_weights({"cat": 1, "dog": 2, "emu": 3})}, "by"),
    ],
)
def test_unsupported_weights_raise_an_error(options, argument):
    good = {"source": DATA, "what": WHAT["lac"], "alpha": 0.1, "epsilon": 1.0, "candidates": CANDIDATES}
    Refused(calibrate_table, good, options, argument, kind=InputError).check()
