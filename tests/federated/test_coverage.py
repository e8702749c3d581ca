"""Theorems F1, F3 and F4: exact coverage of every method, quantiles of quantiles, private ones, and certificates."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from confide import federated
from confide.candidates import Candidates
from confide.federated.certificates import (
    at_least,
    certified_k,
    conditional_coverage_failure,
    order_statistic_coverage,
    poisson_binomial,
)
from confide.federated.private_quantiles import best_private_qq
from confide.federated.quadrature import integral
from confide.federated.reply_laws import RandomRankReply, any_size_reply, random_rank
from confide.guarantee.random_rank import conditional_failure
from confide.mechanisms.slopes import Slopes, slopes_for
from confide.papers.fedcp_qq import best_qq, best_qq_unequal, published_ranks
from tests.exact import histograms, law, mechanism_law, stepped
from tests.federated.exact_coverage import (
    coverage,
    failure,
    populations,
    threshold_law,
    worst_thresholds,
    worst_thresholds_of_all,
)
from tests.federated.helpers import kth_reply

BINS = 4
SIZES, EQUAL = (9, 7, 8, 9), (9, 9, 9, 9)


def make(method, alpha, epsilon, sizes, bins=BINS, **options):
    silos = [federated.SiloKeys.generate(f"silo {i}").public(n) for i, n in enumerate(sizes)]
    return federated.plan(silos, alpha, epsilon, method=method, candidates=Candidates.unit(bins), **options)


@pytest.mark.long
@pytest.mark.parametrize(
    ("method", "alpha", "epsilon", "sizes"),
    [("private-qq", 0.3, 4.0, SIZES), ("private-qq", 0.4, 1.5, (8,) * 5), ("fedcp2-qq", 0.4, 12.0, EQUAL)],
)
def test_every_subset_of_silos_is_covered_as_certified(method, alpha, epsilon, sizes):
    plan = make(method, alpha, epsilon, sizes)
    m = len(sizes)
    for answered in itertools.chain.from_iterable(itertools.combinations(range(m), size) for size in range(1, m + 1)):
        k, guarantee = plan.certify(answered)
        promise = plan.promises()[len(answered)]
        assert guarantee.coverage >= promise.coverage
        assert k <= promise.k
        if k > len(answered):
            assert guarantee.coverage == 1.0
            assert promise.infinite != "never"
            continue
        assert guarantee.coverage == 1 - alpha
        assert promise.infinite != "always"
        promised = order_statistic_coverage([plan.first.reply_law(i) for i in answered], k)
        assert promised >= 1 - alpha
        thresholds = worst_thresholds(plan, answered)
        for population in populations(BINS, 1 - alpha):
            assert coverage(threshold_law(plan, population, thresholds), population) >= promised - 1e-9


@pytest.mark.long
@pytest.mark.parametrize(
    ("method", "alpha", "epsilon", "sizes", "options"),
    [
        ("private-qq", 0.4, 4.0, SIZES, {"liars": 1}),
        ("private-qq", 0.4, 4.0, SIZES, {"liars": 1, "dropouts": 1}),
        ("private-qq", 0.5, 8.0, (9,) * 5, {"liars": 2}),
        ("fedcp2-qq", 0.5, 12.0, EQUAL, {"liars": 1, "dropouts": 1}),
    ],
)
def test_worst_byzantine_silos_are_covered(method, alpha, epsilon, sizes, options):
    """Test Byzantine silos that know all replies and try every message, with every allowed set of dropouts."""
    plan = make(method, alpha, epsilon, sizes, **options)
    tried = 0
    for size in range(len(sizes) - plan.dropouts, len(sizes) + 1):
        for answered in itertools.combinations(range(len(sizes)), size):
            k, guarantee = plan.certify(answered)
            assert k <= len(answered)
            for liars in itertools.combinations(answered, plan.liars):
                thresholds = worst_thresholds(plan, answered, liars)
                for population in populations(BINS, 1 - alpha)[:: 1 if len(sizes) < 5 else 4]:
                    tried += 1
                    assert (
                        coverage(threshold_law(plan, population, thresholds), population) >= guarantee.coverage - 1e-9
                    )
    assert tried >= 80


@pytest.mark.slow
def test_the_worst_lie_is_the_lowest_candidate_and_it_matters():
    plan = make("private-qq", 0.4, 4.0, SIZES, liars=1)
    k, _ = plan.certify()
    lowest = [kth_reply([0, *r[1:]], k, BINS) for r in np.ndindex(*(BINS,) * 4)]
    worst = worst_thresholds(plan, liars=(0,))
    np.testing.assert_array_equal(worst.ravel(), lowest)
    careless = make("private-qq", 0.4, 4.0, SIZES)  # planned without Byzantine silos, so that one breaks it
    population = np.array([0.4, 0.19999, 1e-5, 0.4])
    broken = coverage(threshold_law(careless, population, worst_thresholds(careless, liars=(0,))), population)
    assert broken < 0.6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "epsilon", "alpha", "liars"),
    [("private-qq", 4.0, 0.4, 0), ("private-qq", 6.0, 0.5, 1), ("fedcp2-qq", 12.0, 0.5, 0)],
)
def test_absence_and_lies_that_depend_on_all_scores(method, epsilon, alpha, liars):
    """`arbitrary`: in every round an attacker who knows all replies chooses the dropouts and the Byzantine silos."""
    plan = make(method, alpha, epsilon, EQUAL, missing="arbitrary", liars=liars)
    thresholds = worst_thresholds_of_all(plan)
    promised = plan.certify()[1].coverage
    for population in populations(BINS, 1 - alpha):
        assert coverage(threshold_law(plan, population, thresholds), population) >= promised - 1e-9


@pytest.mark.slow(unless="0-fedcp2-qq-12.0")
@pytest.mark.parametrize(("method", "epsilon"), [("private-qq", 4.0), ("fedcp2-qq", 12.0)])
@pytest.mark.parametrize("liars", [0, 1])
def test_training_conditional_promises(method, epsilon, liars):
    alpha, delta = 0.5, 0.25
    plan = make(method, alpha, epsilon, EQUAL, delta=delta, liars=liars)
    assert plan.certify()[0] <= 4
    thresholds = worst_thresholds(plan, liars=tuple(range(liars)))
    worst = max(
        failure(threshold_law(plan, population, thresholds), population, 1 - alpha)
        for population in populations(BINS, 1 - alpha)
    )
    assert 0 < worst <= delta + 1e-9


@pytest.mark.slow
def test_published_private_method_keeps_its_ranks():
    """With honest silos and no dropouts (l + l_cor, k) are as published, and the certificate confirms them."""
    for m, n, alpha, epsilon, bins in [(5, 200, 0.1, 5.0, 100), (4, 9, 0.4, 12.0, 4)]:
        choice = federated.best_published(m, n, alpha, epsilon, bins)
        plan = make("fedcp2-qq", alpha, epsilon, (n,) * m, bins=bins)
        assert plan.first.targets == (choice.rank,) * m
        assert plan.certify()[0] == choice.k
        assert plan.certify()[1].coverage == pytest.approx(1 - alpha)


LEVEL = Fraction(9, 10)


@pytest.mark.long
@pytest.mark.parametrize(
    ("epsilon", "ours", "published"), [(10.0, 0.902, 0.91497), (5.0, 0.902, 0.92567), (1.0, 0.9155, 0.999)]
)
def test_degree_of_compensation(epsilon, ours, published):
    found = best_private_qq([200] * 5, LEVEL, epsilon, 100)
    compensation = float(federated.qq_coverage(int(found.mechanisms[0].offset), found.k, 5, 200))
    assert compensation <= ours
    assert found.coverage >= 0.9
    assert found.mechanisms[0].replace_one <= epsilon
    assert federated.best_published(5, 200, 0.1, epsilon, 100).compensation == pytest.approx(published, abs=6e-6)


@pytest.mark.long
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


@pytest.mark.long
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
    mechanism = federated.published_quantile(10, 8, 3.0)
    reply = random_rank(10, mechanism, 4)
    assert isinstance(reply, RandomRankReply)
    for h in histograms(10, 4):
        chosen, below = law(mechanism.utilities(np.array(h)), mechanism.scale), np.cumsum(h)
        for k in range(1, 9):
            promised = sum(p for r, p in zip(reply.ranks, reply.probabilities, strict=True) if r >= k)
            assert chosen[below >= k].sum() >= promised - 1e-9


# The fast draws of the experiments


def test_both_quadratures_agree():
    for m, n, l, k in [(5, 200, 183, 2), (100, 50, 46, 60), (7, 3000, 2700, 3), (300, 20, 19, 111)]:
        general = order_statistic_coverage([RandomRankReply.fixed(n, l)] * m, k)
        assert general == pytest.approx(float(federated.qq_coverage(l, k, m, n)), abs=1e-12)


def test_integral_of_steep_and_flat_curves():
    assert integral(lambda t: t**63) == pytest.approx(1 / 64, abs=1e-13)
    assert integral(lambda t: np.clip((t - 0.3) * 1e4, 0, 1)) == pytest.approx(0.7 - 0.5e-4, abs=1e-9)
    assert integral(lambda t: np.full(t.shape, 0.25)) == pytest.approx(0.25)


@pytest.mark.parametrize(("m", "n", "most_k"), [(3, 40, 3), (5, 30, 5), (5, 30, 3), (10, 12, 7)])
@pytest.mark.parametrize("delta", [0.2, 0.05])
def test_best_pair_given_the_data_is_the_best_of_all_pairs(m, n, most_k, delta):
    pairs = [
        (float(federated.qq_coverage(l, k, m, n)), l, k)
        for l in range(1, n + 1)
        for k in range(1, most_k + 1)
        if conditional_coverage_failure([RandomRankReply.fixed(n, l)] * m, k, 0.8) <= delta
    ]
    found = best_qq(m, n, 0.8, delta=delta, most_k=most_k)
    assert (found.coverage, found.ranks[0], found.k) == pytest.approx(min(pairs))


@pytest.mark.long
def test_large_problems_are_solved():
    """`benchmarks/federated.py` measures their times."""
    choice = best_qq(1000, 1000, 0.9)
    assert 0.9 <= choice.coverage < 0.90001
    sizes = np.random.default_rng(0).integers(100, 2000, 1000).tolist()
    unequal = best_qq_unequal(sizes, 0.9, published_ranks(sizes, 0.9))
    assert 0.9 <= unequal.coverage < 0.9001


def test_unequal_choice_is_minimal_in_k_and_not_worse_than_published():
    sizes = [40, 60, 200, 500]
    published = published_ranks(sizes, 0.9)
    for ranks, options in ((None, {}), (published, {"delta": 0.1}), (published, {"honest": 3}), (published, {})):
        choice = best_qq_unequal(sizes, 0.9, ranks, **options)
        replies = [RandomRankReply.fixed(n, l) for n, l in zip(sizes, choice.ranks, strict=True)]
        assert choice.coverage == pytest.approx(order_statistic_coverage(replies, choice.k), rel=1e-9)
        assert choice.coverage >= 0.9
        assert options or order_statistic_coverage(replies, choice.k - 1) < 0.9
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
