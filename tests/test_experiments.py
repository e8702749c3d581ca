"""The laws, splits and budgets of the experiments: published numbers by enumeration or by direct computation."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from confide.mechanisms import pps

EXTRA = "needs the extra `experiments`; run `nox -s extras`"
for package in ("tqdm", "matplotlib"):
    pytest.importorskip(package, reason=EXTRA)

from experiments import laws, methods  # noqa: E402  (behind the skips)
from experiments.private_prediction_sets import bins, figure2, figures4_5, published, study  # noqa: E402
from experiments.private_prediction_sets.tail_scores import TailScores  # noqa: E402

COUNTS = np.array([40, 30, 60, 40, 20, 8, 1, 1])


@pytest.mark.long
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


def small(n=400, classes=4, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet([2.0] + [1.0] * (classes - 1), n)
    return p, np.array([rng.choice(classes, p=row) for row in p])


def test_splits_of_the_papers_agree_with_a_direct_computation():
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
