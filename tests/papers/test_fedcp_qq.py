"""FedCP-QQ and the baselines of its paper as functions of arrays: coverage by enumeration."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from confide.errors import InputError
from confide.papers import fedcp_qq as paper
from tests.exact import histograms


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sizes", "alpha"), [((3, 3), "3/10"), ((2, 2, 2), "2/5"), ((4, 2), "2/5"), ((1, 3, 2), "1/2")]
)
def test_coverage_is_exact_by_enumeration(sizes, alpha):
    """Enumerate which of N+1 exchangeable points belong to which silo, and which of them is the new point."""
    owners, covered, total = [j for j, n in enumerate(sizes) for _ in range(n)] + [-1], 0, 0
    for order in set(itertools.permutations(owners)):
        silos = [[float(at) for at, owner in enumerate(order) if owner == j] for j in range(len(sizes))]
        threshold, stated = paper.fedcp_qq(silos, alpha)
        covered += order.index(-1) <= threshold
        total += 1
    assert stated == pytest.approx(covered / total, abs=1e-12)
    assert stated >= 1 - Fraction(alpha)


def test_too_few_scores_have_no_finite_threshold():
    assert paper.fedcp_qq([[0.1, 0.2], [0.3, 0.4]], 0.1) == (math.inf, 1.0)
    assert paper.fedcp_qq([[0.1, 0.2], [0.3]], 0.1) == (math.inf, 1.0)
    with pytest.raises(InputError):
        paper.fedcp_qq([[0.1], [0.2]], 1.5)


@pytest.mark.slow
def test_centralised_baseline_by_enumeration():
    """Check every multiset of 8 pooled scores: all reach the level, and the one without ties reaches it exactly."""
    n, alpha = 7, Fraction(3, 10)
    wanted = -(-((n + 1) * (1 - alpha)) // 1)
    for h in histograms(n + 1, 8):
        points = np.repeat(np.arange(8), h)
        hits = 0
        for out in range(n + 1):
            rest = np.delete(points, out)
            hits += points[out] <= paper.centralised_threshold([rest[:3], rest[3:]], alpha)
        assert hits >= wanted >= (1 - alpha) * (n + 1)
        if max(h) == 1:
            assert hits == wanted


@pytest.mark.slow
def test_average_has_no_guarantee():
    """Exact coverage for scores 0 or 1: unless all nine silos report 1 the mean is below 1 and misses 1."""
    p = 0.33  # probability of the score 1; rank 7 of 9 in each silo
    exact = 1 - p + p * stats.binom.sf(2, 9, p) ** 9
    assert exact < 0.68
    rng, hits = np.random.default_rng(0), 0
    for _ in range(3000):
        silos = (rng.random((9, 9)) < p).astype(float)
        hits += float(rng.random() < p) <= paper.average_threshold(silos, 0.3)
    assert stats.binomtest(hits, 3000, exact).pvalue > 1e-6
