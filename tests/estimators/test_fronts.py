"""scikit-learn, pandas and JAX; of several models or scores one is chosen privately."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_digits
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, QuantileRegressor
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.estimator_checks import check_estimator

import confide
from confide.estimators.split import calibrating
from tests.builders import slow
from tests.calibrations import calibration_at
from tests.exact_tests import assert_covers, assert_threshold_below
from tests.refused import numbers, refused

SCORES = [
    *("lac", "margin", "top_k", "aps_deterministic", "aps"),
    *("raps_deterministic(penalty=0.01,k_reg=3)", "raps(penalty=0.01,k_reg=3)"),
    *("saps_deterministic(penalty=0.1)", "saps(penalty=0.1)"),
]
FEW = "ignore::confide.CoverageWarning"
RNG = np.random.default_rng(5)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    return X[order], y[order]


@pytest.mark.long
@pytest.mark.parametrize("routing", [False, True])
@pytest.mark.parametrize("front", [confide.PrivateConformalClassifier, confide.PrivateConformalRegressor])
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_checks(front, routing):
    """All of scikit-learn's own checks pass; the one left out runs only with SCIPY_ARRAY_API set before start.

    The split is seeded: with the 40 records of four classes there, a random one may leave a class out of training.
    """
    with config_context(enable_metadata_routing=routing):
        results = check_estimator(front(random_state=0), on_fail=None, on_skip=None)
    assert {r["check_name"] for r in results if r["status"] == "failed"} == set()
    assert {r["check_name"] for r in results if r["status"] == "skipped"} <= {"check_array_api_input"}
    assert len(results) > 40


@pytest.mark.parametrize(
    "score", ["lac", *slow(["aps_deterministic", "aps", "raps_deterministic(penalty=0.01,k_reg=2)", "margin", "top_k"])]
)
def test_classifier_covers_with_small_sets(digits, score):
    X, y = digits
    names = np.array([f"digit {d}" for d in range(10)])
    model = confide.PrivateConformalClassifier(
        make_pipeline(StandardScaler(), LogisticRegression()),
        epsilon=2.0,
        conformity_score=score,
        calibration_size=0.75,
        random_state=0,
    )
    sets = model.fit(X[:1300], names[y[:1300]]).predict_set(X[1300:])
    held = np.flatnonzero(calibrating(0.75, 0, 1300, X[:1300], names[y[:1300]]))
    assert_covers(model.calibration_, len(held), sets.contains(names[y[1300:]]))
    u = (
        np.ones(len(held)) if confide.scores.score_kind(score).randomised else None
    )  # the estimator's own numbers give no larger scores
    scores = confide.class_score(model.predict_proba(X[held]), y[held], score, u=u)
    assert_threshold_below(model.calibration_, scores)
    assert set(model.predict(X[:5])) <= set(names)
    assert model.calibration_.score == score
    assert model.score(X[1300:], names[y[1300:]]) == np.mean(model.predict(X[1300:]) == names[y[1300:]])
    assert len(pickle.dumps(model)) < 60_000


@pytest.mark.slow(unless="PrivateConformalClassifier")
@pytest.mark.filterwarnings(FEW)
@pytest.mark.parametrize("front", [confide.PrivateConformalClassifier, confide.PrivateConformalRegressor])
def test_a_confidence_level_is_one_minus_alpha(front):
    X, y = RNG.normal(size=(60, 2)), np.arange(60) % 2
    for options, levels in (
        ({}, ["0.1"]),
        ({"confidence_level": 0.7}, ["0.3"]),
        ({"confidence_level": [0.7, 0.9]}, ["0.1", "0.3"]),
    ):
        released = front(**options).fit(X, y).calibration_
        assert sorted(str(float(level)) for level in released.levels) == levels
        assert front(**options).get_params()["alpha"] is None
    for options in ({"alpha": 0.1, "confidence_level": 0.9}, {"confidence_level": 90}):
        with refused(confide.errors.InputError, "confidence_level"):
            front(**options).fit(X, y)


@pytest.mark.slow
@pytest.mark.filterwarnings(FEW)
def test_a_class_without_training_records():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 2)), np.r_[np.zeros(150), np.ones(149), 7].astype(int)
    model = confide.PrivateConformalClassifier(random_state=0, classes=[0, 1, 7, 9]).fit(X, y)
    assert model.predict_proba(X).shape == (300, 4)
    assert model.predict_set(X).classes == (0, 1, 7, 9)


@pytest.mark.long
def test_regressors_in_a_pipeline_with_pandas():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    X = X.sample(frac=1, random_state=0)  # fit, calibration and test records have to be exchangeable
    y = y[X.index]
    X.index = y.index = [f"patient {i}" for i in range(len(X))]
    models = {
        "absolute_residual": {"estimator": LinearRegression()},
        "gamma": {"estimator": DecisionTreeRegressor(max_depth=3, random_state=0)},
        "normalised_residual": {"difficulty_estimator": DecisionTreeRegressor(max_depth=2, random_state=0)},
        "cqr": {"estimator": tuple(QuantileRegressor(quantile=q, alpha=0.01) for q in (0.1, 0.9))},
    }
    for score, options in models.items():
        model = confide.PrivateConformalRegressor(
            alpha=0.2, epsilon=4, conformity_score=score, random_state=0, **options
        )
        intervals = model.fit(X[:300], y.iloc[:300]).predict_interval(X[300:])
        assert list(intervals.to_frame().index) == list(X.index[300:])
        assert list(model.feature_names_in_) == list(X.columns)
        new = y.to_numpy()[300:]
        held = np.flatnonzero(calibrating(0.5, 0, 300, X[:300], y.to_numpy()[:300]))
        assert_covers(model.calibration_, len(held), intervals.contains(new))
        assert_threshold_below(model.calibration_, model._scores(X.iloc[held], y.to_numpy()[held]))
    whole = make_pipeline(StandardScaler(), confide.PrivateConformalRegressor(alpha=0.2, epsilon=4))
    assert whole.fit(X[:300], y.iloc[:300]).predict(X[300:]).shape == (142,)


@pytest.mark.filterwarnings("ignore::confide.CoverageWarning")  # few records: some thresholds cover everything
@pytest.mark.long
@pytest.mark.filterwarnings("ignore:Explicitly requested dtype")
def test_jax_arrays():
    jax = pytest.importorskip("jax", reason="needs the extra jax")
    pytest.importorskip("array_api_compat", reason="needs the extra torch")
    from confide.array_api import predict_mask, true_scores

    p = np.random.default_rng(0).dirichlet(np.ones(9), 30).astype(np.float32)
    with pytest.raises(confide.errors.InputTypeError):  # jax computes in float32
        predict_mask(jax.numpy.asarray(p), calibration_at(0.8, score="aps_deterministic"))
    with jax.enable_x64(True):
        u = np.random.default_rng(1).random(30)
        p[:5] = np.array([0.25, 0.25, 0.25, 0.125, 0.125, 0, 0, 0, 0], np.float32)  # ties and zeros
        for score in SCORES:
            shares = u if confide.scores.score_kind(score).randomised else None
            ours = confide.class_score(p, p.argmin(axis=1), score, u=shares)
            device = [None if a is None else jax.numpy.asarray(a) for a in (p, p.argmin(axis=1), shares)]
            assert np.array_equal(true_scores(device[0], device[1], score, u=device[2]), ours)
            threshold = float(np.median(ours))
            released = calibration_at(threshold, score=score)
            mask = predict_mask(device[0], released, u=device[2])
            assert isinstance(mask, jax.Array)
            assert np.array_equal(mask, confide.all_scores(p, score, u=shares) <= threshold)


MISSING = {
    "None": lambda y: _changed(y, None),
    "NaN": lambda y: _changed(y, float("nan")),
    "pandas.NA": lambda y: pd.Series(_changed(y, None)).astype("string"),
    "a list": lambda y: _changed(y, None).tolist(),
    "NaT": lambda y: np.array(["NaT" if i in (3, 5) else "2024-01-01" for i in range(len(y))], dtype="datetime64[D]"),
}


def _changed(y, value):
    changed = np.asarray(y).astype(object)
    changed[[3, 5]] = value
    return changed


@pytest.mark.parametrize("kind", MISSING)
@pytest.mark.parametrize("front", [confide.PrivateConformalClassifier, confide.PrivateConformalRegressor])
def test_missing_targets_are_one_line(front, kind):
    X = RNG.normal(size=(60, 2))
    y = np.where(X[:, 0] > 0, "a", "b") if front is confide.PrivateConformalClassifier else X[:, 0]
    with refused(confide.errors.InputError, "y") as caught:
        front(alpha=0.1, epsilon=1.0).fit(X, MISSING[kind](y))
    assert numbers(caught) == [2, 3]


TARGETS = {
    **{
        f"dates in {unit}": lambda y, unit=unit: y.astype("int64").astype(f"datetime64[{unit}]") for unit in ("s", "ns")
    },
    "durations": lambda y: y.astype("int64").astype("timedelta64[s]"),
    "booleans": lambda y: y > 0,
    "complex": lambda y: y.astype(complex),
    "texts": lambda y: y.astype(str).astype(object),
    "dates as objects": lambda y: y.astype("int64").astype("datetime64[s]").astype(object),
}


class Other(LinearRegression):
    """A regressor whose predictions are of another type."""

    def predict(self, X):
        return TARGETS[self.kind](super().predict(X))


@pytest.mark.parametrize("kind", TARGETS)
def test_targets_and_predictions_that_are_not_numbers_are_refused(kind):
    X = RNG.normal(size=(60, 2))
    y = 1000 * X[:, 0]
    with refused(confide.errors.InputTypeError, "y") as caught:
        confide.PrivateConformalRegressor(alpha=0.1, epsilon=1.0).fit(X, TARGETS[kind](y))
    assert caught.value.__cause__ is caught.value.__context__ is None
    model = Other().fit(X, y)
    model.kind = kind
    with refused(confide.errors.InputTypeError, "predictions"):
        confide.PrivateConformalRegressor(model, alpha=0.1, epsilon=1.0, prefit=True).fit(X, y)


X, Y = load_digits(return_X_y=True)
MODELS = {"prior": DummyClassifier(), "bayes": GaussianNB()}


def test_classifier_chooses_a_model_and_a_score():
    """The prior has sets of nine digits; it is chosen with probability below 1e-20."""
    model = confide.PrivateConformalClassifier(MODELS, 0.1, 2.0, conformity_score=("lac", "aps"), random_state=0)
    model.fit(X[:1500], Y[:1500])
    chosen = model.calibration_.chosen
    assert chosen.among == ("prior lac", "prior aps", "bayes lac", "bayes aps")
    assert isinstance(model.estimator_, GaussianNB)
    assert model.calibration_.score == model.conformity_score_
    assert model.calibration_.epsilon == 2.0
    sets = model.predict_set(X[1500:])
    assert sets.sizes.mean() < 4
    assert set(model.estimators_) == set(MODELS)
    assert clone(model).get_params()["conformity_score"] == ("lac", "aps")


@pytest.mark.slow
def test_regressor_chooses_a_model():
    """Errors of 1 and of 10, with 200 records in the share; the other is chosen with probability below 1e-20."""
    rng = np.random.default_rng(0)
    features = rng.normal(0, 10, (2000, 1))
    target = features[:, 0] + rng.normal(size=2000)
    models = {"mean": DummyRegressor(), "line": LinearRegression()}
    model = confide.PrivateConformalRegressor(models, 0.1, 1.0, largest_size=40.0, unit=1.0).fit(features, target)
    assert isinstance(model.estimator_, LinearRegression)
    assert model.calibration_.threshold < 4
    assert model.calibration_.chosen.share.denominator == 5


LINES = {"mean": DummyRegressor(), "line": LinearRegression()}
CHOICES = [
    (MODELS, {"alpha": [0.1, 0.2]}, "alpha"),
    (MODELS, {"neighbors": "replace_one"}, "neighbors"),
    (MODELS, {"choice_share": 0.9}, "choice_share"),
    (MODELS, {"largest_size": 11}, "largest_size"),
    (MODELS, {"by_class": True, "ledger": "...", "dataset": "digits"}, "ledger"),
    (LINES, {}, "largest_size"),
    ({}, {}, "estimator"),
    ({1: DummyRegressor(), 2: LinearRegression()}, {}, "estimator"),
    (None, {"conformity_score": ("gamma", "cqr")}, "conformity_score"),
    (LINES, {"conformity_score": "gamma"}, "conformity_score"),
]


@pytest.mark.parametrize(("models", "options", "argument"), CHOICES)
def test_impossible_choices_raise(models, options, argument):
    front = confide.PrivateConformalClassifier if models is MODELS else confide.PrivateConformalRegressor
    with refused((confide.errors.InputError, confide.errors.InputTypeError), argument):
        front(models, random_state=0, **options).fit(X[:500], Y[:500])
