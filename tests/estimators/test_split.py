"""Split of training and calibration, models compared by probe records, and estimators in scikit-learn's pipelines."""

import pickle
import warnings
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse, stats
from sklearn import config_context
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, QuantileRegressor, Ridge
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler

import confide
from confide import PrivateConformalClassifier, PrivateConformalRegressor
from confide.estimators import FittedStepWarning
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


@pytest.mark.parametrize("make", [np.array, lambda rows: pl.DataFrame(rows, orient="row")], ids=["numpy", "polars"])
def test_a_missing_value_of_a_record_does_not_move_others(make):
    """Without it the whole has another type, such as int64 for object."""
    rows = [[i % 3 == 0, i] for i in range(60)]
    rows[7][0] = None
    whole = calibrating(0.5, 7, 60, make(rows))
    np.testing.assert_array_equal(np.delete(whole, 7), calibrating(0.5, 7, 59, make(rows[:7] + rows[8:])))


@pytest.mark.slow
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


INPUTS, PROBE = RNG.normal(size=(1500, 3)), RNG.normal(size=(40, 3))
NUMBERS = INPUTS @ [1.0, 2.0, 0.5] + RNG.normal(size=1500)
LABELS = np.where(NUMBERS > 0, "yes", "no")


def quantile(q):
    return QuantileRegressor(quantile=q, alpha=0.0)


ESTIMATORS = {
    "classes": (LogisticRegression(), lambda model, **more: PrivateConformalClassifier(model, **more), LABELS),
    "numbers": (LinearRegression(), lambda model, **more: PrivateConformalRegressor(model, unit=1.0, **more), NUMBERS),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_model_that_was_retrained_is_rejected(name):
    """The common case: a fitted model is calibrated, and then the same object is fitted again."""
    inner, front, y = ESTIMATORS[name]
    model = clone(inner).fit(INPUTS[:500], y[:500])
    conformal = front(model, prefit=True, probe=PROBE).fit(INPUTS[500:], y[500:])
    predict = conformal.predict_set if name == "classes" else conformal.predict_interval
    assert len(predict(INPUTS[:3])) > 0
    again = pickle.loads(pickle.dumps(conformal))  # noqa: S301
    assert (again.predict_set if name == "classes" else again.predict_interval)(INPUTS[:3])
    model.fit(INPUTS[:450], y[:450])
    with refused(confide.errors.InputError, "fingerprint") as caught:
        predict(INPUTS[:3])
    assert "instead of" in caught.value.got
    conformal.renew(INPUTS[500:], y[500:])
    assert len(predict(INPUTS[:3])) > 0
    outputs = model.predict_proba(PROBE) if name == "classes" else model.predict(PROBE)
    assert conformal.calibration_.for_model(confide.ModelFingerprint.of(outputs))


@pytest.mark.slow
def test_pairs_and_difficulties_are_part_of_the_model():
    pair = (quantile(0.1).fit(INPUTS[:200], NUMBERS[:200]), quantile(0.9).fit(INPUTS[:200], NUMBERS[:200]))
    options = {"prefit": True, "probe": PROBE, "unit": 1.0}
    cqr = PrivateConformalRegressor(pair, conformity_score="cqr", **options).fit(INPUTS[500:], NUMBERS[500:])
    assert cqr.calibration_.fingerprint is not None
    difficulty = LinearRegression(positive=True).fit(np.abs(INPUTS[:200]), np.abs(NUMBERS[:200]))
    options |= {"probe": np.abs(PROBE), "difficulty_estimator": difficulty, "conformity_score": "normalised_residual"}
    model = LinearRegression().fit(np.abs(INPUTS[:200]), NUMBERS[:200])
    scaled = PrivateConformalRegressor(model, **options).fit(np.abs(INPUTS[500:]), NUMBERS[500:])
    assert len(scaled.predict_interval(np.abs(INPUTS[:3])).lower) == 3
    difficulty.fit(np.abs(INPUTS[:100]), np.abs(NUMBERS[:100]))
    with refused(confide.errors.InputError, "fingerprint"):
        scaled.predict_interval(np.abs(INPUTS[:3]))


def test_the_probe_is_not_the_calibration_records():
    with refused(confide.errors.InputError, "probe"):
        PrivateConformalClassifier(probe=INPUTS).fit(INPUTS, LABELS)


def test_without_a_probe_nothing_is_stated():
    conformal = PrivateConformalClassifier().fit(INPUTS, LABELS)
    assert conformal.calibration_.fingerprint is None
    assert len(conformal.predict_set(INPUTS[:3])) == 3


pytestmark = pytest.mark.filterwarnings("ignore::confide.CoverageWarning")

GENERATOR = np.random.default_rng(0)
ROWS = GENERATOR.normal(size=(2000, 3))
TRUTH = (ROWS[:, 0] + GENERATOR.normal(size=2000) > 0).astype(int)
WARD = np.where(np.arange(2000) % 2, "north", "south")
WEIGHTS = 1 + np.arange(2000.0)
FAST = {"neighbors": "replace_one", "random_state": 0}


class Weighed(LogisticRegression):
    """Stores the weights and the records that it was given."""

    def fit(self, ROWS, y, sample_weight=None):
        self.given_, self.seen_ = sample_weight, ROWS
        return super().fit(ROWS, y, sample_weight)


def double(rows):
    return 2 * rows


@pytest.fixture
def routing():
    with config_context(enable_metadata_routing=True):
        yield


def test_sets_of_a_pipeline_are_those_of_its_last_step():
    pipe = make_pipeline(Normalizer(), "passthrough", make_pipeline(FunctionTransformer(double)))
    pipe.steps.append(("model", confide.PrivateConformalClassifier(alpha=[0.3, 0.1], epsilon=4.0, **FAST)))
    pipe.fit(ROWS, TRUTH)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FittedStepWarning)
        sets = confide.estimators.pipeline_sets(pipe, ROWS[:50], alpha=0.1)
    rows = 2 * Normalizer().transform(ROWS[:50])
    np.testing.assert_array_equal(sets.mask, pipe[-1].predict_set(rows, alpha=0.1).mask)
    assert 0 < sets.mask.mean() < 1
    np.testing.assert_array_equal(confide.estimators.pipeline_sets(pipe[-1], rows, alpha=0.1).mask, sets.mask)


def test_a_step_fitted_on_calibration_records_causes_a_warning_at_the_callers_line():
    """Frozen steps were fitted elsewhere, according to the user; stateless ones process each record separately."""
    pipe = make_pipeline(StandardScaler(), confide.PrivateConformalClassifier(**FAST)).fit(ROWS, TRUTH)
    with pytest.warns(FittedStepWarning) as seen:
        confide.estimators.pipeline_sets(pipe, ROWS[:5])
    assert [one.filename for one in seen] == [__file__]
    frozen = make_pipeline(FrozenEstimator(StandardScaler().fit(ROWS)), confide.PrivateConformalClassifier(**FAST))
    with warnings.catch_warnings():
        warnings.simplefilter("error", FittedStepWarning)
        confide.estimators.pipeline_sets(frozen.fit(ROWS, TRUTH), ROWS[:5])


def test_pipelines_with_another_last_step_raise():
    with refused(confide.errors.InputTypeError, "model"):
        confide.estimators.pipeline_sets(make_pipeline(StandardScaler(), LogisticRegression()).fit(ROWS, TRUTH), ROWS)
    regressor = make_pipeline(Normalizer(), confide.PrivateConformalRegressor(**FAST)).fit(ROWS, ROWS[:, 0])
    with refused(confide.errors.InputTypeError, "model"):
        confide.estimators.pipeline_sets(regressor, ROWS)
    with refused(confide.errors.InputTypeError, "model"):
        confide.estimators.pipeline_intervals(Ridge().fit(ROWS, ROWS[:, 0]), ROWS)


@pytest.mark.usefixtures("routing")
def test_groups_and_weights_are_routed_through_a_pipeline():
    model = confide.PrivateConformalClassifier(Weighed(), group_names=["north", "south"], epsilon=4.0, **FAST)
    pipe = make_pipeline(FunctionTransformer(double), model.set_fit_request(groups=True, sample_weight=True))
    pipe.fit(ROWS, TRUTH, groups=WARD, sample_weight=WEIGHTS)
    assert set(pipe[-1].calibration_) == {"north", "south"}
    place = {tuple(row): i for i, row in enumerate(2 * ROWS)}
    own = [place[tuple(row)] for row in pipe[-1].estimator_.seen_]
    np.testing.assert_array_equal(pipe[-1].estimator_.given_, WEIGHTS[own])
    sets = confide.estimators.pipeline_sets(pipe, ROWS[:9], groups=WARD[:9])
    np.testing.assert_array_equal(sets.mask, pipe[-1].predict_set(2 * ROWS[:9], groups=WARD[:9]).mask)
    with refused(confide.errors.InputError, "groups"):  # in another order
        pipe[-1].predict_set(pd.DataFrame(ROWS[:9]), groups=pd.Series(WARD[:9])[::-1])


@pytest.mark.usefixtures("routing")
def test_each_of_two_quantile_regressors_gets_what_it_requests():
    class Quantile(Ridge):
        def fit(self, ROWS, y, sample_weight=None):
            self.given_ = sample_weight
            return super().fit(ROWS, y, sample_weight)

    pair = Quantile().set_fit_request(sample_weight=True), Quantile().set_fit_request(sample_weight=False)
    model = confide.PrivateConformalRegressor(pair, conformity_score="cqr", **FAST)
    pipe = make_pipeline(FunctionTransformer(double), clone(model))
    for whole, fitted in ((model, model), (pipe, pipe[-1])):
        whole.fit(ROWS, ROWS[:, 0], sample_weight=WEIGHTS)
        assert [one.given_ is None for one in fitted.estimator_] == [False, True]


@pytest.mark.slow
@pytest.mark.usefixtures("routing")
def test_searches_and_cross_validation_route_too():
    model = confide.PrivateConformalClassifier(Weighed(), group_names=["north", "south"], epsilon=4.0, **FAST)
    model.set_fit_request(groups=True, sample_weight=True).set_score_request(sample_weight=True)
    search = GridSearchCV(make_pipeline(Normalizer(), model), {"privateconformalclassifier__alpha": [0.3]}, cv=2)
    search.fit(ROWS, TRUTH, groups=WARD, sample_weight=WEIGHTS)
    assert search.best_estimator_[-1].estimator_.given_ is not None
    sets = confide.estimators.pipeline_sets(search, ROWS[:9], groups=WARD[:9])
    assert sets.mask.shape == (9, 2)
    given = {"groups": WARD, "sample_weight": WEIGHTS}
    found = cross_validate(model, ROWS, TRUTH, cv=2, params=given, error_score="raise")
    assert len(found["test_score"]) == 2


@pytest.mark.usefixtures("routing")
def test_with_prefit_nothing_is_trained_and_nothing_is_routed_to_it():
    base = KNeighborsClassifier().fit(ROWS, TRUTH)
    model = confide.PrivateConformalClassifier(base, prefit=True, **FAST)
    assert "estimator" not in str(model.get_metadata_routing())
    assert confide.estimators.pipeline_sets(
        make_pipeline(Normalizer(), model).fit(ROWS, TRUTH), ROWS[:5]
    ).mask.shape == (5, 2)
