"""The federated paper's statements beyond its protocols, against exact laws."""

import numpy as np
import pytest

from confide.federated import RandomRankReply, conditional_coverage_failure, order_statistic_coverage
from confide.federated.poisson_binomial import at_least
from confide.papers.one_shot_federated import (
    distance_to_binomial,
    ehm_bound,
    published_conditional_k,
    published_deviation,
    unequal_loss,
)


@pytest.mark.parametrize(("m", "n"), [(5, 200), (20, 50)])
def test_theorem_3_3_is_implied_by_the_exact_law(m, n):
    """The published deviation is a bound on the exact failure probability."""
    for l in (int(0.9 * n), int(0.93 * n), int(0.97 * n)):
        k = published_conditional_k(l, m, n, 0.9)
        if k is not None:
            for delta in (0.2, 0.05, 0.01):
                level = 0.9 - published_deviation(m, n, delta)
                assert conditional_coverage_failure([RandomRankReply.fixed(n, l)] * m, k, level) <= delta


def test_ehm_bounds_the_distance_and_proposition_3_4_the_loss():
    rng = np.random.default_rng(3)
    p = rng.random((6, 50))
    assert (distance_to_binomial(p) <= ehm_bound(p) + 1e-14).all()
    replies = [RandomRankReply.fixed(n, l) for n, l in [(20, 18), (50, 46), (200, 181)]]
    loss = unequal_loss(replies)
    assert 0 < loss <= unequal_loss(replies, exact=False)
    x, w = np.polynomial.legendre.leggauss(400)
    mean = np.mean([reply.below((x + 1) / 2) for reply in replies], axis=0)
    for k in (1, 2, 3):
        as_if_equal = 1 - at_least(np.tile(mean, (3, 1)), k) @ w / 2
        assert abs(order_statistic_coverage(replies, k) - as_if_equal) <= loss + 1e-9
