"""Theorems F3 and F4: private quantiles of quantiles, and their certificates against worst-case simulations."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from confide.federated.certificates import certified_k, order_statistic_coverage
from confide.federated.private_quantiles import best_private_qq
from confide.federated.protocols.fedcp2_qq import best_published, published_quantile, qq_coverage
from confide.federated.reply_laws import RandomRankReply, any_size_reply, random_rank
from confide.guarantee.random_rank import conditional_failure
from confide.mechanisms.slopes import Slopes, slopes_for
from experiments.federated.draws import chosen
from tests.exact import histograms, law, mechanism_law, stepped
from tests.federated.exact_coverage import choice_laws

LEVEL = Fraction(9, 10)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon", "ours", "published"), [(10.0, 0.902, 0.91497), (5.0, 0.902, 0.92567), (1.0, 0.9155, 0.999)]
)
def test_degree_of_compensation(epsilon, ours, published):
    found = best_private_qq([200] * 5, LEVEL, epsilon, 100)
    compensation = float(qq_coverage(int(found.mechanisms[0].offset), found.k, 5, 200))
    assert compensation <= ours
    assert found.coverage >= 0.9
    assert found.mechanisms[0].replace_one <= epsilon
    assert best_published(5, 200, 0.1, epsilon, 100).compensation == pytest.approx(published, abs=6e-6)


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "most"), [(1.0, 0.928), (5.0, 0.908)])
def test_mean_coverage_on_even_scores(epsilon, most):
    """Mean coverage of draws agrees with the plan; a reply is a candidate above the score that the plan counts."""
    found = best_private_qq([200] * 5, LEVEL, epsilon, 100)
    assert found.expected <= most
    assert all(mechanism.total_rise <= 10 for mechanism in found.mechanisms)  # no wider empty range is crossed
    rng, ends, answers = np.random.default_rng(9), np.append(np.arange(1, 100) / 100, 1.0), []
    for mechanism in found.mechanisms:
        utilities = np.array([mechanism.utilities(row) for row in rng.multinomial(200, [0.01] * 100, 1000)])
        noisy = utilities / mechanism.scale + rng.gumbel(size=utilities.shape)
        answers.append(ends[np.argmax(noisy, axis=1)])
    covered = np.sort(answers, axis=0)[found.k - 1]
    assert found.coverage - 0.002 < covered.mean() < found.expected + 0.005


@pytest.mark.parametrize("n", [5, 12])
@pytest.mark.parametrize("ahead", [(0, 0, 0, 0), (0, 0.5, 1, 1.5), (0, 2, 2, 2), (0, 0, 1.3, 4)])
def test_reply_law_bounds_every_data_set(n, ahead):
    """For every histogram of scores and any prior weights, the chosen candidate dominates the random rank (exact)."""
    plain = slopes_for(Fraction(0), Fraction(n - 1), 3, 1, "replace_one", 2.0)
    fine = Slopes(plain.rate, plain.offset, 192, 64, 64 * plain.scale)
    mechanism = stepped(fine, ahead)
    assert mechanism.rivals(4) < 3 or not any(ahead)
    reply = random_rank(n, mechanism, 4)
    assert reply.bottom <= random_rank(n, fine, 4).bottom
    at_least = [
        1 - reply.bottom - sum(p for r, p in zip(reply.ranks, reply.probabilities, strict=True) if r < k)
        for k in range(n + 1)
    ]
    for h in histograms(n, 4):
        chosen, below = mechanism_law(mechanism, h), np.cumsum(h)
        for k in range(1, n):
            assert chosen[below >= k].sum() >= at_least[k] - 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("rise", [0, 700])
def test_secret_sizes_are_bounded_at_every_size(rise):
    plain = slopes_for(Fraction(11, 12), Fraction(6), 14, 6, "add_remove", 2.0)
    mechanism = Slopes(**{**vars(plain), "flat": Fraction(7), "rise": rise})
    rivals = mechanism.rivals(50)
    assert rivals == 49 if rise == 0 else rivals < 10
    reply = any_size_reply(mechanism, 50, 20, LEVEL)
    sizes = [20, 21, 25, 33, 60, 100, 250, 1000, 5000, 40000]
    for t, bound in reply.steps:
        exact = max(conditional_failure(n, t, float(mechanism.target(n)), mechanism.slope_left, rivals) for n in sizes)
        assert exact <= bound + 1e-12


@pytest.mark.slow
def test_secret_sizes_are_bounded_near_a_rate_close_to_the_level():
    """Above the last step the bound is 1, so that without a step above the level nothing could be certified."""
    mechanism = slopes_for(Fraction(955, 1000), Fraction(20), 14, 6, "add_remove", 5.0)
    level = Fraction(951, 1000)
    reply, rivals = any_size_reply(mechanism, 50, 1, level), mechanism.rivals(50)
    assert level < Fraction(reply.steps[-1][0]) < mechanism.rate
    for t, bound in reply.steps[-6:]:
        for n in (1, 30, 200, 1000, 3000, 10_000, 100_000):
            target = float(mechanism.target(n))
            assert conditional_failure(n, t, target, mechanism.slope_left, rivals) <= bound + 1e-12
    assert certified_k([reply] * 5, level, None) is not None
    assert any_size_reply(mechanism, 50, 1, Fraction(94, 100)).steps[-1][0] < level  # the steps of earlier versions


@pytest.mark.slow
def test_secret_sizes_have_plans_for_small_alpha():
    found = best_private_qq([None] * 5, Fraction(19, 20), 5.0, 100)
    assert found is not None
    assert 0.95 <= found.coverage <= found.expected < 0.97


@pytest.mark.slow
def test_secret_sizes_cover_whatever_the_sizes_are():
    found = best_private_qq([None] * 5, LEVEL, 2.0, 100, n_min=30, n_typical=200)
    assert found.coverage >= 0.9
    mechanism = found.mechanisms[0]
    assert mechanism.add_remove <= 2.0
    rng = np.random.default_rng(7)
    for _ in range(20):
        sizes = rng.choice([30, 31, 40, 77, 200, 1000, 20000], 5)
        replies = []
        for n in sizes.tolist():
            ranks = random_rank(n, mechanism, 100)
            replies.append(ranks)
        assert order_statistic_coverage(replies, found.k) >= found.coverage - 1e-9


def test_published_reply_law_bounds_every_data_set():
    mechanism = published_quantile(10, 8, 3.0)
    reply = random_rank(10, mechanism, 4)
    assert isinstance(reply, RandomRankReply)
    for h in histograms(10, 4):
        chosen, below = law(mechanism.utilities(np.array(h)), mechanism.scale), np.cumsum(h)
        for k in range(1, 9):
            promised = sum(p for r, p in zip(reply.ranks, reply.probabilities, strict=True) if r >= k)
            assert chosen[below >= k].sum() >= promised - 1e-9


# The fast draws of the experiments

MECHANISMS = [
    slopes_for(Fraction(0), Fraction(6), 3, 1, "replace_one", 1.0),
    published_quantile(9, 6, 1.5),
]


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=["slopes", "published"])
def test_seeded_draws_have_the_law_of_the_mechanism(mechanism):
    counts, rng = (3, 2, 3, 1), np.random.default_rng(0)
    law = choice_laws(mechanism, 9, 4)[histograms(9, 4).index(counts)]
    drawn = [chosen(mechanism, np.array(counts), rng) for _ in range(4000)]
    assert min(law) * 4000 > 5
    assert stats.chisquare(np.bincount(drawn, minlength=4), law * 4000).pvalue > 1e-6
