"""Estimators in scikit-learn's pipelines and searches: their sets, and metadata routing."""

import warnings

import numpy as np
import pytest
from sklearn import config_context
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler

import confide
from confide.estimators import FittedStepWarning, SecondReleaseWarning
from tests.refused import refused

pytestmark = pytest.mark.filterwarnings("ignore::confide.CoverageWarning")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2000, 3))
Y = (X[:, 0] + RNG.normal(size=2000) > 0).astype(int)
WARD = np.where(np.arange(2000) % 2, "north", "south")
WEIGHTS = 1 + np.arange(2000.0)
FAST = {"neighbors": "replace_one", "random_state": 0}


class Weighed(LogisticRegression):
    """Stores the weights and the records that it was given."""

    def fit(self, X, y, sample_weight=None):
        self.given_, self.seen_ = sample_weight, X
        return super().fit(X, y, sample_weight)


def double(rows):
    return 2 * rows


@pytest.fixture
def routing():
    with config_context(enable_metadata_routing=True):
        yield


def test_sets_of_a_pipeline_are_those_of_its_last_step():
    pipe = make_pipeline(Normalizer(), "passthrough", make_pipeline(FunctionTransformer(double)))
    pipe.steps.append(("model", confide.PrivateConformalClassifier(alpha=[0.3, 0.1], epsilon=4.0, **FAST)))
    pipe.fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FittedStepWarning)
        sets = confide.estimators.pipeline_sets(pipe, X[:50], alpha=0.1)
    rows = 2 * Normalizer().transform(X[:50])
    np.testing.assert_array_equal(sets.mask, pipe[-1].predict_set(rows, alpha=0.1).mask)
    assert 0 < sets.mask.mean() < 1
    np.testing.assert_array_equal(confide.estimators.pipeline_sets(pipe[-1], rows, alpha=0.1).mask, sets.mask)


def test_a_step_fitted_on_calibration_records_causes_a_warning_at_the_callers_line():
    """Frozen steps were fitted elsewhere, according to the user; stateless ones process each record separately."""
    pipe = make_pipeline(StandardScaler(), confide.PrivateConformalClassifier(**FAST)).fit(X, Y)
    with pytest.warns(FittedStepWarning) as seen:
        confide.estimators.pipeline_sets(pipe, X[:5])
    assert [one.filename for one in seen] == [__file__]
    frozen = make_pipeline(FrozenEstimator(StandardScaler().fit(X)), confide.PrivateConformalClassifier(**FAST))
    with warnings.catch_warnings():
        warnings.simplefilter("error", FittedStepWarning)
        confide.estimators.pipeline_sets(frozen.fit(X, Y), X[:5])


def test_pipelines_with_another_last_step_raise():
    with refused(confide.errors.InputTypeError, "model"):
        confide.estimators.pipeline_sets(make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y), X)
    regressor = make_pipeline(Normalizer(), confide.PrivateConformalRegressor(**FAST)).fit(X, X[:, 0])
    with refused(confide.errors.InputTypeError, "model"):
        confide.estimators.pipeline_sets(regressor, X)
    with refused(confide.errors.InputTypeError, "model"):
        confide.estimators.pipeline_intervals(Ridge().fit(X, X[:, 0]), X)


def test_warnings_through_a_pipeline_point_at_the_callers_line():
    pipe = make_pipeline(Normalizer(), confide.PrivateConformalClassifier(**FAST)).fit(X, Y)
    with pytest.warns(SecondReleaseWarning) as seen:
        pipe.fit(X, Y)
    assert [one.filename for one in seen if one.category is SecondReleaseWarning] == [__file__]


@pytest.mark.usefixtures("routing")
def test_groups_and_weights_are_routed_through_a_pipeline():
    model = confide.PrivateConformalClassifier(Weighed(), group_names=["north", "south"], epsilon=4.0, **FAST)
    pipe = make_pipeline(FunctionTransformer(double), model.set_fit_request(groups=True, sample_weight=True))
    pipe.fit(X, Y, groups=WARD, sample_weight=WEIGHTS)
    assert set(pipe[-1].calibration_) == {"north", "south"}
    place = {tuple(row): i for i, row in enumerate(2 * X)}
    own = [place[tuple(row)] for row in pipe[-1].estimator_.seen_]
    np.testing.assert_array_equal(pipe[-1].estimator_.given_, WEIGHTS[own])
    sets = confide.estimators.pipeline_sets(pipe, X[:9], groups=WARD[:9])
    np.testing.assert_array_equal(sets.mask, pipe[-1].predict_set(2 * X[:9], groups=WARD[:9]).mask)


@pytest.mark.usefixtures("routing")
def test_each_of_two_quantile_regressors_gets_what_it_requests():
    class Quantile(Ridge):
        def fit(self, X, y, sample_weight=None):
            self.given_ = sample_weight
            return super().fit(X, y, sample_weight)

    pair = Quantile().set_fit_request(sample_weight=True), Quantile().set_fit_request(sample_weight=False)
    model = confide.PrivateConformalRegressor(pair, conformity_score="cqr", **FAST)
    model.fit(X, X[:, 0], sample_weight=WEIGHTS)
    assert [one.given_ is None for one in model.estimator_] == [False, True]


@pytest.mark.slow
@pytest.mark.usefixtures("routing")
def test_searches_and_cross_validation_route_too():
    model = confide.PrivateConformalClassifier(Weighed(), group_names=["north", "south"], epsilon=4.0, **FAST)
    model.set_fit_request(groups=True, sample_weight=True).set_score_request(sample_weight=True)
    search = GridSearchCV(make_pipeline(Normalizer(), model), {"privateconformalclassifier__alpha": [0.3]}, cv=2)
    search.fit(X, Y, groups=WARD, sample_weight=WEIGHTS)
    assert search.best_estimator_[-1].estimator_.given_ is not None
    sets = confide.estimators.pipeline_sets(search, X[:9], groups=WARD[:9])
    assert sets.mask.shape == (9, 2)
    given = {"groups": WARD, "sample_weight": WEIGHTS}
    found = cross_validate(model, X, Y, cv=2, params=given, error_score="raise")
    assert len(found["test_score"]) == 2


@pytest.mark.usefixtures("routing")
def test_with_prefit_nothing_is_trained_and_nothing_is_routed_to_it():
    base = KNeighborsClassifier().fit(X, Y)
    model = confide.PrivateConformalClassifier(base, prefit=True, **FAST)
    assert "estimator" not in str(model.get_metadata_routing())
    assert confide.estimators.pipeline_sets(make_pipeline(Normalizer(), model).fit(X, Y), X[:5]).mask.shape == (5, 2)
