"""scikit-learn, torch, Arrow and pandas."""

import json
import pickle
import subprocess
import sys
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_digits
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, QuantileRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.estimator_checks import check_estimator

import confide
from confide.estimators import SecondReleaseWarning
from confide.estimators.split import calibrating
from confide.releases import parts_of, verify_lineage
from tests.builders import slow
from tests.calibrations import calibration_at, fix_noisy_number
from tests.exact_tests import assert_covers, assert_threshold_below
from tests.refused import numbers, refused
from tests.scores.test_pitfalls import DETERMINISTIC, RANDOMISED

SCORES = DETERMINISTIC + RANDOMISED
THRESHOLD = ("threshold", "sha256")
FEW = "ignore::confide.CoverageWarning"


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    return X[order], y[order]


@pytest.mark.slow
@pytest.mark.parametrize("front", [confide.PrivateConformalClassifier, *slow([confide.PrivateConformalRegressor])])
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_checks(front):
    """All of scikit-learn's own checks pass; the one left out runs only with SCIPY_ARRAY_API set before start.

    The split is seeded: with the 40 records of four classes there, a random one may leave a class out of training.
    """
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


@pytest.mark.slow
def test_second_calibration_is_a_second_release(digits):
    X, y = digits
    base = LogisticRegression(max_iter=3000).fit(X[:500], y[:500])
    model = confide.PrivateConformalClassifier(base, prefit=True).calibrate(X[500:1100], y[500:1100])
    assert model.estimator_ is base
    first = model.calibration_
    with pytest.warns(SecondReleaseWarning):
        model.calibrate(X[1100:], y[1100:])
    assert model.n_releases_ == 2
    assert model.calibration_ is not first
    with pytest.warns(SecondReleaseWarning):
        model.fit(X[1100:], y[1100:])
    fresh = clone(model)
    assert not hasattr(fresh, "calibration_")
    assert fresh.get_params()["prefit"] is True
    assert fresh.set_params(alpha=0.2, estimator__C=2.0).alpha == 0.2


@pytest.mark.slow
@pytest.mark.parametrize(
    "asked", [{}, {"alpha": [0.3, 0.1], "epsilon": 4.0}, *slow([{"by_class": True, "alpha": 0.3, "epsilon": 8.0}])]
)
@pytest.mark.filterwarnings(FEW)
def test_a_renewed_estimator_is_a_chain(asked):
    """There is no warning of a second release: the new one lists the first, and repeats its request."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1300, 2))
    y = (X[:, 0] + rng.normal(size=1300) > 0).astype(int)
    base = LogisticRegression().fit(X[:100], y[:100])
    about = {"date": "2026"}
    model = confide.PrivateConformalClassifier(base, prefit=True, neighbors="replace_one", about=about, **asked)
    first = model.calibrate(X[100:700], y[100:700]).calibration_
    with warnings.catch_warnings():
        warnings.simplefilter("error", SecondReleaseWarning)
        second = model.renew(X[700:], y[700:]).calibration_
    assert verify_lineage(second, [first]).holds
    assert (type(second), model.n_releases_) == (type(first), 2)
    for part in parts_of(second).values():
        assert part.recipe.get("around", part.predecessors[0].threshold) == part.predecessors[0].threshold
        assert dict(part.about) == about
    third = model.renew(X[700:], y[700:], cold=True).calibration_
    assert all("around" not in part.recipe for part in parts_of(third).values())


@pytest.mark.slow
@pytest.mark.filterwarnings(FEW)
def test_a_class_without_training_records():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 2)), np.r_[np.zeros(150), np.ones(149), 7].astype(int)
    model = confide.PrivateConformalClassifier(random_state=0, classes=[0, 1, 7, 9]).fit(X, y)
    assert model.predict_proba(X).shape == (300, 4)
    assert model.predict_set(X).classes == (0, 1, 7, 9)


@pytest.mark.slow
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


def test_sets_to_arrow_and_pandas():
    sets = confide.PredictionSets(np.array([[True, False], [False, False], [True, True]]), ("cat", "dog"))
    assert sets.to_arrow().to_pylist() == [["cat"], [], ["cat", "dog"]]
    assert confide.PredictionSets(sets.mask).to_arrow().to_pylist() == [[0], [], [0, 1]]
    frame = sets.to_pandas(index=["x", "y", "z"])
    assert list(frame.columns) == ["cat", "dog"]
    pd.testing.assert_series_equal(frame.sum(axis=1), pd.Series([1, 0, 2], index=["x", "y", "z"]))


@pytest.mark.slow
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
    for score in ("lac", "aps_deterministic", "saps(penalty=0.1)"):
        released = front.calibrate(model, loader, 0.1, 1.0, score=score, progress=False)
        assert model.training
        u = torch.rand(1500, dtype=torch.float64) if confide.scores.score_kind(score).randomised else None
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
    with refused(confide.InputError, "probabilities") as caught:
        front.predict_set(broken, released, u=torch.rand(5))
    assert numbers(caught)[-1] == 3
    with pytest.raises(confide.InputError):
        front.calibrate(model, [], 0.1, 1.0, progress=False, neighbors="replace_one")


@pytest.fixture
def front():
    pytest.importorskip("torch", reason="needs the extra torch")
    pytest.importorskip("array_api_compat", reason="needs the extra torch")
    from confide import torch as front

    return front


def test_torch_detects_softmax_outputs_and_logits(front):
    """Confusing the two gave coverage 0.69 with a guarantee of 0.9, without a warning."""
    import torch

    logits = torch.randn(2000, 6)
    p, y = torch.softmax(logits, 1), torch.distributions.Categorical(logits=logits).sample()
    released = front.calibrate(lambda x: x, [(p, y)], 0.1, 1.0, logits=False, progress=False)
    assert released.classes == 6
    accelerated = [p.cuda(), p.half().cuda()] if torch.cuda.is_available() else []
    for outputs in (p, p.half(), p.bfloat16(), p.bfloat16().float(), p.double(), p[:1], torch.eye(6), *accelerated):
        with refused(confide.InputError, "outputs"):
            front.predict_set(outputs, released)
        assert front.predict_set(outputs, released, logits=False).shape == outputs.shape
    with refused(confide.InputError, "outputs"):
        front.calibrate(lambda x: x, [(p, y)], 0.1, 1.0, progress=False)
    accelerated = [logits.half().cuda()] if torch.cuda.is_available() else []
    wrong = (logits, logits.half(), logits.bfloat16(), -p, 0.9 * p, torch.full((5, 6), 0.9), *accelerated)
    for outputs in wrong:
        with refused(confide.InputError, "outputs"):
            front.predict_set(outputs, released, logits=False)
        assert front.predict_set(outputs, released).shape == outputs.shape


@pytest.mark.parametrize("k", [2, 10, 1000, 20_000])
@pytest.mark.parametrize("sharpness", [0.0, 1.0, 8.0])
def test_torch_detects_softmax_of_every_precision(front, k, sharpness):
    """They are accepted as probabilities, and detected if they are passed as logits."""
    import torch

    p = torch.softmax(sharpness * torch.randn(40, k), 1)
    released = calibration_at(0.5)
    for kind in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        assert front.predict_set(p.to(kind), released, logits=False).shape == p.shape
        with refused(confide.InputError, "outputs"):
            front.predict_set(p.to(kind), released)
    rounded = (10**6 * p).round() / 10**6
    assert front.predict_set(rounded, released, logits=False).shape == p.shape


def test_torch_checks_the_number_of_classes_of_a_release(front):
    import torch

    logits, y = torch.randn(2000, 4), torch.randint(0, 4, (2000,))
    calibrate = partial(front.calibrate, lambda x: x, alpha=0.1, epsilon=1.0, progress=False)
    assert calibrate([(logits, y)], about={"model": "resnet"}).about == {"model": "resnet"}
    released = calibrate([(logits, y)], classes=["ant", "bee", "cat", "dog"])
    assert released.classes == ("ant", "bee", "cat", "dog")
    for made in (released, calibrate([(logits, y)])):
        with refused(confide.InputError, "probabilities"):
            front.predict_set(logits[:, :3], made)
    for loader, options in (([(logits, y), (logits[:, :3], y % 3)], {}), ([(logits, y)], {"classes": range(3)})):
        with refused(confide.InputError, "model"):
            calibrate(loader, **options)
    with refused(confide.InputError, "classes"):
        front.to_prediction_sets(front.predict_set(logits, released), ["ant"])


@pytest.mark.slow
@pytest.mark.parametrize("score", ["lac", *slow(["aps", "margin"])])
def test_tensors_without_rows(front, score):
    """An empty batch, or one whose labels are all ignored, changes nothing; new records may be none."""
    import torch

    from confide.array_api import predict_mask

    logits, y = torch.randn(500, 4), torch.randint(0, 4, (500,))
    released = front.calibrate(
        lambda x: x,
        [(logits, y), (logits[:0], y[:0]), (logits, torch.full_like(y, -100))],
        0.2,
        2.0,
        score=score,
        neighbors="add_remove",
        progress=False,
    )
    none = front.predict_set(logits[:0], released)
    assert (none.shape, none.dtype) == ((0, 4), torch.bool)
    assert predict_mask(np.zeros((0, 4)), released).shape == (0, 4)
    with refused(confide.InputError, "probabilities"):
        front.predict_set(logits[:0, :2], released)


def test_array_api_looks_at_what_rows_sum_to():
    pytest.importorskip("array_api_compat", reason="needs the extra torch")
    from confide.array_api import predict_mask, true_scores

    wrong = np.full((2000, 3), 1 / 3)
    wrong[[7, 11]] = 0.9
    y = np.zeros(2000, np.int64)
    for kind in (np.float32, np.float64):
        with refused(confide.InputError, "probabilities"):
            predict_mask(wrong.astype(kind), calibration_at(0.5))
        for score in ("lac", "aps_deterministic"):
            with refused(confide.InputError, "probabilities"):
                true_scores(wrong.astype(kind), y, score)
    for k in (2, 10, 1000):
        p = np.random.default_rng(0).dirichlet(np.full(k, 0.2), 50)
        for fine in (p, p.astype(np.float32), p.round(2 if k < 1000 else 4)):
            assert len(true_scores(fine, y[:50], "lac")) == 50


class Outputs(dict):
    """As the outputs of Hugging Face's models: a mapping whose entries are attributes, too."""

    def __getattr__(self, name):
        return self[name]


def test_torch_takes_what_hugging_face_hands_over(front):
    import torch

    logits = 2 * torch.randn(3000, 4)
    y = torch.distributions.Categorical(logits=logits).sample()

    def model(input_ids, attention_mask=None):
        assert attention_mask is not None
        return Outputs(loss=None, logits=input_ids)

    batches = [
        {"input_ids": x, "attention_mask": torch.ones(len(x)), key: labels}
        for x, labels, key in zip(logits.split(1000), y.split(1000), ("labels", "label", "labels"), strict=True)
    ]
    released = front.calibrate(model, batches, 0.1, 2.0, progress=False)
    sets = front.predict_set(Outputs(logits=logits), released)
    assert_threshold_below(released, confide.lac_score(torch.softmax(logits, 1), y))
    assert sets.shape == (3000, 4)
    for broken in ({"input_ids": logits}, logits):
        with refused(confide.InputTypeError, "loader"):
            front.calibrate(model, [broken], 0.1, 2.0, progress=False)
    with refused(confide.InputTypeError, "outputs"):
        front.calibrate(lambda x: [1.0], [(logits, y)], 0.1, 2.0, progress=False)


@pytest.mark.slow
@pytest.mark.filterwarnings(FEW)
def test_torch_releases_no_records_like_one(front, monkeypatch):
    """A loader without batches, an empty batch, one of ignored labels, one record: only the draws differ."""
    fix_noisy_number(monkeypatch)
    import torch

    rows, labels = torch.randn(2, 3), torch.tensor([1, -100])
    loaders = ([], [(rows[:0], labels[:0])], [(rows[1:], labels[1:])], [(rows[:1], labels[:1])], [(rows, labels)])
    options = {"progress": False, "candidates": confide.Candidates.unit(20)}
    for classes in (["a", "b", "c"], 3):
        found = [front.calibrate(torch.nn.Identity(), one, 0.1, 1.0, classes=classes, **options) for one in loaders]
        fields = [{k: v for k, v in json.loads(one.to_json()).items() if k not in THRESHOLD} for one in found]
        assert fields == [fields[0]] * len(fields)
        assert fields[0]["classes"] == classes
    for one in loaders[1:]:
        assert front.calibrate(torch.nn.Identity(), one, 0.1, 1.0, **options).classes == 3
    with refused(confide.InputError, "classes"):
        front.calibrate(torch.nn.Identity(), [], 0.1, 1.0, **options)
    nothing = [(torch.zeros(0, 1), torch.zeros(0))]
    for loader in ([], nothing):
        made = front.calibrate(torch.nn.Identity(), loader, 0.1, 1.0, score="absolute_residual", progress=False)
        assert made.n is None


@pytest.mark.filterwarnings(FEW)
def test_torch_ignores_labels(front):
    """The result is as without these records; their number is reported if n is public, and not otherwise."""
    import torch

    logits = 2 * torch.randn(900, 4)
    y = torch.distributions.Categorical(logits=logits).sample()
    y[::3] = -100
    options = {"progress": False, "neighbors": "replace_one"}
    with pytest.warns(UserWarning, match="300"):  # the number alone
        released = front.calibrate(lambda x: x, [(logits, y)], 0.1, 1.0, **options)
    assert released.guarantee.n == 600
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", confide.CoverageWarning)
        front.calibrate(lambda x: x, [(logits, y)], 0.1, 1.0, progress=False)
    with refused(confide.InputError, "labels"):
        front.calibrate(lambda x: x, [(logits, y)], 0.1, 1.0, progress=False, ignore_index=-1)


@pytest.mark.slow
def test_torch_calibrates_regressors(front):
    import torch

    x = torch.randn(4000, 2)
    y = x[:, 0] + torch.randn(4000) / 2
    for score, model in (
        ("absolute_residual", torch.nn.Linear(2, 1)),
        ("cqr", lambda batch: torch.stack([batch[:, 0] - 1, batch[:, 0] + 1], 1)),
    ):
        loader = [(x[:2000], y[:2000]), (x[2000:3000], y[2000:3000, None])]
        released = front.calibrate(model, loader, 0.1, 2.0, score=score, progress=False)
        f = model(x[3000:])  # still requires a gradient
        lower, upper = front.predict_interval(f if score == "cqr" else f[:, 0], released)
        assert_covers(released, 3000, ((lower <= y[3000:]) & (y[3000:] <= upper)).numpy())
        ours = confide.interval_score(f.squeeze(-1), y[3000:], score)
        assert np.isfinite(ours).all()
    with pytest.raises(confide.InputError):
        front.calibrate(model, loader, 0.1, 2.0, score="normalised_residual", progress=False)


def test_torch_draws_fresh_numbers(front):
    """A seed of torch, which many scripts set, has no effect on them; other generators raise an error."""
    import torch

    p = torch.full((400, 4), 0.25)
    released = calibration_at(0.5, score="aps")
    drawn = []
    for _ in range(2):
        torch.manual_seed(0)
        drawn.append(front.predict_set(p, released, logits=False))
    assert not torch.equal(*drawn)  # equal with probability 2^-400
    for u in (torch.Generator(), np.random.default_rng(0)):
        with refused(confide.InputTypeError, "u"):
            front.predict_set(p, released, logits=False, u=u)
    for u in (torch.rand(3), torch.full((400,), 1.5)):
        with refused(confide.InputError, "u"):
            front.predict_set(p, released, logits=False, u=u)
    again = [front.predict_set(p, released, logits=False, u=confide.ExperimentalUniforms(1)) for _ in range(2)]
    assert torch.equal(*again)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Explicitly requested dtype")
def test_jax_arrays():
    jax = pytest.importorskip("jax", reason="needs the extra jax")
    pytest.importorskip("array_api_compat", reason="needs the extra torch")
    from confide.array_api import predict_mask, true_scores

    p = np.random.default_rng(0).dirichlet(np.ones(9), 30).astype(np.float32)
    for score, threshold in (("lac", 0.8), ("margin", 0.3), ("top_k", 3.0)):
        mask = predict_mask(jax.numpy.asarray(p), calibration_at(threshold, score=score))
        scores = confide.all_scores(p, score)
        apart = np.abs(scores - threshold) > 1e-6  # jax computes in float32
        assert (np.asarray(mask) == (scores <= threshold))[apart | (score == "top_k")].all()
    with pytest.raises(confide.InputTypeError):
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


def test_import_stays_light():
    heavy = "scipy opendp sklearn duckdb pandas pyarrow torch matplotlib array_api_compat"
    code = f"import sys, confide; print([m for m in {heavy.split()!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.slow
def test_training_a_fitted_estimator_again_causes_a_warning():
    X, y = load_diabetes(return_X_y=True)
    fitted = LinearRegression().fit(X, y)
    with pytest.warns(confide.RetrainedWarning):
        confide.PrivateConformalRegressor(fitted, 0.2, 8.0).fit(X, y)
    whole = make_pipeline(StandardScaler(), LinearRegression()).fit(X, y)
    with pytest.warns(confide.RetrainedWarning):
        confide.PrivateConformalRegressor(whole, 0.2, 8.0).fit(X, y)
    pair = tuple(DecisionTreeRegressor(max_depth=1).fit(X, y) for _ in range(2))
    with pytest.warns(confide.RetrainedWarning):
        confide.PrivateConformalRegressor(pair, 0.2, 8.0, conformity_score="cqr").fit(X, y)
    fresh = LinearRegression()
    model = confide.PrivateConformalRegressor(fresh, 0.2, 8.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", confide.RetrainedWarning)
        warnings.simplefilter("ignore", SecondReleaseWarning)
        model.fit(X, y).fit(X, y)
        clone(model).fit(X, y)
        confide.PrivateConformalRegressor(clone(fitted), 0.2, 8.0).fit(X, y)
        confide.PrivateConformalRegressor(FrozenEstimator(fitted), 0.2, 8.0).fit(X, y)
        confide.PrivateConformalRegressor(fitted, 0.2, 8.0, prefit=True).fit(X, y)


def test_intervals_and_sets_of_frames_keep_the_index(digits):
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    X.index = y.index = [f"patient {i}" for i in range(len(X))]
    model = confide.PrivateConformalRegressor(LinearRegression(), 0.2, 8.0).fit(X, y)
    intervals = model.predict_interval(X[:5])
    assert isinstance(intervals, confide.PredictionIntervals)
    assert intervals.promised == 0.8
    assert list(intervals[:3].to_frame().index) == ["patient 0", "patient 1", "patient 2"]
    assert confide.coverage(intervals, y[:5]).n == 5
    with refused(confide.InputError, "targets"):
        confide.coverage(intervals, y[:5][::-1])
    with refused(confide.InputError, "y"):
        confide.PrivateConformalRegressor(LinearRegression(), 0.2, 8.0).fit(X, y[::-1])
    frame, labels = pd.DataFrame(digits[0], index=digits[1].astype(str)), digits[1]
    classifier = confide.PrivateConformalClassifier(DecisionTreeClassifier(max_depth=3), 0.2, 8.0).fit(frame, labels)
    assert list(classifier.predict_set(frame[:4]).to_frame().index) == list(frame.index[:4])


class Framed(DecisionTreeClassifier):
    """A classifier whose probabilities are a data frame, its columns in another order than the classes."""

    def predict_proba(self, X):
        return pd.DataFrame(super().predict_proba(X), columns=self.classes_).iloc[:, ::-1]


def test_probabilities_in_a_frame_are_matched_with_the_classes_by_name(digits):
    X, y = digits[0], np.char.add("digit ", digits[1].astype(str))
    plain = DecisionTreeClassifier(max_depth=8, random_state=0).fit(X, y)
    framed = Framed(max_depth=8, random_state=0).fit(X, y)
    models = [confide.PrivateConformalClassifier(one, 0.2, 8.0, prefit=True).fit(X, y) for one in (plain, framed)]
    np.testing.assert_array_equal(models[0].predict_proba(X), models[1].predict_proba(X))


RNG = np.random.default_rng(5)


class Columns(LinearRegression):
    """A regressor whose predictions have shape (n, 1)."""

    def predict(self, X):
        return super().predict(X).reshape(-1, 1)


class EqualDifficulties(Columns):
    """Residuals of rounding alone, which a line may predict below 0, have no difficulty of their own."""

    def predict(self, X):
        return np.ones((len(X), 1))


ONE_COLUMN = {
    "trained": (Columns(), {}),
    "prefit": (Columns(), {"prefit": True}),
    "cqr": ((Columns(), Columns()), {"conformity_score": "cqr"}),
    "difficulty": (Columns(), {"conformity_score": "normalised_residual", "difficulty_estimator": EqualDifficulties()}),
}


@pytest.mark.filterwarnings(FEW)
@pytest.mark.parametrize("kind", ONE_COLUMN)
def test_predictions_in_one_column(kind):
    estimator, options = ONE_COLUMN[kind]
    X = RNG.normal(size=(300, 3))
    y = X @ [1.0, 2.0, 3.0] + 5
    if "prefit" in options:
        estimator.fit(X, y)
    model = confide.PrivateConformalRegressor(estimator, alpha=0.2, epsilon=5.0, random_state=0, **options).fit(X, y)
    assert model.predict(X).shape == (300,)
    np.testing.assert_allclose(model.predict(X), y)
    assert model.predict_interval(X[:1]).contains(y[:1]).all()


def test_one_column_means_one_number_per_record_everywhere():
    torch = pytest.importorskip("torch", reason="needs the extra torch")
    import confide.torch

    f, y = np.asfortranarray(RNG.normal(size=(500, 1))), RNG.normal(size=(500, 1))
    scores = confide.absolute_residual_score(f, y)
    assert scores.tolist() == np.abs(f - y)[:, 0].tolist()
    released = confide.calibrate(scores[:, None], 0.1, 5.0, score="absolute_residual")
    flat = confide.predict_interval(f[:, 0], released)
    for given in (f, pd.DataFrame(f), torch.tensor(f)):
        np.testing.assert_array_equal(confide.predict_interval(given, released).lower, flat.lower)
    assert confide.evaluate_intervals(released, f, y) == confide.evaluate_intervals(released, f[:, 0], y[:, 0])
    lower, _ = confide.torch.predict_interval(torch.tensor(f), released)
    np.testing.assert_allclose(lower.numpy(), flat.lower)
    assert len(confide.predict_interval([[3.0]], released).lower) == 1
    for call in (
        lambda: confide.predict_interval(3.0, released),
        lambda: confide.torch.predict_interval(torch.tensor(3.0), released),
        lambda: confide.evaluate_intervals(released, 3.0, [2.0]),
    ):
        with refused(confide.InputError, "predictions") as caught:
            call()
        assert caught.value.remedy


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
    with refused(confide.InputError, "y") as caught:
        front(alpha=0.1, epsilon=1.0).fit(X, MISSING[kind](y))
    assert numbers(caught) == [2, 3]


@pytest.mark.parametrize("front", [confide.PrivateConformalClassifier, confide.PrivateConformalRegressor])
def test_weights_of_another_length_or_missing_are_one_line(front):
    X = RNG.normal(size=(60, 2))
    y = (X[:, 0] > 0).astype(int)
    for weights, expected in ((np.ones(3), [3, 60]), (np.where(np.arange(60) == 7, np.nan, 1.0), [1, 7])):
        with refused(confide.InputError, "sample_weight") as caught:
            front(alpha=0.1, epsilon=1.0).fit(X, y, sample_weight=weights)
        assert numbers(caught) == expected


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
    with refused(confide.InputTypeError, "y") as caught:
        confide.PrivateConformalRegressor(alpha=0.1, epsilon=1.0).fit(X, TARGETS[kind](y))
    assert caught.value.__cause__ is caught.value.__context__ is None
    model = Other().fit(X, y)
    model.kind = kind
    with refused(confide.InputTypeError, "predictions"):
        confide.PrivateConformalRegressor(model, alpha=0.1, epsilon=1.0, prefit=True).fit(X, y)
