"""Estimators compare their model, as it is now, with the calibrated one by its outputs for public probe records."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression, QuantileRegressor

import confide
from confide import PrivateConformalClassifier, PrivateConformalRegressor
from tests.refused import refused

RNG = np.random.default_rng(0)
X, PROBE = RNG.normal(size=(1500, 3)), RNG.normal(size=(40, 3))
NUMBERS = X @ [1.0, 2.0, 0.5] + RNG.normal(size=1500)
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
    model = clone(inner).fit(X[:500], y[:500])
    conformal = front(model, prefit=True, probe=PROBE).fit(X[500:], y[500:])
    predict = conformal.predict_set if name == "classes" else conformal.predict_interval
    assert len(predict(X[:3])) > 0
    again = pickle.loads(pickle.dumps(conformal))  # noqa: S301
    assert (again.predict_set if name == "classes" else again.predict_interval)(X[:3])
    model.fit(X[:450], y[:450])
    with refused(confide.errors.InputError, "fingerprint") as caught:
        predict(X[:3])
    assert "instead of" in caught.value.got
    conformal.renew(X[500:], y[500:])
    assert len(predict(X[:3])) > 0
    outputs = model.predict_proba(PROBE) if name == "classes" else model.predict(PROBE)
    assert conformal.calibration_.for_model(confide.ModelFingerprint.of(outputs))


@pytest.mark.slow
def test_pairs_and_difficulties_are_part_of_the_model():
    pair = (quantile(0.1).fit(X[:200], NUMBERS[:200]), quantile(0.9).fit(X[:200], NUMBERS[:200]))
    options = {"prefit": True, "probe": PROBE, "unit": 1.0}
    cqr = PrivateConformalRegressor(pair, conformity_score="cqr", **options).fit(X[500:], NUMBERS[500:])
    assert cqr.calibration_.fingerprint is not None
    difficulty = LinearRegression(positive=True).fit(np.abs(X[:200]), np.abs(NUMBERS[:200]))
    options |= {"probe": np.abs(PROBE), "difficulty_estimator": difficulty, "conformity_score": "normalised_residual"}
    model = LinearRegression().fit(np.abs(X[:200]), NUMBERS[:200])
    scaled = PrivateConformalRegressor(model, **options).fit(np.abs(X[500:]), NUMBERS[500:])
    assert len(scaled.predict_interval(np.abs(X[:3])).lower) == 3
    difficulty.fit(np.abs(X[:100]), np.abs(NUMBERS[:100]))
    with refused(confide.errors.InputError, "fingerprint"):
        scaled.predict_interval(np.abs(X[:3]))


def test_the_probe_is_not_the_calibration_records():
    with refused(confide.errors.InputError, "probe"):
        PrivateConformalClassifier(probe=X).fit(X, LABELS)


def test_without_a_probe_nothing_is_stated():
    conformal = PrivateConformalClassifier().fit(X, LABELS)
    assert conformal.calibration_.fingerprint is None
    assert len(conformal.predict_set(X[:3])) == 3
