"""Theorem F1: coverage of a quantile of quantiles, against enumeration, other quadrature and simulation."""

import itertools

import numpy as np
import pytest
from scipy import stats

from confide.federated.certificates import (
    at_least,
    conditional_coverage_failure,
    integral,
    order_statistic_coverage,
    poisson_binomial,
)
from confide.federated.protocols.fedcp2_qq import qq_coverage
from confide.federated.reply_laws import RandomRankReply
from confide.papers.fedcp_qq import best_qq, best_qq_unequal, published_ranks


def enumerated(sizes, ranks, k):
    """Enumerate all assignments of the ranks of N+1 exchangeable points to silos and the new point."""
    owners = [j for j, n in enumerate(sizes) for _ in range(n)] + [-1]
    covered = total = 0
    for order in set(itertools.permutations(owners)):
        replies = sorted([i for i, o in enumerate(order) if o == j][l - 1] for j, l in enumerate(ranks))
        covered += order.index(-1) <= replies[k - 1]
        total += 1
    return covered / total


@pytest.mark.parametrize(
    ("sizes", "ranks"),
    [((2, 2), (1, 2)), ((2, 2, 2), (2, 2, 2)), ((3, 2), (2, 2)), ((4, 3), (3, 2)), ((1, 3, 2), (1, 2, 1))],
)
def test_coverage_equals_enumeration(sizes, ranks):
    replies = [RandomRankReply.fixed(n, l) for n, l in zip(sizes, ranks, strict=True)]
    for k in range(1, len(sizes) + 1):
        assert order_statistic_coverage(replies, k) == pytest.approx(enumerated(sizes, ranks, k), abs=1e-12)


def test_both_quadratures_agree():
    for m, n, l, k in [(5, 200, 183, 2), (100, 50, 46, 60), (7, 3000, 2700, 3), (300, 20, 19, 111)]:
        general = order_statistic_coverage([RandomRankReply.fixed(n, l)] * m, k)
        assert general == pytest.approx(float(qq_coverage(l, k, m, n)), abs=1e-12)


def test_integral_of_steep_and_flat_curves():
    assert integral(lambda t: t**63) == pytest.approx(1 / 64, abs=1e-13)
    assert integral(lambda t: np.clip((t - 0.3) * 1e4, 0, 1)) == pytest.approx(0.7 - 0.5e-4, abs=1e-9)
    assert integral(lambda t: np.full(t.shape, 0.25)) == pytest.approx(0.25)


@pytest.mark.parametrize(("m", "n", "most_k"), [(3, 40, 3), (5, 30, 5), (5, 30, 3), (10, 12, 7)])
@pytest.mark.parametrize("delta", [0.2, 0.05])
def test_best_pair_given_the_data_is_the_best_of_all_pairs(m, n, most_k, delta):
    pairs = [
        (float(qq_coverage(l, k, m, n)), l, k)
        for l in range(1, n + 1)
        for k in range(1, most_k + 1)
        if conditional_coverage_failure([RandomRankReply.fixed(n, l)] * m, k, 0.8) <= delta
    ]
    found = best_qq(m, n, 0.8, delta=delta, most_k=most_k)
    assert (found.coverage, found.ranks[0], found.k) == pytest.approx(min(pairs))


def test_no_pair_reaches_a_level_too_high():
    assert best_qq(2, 3, 0.9) is None
    assert best_qq_unequal([3, 2], 0.95) is None


@pytest.mark.slow
def test_large_problems_are_solved():
    """`benchmarks/federated.py` measures their times."""
    choice = best_qq(1000, 1000, 0.9)
    assert 0.9 <= choice.coverage < 0.90001
    sizes = np.random.default_rng(0).integers(100, 2000, 1000).tolist()
    unequal = best_qq_unequal(sizes, 0.9, published_ranks(sizes, 0.9))
    assert 0.9 <= unequal.coverage < 0.9001


@pytest.mark.parametrize("options", [{}, {"delta": 0.1}, {"honest": 3}])
def test_the_stated_coverage_is_that_of_the_chosen_reply(options):
    sizes = [40, 60, 200, 500]
    for ranks in (None, published_ranks(sizes, 0.7)):
        choice = best_qq_unequal(sizes, 0.7, ranks, **options)
        replies = [RandomRankReply.fixed(n, l) for n, l in zip(sizes, choice.ranks, strict=True)]
        assert choice.coverage == pytest.approx(order_statistic_coverage(replies, choice.k), rel=1e-9)


def test_unequal_choice_is_minimal_in_k_and_not_worse_than_published():
    sizes = [40, 60, 200, 500]
    for ranks in (None, published_ranks(sizes, 0.9)):
        choice = best_qq_unequal(sizes, 0.9, ranks)
        replies = [RandomRankReply.fixed(n, l) for n, l in zip(sizes, choice.ranks, strict=True)]
        assert choice.coverage >= 0.9
        assert order_statistic_coverage(replies, choice.k - 1) < 0.9
    assert best_qq_unequal(sizes, 0.9).coverage <= choice.coverage


def test_poisson_binomial_against_all_outcomes():
    rng = np.random.default_rng(1)
    p = rng.random((7, 3))
    law = np.zeros((3, 8))
    for outcome in itertools.product([0, 1], repeat=7):
        o = np.array(outcome)[:, None]
        law[:, sum(outcome)] += np.prod(np.where(o == 1, p, 1 - p), axis=0)
    np.testing.assert_allclose(poisson_binomial(p), law, atol=1e-14)
    same = np.tile(rng.random(4), (1000, 1))
    np.testing.assert_allclose(poisson_binomial(same)[:, 400:].sum(1), at_least(same, 400), atol=1e-12)


def test_training_conditional_by_simulation():
    rng = np.random.default_rng(2)
    sizes, ranks, k, level = [30, 60, 90], [27, 55, 82], 2, 0.88
    replies = [RandomRankReply.fixed(n, l) for n, l in zip(sizes, ranks, strict=True)]
    exact = conditional_coverage_failure(replies, k, level)
    drawn = np.sort([rng.beta(l, n - l + 1, 20000) for n, l in zip(sizes, ranks, strict=True)], axis=0)[k - 1]
    assert stats.binomtest(int((drawn < level).sum()), 20000, exact).pvalue > 1e-6
