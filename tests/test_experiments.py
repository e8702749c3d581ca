"""The experiments' parts: exact laws, splits, loaders, and training with DP-SGD for real on a tiny problem."""

import hashlib
import math
import pickle
import tarfile
import warnings
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import confide

EXTRA = "needs the extra `experiments`; run `nox -s extras`"
tqdm = pytest.importorskip("tqdm", reason=EXTRA)
cifar10 = pytest.importorskip("experiments.cifar10", reason=EXTRA)
laws = pytest.importorskip("experiments.laws", reason=EXTRA)
methods = pytest.importorskip("experiments.methods", reason=EXTRA)
scores = pytest.importorskip("experiments.scores", reason=EXTRA)
splits = pytest.importorskip("experiments.splits", reason=EXTRA)
from experiments import __main__ as command  # noqa: E402  (behind the skips)
from experiments import cache  # noqa: E402

COUNTS = np.array([40, 30, 60, 40, 20, 8, 1, 1])


@pytest.mark.slow
@pytest.mark.parametrize("method", methods.PRIVATE, ids=lambda method: f"{method.name}-{method.neighbors}")
def test_laws_are_those_of_the_mechanisms(method):
    """Chi-square at level 1e-9 of the library's own draws and of seeded ones against the law of the tables."""
    mechanism = method.mechanism(200, Fraction(3, 10), 1.0, len(COUNTS))
    p = laws.law(mechanism, COUNTS, np.random.default_rng(0), draws=400_000)
    rng = np.random.default_rng(1)
    agree(p, [mechanism.choose(COUNTS) for _ in range(2000)])
    agree(p, [laws.draw(mechanism, COUNTS, rng) for _ in range(20_000)])


def agree(p, chosen):
    drawn = np.bincount(chosen, minlength=len(COUNTS))
    assert drawn[p == 0].sum() <= 5  # p is itself of 400,000 draws, which may have missed what is this rare
    # Cells in which few are expected are counted with the fullest one: rare draws have no normal law.
    cell = np.where(len(chosen) * p >= 25, np.arange(len(p)), p.argmax())
    observed, wanted = np.bincount(cell, drawn, len(p)), len(chosen) * np.bincount(cell, p, len(p))
    filled = wanted > 0
    statistic = np.sum((observed - wanted)[filled] ** 2 / wanted[filled])
    assert filled.sum() == 1 or stats.chi2.sf(statistic, filled.sum() - 1) > 1e-9
    assert p.sum() == pytest.approx(1)


def test_splits_agree_with_a_direct_computation():
    rng = np.random.default_rng(0)
    p = rng.dirichlet([2, 1, 1], 300)
    labels = np.array([rng.choice(3, p=row) for row in p])
    data = scores.ScoreSet("small", p, labels)
    candidates = confide.Candidates.unit(50, "logit")
    order = rng.permutation(300)
    binned, rest = data.binned(candidates), order[100:]
    np.testing.assert_array_equal(
        binned.counts(order[:100]), confide.ScoreHistogram.from_scores(data.scores[order[:100]], candidates).counts
    )
    for j in (5, 25, 40, 25):
        threshold = candidates.values[j]
        coverage, size = binned.validate(order[:100], j)
        assert coverage == pytest.approx(np.mean(data.scores[rest] <= threshold))
        assert size == pytest.approx(np.mean(np.sum(1 - p[rest] <= threshold, axis=1)))


@pytest.mark.slow
def test_study_covers():
    """Mean coverage over splits of every method that claims 90 %, one-sided at level 1e-6."""
    rng = np.random.default_rng(1)
    p = rng.dirichlet([3, 1, 1, 1], 4000)
    labels = np.array([rng.choice(4, p=row) for row in p])
    result = splits.study(scores.ScoreSet("small", p, labels), methods.PRIVATE, 1000, 3.0, 300, 60)
    for method in methods.PRIVATE:
        coverage = np.array(result[method.label]["coverage"])
        if method.claims:
            assert coverage.mean() + stats.norm.isf(1e-6) * coverage.std(ddof=1) / math.sqrt(60) >= 0.9
    assert np.mean(result["slopes (ours)"]["size"]) < np.mean(result["pps"]["size"])


def test_imagenet_logits_are_read_when_a_path_is_given(tmp_path, monkeypatch):
    """A small file of the format: logits (n, K) and labels (n,)."""
    monkeypatch.delenv("CONFIDE_IMAGENET", raising=False)
    assert scores.imagenet() is None
    rng = np.random.default_rng(0)
    logits, labels = rng.normal(size=(20, 1000)).astype(np.float32), rng.integers(0, 1000, (20, 1))
    logits[np.arange(20), labels.ravel()] += 10
    np.savez(tmp_path / "logits.npz", logits=logits, labels=labels)
    monkeypatch.setenv("CONFIDE_IMAGENET", str(tmp_path / "logits.npz"))
    data = scores.imagenet()
    assert data.probabilities.shape == (20, 1000)
    assert data.accuracy == 1.0
    np.testing.assert_allclose(data.probabilities.sum(axis=1), 1)


def test_cifar10_archive_is_checked_by_hash_and_read(tmp_path):
    """The published archive's layout, in small: five training batches and one test batch."""
    rng, folder = np.random.default_rng(0), tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    images = rng.integers(0, 256, (6, 4, 3072), dtype=np.uint8)
    for i, name in enumerate([*(f"data_batch_{k}" for k in range(1, 6)), "test_batch"]):
        (folder / name).write_bytes(pickle.dumps({b"data": images[i], b"labels": [i, 1, 2, 3]}))
    archive = tmp_path / "cifar.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(folder, arcname=folder.name)
    md5 = hashlib.md5(archive.read_bytes(), usedforsecurity=False).hexdigest()
    path = cifar10.download(archive.as_uri(), md5, tmp_path / "store")
    shown, labels = cifar10._from_archive(path, "train")
    assert shown.shape == (20, 32, 32, 3)
    assert labels[::4].tolist() == [0, 1, 2, 3, 4]
    np.testing.assert_array_equal(shown[0, :, :, 0].ravel(), images[0, 0, :1024])
    assert len(cifar10._from_archive(path, "test")[1]) == 4
    with pytest.raises(OSError, match="does not have the MD5"):
        cifar10.download(archive.as_uri(), "0" * 32, tmp_path / "other")
    assert not (tmp_path / "other" / "cifar.tar.gz").exists()


@pytest.mark.slow
def test_scattering_is_a_fixed_function_of_one_image():
    pytest.importorskip("torch", reason=EXTRA)
    from experiments.scattering import Scattering

    images = np.random.default_rng(0).integers(0, 256, (3, 32, 32, 3), dtype=np.uint8)
    transform = Scattering()
    features = transform(images)
    assert features.shape == (3, *transform.shape) == (3, 243, 8, 4)
    np.testing.assert_allclose(transform(images[1:2])[0].numpy(), features[1].numpy(), atol=1e-5)
    np.testing.assert_allclose(transform(images[:, :, ::-1].copy()).numpy(), features.numpy(), atol=2e-4)  # mirrored
    assert (transform(images[:, ::-1].copy()) - features).abs().max() > 0.05  # upside down is something else
    flat = transform(np.full((1, 32, 32, 3), 128, np.uint8))[0]
    blocks = flat.unflatten(0, (3, 81))
    assert blocks[:, 0].numpy() == pytest.approx(128 / 255, abs=2e-3)  # order 0: the mean
    assert blocks[:, 1:].abs().max() < 1e-3  # wavelets of a constant vanish


@pytest.mark.slow
def test_whitening_uses_noise_images_only():
    """On images of the same noise the channels come out uncorrelated with variance just below 1 (a floor is added)."""
    torch = pytest.importorskip("torch", reason=EXTRA)
    from experiments.noise_images import Whitening, noise_images
    from experiments.scattering import Scattering

    images, transform = noise_images(60, np.random.default_rng(0)), Scattering()
    whitened = Whitening(transform, images)(transform(images)).movedim(1, -1).flatten(0, -2)
    covariance = torch.cov(whitened.T).numpy()
    eigenvalues = np.linalg.eigvalsh((covariance + covariance.T) / 2)
    assert 0.5 < eigenvalues.min() < eigenvalues.max() < 1.01
    assert np.abs(whitened.mean(dim=0).numpy()).max() < 1e-3


@pytest.mark.slow
@pytest.mark.parametrize(("architecture", "epochs"), [("scattering", 4), ("cnn", 1)])
def test_dp_sgd_trains_a_tiny_model_for_real(architecture, epochs):
    """Opacus spends at most the requested budget, adds noise, and the model learns."""
    torch = pytest.importorskip("torch", reason=EXTRA)
    pytest.importorskip("opacus", reason=EXTRA)
    from experiments.models import build, probabilities, train

    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(512) % 2
    shape = (512, 4, 2, 2) if architecture == "scattering" else (512, 3, 8, 8)
    inputs = torch.randn(shape, generator=generator) + 1.5 * (2 * labels - 1).view(-1, 1, 1, 1)
    model = build(architecture, shape=(4, 2, 2), classes=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spent = train(
            model, inputs, labels, epochs=epochs, batch=128, rate=1.0, epsilon=8.0, clip=1.0, accountant="rdp"
        )
    assert 0 < spent["epsilon"] <= 8.0
    assert spent["noise"] > 0.3
    p = probabilities(model, inputs)
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-5)
    if architecture == "scattering":
        assert np.mean(p.argmax(axis=1) == labels.numpy()) > 0.9
    plain = build(architecture, shape=(4, 2, 2), classes=2)
    assert train(plain, inputs, labels, epochs=1, batch=128, rate=0.1) == {}


@pytest.fixture
def small_training():
    """Train a small model; its settings may be changed, and what was spent and the weights come back."""
    torch = pytest.importorskip("torch", reason=EXTRA)
    pytest.importorskip("opacus", reason=EXTRA)
    from experiments import models

    inputs, labels = torch.randn((200, 3, 2, 2), generator=torch.Generator().manual_seed(1)), torch.arange(200) % 2

    def run(**changes):
        torch.manual_seed(5)
        model = models.build("scattering", shape=(3, 2, 2), classes=2)
        settings = {"epochs": 4, "batch": 50, "rate": 0.5, "epsilon": 8.0, "accountant": "rdp", **changes}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            spent = models.train(model, inputs, labels, **settings)
        return spent, model[1].weight.detach().numpy()

    return run


@pytest.mark.slow
def test_training_that_is_stopped_early_spends_less(small_training, tmp_path):
    """The noise is that of all epochs; the loss is that of those that ran; going on from there gives the whole."""
    whole, part = (
        small_training(schedule="cosine", stop=stop, checkpoint=checkpoint)
        for stop, checkpoint in ((None, None), (2, tmp_path / "state.pt"))
    )
    assert part[0]["noise"] == whole[0]["noise"]
    assert part[0]["epsilon"] < 0.9 * whole[0]["epsilon"]
    rest = small_training(schedule="cosine", checkpoint=tmp_path / "state.pt")
    assert rest[0] == whole[0]
    np.testing.assert_array_equal(rest[1], whole[1])


@pytest.mark.parametrize("code", [*command.PARTS.values(), *command.FULL_PARTS.values()])
def test_parts_are_there(code):
    """Every registered part names a function of a module, without importing the module's dependencies."""
    module, function = code.split(":")
    path = cache.ROOT / f"{module.replace('.', '/')}.py"
    assert f"\ndef {function}(" in path.read_text(encoding="utf-8")


def test_long_tables_become_files_and_the_rest_is_printed(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(cache, "DOCS", tmp_path)
    rows = "\n".join(f"| {i} | a\\|b |" for i in range(7))
    cache.write_tables("page.md", f"one word\n## Long one\n| x | y |\n|---|---|\n{rows}\n## Short\n| x |\n|---|\n| 1 |")
    assert (tmp_path / "tables" / "page-long-one.csv").read_text().splitlines()[:2] == ["x,y", "0,a\\|b"]
    out = capsys.readouterr().out
    assert "one word" in out
    assert ":file: tables/page-long-one.csv" in out
    assert "| 1 |" in out


def test_cost_tables_say_who_keeps_the_claim():
    """Two cells by hand: one where `pps` is capped and the others answer +inf, one where ours wins."""
    page = pytest.importorskip("experiments.cost_table", reason=EXTRA)

    def entry(coverage, certified, ratio, bins=7):
        return {"coverage": coverage, "error": 0.001, "certified": certified, "size ratio": ratio, "bins": bins}

    labels = [method.label for method in methods.PRIVATE]
    small = {label: entry(1.0, 1.0, 20.0) for label in labels}
    small["pps"] = small["pps, bins by Algorithm 5"] = entry(0.905, 0.314, 3.0)
    small["opendp-quantile (no claim)"] = entry(0.899, None, 1.1)
    large = {label: entry(0.95, 0.9, 2.0) for label in labels}
    large["slopes (ours)"] = entry(0.91, 0.9, 1.1)
    large["opendp-quantile (no claim)"] = entry(0.899, None, 1.0)
    text = page.tables({(200, 0.1): small, (1000, 1.0): large})
    first, second = [line for line in text.splitlines() if line.startswith(("| 200", "| 1000"))][:2]
    assert first.count("†") == 2
    assert first.count("∞") == 5  # four answers and the comparison
    assert first.count("‡") == second.count("‡") == 1
    assert "†" not in second
    assert "**10.0 ± 1.0**" in second
    assert "5.00 (pps)" in second
    assert second.count("(7)") == 3
