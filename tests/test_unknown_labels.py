"""Labels of a class that the model never learned: their records are never covered, and they are never left out."""

import warnings

import numpy as np
import pandas as pd
import pytest

import confide
from confide.errors import CoverageWarning, InputError
from confide.evaluation import Evaluation, PrivateRequest, class_coverage
from confide.tables import (
    ClassColumns,
    ScoreColumn,
    calibrate_table,
    evaluate_table,
    evaluate_table_privately,
    monitoring_coverage_counts,
    score_histogram,
)
from tests.refused import numbers, refused

NAMES = ("a", "b", "c")
RNG = np.random.default_rng(0)
P = RNG.dirichlet([1.0, 1.0, 1.0], 600)
PLACE = (P.cumsum(axis=1) > RNG.random((600, 1))).argmax(axis=1)
UNKNOWN = np.arange(600) % 10 == 0
LABELS = np.where(UNKNOWN, "d", np.array(NAMES)[PLACE])
NUMBERS = np.where(UNKNOWN, 3, PLACE)
FRAME = pd.DataFrame(P, columns=[f"p_{name}" for name in NAMES]).assign(y=LABELS, k=NUMBERS, p=list(P))
GRID = confide.Candidates.unit(64)


def _expected(score):
    known = confide.all_scores(P, score)[np.arange(600), PLACE]
    return np.where(UNKNOWN, np.inf, known)


def _torch(score):
    torch = pytest.importorskip("torch")
    from confide.array_api import true_scores

    return true_scores(torch.tensor(P), torch.tensor(NUMBERS), score).numpy()


ARRAYS = {
    "names": lambda score: confide.class_score(P, LABELS, score, classes=NAMES),
    "objects": lambda score: confide.class_score(P, LABELS.astype(object), score, classes=NAMES),
    "integer names": lambda score: confide.class_score(P, NUMBERS, score, classes=[0, 1, 2]),
    "floats": lambda score: confide.class_score(P, NUMBERS * 1.0, score, classes=[0.0, 1.0, 2.0]),
    "positions": lambda score: confide.class_score(P, NUMBERS, score),
    "a frame": lambda score: confide.class_score(pd.DataFrame(P, columns=NAMES), LABELS, score),
    "tensors": _torch,
}


@pytest.mark.parametrize("score", ["lac", "aps_deterministic", "margin", "top_k", "lac(temperature=2)"])
@pytest.mark.parametrize("kind", ARRAYS)
@pytest.mark.filterwarnings("ignore::confide.CoverageWarning")
def test_their_score_is_infinite(kind, score):
    assert np.asarray(ARRAYS[kind](score)).tolist() == _expected(score).tolist()


def test_the_warning_says_how_many():
    with pytest.warns(CoverageWarning, match="60 of 600 are not among the 3 classes.* first at position 0"):
        confide.lac_score(P, LABELS, NAMES)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        confide.lac_score(P[~UNKNOWN], LABELS[~UNKNOWN], NAMES)


@pytest.mark.filterwarnings("ignore::confide.CoverageWarning")
def test_the_population_is_covered():
    """At 0.8 with epsilon 50, coverage of all 600 calibration records is at least 0.8 but for 600 e^-50 or less."""
    released = confide.calibrate(confide.lac_score(P, LABELS, NAMES), 0.2, 50.0)
    sets = confide.predict_set(P, released)
    with pytest.warns(CoverageWarning, match="60 of 600"):
        sets.contains(LABELS)
    assert 0.8 <= sets.contains(LABELS).mean() <= 0.83
    assert not sets.contains(LABELS)[UNKNOWN].any()
    table = class_coverage(sets, LABELS)
    assert (table.names, table.n[-1], table.coverage[-1]) == ((*NAMES, "(other)"), 60, 0.0)


COLUMNS = {
    "columns": ClassColumns("p_*", "y"),
    "a list": ClassColumns("p", "y", classes=NAMES),
    "positions in a list": ClassColumns("p", "k"),
}


@pytest.mark.slow
@pytest.mark.parametrize("score", ["lac", "aps_deterministic"])
@pytest.mark.parametrize("kind", COLUMNS)
def test_tables_count_them_above_every_candidate(tmp_path, kind, score):
    FRAME.to_parquet(tmp_path / "t.parquet")
    what = ClassColumns(**{**vars(COLUMNS[kind]), "score": score})
    expected = np.bincount(np.searchsorted(GRID.edges, _expected(score)), minlength=64)
    for source in (FRAME, tmp_path / "t.parquet"):
        assert score_histogram(source, what, GRID).counts.tolist() == expected.tolist()
    if kind == "columns":
        FRAME.drop(columns="p").assign(s=_expected(score)).to_csv(tmp_path / "t.csv", index=False)
        assert score_histogram(tmp_path / "t.csv", what, GRID).counts.tolist() == expected.tolist()
        stored = score_histogram(tmp_path / "t.csv", ScoreColumn("s", score), GRID)
        assert stored.counts.tolist() == expected.tolist()


@pytest.mark.slow(unless="class")
@pytest.mark.parametrize("by", [None, "class"])
@pytest.mark.filterwarnings("ignore::confide.CoverageWarning")
def test_evaluations_count_them_as_missed(by):
    scores = confide.lac_score(P, LABELS, NAMES)
    released = confide.calibrate(scores, 0.2, 50.0)
    if by == "class":
        released = confide.calibrate(scores, 0.2, 50.0, groups=LABELS, names=NAMES, by="class")
        from_table = calibrate_table(FRAME, ClassColumns("p_*", "y"), 0.2, 50.0, by_class=True)
        for name in NAMES:  # noise of a few ranks of 200 at epsilon 50
            assert abs(from_table.parts[name].threshold - released.parts[name].threshold) < 0.2
    found = confide.evaluation.evaluate_sets(released, P, LABELS, NAMES)
    assert found == evaluate_table(FRAME, ClassColumns("p_*", "y"), released) == Evaluation.from_json(found.to_json())
    assert (found.classes[-1].name, found.classes[-1].n, found.classes[-1].covered) == ("(other)", 60, 0)
    assert sum(part.n for part in found.classes) == found.coverage.n == 600
    counted = monitoring_coverage_counts(FRAME, ClassColumns("p_*", "y"), released)
    assert counted.sum() == (540 if by == "class" else 600)
    # Noise above 45 in a count at epsilon 20 has probability e^-900.
    private = evaluate_table_privately(FRAME, ClassColumns("p_*", "y"), released, PrivateRequest(20.0, parts=["class"]))
    other = private.classes[-1]
    assert (other.name, abs(other.missed - 60) < 45, other.covered < 45) == ("(other)", True, True)


NEVER = {  # labels that stay errors, whatever the others are: count and first position, or neither
    "None": (lambda y: _with(y, None), [1, 7]),
    "NaN": (lambda y: _with(y, float("nan")), [1, 7]),
    "pandas.NA": (lambda y: _with(y, pd.NA), [1, 7]),
    "NaT": (lambda y: _with(y, pd.NaT), [1, 7]),
    "an empty text": (lambda y: _with(y, ""), [1, 7]),
    "integers": (lambda y: np.where(y == "a", 0, 1), None),
    "floats": (lambda y: np.where(y == "a", 0.0, 1.0), None),
    "booleans": (lambda y: y == "a", None),
    "dates": (lambda y: np.where(y == "a", np.datetime64("2020-01-01"), np.datetime64("2021-01-01")), None),
    "bytes": (lambda y: y.astype("S1"), None),
}


def _with(y, value):
    changed = y.astype(object)
    changed[7] = value
    return changed


@pytest.mark.parametrize("kind", NEVER)
def test_missing_labels_and_labels_of_another_type_are_errors(kind):
    change, expected = NEVER[kind]
    with refused(InputError, "labels") as caught:
        confide.lac_score(P, change(LABELS), NAMES)
    assert expected is None or numbers(caught) == expected
    assert "rop " not in str(caught.value)
