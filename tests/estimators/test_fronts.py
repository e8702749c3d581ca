"""scikit-learn, torch, Arrow, pandas and plots."""

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_digits
from sklearn.linear_model import LinearRegression, LogisticRegression, QuantileRegressor
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.estimator_checks import check_estimator

import confide
from confide.estimators import SecondReleaseWarning
from tests.exact_tests import assert_covers, assert_threshold_below
from tests.scores.test_pitfalls import DETERMINISTIC, RANDOMISED

SCORES = DETERMINISTIC + RANDOMISED
FEW = "ignore::confide.CoverageWarning"


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    return X[order], y[order]


@pytest.mark.parametrize("front", [confide.PrivateConformalClassifier, confide.PrivateConformalRegressor])
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_checks(front):
    """All of scikit-learn's own checks pass; the one left out runs only with SCIPY_ARRAY_API set before start."""
    results = check_estimator(front(), on_fail=None, on_skip=None)
    assert {r["check_name"] for r in results if r["status"] == "failed"} == set()
    assert {r["check_name"] for r in results if r["status"] == "skipped"} <= {"check_array_api_input"}
    assert len(results) > 40


@pytest.mark.parametrize("score", ["lac", "aps", "aps_randomised", "raps(penalty=0.01,k_reg=2)", "margin", "top_k"])
def test_classifier_covers_with_small_sets(digits, score):
    X, y = digits
    names = np.array([f"digit {d}" for d in range(10)])
    model = confide.PrivateConformalClassifier(
        make_pipeline(StandardScaler(), LogisticRegression()),
        epsilon=2.0,
        conformity_score=score,
        calibration_size=1000,
        random_state=0,
    )
    sets = model.fit(X[:1300], names[y[:1300]]).predict_set(X[1300:])
    assert_covers(model.calibration_, 1000, sets.contains(names[y[1300:]]))
    _, held = train_test_split(np.arange(1300), test_size=1000, random_state=0)
    u = np.ones(1000) if "randomised" in score else None  # the estimator's own numbers give no larger scores
    scores = confide.class_score(model.predict_proba(X[held]), y[held], score, u=u)
    assert_threshold_below(model.calibration_, scores)
    assert set(model.predict(X[:5])) <= set(names)
    assert model.calibration_.score == score
    assert model.score(X[1300:], names[y[1300:]]) == np.mean(model.predict(X[1300:]) == names[y[1300:]])
    assert len(pickle.dumps(model)) < 60_000


def test_second_calibration_is_a_second_release(digits):
    X, y = digits
    base = LogisticRegression(max_iter=3000).fit(X[:500], y[:500])
    model = confide.PrivateConformalClassifier(base, prefit=True).calibrate(X[500:1100], y[500:1100])
    assert model.estimator_ is base
    first = model.calibration_
    with pytest.warns(SecondReleaseWarning, match="release number 2"):
        model.calibrate(X[1100:], y[1100:])
    assert model.n_releases_ == 2
    assert model.calibration_ is not first
    with pytest.warns(SecondReleaseWarning, match="release number 3"):
        model.fit(X[1100:], y[1100:])
    fresh = clone(model)
    assert not hasattr(fresh, "calibration_")
    assert fresh.get_params()["prefit"] is True
    assert fresh.set_params(alpha=0.2, estimator__C=2.0).alpha == 0.2


@pytest.mark.filterwarnings(FEW)
def test_class_that_the_training_part_lacks():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 2)), np.r_[np.zeros(150), np.ones(149), 7].astype(int)
    model = confide.PrivateConformalClassifier(random_state=0, calibration_size=200, classes=[0, 1, 7, 9]).fit(X, y)
    assert model.predict_proba(X).shape == (300, 4)
    assert model.predict_set(X).classes == (0, 1, 7, 9)


def test_regressors_in_a_pipeline_with_pandas():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    X = X.sample(frac=1, random_state=0)  # fit, calibration and test records have to be exchangeable
    y = y[X.index]
    X.index = [f"patient {i}" for i in range(len(X))]
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
        lower, upper = model.fit(X[:300], y.iloc[:300]).predict_interval(X[300:])
        assert list(lower.index) == list(X.index[300:])
        assert list(model.feature_names_in_) == list(X.columns)
        new = y.to_numpy()[300:]
        assert_covers(model.calibration_, 150, ((lower <= new) & (new <= upper)).to_numpy())
        _, held = train_test_split(np.arange(300), test_size=150, random_state=0)
        assert_threshold_below(model.calibration_, model._scores(X.iloc[held], y.to_numpy()[held]))
    whole = make_pipeline(StandardScaler(), confide.PrivateConformalRegressor(alpha=0.2, epsilon=4))
    assert whole.fit(X[:300], y.iloc[:300]).predict(X[300:]).shape == (142,)


def test_sets_to_arrow_and_pandas():
    sets = confide.PredictionSets(np.array([[True, False], [False, False], [True, True]]), ("cat", "dog"))
    assert sets.to_arrow().to_pylist() == [["cat"], [], ["cat", "dog"]]
    assert confide.PredictionSets(sets.mask).to_arrow().to_pylist() == [[0], [], [0, 1]]
    frame = sets.to_pandas(index=["x", "y", "z"])
    assert list(frame.columns) == ["cat", "dog"]
    pd.testing.assert_series_equal(frame.sum(axis=1), pd.Series([1, 0, 2], index=["x", "y", "z"]))


def test_plots_draw():
    matplotlib = pytest.importorskip("matplotlib", reason="needs the extra plots")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rng = np.random.default_rng(0)
    sets = confide.PredictionSets(rng.random((500, 40)) < 0.3)
    y = rng.integers(0, 40, 500)
    bars = confide.plot_sizes(sets)
    assert sum(bar.get_height() for bar in bars.patches) == pytest.approx(1)
    axes = confide.plot_coverage(sets, y)
    assert "30 least covered of 40" in axes.get_title()
    x = rng.random(50)
    band = confide.plot_intervals(x, x - 1, np.where(x > 0.9, np.inf, x + 1), x)
    assert "100.0% inside" in band.get_title()
    for drawn in (bars, axes, band):
        drawn.figure.savefig("/dev/null", format="png")
    plt.close("all")


def test_torch_from_a_loader():
    torch = pytest.importorskip("torch", reason="needs the extra torch")
    pytest.importorskip("array_api_compat", reason="needs the extra torch")
    from confide import torch as front

    generator = torch.Generator().manual_seed(0)
    x = torch.randn(4000, 6, generator=generator)
    y = torch.distributions.Categorical(logits=2 * x).sample()
    model = torch.nn.Linear(6, 6, bias=False)
    model.weight.data = 2 * torch.eye(6)
    model.train()
    data = torch.utils.data.TensorDataset(x[:2500], y[:2500])
    loader = torch.utils.data.DataLoader(data, batch_size=300)
    for score in ("lac", "aps", "saps_randomised(penalty=0.1)"):
        released = front.calibrate(model, loader, 0.1, 1.0, score=score, progress=False)
        assert model.training
        u = torch.rand(1500, dtype=torch.float64) if "randomised" in score else None
        with torch.no_grad():
            mask = front.predict_set(model(x[2500:]), released, u=u)
        assert (mask.dtype, mask.shape) == (torch.bool, (1500, 6))
        assert_covers(released, 2500, mask[torch.arange(1500), y[2500:]].numpy())
        with torch.no_grad():
            p = torch.softmax(model(x[:2500]), 1).numpy()
        largest_u = None if u is None else np.ones(2500)  # the loader's own numbers give no larger scores
        assert_threshold_below(released, confide.class_score(p, y[:2500].numpy(), score, u=largest_u))
    sets = front.to_prediction_sets(mask, list("abcdef"))
    assert sets.labels()[0] == [name for name, inside in zip("abcdef", mask[0], strict=True) if inside]
    half = torch.softmax(x[:50], 1).to(torch.bfloat16)
    lac = front.calibrate(model, loader, 0.1, 1.0, progress=False)
    assert torch.equal(*(front.predict_set(rows, lac, logits=False) for rows in (half, half.double())))
    broken = x[:5].clone()
    broken[3] = float("nan")
    with pytest.raises(confide.InputError, match="the first at row 3"):
        front.predict_set(broken, released, u=torch.rand(5))
    with pytest.raises(confide.InputError, match="found none"):
        front.calibrate(model, [], 0.1, 1.0, progress=False)


@pytest.mark.filterwarnings("ignore:Explicitly requested dtype")
def test_jax_arrays():
    jax = pytest.importorskip("jax", reason="needs the extra jax")
    pytest.importorskip("array_api_compat", reason="needs the extra torch")
    from confide.array_api import predict_mask, true_scores
    from tests.calibrations import calibration_at

    p = np.random.default_rng(0).dirichlet(np.ones(9), 30).astype(np.float32)
    for score, threshold in (("lac", 0.8), ("margin", 0.3), ("top_k", 3.0)):
        mask = predict_mask(jax.numpy.asarray(p), calibration_at(threshold, score=score))
        scores = confide.all_scores(p, score)
        apart = np.abs(scores - threshold) > 1e-6  # jax computes in float32
        assert (np.asarray(mask) == (scores <= threshold))[apart | (score == "top_k")].all()
    with pytest.raises(confide.InputTypeError, match="float64"):
        predict_mask(jax.numpy.asarray(p), calibration_at(0.8, score="aps"))
    with jax.enable_x64(True):
        u = np.random.default_rng(1).random(30)
        p[:5] = np.array([0.25, 0.25, 0.25, 0.125, 0.125, 0, 0, 0, 0], np.float32)  # ties and zeros
        for score in SCORES:
            shares = u if "randomised" in score else None
            ours = confide.class_score(p, p.argmin(axis=1), score, u=shares)
            device = [None if a is None else jax.numpy.asarray(a) for a in (p, p.argmin(axis=1), shares)]
            assert np.array_equal(true_scores(device[0], device[1], score, u=device[2]), ours)
            threshold = float(np.median(ours))
            released = calibration_at(threshold, score=score)
            mask = predict_mask(device[0], released, u=device[2])
            assert isinstance(mask, jax.Array)
            assert np.array_equal(mask, confide.all_scores(p, score, u=shares) <= threshold)


def test_import_stays_light():
    heavy = "scipy opendp sklearn duckdb pandas pyarrow torch matplotlib array_api_compat"
    code = f"import sys, confide; print([m for m in {heavy.split()!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
