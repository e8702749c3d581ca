"""Forms of loaders, models and tensors: nested outputs, tokens, streams, half precision, gradients."""

import warnings
from collections import UserDict
from functools import partial

import numpy as np
import pytest

import confide
from tests.calibrations import calibration_at
from tests.exact_tests import assert_covers
from tests.refused import numbers, refused

torch = pytest.importorskip("torch", reason="needs the extra torch: pip install 'confide[torch]'")
pytest.importorskip("array_api_compat", reason="needs the extra torch: pip install 'confide[torch]'")

front = pytest.importorskip("confide.torch")
SMALL = {"candidates": confide.Candidates.unit(50), "mechanism": "none", "neighbors": "replace_one", "progress": False}
"""No noise and no plan: the calibrated values are exact, and there is no privacy cost."""
calibrate = partial(front.calibrate, alpha=0.2, **SMALL)


class ModelOutput(dict):
    """Like the outputs of Hugging Face: a mapping with attributes."""

    def __getattr__(self, name):
        return self[name]


@pytest.fixture(scope="module")
def data():
    generator = torch.Generator().manual_seed(0)
    logits = 2 * torch.randn(300, 4, generator=generator)
    return logits, torch.multinomial(torch.softmax(logits, 1), 1, generator=generator)[:, 0]


def test_outputs_are_found_in_all_forms(data):
    logits, y = data
    wanted = calibrate(torch.nn.Identity(), [(logits, y)])
    for model in (
        lambda x: ModelOutput(logits=x),
        lambda x: {"logits": x},
        lambda x: {"out": x, "aux": None},
        lambda x: {"logits": ModelOutput(logits=x)},
        lambda x: ModelOutput(logits=ModelOutput(logits=x)),
    ):
        assert calibrate(model, [(logits, y)]) == wanted
        assert torch.equal(front.predict_set(model(logits), wanted), front.predict_set(logits, wanted))
    for model in (lambda x: (x, x), lambda x: {"a": x}, lambda x: {"logits": (x, x)}):
        with refused(confide.errors.InputTypeError, "outputs"):
            calibrate(model, [(logits, y)])
    with refused(confide.errors.InputTypeError, "outputs"):
        calibrate(lambda x: [1.0], [(logits, y)])


@pytest.mark.parametrize("kind", [dict, UserDict])  # the second is as a BatchEncoding is
def test_what_hugging_face_hands_over(data, kind):
    """Batches whose entries are arguments of the model, but for the labels, which have two names."""
    logits, y = data

    def model(input_ids, attention_mask):
        assert len(attention_mask) == len(input_ids)
        return ModelOutput(loss=None, logits=input_ids)

    batches = [
        kind({"input_ids": x, "attention_mask": torch.ones(len(x)), key: labels})
        for x, labels, key in zip(logits.split(100), y.split(100), ("labels", "label", "labels"), strict=True)
    ]
    assert calibrate(model, batches) == calibrate(torch.nn.Identity(), [(logits, y)])
    for broken in (kind({"input_ids": logits, "attention_mask": y}), logits):
        with refused(confide.errors.InputTypeError, "loader"):
            calibrate(model, [broken])


def test_tokens_are_records_of_a_row(data):
    """Token classification: (batch, length, K), labels (batch, length), -100 for a token without label."""
    logits, y = data
    rows, labels = logits.reshape(60, 5, 4), y.reshape(60, 5).clone()
    labels[:, [0, 4]] = -100
    wanted = calibrate(torch.nn.Identity(), [(rows[:, 1:4].reshape(-1, 4), labels[:, 1:4].flatten())])
    options = {"mechanism": "slopes", "neighbors": "add_remove", "epsilon": 8.0}
    with pytest.warns(UserWarning, match="120"):  # the number alone
        found = calibrate(torch.nn.Identity(), [(rows, labels)], records_per_person=3)
    assert (found.threshold, found.classes) == (wanted.threshold, 4)
    with refused(confide.errors.InputError, "records_per_person"):
        calibrate(torch.nn.Identity(), [(rows, labels)], **options)
    with refused(confide.errors.InputError, "labels"):
        calibrate(torch.nn.Identity(), [(rows, labels)], **options, records_per_person=2)


def test_streams_of_unknown_length(data, capsys, monkeypatch):
    logits, y = data

    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self):
            yield from zip(logits, y, strict=True)

    loader = torch.utils.data.DataLoader(Stream(), batch_size=100)
    with pytest.raises(TypeError):
        len(loader)
    wanted = calibrate(torch.nn.Identity(), [(logits, y)])
    assert calibrate(torch.nn.Identity(), loader, progress=True) == wanted
    monkeypatch.setattr("confide.torch.outputs.find_spec", lambda name: None)  # rich comes with confide[standard]
    capsys.readouterr()
    assert calibrate(torch.nn.Identity(), loader, progress=True) == wanted
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("score", ["lac", "aps_deterministic", "margin"])
def test_numpy_functions_accept_tensors_of_every_kind(data, kind, score):
    """With or without gradients, on any device: the scores and sets are those of the numbers."""
    logits, y = data
    p = torch.softmax(logits.float(), 1).to(kind).requires_grad_()
    held = p.detach().double().numpy()
    assert (confide.class_score(p, y, score) == confide.class_score(held, y.numpy(), score)).all()
    released = calibration_at(0.7, score=score)
    ours = confide.predict_set(p, released).mask
    assert (ours == confide.predict_set(held, released).mask).all()
    from confide.array_api import predict_mask

    assert (predict_mask(p, released).numpy() == ours).all()
    found = front.predict_set(p, released, logits=False)
    assert (found.numpy() == ours).all()
    assert not found.requires_grad


def test_numpy_functions_raise_for_tensors_without_numbers():
    with refused(confide.errors.InputTypeError, "probabilities"):
        confide.lac_score(torch.zeros(2, 3, device="meta"), [0, 1])


def test_half_precision_models_calibrate(data):
    logits, y = data
    for kind in (torch.float16, torch.bfloat16):
        low = logits.to(kind)
        wide = calibrate(torch.nn.Identity(), [(low.float(), y)])
        assert calibrate(torch.nn.Identity(), [(low, y)]) == wide
        z = torch.linspace(0, 1, 500).to(kind)
        found = calibrate(torch.nn.Identity(), [(z, torch.zeros(500))], score="absolute_residual", candidates=None)
        assert np.isfinite(found.threshold)


def test_labels_in_one_column_are_labels(data):
    logits, y = data
    assert calibrate(torch.nn.Identity(), [(logits, y[:, None])]) == calibrate(torch.nn.Identity(), [(logits, y)])
    for labels in (y[:-1], torch.stack([y, y], dim=1)):
        with refused(confide.errors.InputError, "labels"):
            calibrate(torch.nn.Identity(), [(logits, labels)])


def test_model_and_loader_in_the_other_order_raise(data):
    loader = [data]
    with refused(confide.errors.InputTypeError, "model"):
        calibrate(loader, torch.nn.Identity())
    with refused(confide.errors.InputTypeError, "loader"):
        calibrate(torch.nn.Identity(), torch.nn.Identity())


@pytest.mark.slow
def test_a_loader_leaves_the_model_as_it_was():
    """Releases and sets are those of arrays: tests/test_same_everywhere.py, tests/scores/test_contract.py."""
    x = torch.randn(400, 6, generator=torch.Generator().manual_seed(0))
    y = torch.distributions.Categorical(logits=2 * x).sample()
    model = torch.nn.Linear(6, 6, bias=False)
    model.weight.data = 2 * torch.eye(6)
    model.train()
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=300)
    randomised, lac = (calibrate(model, loader, score=score) for score in ("saps(penalty=0.1)", "lac"))
    assert model.training
    with torch.no_grad():
        mask = front.predict_set(model(x), randomised, u=torch.rand(400, dtype=torch.float64))
    assert (mask.dtype, mask.shape) == (torch.bool, (400, 6))
    sets = front.to_prediction_sets(mask, list("abcdef"))
    assert sets.labels()[0] == [name for name, inside in zip("abcdef", mask[0], strict=True) if inside]
    half = torch.softmax(x[:50], 1).to(torch.bfloat16)
    assert torch.equal(*(front.predict_set(rows, lac, logits=False) for rows in (half, half.double())))
    broken = x[:5].clone()
    broken[3] = float("nan")
    with refused(confide.errors.InputError, "probabilities") as caught:
        front.predict_set(broken, randomised, u=torch.rand(5))
    assert numbers(caught)[-1] == 3
    with pytest.raises(confide.errors.InputError):
        calibrate(model, [])


def test_detects_softmax_outputs_and_logits():
    """Confusing the two gave coverage 0.69 with a guarantee of 0.9, without a warning."""
    logits = torch.randn(2000, 6)
    p, y = torch.softmax(logits, 1), torch.distributions.Categorical(logits=logits).sample()
    released = front.calibrate(lambda x: x, [(p, y)], 0.1, 1.0, logits=False, progress=False)
    assert released.classes == 6
    accelerated = [p.cuda(), p.half().cuda()] if torch.cuda.is_available() else []
    for outputs in (p, p.half(), p.bfloat16(), p.bfloat16().float(), p.double(), p[:1], torch.eye(6), *accelerated):
        with refused(confide.errors.InputError, "outputs"):
            front.predict_set(outputs, released)
        assert front.predict_set(outputs, released, logits=False).shape == outputs.shape
    with refused(confide.errors.InputError, "outputs"):
        front.calibrate(lambda x: x, [(p, y)], 0.1, 1.0, progress=False)
    accelerated = [logits.half().cuda()] if torch.cuda.is_available() else []
    wrong = (logits, logits.half(), logits.bfloat16(), -p, 0.9 * p, torch.full((5, 6), 0.9), *accelerated)
    for outputs in wrong:
        with refused(confide.errors.InputError, "outputs"):
            front.predict_set(outputs, released, logits=False)
        assert front.predict_set(outputs, released).shape == outputs.shape


@pytest.mark.filterwarnings("ignore::confide.CoverageWarning")
def test_ignores_labels():
    """The result is as without these records; their number is reported if n is public, and not otherwise."""
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
    with refused(confide.errors.InputError, "labels"):
        front.calibrate(lambda x: x, [(logits, y)], 0.1, 1.0, progress=False, ignore_index=-1)


@pytest.mark.long
def test_calibrates_regressors():
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
    with pytest.raises(confide.errors.InputError):
        front.calibrate(model, loader, 0.1, 2.0, score="normalised_residual", progress=False)


def test_draws_fresh_numbers():
    """A seed of torch, which many scripts set, has no effect on them; other generators raise an error."""
    p = torch.full((400, 4), 0.25)
    released = calibration_at(0.5, score="aps")
    drawn = []
    for _ in range(2):
        torch.manual_seed(0)
        drawn.append(front.predict_set(p, released, logits=False))
    assert not torch.equal(*drawn)  # equal with probability 2^-400
    for u in (torch.Generator(), np.random.default_rng(0)):
        with refused(confide.errors.InputTypeError, "u"):
            front.predict_set(p, released, logits=False, u=u)
    for u in (torch.rand(3), torch.full((400,), 1.5)):
        with refused(confide.errors.InputError, "u"):
            front.predict_set(p, released, logits=False, u=u)
    again = [front.predict_set(p, released, logits=False, u=confide.ExperimentalUniforms(1)) for _ in range(2)]
    assert torch.equal(*again)
