"""Split of training and calibration: a record's part does not depend on others, and calibration labels stay secret."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import confide
from confide.estimators.base import _rows
from confide.estimators.split import calibrating
from confide.releases import about_of
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
    kept = [x[i] for i in rows] if isinstance(x, list) else _rows(x, rows)
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
    with refused(confide.InputError, "calibration_size"):
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


def test_texts_of_the_training_part_are_as_wide_as_the_longest_of_them():
    for kind, longest in (("U", "calibration"), ("S", b"calibration")):
        texts = np.array([longest[:1], longest[:3], longest]).astype(kind)
        assert _rows(texts, np.array([0, 1])).dtype == f"{kind}3"
        assert _rows(texts[:, None], np.array([0])).dtype == f"{kind}1"
        np.testing.assert_array_equal(_rows(texts, np.array([2, 0])), texts[[2, 0]])
    numbers = np.arange(3)
    assert _rows(numbers, np.array([1])).dtype == numbers.dtype


@pytest.mark.slow
@FEW
def test_unknown_labels_count_as_not_covered():
    """Half of the calibration labels are unknown: no finite threshold covers 0.9; one that covers 0.3 is finite."""
    base = LogisticRegression().fit(X, Y)
    y = np.where(np.arange(4000) % 2, Y[np.arange(4000) % 400], 9)
    for alpha, infinite in ((0.1, True), (0.7, False)):
        model = confide.PrivateConformalClassifier(base, alpha=alpha, epsilon=20.0, prefit=True)
        model.fit(X[np.arange(4000) % 400], y)
        assert np.isinf(model.calibration_.threshold) == infinite
    assert model.classes_.tolist() == [0, 1]


def test_a_string_among_numbers_does_not_convert_them():
    """Otherwise one record's label would change the type of all others."""
    with refused(confide.InputTypeError, "y"):
        confide.PrivateConformalClassifier().fit(X, [*Y[:-1].tolist(), "rare-disease-X"])


def test_labels_of_the_training_part_must_be_known():
    with refused(confide.InputError, "classes"):
        confide.PrivateConformalClassifier(classes=[0, 5]).fit(X, Y)
    base = LogisticRegression().fit(X, Y)
    with refused(confide.InputError, "classes"):
        confide.PrivateConformalClassifier(base, prefit=True, classes=[0, 5]).fit(X, Y)


@FEW
def test_no_calibration_records_are_released():
    base = LogisticRegression().fit(X, Y)
    model = confide.PrivateConformalClassifier(base, prefit=True).fit(X[:0], Y[:0])
    assert model.calibration_.threshold >= 0
    assert model.calibration_.guarantee.n is None


@pytest.mark.slow
@FEW
def test_no_new_records_have_no_sets_and_no_intervals():
    model = confide.PrivateConformalClassifier(LogisticRegression().fit(X, Y), prefit=True, by_class=True).fit(X, Y)
    sets = model.predict_set(X[:0])
    assert (sets.mask.shape, sets.classes) == ((0, 2), (0, 1))
    with pytest.raises(ValueError):
        model.predict_set(X[:0, :1])
    number = X[:, 0] + 10
    for score, options in (
        ("absolute_residual", {"estimator": LinearRegression()}),
        ("normalised_residual", {"difficulty_estimator": DummyRegressor()}),
        ("cqr", {"estimator": (LinearRegression(), LinearRegression())}),
    ):
        regressor = confide.PrivateConformalRegressor(conformity_score=score, **options).fit(X, number)
        lower, upper = regressor.predict_interval(X[:0])
        assert lower.shape == upper.shape == (0,)


@pytest.mark.slow
@FEW
def test_metadata_are_stored():
    about = {"model": "logistic", "responsible": "ward 3"}
    fronts = (
        confide.PrivateConformalClassifier(about=about),
        confide.PrivateConformalClassifier(about=about, alpha=[0.2, 0.1]),
        confide.PrivateConformalClassifier(about=about, by_class=True),
        confide.PrivateConformalRegressor(about=about),
    )
    for front in fronts:
        assert about_of(front.fit(X, Y).calibration_) == about
    with refused(confide.InputError, "about"):
        confide.PrivateConformalClassifier(about={"author": "x"}).fit(X, Y)


@pytest.mark.slow
def test_levels_groups_and_classes():
    large = np.tile(X, (10, 1)), np.tile(Y, 10)
    ward = np.where(np.arange(4000) % 3, "north", "south")
    levels = confide.PrivateConformalClassifier(alpha=[0.3, 0.1], epsilon=8.0).fit(*large)
    assert levels.predict_set(X, alpha=0.1).sizes.mean() >= levels.predict_set(X, alpha=0.3).sizes.mean()
    with refused(confide.InputError, "alpha"):
        levels.predict_set(X)
    groups = confide.PrivateConformalClassifier(group_names=["north", "south"], epsilon=4.0)
    groups.fit(*large, groups=ward)
    assert set(groups.calibration_.parts) == {"north", "south"}
    assert groups.predict_set(X, groups=ward[:400]).mask.shape == (400, 2)
    with refused(confide.InputError, "groups"):
        groups.fit(*large)
    assert groups.calibration_["north"].classes == 2
    classes = confide.PrivateConformalClassifier(by_class=True, epsilon=4.0).fit(*large)
    assert classes.calibration_.by == "class"
    assert 0.8 < classes.predict_set(X).contains(Y).mean() <= 1
    with refused(confide.InputError, "alpha"):
        classes.predict_set(X, alpha=0.2)
    regressor = confide.PrivateConformalRegressor(alpha=(0.3, 0.1), epsilon=8.0).fit(large[0], large[0][:, 0])
    lower, upper = regressor.predict_interval(X, alpha=0.1)
    assert (lower <= upper).all()


@pytest.mark.slow
@FEW
def test_a_ledger_is_charged(tmp_path):
    ledger = confide.Ledger(tmp_path / "budget.db", limit=1.5)
    paid = {"ledger": ledger, "dataset": "patients"}
    confide.PrivateConformalRegressor(epsilon=1.0, **paid).fit(X, Y)
    assert ledger.account("patients").remaining() == 0.5
    with refused(confide.BudgetError, "dataset"):
        confide.PrivateConformalRegressor(epsilon=1.0, alpha=0.2, **paid).fit(X, Y)


class Weighed(DummyClassifier):
    """A classifier that stores the weights that it was trained with."""

    def fit(self, X, y, sample_weight=None, note=None):
        self.seen_, self.note_ = (X[:, 0], sample_weight), note
        return super().fit(X, y, sample_weight)


@pytest.mark.slow
@FEW
def test_weights_go_to_training():
    model = confide.PrivateConformalClassifier(Weighed()).fit(X, Y, sample_weight=10 * X[:, 0] ** 2, note="as it is")
    column, weights = model.estimator_.seen_
    np.testing.assert_array_equal(weights, 10 * column**2)
    assert 0 < len(column) < 400
    assert model.estimator_.note_ == "as it is"
    inner = make_pipeline(StandardScaler(), LogisticRegression())
    weighed = confide.PrivateConformalClassifier(inner, random_state=0)
    weighed.fit(X, Y, logisticregression__sample_weight=np.where(Y == 1, 1e-6, 1.0))
    assert (weighed.predict(X) == 0).all()
    pair = confide.PrivateConformalRegressor((Ridge(), Ridge()), conformity_score="cqr")
    pair.fit(X, X[:, 0], sample_weight=np.ones(400))
    base = LogisticRegression().fit(X, Y)
    with refused(confide.InputError, "fit_params"):
        confide.PrivateConformalClassifier(base, prefit=True).fit(X, Y, sample_weight=np.ones(400))


def test_the_error_about_a_classifier_without_probabilities_has_a_remedy():
    with refused(confide.InputTypeError, "estimator"):
        confide.PrivateConformalClassifier(LinearSVC()).fit(X, Y)
    with refused(confide.InputTypeError, "estimator"):
        confide.PrivateConformalClassifier(LinearSVC().fit(X, Y), prefit=True).fit(X, Y)


@pytest.mark.filterwarnings("always")
def test_warnings_point_at_the_caller():
    model = confide.PrivateConformalClassifier(None, 0.04, random_state=0, neighbors="replace_one")
    with pytest.warns(confide.CoverageWarning) as few:  # no rank of at most twenty suffices at this level
        model.fit(X[:20], Y[:20])
    with pytest.warns() as again:
        model.fit(X[:20], Y[:20])
    assert {one.filename for one in [*few, *again]} == {__file__}


@pytest.mark.slow
@FEW
def test_a_regressor_takes_a_typical_size():
    model = confide.PrivateConformalRegressor(unit=25.0, neighbors="replace_one").fit(X, 100 * X[:, 0])
    assert model.calibration_.recipe["unit"] == 25.0
    spread = confide.candidates.Spread("residual", unit=3.0)
    assert confide.PrivateConformalRegressor(candidates=spread).fit(X, X[:, 0]).calibration_.recipe["unit"] == 3.0
    with pytest.raises(confide.InputError):
        confide.PrivateConformalRegressor(candidates=spread, unit=1.0).fit(X, X[:, 0])


@pytest.mark.slow
@FEW
def test_several_levels_as_an_array():
    model = confide.PrivateConformalClassifier(alpha=np.array([0.1, 0.2])).fit(X, Y)
    assert list(model.calibration_) == [Fraction(1, 5), Fraction(1, 10)]
