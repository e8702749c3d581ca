"""Estimators with several models or scores: one is chosen privately, on a share of the calibration records."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LinearRegression
from sklearn.naive_bayes import GaussianNB

import confide
from tests.refused import refused

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


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"alpha": [0.1, 0.2]}, "alpha"),
        ({"neighbors": "replace_one"}, "neighbors"),
        ({"choice_share": 0.9}, "choice_share"),
        ({"largest_size": 11}, "largest_size"),
        ({"by_class": True, "ledger": "...", "dataset": "digits"}, "ledger"),
    ],
)
def test_impossible_options_raise(options, argument):
    with refused(confide.errors.InputError, argument):
        confide.PrivateConformalClassifier(MODELS, random_state=0, **options).fit(X[:500], Y[:500])


def test_several_regressors_need_a_largest_width_and_absolute_residuals():
    models = {"mean": DummyRegressor(), "line": LinearRegression()}
    with refused(confide.errors.InputError, "largest_size"):
        confide.PrivateConformalRegressor(models, random_state=0).fit(X[:100], Y[:100])
    for wrong in ({}, {1: DummyRegressor(), 2: LinearRegression()}):
        with refused(confide.errors.InputError, "estimator"):
            confide.PrivateConformalRegressor(wrong, random_state=0).fit(X[:100], Y[:100])
    with refused(confide.errors.InputTypeError, "conformity_score"):
        confide.PrivateConformalRegressor(conformity_score=("gamma", "cqr"), random_state=0).fit(X[:100], Y[:100])
    with refused(confide.errors.InputError, "conformity_score"):
        confide.PrivateConformalRegressor(models, conformity_score="gamma", random_state=0).fit(X[:100], Y[:100])
