"""Two classes and one column, the probability of the second: the same as two columns, for every source."""

import numpy as np
import pyarrow as pa
import pytest

import confide
from confide.errors import InputError
from confide.tables import ClassColumns, calibrate_table, evaluate_table, predict_table, score_histogram
from tests.files import write
from tests.refused import bad_rows, refused

PAIR = ("no", "yes")
RNG = np.random.default_rng(0)
YES = np.concatenate([[0.0, 1.0, 0.5, 1e-300, 5e-324, 0.1, 1 / 3], RNG.random(400)])
LABELS = RNG.random(len(YES)) < YES


def table(p=YES, label=LABELS, **more):
    return pa.table({"p": p, "label": np.array(PAIR)[label.astype(int)], "i": np.arange(len(p)), **more})


def both(p):
    """The two columns that one column stands for."""
    p = p.astype(np.float64)
    return np.column_stack([1 - p, p])


@pytest.mark.slow(unless="memory")
def test_scores_are_those_of_two_columns(engine):
    """Every double and every single falls into the bin of numpy; labels by name and by position."""
    single = YES.astype(np.float32)
    source = engine.table(table(single=single, k=pa.array(LABELS.astype(np.int64))))
    for what, p in (
        (ClassColumns("p", "label", PAIR), YES),
        (ClassColumns("single", "k", PAIR, label_positions=True), single),
    ):
        scores = confide.lac_score(both(p), LABELS.astype(int))
        candidates = confide.Candidates.of(np.unique(np.asarray(scores))[::3])
        expected = confide.ScoreHistogram.from_scores(scores, candidates).counts
        assert (score_histogram(source, what, candidates).counts == expected).all()


@pytest.mark.filterwarnings("ignore:the threshold is 1:confide.CoverageWarning")  # of random labels
def test_releases_and_evaluations_contain_both_classes(tmp_path):
    what = ClassColumns("p", "label", PAIR, "aps_deterministic")
    released = calibrate_table(table(), what, 0.2, 4.0)
    assert released.classes == PAIR
    found = evaluate_table(table(), what, released)
    expected = confide.evaluation.evaluate_sets(released, both(YES), np.array(PAIR)[LABELS.astype(int)], PAIR)
    assert found == expected
    turned = ClassColumns("p", "label", PAIR[::-1])
    for act in (
        lambda: evaluate_table(table(), turned, released),
        lambda: predict_table(table(), turned, released, tmp_path / "s.csv"),
    ):
        with refused(InputError, "classes"):
            act()
    both_columns = pa.table({"p_yes": YES, "p_no": 1 - YES, "label": table()["label"]})
    either = evaluate_table(both_columns, ClassColumns("p_*", "label"), released).classes
    assert set(either) == set(found.classes), "two columns may stand in either order"


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_invalid_probabilities_raise_an_error(tmp_path, suffix):
    p = np.array([0.5, 1.5, np.nan, -0.1])
    path = write(tmp_path / f"a.{suffix}", table(p, np.array([True] * 4)))
    with refused(InputError, "table") as caught:
        score_histogram(path, ClassColumns("p", "label", PAIR), confide.Candidates.unit())
    assert bad_rows(caught) == [(3, 3 if suffix == "csv" else 1)]
