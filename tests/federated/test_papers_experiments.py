"""Experiments of the federated paper: synthetic distribution, splits, settings, exact values, and continued runs."""

import math
from itertools import product

import numpy as np
import pytest
from scipy import stats

from tests.papers.test_one_shot_federated import published_sum

EXTRA = "needs the extra `experiments`; run `nox -s extras`"
exact = pytest.importorskip("experiments.federated.paper.exact", reason=EXTRA)
from experiments.federated.paper import (  # noqa: E402  (matplotlib first)
    measure,
    regressors,
    synthetic,
)


def test_figures_6_and_7_are_equation_5():
    found = exact.coverages(3, 5)
    for l, k in product(range(1, 6), range(1, 4)):
        assert found[l - 1, k - 1] == pytest.approx(float(published_sum(l, k, 3, 5)), abs=1e-12)
    assert (exact.coverages(5, 10) >= 0.9).sum() == 4
    assert (exact.coverages(10, 20) >= 0.9).sum() == 19


@pytest.mark.parametrize(
    ("m", "n", "values"),
    [(5, 10, (0.92563, 0.91961, 0.99091)), (20, 20, (0.90081, 0.90249, 0.94762)), (20, 100, (0.90029, 0.9005, 0.9099))],
)
def test_figure_1_has_its_values(m, n, values):
    assert exact.bounds(m, n) == pytest.approx(values, abs=6e-6)


def test_synthetic_data_have_the_law_of_section_5_1():
    """Mean, variance and share of outliers of 40,000 draws lie within 6 standard errors (probability below 1e-8)."""
    x, y = synthetic.sample(40_000, np.random.default_rng(1))
    rate = np.sin(x) ** 2 + 0.1
    assert 1 <= x.min() < x.max() <= 5
    assert stats.kstest(x, stats.uniform(1, 4).cdf).pvalue > 1e-8
    residual = y - rate
    assert abs(residual.mean()) < 6 * residual.std() / 200
    wild = np.mean(abs(residual) > 12)  # 25 |N| > 12 in 0.631 of 1 %; Poisson with rate 1.1 never
    expected = 0.01 * 2 * stats.norm.sf(12 / 25)
    assert abs(wild - expected) < 6 * math.sqrt(expected / 40_000)
    near = residual[abs(residual) < 12]
    small = 1 - 2 * stats.norm.sf(0.48) - 2 * 0.48 * stats.norm.pdf(0.48)  # E[N^2; 25 |N| < 12]
    spread = rate.mean() + 0.03**2 * np.mean(x**2) + 0.01 * 25**2 * small
    assert abs(near.var() - spread) < 6 * (near**2).std() / 200
    assert sum(synthetic.UNEQUAL) == sum(synthetic.EQUAL) == synthetic.RECORDS // 2


def test_unequal_silos_have_the_ranks_of_appendix_a_1():
    best = synthetic.choice(synthetic.UNEQUAL)
    assert best.ranks == tuple(math.ceil(0.9 * (n + 1)) for n in synthetic.UNEQUAL)
    assert 0.9 <= best.coverage < 0.92


def test_the_networks_slope_is_that_of_its_loss():
    rng = np.random.default_rng(3)
    net, x, y = regressors.Network(3, 0), rng.normal(size=(20, 3)).astype("f"), rng.normal(size=(20, 1)).astype("f")
    keep = np.ones((20, regressors.HIDDEN), dtype=np.float32)
    net.backward(x, y, keep, keep)

    def loss():
        return sum(
            np.maximum(q * (y[:, 0] - found), (q - 1) * (y[:, 0] - found)).mean()
            for q, found in zip(regressors.LEVELS[0], net.predict(x), strict=True)
        )

    for at in rng.choice(len(net.weights), 12, replace=False):
        was = net.weights[at]
        net.weights[at] = was + 1e-2
        above = loss()
        net.weights[at] = was - 1e-2
        assert net.slope[at] == pytest.approx((above - loss()) / 2e-2, abs=2e-2)
        net.weights[at] = was


def test_bins_are_those_of_appendix_b_2():
    """Bins are (e_(b-1), e_b]: an edge is in the lower bin, a negative score in the first, the largest in the last."""
    counts = measure.binned(np.array([[-1.0, 0.5, 0.51], [1.0, 0.25, 0.26]]), np.array([0.25, 0.5, 0.75, 1.0]))
    np.testing.assert_array_equal(counts, [[1, 1, 1, 0], [1, 1, 0, 1]])


@pytest.mark.slow
def test_methods_cover_uniform_scores_as_their_laws_say():
    """Each mean of 600 federations of (5, 40) lies within 6 standard errors of the exact distribution."""
    law, rng = measure.exact_coverage(5, 40), np.random.default_rng(0)
    found = [measure.thresholds(rng.random((5, 40)), measure.PLAIN, rng) for _ in range(600)]
    for name in measure.PLAIN:
        values = np.array([one[name] for one in found])
        assert abs(values.mean() - law[name]) < 6 * values.std() / math.sqrt(600)
