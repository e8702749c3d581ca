"""Split of training and calibration: a record's part does not depend on others, and calibration labels stay secret."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats
from sklearn.linear_model import LogisticRegression

import confide
from confide.estimators.split import calibrating, rows_of
from tests.refused import refused

FEW = pytest.mark.filterwarnings("ignore::confide.CoverageWarning")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 3))
Y = (X[:, 0] + RNG.normal(size=400) > 0).astype(int)

KINDS = {
    "array": lambda x: x,
    "single precision": lambda x: x.astype(np.float32),
    "integers": lambda x: (x * 1000).astype(int),
    "list": lambda x: x.tolist(),
    "frame": lambda x: pd.DataFrame(x, columns=list("abc")),
    "mixed frame": lambda x: pd.DataFrame({"a": x[:, 0], "b": [f"text {v:.3f}" for v in x[:, 1]]}),
    "sparse": lambda x: sparse.csr_matrix(np.where(x > 0, x, 0)),
    "texts": lambda x: [f"{'long ' * (i == 0)}text {v:.5f}" for i, v in enumerate(x[:, 0])],
    "images": lambda x: x.reshape(-1, 3, 1, 1),
}


def parts(x, y, keep):
    """Each kept record with its part."""
    rows = np.flatnonzero(keep)
    kept = [x[i] for i in rows] if isinstance(x, list) else rows_of(x, rows)
    return calibrating(0.5, 7, len(rows), kept, y[rows])


@pytest.mark.parametrize("kind", KINDS)
def test_one_record_does_not_move_others(kind):
    """Removed, appended or replaced: also the first one, which changed 61 of 400 when parts depended on positions."""
    x, everybody = KINDS[kind](X), np.ones(400, dtype=bool)
    whole = parts(x, Y, everybody)
    assert 150 < whole.sum() < 250  # outside with probability 5e-7
    for removed in (0, 57, 399):
        keep = everybody.copy()
        keep[removed] = False
        np.testing.assert_array_equal(parts(x, Y, keep), whole[keep])
    changed = Y.copy()
    changed[3] = 1 - changed[3]
    np.testing.assert_array_equal(np.delete(parts(x, changed, everybody), 3), np.delete(whole, 3))


def test_one_of_several_equal_records_does_not_move_others():
    """Five contents in 60 copies each: without one copy, the parts differ only by one record of that content."""
    x = np.arange(300) % 5
    whole = Counter(zip(x.tolist(), calibrating(0.5, 3, 300, x), strict=True))
    for removed in range(0, 300, 7):
        rest = np.delete(x, removed)
        without = Counter(zip(rest.tolist(), calibrating(0.5, 3, 299, rest), strict=True))
        assert [gone for gone, _ in (whole - without).elements()] == [x[removed]]
        assert not without - whole
    assert all(10 < whole[content, True] < 50 for content in range(5))  # copies are split independently; 2e-7 each


def test_parts_without_a_seed_are_random():
    first, second = (calibrating(0.3, None, 5000, X) for _ in range(2))
    assert (first != second).any()
    assert stats.binomtest(int(first.sum()), 5000, 0.3).pvalue > 1e-7
    assert stats.binomtest(int(calibrating(0.3, 0, 5000, np.arange(5000)).sum()), 5000, 0.3).pvalue > 1e-7


@pytest.mark.parametrize("share", [1000, 0, 1.0, True, "half", -0.5])
def test_the_number_of_calibration_records_cannot_be_fixed(share):
    with refused(confide.errors.InputError, "calibration_size"):
        confide.PrivateConformalClassifier(calibration_size=share).fit(X, Y)


@pytest.mark.slow
@FEW
def test_a_label_of_the_calibration_part_is_not_shown():
    """Replacing a calibration record's label by an otherwise unused one changes nothing but one score, to +inf."""
    held = calibrating(0.5, 0, 400, X, Y)
    y = np.where(Y == 1, "ill", "well")
    found = []
    for i in np.flatnonzero(calibrating(0.5, 0, 400, X, y))[:40]:
        other = y.tolist()
        other[i] = "rare-disease-X"
        if calibrating(0.5, 0, 400, X, np.array(other))[i]:
            found.append(confide.PrivateConformalClassifier(random_state=0).fit(X, other))
    assert len(found) > 2  # fewer with probability 1e-9
    for model in found:
        assert model.classes_.tolist() == ["ill", "well"]
        assert model.classes_.dtype == model.estimator_.classes_.dtype == "<U4", "as wide as the longest label of all"
        assert model.predict_proba(X[:2]).shape == (2, 2)
    scores = model._scores(X[:2], np.array(["ill", "rare-disease-X"]))
    assert np.isinf(scores).tolist() == [False, True]
    assert held.any()


def test_a_string_among_numbers_does_not_convert_them():
    """Otherwise one record's label would change the type of all others."""
    with refused(confide.errors.InputTypeError, "y"):
        confide.PrivateConformalClassifier().fit(X, [*Y[:-1].tolist(), "rare-disease-X"])


def test_labels_of_the_training_part_must_be_known():
    with refused(confide.errors.InputError, "classes"):
        confide.PrivateConformalClassifier(classes=[0, 5]).fit(X, Y)
    base = LogisticRegression().fit(X, Y)
    with refused(confide.errors.InputError, "classes"):
        confide.PrivateConformalClassifier(base, prefit=True, classes=[0, 5]).fit(X, Y)


@FEW
def test_no_calibration_records_are_released():
    base = LogisticRegression().fit(X, Y)
    model = confide.PrivateConformalClassifier(base, prefit=True).fit(X[:0], Y[:0])
    assert model.calibration_.threshold >= 0
    assert model.calibration_.guarantee.n is None


@pytest.mark.slow
@FEW
def test_a_regressor_takes_a_typical_size():
    model = confide.PrivateConformalRegressor(unit=25.0, neighbors="replace_one").fit(X, 100 * X[:, 0])
    assert model.calibration_.recipe["unit"] == 25.0
    spread = confide.candidates.Spread("residual", unit=3.0)
    assert confide.PrivateConformalRegressor(candidates=spread).fit(X, X[:, 0]).calibration_.recipe["unit"] == 3.0
    with pytest.raises(confide.errors.InputError):
        confide.PrivateConformalRegressor(candidates=spread, unit=1.0).fit(X, X[:, 0])
