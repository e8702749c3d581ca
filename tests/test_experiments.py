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
from confide.mechanisms.noisy_histogram import NoisyHistogram

EXTRA = "needs the extra `experiments`; run `make extras`"
tqdm = pytest.importorskip("tqdm", reason=EXTRA)
cifar10 = pytest.importorskip("experiments.cifar10", reason=EXTRA)
laws = pytest.importorskip("experiments.laws", reason=EXTRA)
methods = pytest.importorskip("experiments.methods", reason=EXTRA)
scores = pytest.importorskip("experiments.scores", reason=EXTRA)
splits = pytest.importorskip("experiments.splits", reason=EXTRA)

COUNTS = np.array([40, 30, 60, 40, 20, 8, 1, 1])


@pytest.mark.parametrize("method", methods.PRIVATE, ids=lambda m: f"{m.name}-{m.neighbors}")
def test_laws_are_those_of_the_mechanisms(method):
    """Chi-square at level 1e-6 of the library's own draws against the law that tables average over."""
    mechanism = method.mechanism(200, Fraction(3, 10), 1.0, len(COUNTS))
    check_law(mechanism)


def check_law(mechanism):
    p = laws.law(mechanism, COUNTS, np.random.default_rng(0), draws=400_000)
    drawn = np.bincount([mechanism.choose(COUNTS) for _ in range(2000)], minlength=len(COUNTS))
    keep = 2000 * p >= 10
    observed, wanted = np.append(drawn[keep], drawn[~keep].sum()), 2000 * np.append(p[keep], p[~keep].sum())
    filled = wanted > 0
    assert observed[~filled].sum() == 0
    statistic = np.sum((observed - wanted)[filled] ** 2 / wanted[filled])
    assert filled.sum() == 1 or stats.chi2.sf(statistic, filled.sum() - 1) > 1e-6
    assert p.sum() == pytest.approx(1)


def test_splits_agree_with_a_direct_computation():
    rng = np.random.default_rng(0)
    p = rng.dirichlet([2, 1, 1], 300)
    labels = np.array([rng.choice(3, p=row) for row in p])
    data = scores.ScoreSet("small", p, labels)
    candidates = confide.Candidates.unit(50, "logit")
    order = rng.permutation(300)
    counts, coverage, sizes = data.binned(candidates).split(order, 100)
    np.testing.assert_array_equal(
        counts, confide.ScoreHistogram.from_scores(data.scores[order[:100]], candidates).counts
    )
    rest = order[100:]
    for j in (5, 25, 40):
        threshold = candidates.values[j]
        assert coverage[j] == pytest.approx(np.mean(data.scores[rest] <= threshold))
        assert sizes[j] == pytest.approx(np.mean(np.sum(1 - p[rest] <= threshold, axis=1)))


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


def test_secret_noisy_histogram_is_simulated_too():
    check_law(NoisyHistogram(Fraction(7, 10), Fraction(2), 1.0))


def test_scattering_is_a_fixed_function_of_one_image():
    pytest.importorskip("torch", reason=EXTRA)
    from experiments.scattering import Scattering

    images = np.random.default_rng(0).integers(0, 256, (3, 32, 32, 3), dtype=np.uint8)
    transform = Scattering(grid=4)
    features = transform(images)
    assert features.shape == (3, transform.channels, 4, 4) == (3, 243, 4, 4)
    np.testing.assert_allclose(transform(images[1:2])[0].numpy(), features[1].numpy(), atol=2e-3)
    flat = transform(np.full((1, 32, 32, 3), 128, np.uint8))[0]
    blocks = flat.unflatten(0, (3, 81))
    assert blocks[:, 0].float().numpy() == pytest.approx(128 / 255, abs=2e-3)  # order 0: the mean
    assert blocks[:, 1:].abs().max() < 1e-3  # wavelets of a constant vanish


@pytest.mark.parametrize("architecture", ["scattering", "cnn"])
def test_dp_sgd_trains_a_tiny_model_for_real(architecture):
    """Opacus spends no more than asked, adds noise, and the model learns."""
    torch = pytest.importorskip("torch", reason=EXTRA)
    pytest.importorskip("opacus", reason=EXTRA)
    from experiments.models import build, probabilities, train

    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(512) % 2
    shape = (512, 4, 2, 2) if architecture == "scattering" else (512, 3, 8, 8)
    inputs = torch.randn(shape, generator=generator) + 1.5 * (2 * labels - 1).view(-1, 1, 1, 1)
    model = build(architecture, channels=4, grid=2, classes=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spent = train(model, inputs, labels, epochs=4, batch=128, rate=1.0, epsilon=8.0, clip=1.0, accountant="rdp")
    assert 0 < spent["epsilon"] <= 8.0
    assert spent["noise"] > 0.3
    p = probabilities(model, inputs)
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-5)
    if architecture == "scattering":
        assert np.mean(p.argmax(axis=1) == labels.numpy()) > 0.9
    plain = build(architecture, channels=4, grid=2, classes=2)
    assert train(plain, inputs, labels, epochs=2, batch=128, rate=0.1) == {}
