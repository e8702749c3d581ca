"""Private Prediction Sets at the papers' settings: the settings, the authors' values, the scores, and going on."""

import math

import numpy as np
import pytest

EXTRA = "needs the extra `experiments`; run `nox -s extras`"
pytest.importorskip("tqdm", reason=EXTRA)
pytest.importorskip("matplotlib", reason=EXTRA)
figure2 = pytest.importorskip("experiments.private_prediction_sets.figure2", reason=EXTRA)
figures1_6 = pytest.importorskip("experiments.private_prediction_sets.figures1_6", reason=EXTRA)
figures4_5 = pytest.importorskip("experiments.private_prediction_sets.figures4_5", reason=EXTRA)

from confide import Candidates  # noqa: E402  (behind the skips)
from confide.mechanisms import pps  # noqa: E402
from experiments import cache, laws  # noqa: E402
from experiments.private_prediction_sets import bins, public_law, published, study  # noqa: E402
from experiments.private_prediction_sets.tail_scores import TailScores  # noqa: E402


def small(n=400, classes=4, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet([2.0] + [1.0] * (classes - 1), n)
    return p, np.array([rng.choice(classes, p=row) for row in p])


@pytest.mark.slow
def test_every_level_of_the_authors_figure_2_is_equation_3():
    """Version 3: 203 levels below 1, each with one of the 50 numbers of bins that their code tries; 97 are capped."""
    points = [p for p in published.figure_2() if p.version == 3]
    differences = [figure2.reproduced(p) for p in points]
    assert len(points) == 300
    assert sum(d is None for d in differences) == 97
    assert max(abs(d) for d in differences if d is not None) < published.LINE_ERROR
    # By hand, without the library: n = 517, epsilon = 1, m = 10,000.
    n, m, a = 517, 10_000, 0.1
    b = a * (1 - a) * (n + 1) / 2 + 2 * a
    gamma = (b - math.sqrt(b * b - 4 * a * a)) / (2 * a * a)
    level = (n + 1) * (1 - a) / (n * (1 - gamma * a)) + 2 / n * math.log(m / (gamma * a))
    (point,) = [p for p in points if p.along == "n" and p.n == n and p.epsilon == 1]
    assert level == pytest.approx(point.level, abs=published.LINE_ERROR)


def test_capped_levels_are_capped_here_too():
    """Where the authors' line is at 1, equation (3) exceeds 1 with the fewest bins that their code tries."""
    capped = [p for p in published.figure_2() if p.version == 3 and p.level >= 1]
    assert capped
    for p in capped:
        assert bins.level(p.n, p.epsilon, bins.options(bins.CODE)[-1])[0] == 1


@pytest.mark.slow
def test_version_1_is_explained_by_one_of_its_numbers_of_bins():
    """Levels with exact zeta, next to the authors' with simulated zeta, where the search tries up to five numbers."""
    points = [p for p in published.figure_2() if p.version == 1 and p.n < 2500]
    table = figure2.laplace_table(sorted({m for p in points for m in figure2.laplace_sizes(p.n)}))
    assert len(points) > 80
    assert max(abs(figure2.nearest_laplace(p, table)[1]) for p in points) < published.READING_ERROR


def test_figures_4_to_6_have_the_papers_settings(monkeypatch):
    monkeypatch.setattr(figures4_5, "algorithm_5", lambda n, epsilon, range_: {bins.TEXT: 111, bins.CODE: 222}[range_])
    monkeypatch.setattr(figures4_5.pps_laplace, "optimal_bins", lambda n, alpha, epsilon, aligned: 33)
    assert (figures4_5.N, figures4_5.TEST, figures4_5.SPLITS) == (30_000, 20_000, 100)
    assert [(r.method, r.epsilon, r.m) for r in figures4_5.runs_4("version 3")] == [
        ("pps", 5.0, m) for m in (7500, 15_000, 150_000, 1_500_000, 111, 222)
    ]
    assert [(r.method, r.epsilon, r.m) for r in figures4_5.runs_4("version 1")] == [
        ("pps-laplace", 1.0, m) for m in (48, 96, 965, 9654, 33)
    ]
    for version, m in (("version 3", 222), ("version 1", 33)):
        assert [(r.epsilon, r.m) for r in figures4_5.runs_5(version)] == [(e, m) for e in (0.5, 1.0, 5.0, 10.0)]
    assert (figures1_6.N, figures1_6.TEST, figures1_6.SPLITS) == (1000, 500, 1000)
    assert (figures1_6.EPSILON, figures1_6.EPSILON_1) == (10, 8)
    assert figures4_5.ours(figures4_5.Run("", "pps", 5.0, 1_500_000)).m == 2**20  # as many as the library allows
    np.testing.assert_allclose(bins.edges(7), np.minimum(Candidates.published(7).values, 1), rtol=1e-11)
    np.testing.assert_array_equal(bins.indices(np.array([0.0, 0.25, 0.2500001, 1.0]), 4), [0, 0, 1, 3])


@pytest.mark.slow
def test_figure_3_has_the_papers_settings_and_both_pairs_of_accuracies():
    figure3 = pytest.importorskip("experiments.private_prediction_sets.figure3", reason=EXTRA)
    from experiments import pipeline

    assert (figure3.N, figure3.EPSILON, figure3.SPLITS, pipeline.DELTA) == (5000, 8.0, 1000, 1e-5)
    stock = pipeline.SETTINGS["stock private"]
    assert [stock[key] for key in ("epochs", "batch", "rate", "clip")] == [90, 2000, 0.1, 10.0]
    found = {label: {"coverage": [0.9], "size": [1.2]} for label in ("none (not private)", "pps, m* = 9")}
    text = "\n".join(figure3._rows("scattering", "private", 0.69, found))
    assert "| 0.67 / 0.49 | none (not private) | 0.9000 ± 0.0000 | 1.200 | 4.19 |" in text
    assert "| pps, m* = 9 | 0.9000 ± 0.0000 | 1.200 | 4.21 |" in text


@pytest.mark.parametrize("epsilon", figures4_5.EPSILONS)
def test_uniform_scores_cover_as_the_authors_figure_5(epsilon):
    """n = 30,000 and m = 10,000, about the m* of the code: within the error of reading their histograms."""
    law = study.uniform(pps.pps_for(30_000, bins.ALPHA, epsilon, 10_000), bins.edges(10_000), 30_000, 4)
    assert law["coverage"] == pytest.approx(published.FIGURE_5[epsilon][0], abs=published.READING_ERROR)


def test_algorithm_5_minimises_the_threshold_on_simulated_scores():
    """By enumeration of the numbers of bins with the mean threshold computed directly."""
    n, epsilon, scores = 300, 10.0, np.random.default_rng(0).random(300)

    def mean(m):
        mechanism, counts = pps.pps_for(n, bins.ALPHA, epsilon, m), np.histogram(scores, np.linspace(0, 1, m + 1))[0]
        below, q = np.cumsum(counts) - counts, float(mechanism.level)
        w = np.maximum(below / q, (n - np.cumsum(counts)) / (1 - q))
        weights = np.exp(-epsilon * min(q, 1 - q) * (w - w.min()) / 2)
        return weights @ (np.arange(1, m + 1) / m) / weights.sum()

    assert bins.algorithm_5(n, epsilon, (10, 1000), sets=1) == min(bins.options((10, 1000)), key=mean)


def test_splits_agree_with_a_direct_computation():
    """Every split again, from all probabilities, with the threshold of the same draws."""
    p, labels = small()
    data = TailScores.of("small", [(p[:150], labels[:150]), (p[150:], labels[150:])])
    m, n, mechanism = 50, 200, pps.pps_for(200, bins.ALPHA, 5.0, 50)
    found = study.splits(data, mechanism, m, n, 20, 100)
    order, noise = np.random.default_rng(2024), np.random.default_rng(n)
    for coverage, size in zip(found["coverage"], found["size"], strict=True):
        permuted = order.permutation(400)
        calibration, rest = permuted[:n], permuted[n : n + 100]
        scores = 1 - p[np.arange(400), labels]
        counts = np.histogram(scores[calibration], np.linspace(0, 1, m + 1))[0]
        threshold = bins.edges(m)[laws.draw(mechanism, counts, noise)]
        assert coverage == pytest.approx(np.mean(scores[rest] <= threshold), abs=1e-6)
        assert size == pytest.approx(np.sum(1 - p[rest] <= threshold) / 100, abs=1e-5)
    assert sum(found["shares"]) == pytest.approx(1, abs=1e-4)
    plain = study.splits(data, "none", 1, n, 20)
    assert np.mean(plain["coverage"]) < np.mean(found["coverage"])
    assert set(study.splits(data, None, m, n, 3)["size"]) == {4.0}  # the last bin: every class


def test_the_public_law_is_calibrated_and_the_same_everywhere():
    """Labels follow the probabilities: accuracy against the mean largest probability, 6 deviations of 2000 records."""
    first, again = public_law.imagenet_shaped(2000, 50), public_law.imagenet_shaped(2000, 50)
    np.testing.assert_array_equal(first.truth, again.truth)
    largest = np.zeros(2000)
    np.maximum.at(largest, first.records, 1 - first.scores)
    deviation = math.sqrt(np.mean(largest * (1 - largest)) / 2000)
    assert abs(first.accuracy - largest.mean()) < 6 * deviation
    assert (public_law.RECORDS, public_law.CLASSES) == (50_000, 1000)


def test_imagenet_takes_the_place_of_the_public_law(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    logits, labels = rng.normal(size=(30, 1000)).astype(np.float32), rng.integers(0, 1000, 30)
    logits[np.arange(30), labels] += 12
    np.savez(tmp_path / "logits.npz", logits=logits, labels=labels)
    monkeypatch.setenv("CONFIDE_IMAGENET", str(tmp_path / "logits.npz"))
    data = figures4_5.scores_of_size()
    assert (data.name, data.classes, len(data.truth), data.accuracy) == ("ImageNet", 1000, 30, 1.0)
    p = np.exp(logits.astype(float))
    p /= p.sum(axis=1, keepdims=True)
    np.testing.assert_array_equal(data.sizes(0.99), np.sum(1 - p <= 0.99, axis=1))
    monkeypatch.delenv("CONFIDE_IMAGENET")
    monkeypatch.setattr(figures4_5, "imagenet_shaped", lambda: "law")
    assert figures4_5.scores_of_size() == "law"


def test_an_interrupted_figure_goes_on(tmp_path, monkeypatch):
    """Every method on every data set is stored as a unit, and not repeated."""
    monkeypatch.setattr(cache, "RESULTS", tmp_path)
    monkeypatch.setattr(figures4_5, "N", 100)
    monkeypatch.setattr(figures4_5, "SPLITS", 2)
    p, labels = small()
    data, run = TailScores.of("small", [(p, labels)]), figures4_5.Run("m", "pps", 5.0, 40)
    once = figures4_5.result(data, run)
    monkeypatch.setattr(figures4_5, "splits", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    assert figures4_5.result(data, run) == once
    with pytest.raises(KeyboardInterrupt):
        figures4_5.result(data, figures4_5.NONE)
    assert [path.name for path in (tmp_path / "pps45").glob("*.json")] == ["small_pps_5_40.json"]


def test_the_temperature_is_of_records_that_take_no_further_part(tmp_path, monkeypatch):
    """Validation logits alone decide it: other test logits, the same temperature, and their probabilities at it."""
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(600, 3))
    labels = np.argmax(logits + rng.gumbel(size=(600, 3)), axis=1)
    monkeypatch.setattr(figures1_6, "data_folder", lambda: tmp_path)
    monkeypatch.setattr(figures1_6, "FILES", {"one": ("one.npz", "abc"), "two": ("two.npz", "abc")})
    for name in ("one", "two"):
        test = rng.normal(size=(50, 3))
        file = {"val_logits": 4 * logits, "val_labels": labels, "test_logits": test, "test_labels": labels[:50]}
        np.savez(tmp_path / f"{name}.npz", **file)
        figures1_6.probabilities.cache_clear()
        both, _, t, count = figures1_6.probabilities(name)
        assert t == pytest.approx(4, rel=0.25)
        assert count == 600
        p = np.exp(test / t)
        np.testing.assert_allclose(both["public temperature"], p / p.sum(axis=1, keepdims=True))
    figures1_6.probabilities.cache_clear()


def test_example_sets_are_of_one_class_and_grow():
    inside = np.array([[1, 0, 0], [0, 1, 0], [1, 1, 0], [1, 1, 0], [1, 1, 1]], dtype=bool)
    first, labels = np.array([0, 1, 1, 0, 0]), np.array([0, 1, 0, 1, 1])
    assert figures1_6._three_of_a_class(inside, first, labels) == [1, 3, 4]
    assert figures1_6._three_of_a_class(inside[:3], first[:3], labels[:3]) == []
