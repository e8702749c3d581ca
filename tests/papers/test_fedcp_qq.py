"""FedCP-QQ, P-COQS and Rob-FCP: coverage by enumeration and refusals; the clones bound of shuffling."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from benchmarks.newer_methods import pcoqs_law, rob_fcp_bound
from confide.errors import InputError
from confide.federated import best_published
from confide.federated.protocols.fedcp2_qq import published_quantile
from confide.mechanisms import PrivatePredictionSets
from confide.papers import different_silos, one_shot_federated, opendp_quantile, private_prediction_sets
from confide.papers import fedcp_qq as paper
from confide.papers import private_prediction_sets_v1 as v1
from confide.papers.shuffling import clones_delta, clones_epsilon
from tests.builders import slow
from tests.exact import histograms, mechanism_law
from tests.refused import refused


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


@pytest.mark.long
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


@pytest.mark.long
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


def coverage(scores, below, **options):
    answers, chances = pcoqs_law(np.array(scores), 0.1, 0.5, **options)
    return float(chances @ below(answers))


RNG = np.random.default_rng(5)


def test_small_scores_are_not_covered_at_all():
    """u/200: the quantile .0045 is rounded to 0, below every score, but for less than one chance in a million."""
    answers, chances = pcoqs_law(RNG.random(1000) / 200, 0.1, 0.5)
    assert chances[answers == 0].sum() > 1 - 1e-6


@pytest.mark.parametrize("decimals", [2, None])
def test_residuals_end_at_the_upper_bound(decimals):
    """Exp(1) residuals and the default bounds: it answers 1, which covers 1 - 1/e = .632."""
    found = coverage(RNG.exponential(size=1000), lambda a: 1 - np.exp(-a), decimals=decimals)
    assert found == pytest.approx(1 - math.exp(-1), abs=1e-6)


def two_values(high):
    scores = np.repeat([high - 0.5, high], [850, 150])
    return coverage(scores, lambda a: np.where(a >= high, 1.0, np.where(a >= high - 0.5, 0.85, 0.0)), decimals=None)


@pytest.mark.slow
def test_unrounded_search_misses_ties():
    """85 % of the scores at one value, 15 % at another: the middle of the last interval lies below it, or above."""
    assert two_values(0.9) == pytest.approx(0.85, abs=1e-9)
    found = [two_values(j / 100) for j in range(50, 100)]
    assert {round(one, 6) for one in found} == {0.85, 1.0}


@pytest.mark.parametrize(
    ("n", "found"), [(200, (0.574, None, None)), (10_000, (0.854, 0.641, None))]
)  # None: below zero
def test_it_is_vacuous_at_the_sizes_of_hospitals(n, found):
    for bins, stated in zip((2, 10, 100), found, strict=True):
        value = rob_fcp_bound(17, 3, n, bins)
        assert value < 0 if stated is None else round(value, 3) == stated


NAN, INF = math.nan, math.inf
ASKED = [
    ("counts", lambda: private_prediction_sets.weights([], 0.5)),
    ("counts", lambda: private_prediction_sets.weights([-1, 2], 0.5)),
    ("counts", lambda: private_prediction_sets.quantile_law([0.5, 1], 0.9, 1.0)),
    ("counts", lambda: one_shot_federated.quantile_law([], 0.9, 1.0)),
    ("noisy_counts", lambda: v1.private_distribution([NAN], 1)),
    ("distribution", lambda: v1.cutoff([NAN, 1.0], 0.5, [0.0, 1.0])),
    ("t", lambda: v1.exceedance(10, 3, 1.0, -1.0)),
    ("t", lambda: v1.sum_tail(1, NAN)),
    ("m", lambda: v1.levy_bound(0, 1.0)),
    ("t", lambda: v1.bernstein_tail(-1.0, 1.0, 1.0)),
    ("b", lambda: v1.subexponential_parameters(0.0)),
    ("b", lambda: v1.laplace_moment(-1.0, 0.5)),
    ("rate", lambda: v1.moment_bound(1.0, INF)),
    ("noise", lambda: v1.adjusted_level(10, 0.1, 0.5, NAN)),
    ("n", lambda: v1.excess_rate(1, 0.9, 1e-6)),
    ("x", lambda: opendp_quantile.scores([NAN], [0.0], 0.5)),
    ("candidates", lambda: opendp_quantile.scores_by_rank([0.0], [NAN], 0.5)),
    ("p", lambda: different_silos.ehm_bound([])),
    ("p", lambda: different_silos.ehm_lower_bound([2.0], 0.1)),
    ("at", lambda: one_shot_federated.order_statistic_cdf(2.0, 1, 1)),
    ("l", lambda: one_shot_federated.order_statistic_density(0.5, 1.0, 3, 2)),
    ("sizes", lambda: one_shot_federated.unequal_ranks([0], 0.1)),
    ("r", lambda: one_shot_federated.rectangle_probability([0], [1], 1, 5)),
    ("k", lambda: one_shot_federated.order_statistic([1.0], 0)),
    ("l", lambda: one_shot_federated.qq_coverage_sum(0, 1, 2, 3)),
    ("l", lambda: one_shot_federated.qq_coverage_sum(4, 1, 2, 3)),
    ("k", lambda: one_shot_federated.qq_coverage_sum(1, 0, 2, 3)),
    ("k", lambda: one_shot_federated.qq_coverage_sum(1, 3, 2, 3)),
    ("m n", lambda: one_shot_federated.upper_bounds(2, 4, 0.1)),
    ("scores_below", lambda: different_silos.non_iid_bound([lambda u: 2 * u], 1, 1, 1)),
    ("l", lambda: different_silos.non_iid_coverage([lambda u: u] * 5, 21, 1, 20)),
    ("training", lambda: one_shot_federated.loss_of_pipeline(0.0, 1.0)),
    ("ranks", lambda: one_shot_federated.unequal_coverage_sum([3], [1, 2], 1)),
    ("l", lambda: one_shot_federated.unequal_coverage_sum([3], [5], 1)),  # 4 stands for +inf, 5 for nothing
    ("n", lambda: private_prediction_sets.upper_bound_steps(50, 0.1, 0.1, 1000, 0.001)),
    ("alpha", lambda: v1.simplified_zeta(1000, 3, 1.0, 0.1, 0.5)),
    ("gamma", lambda: v1.simplified_zeta(1000, 6, 1.0, 0.1, 0.09)),
    ("rate", lambda: v1.laplace_moment(2.0, 0.5)),
    *(("delta", lambda at=at: one_shot_federated.published_deviation(5, 200, at)) for at in (0.51, 0.9, 1.0, 0.0)),
    *(("gamma", lambda at=at: one_shot_federated.private_correction(5, 0.1, 1.0, 100, at)) for at in (0.0, 1.0)),
    *(("q", lambda at=at: private_prediction_sets.quantile_law([1, 2], at, 1.0)) for at in (0.0, 1.5)),
    *(("q", lambda at=at: private_prediction_sets.weights([1, 2], at)) for at in (0.0, 1.5)),
    ("n", lambda: private_prediction_sets.adjusted_level(0, 0.1, 1.0, 100)),
    ("epsilon", lambda: private_prediction_sets.adjusted_level(1000, 0.1, 0.0, 100)),
    ("m", lambda: private_prediction_sets.adjusted_level(1000, 0.1, 1.0, 0)),
    ("gamma", lambda: private_prediction_sets.adjusted_level(1000, 0.1, 1.0, 100, 1.0)),
    ("n", lambda: private_prediction_sets.gamma_roots(-5, 0.1, 1.0)),
    ("epsilon", lambda: private_prediction_sets.optimal_gamma(1000, 0.1, INF)),
    ("n", lambda: private_prediction_sets.least_share_at_or_below(0, 0.9, 1.0, 100, 0.05)),
    ("m", lambda: private_prediction_sets.largest_share_below(1000, 0.9, 1.0, 0, 0.05)),
    ("delta", lambda: private_prediction_sets.weight_excess(1.0, 1.0, 100, 0.0)),
    ("gamma", lambda: private_prediction_sets.lower_bound_rank(1000, 0.1, 0.0)),
    ("p_max", lambda: private_prediction_sets.published_upper_bound(50, 0.1, 0.1, 1000, 0.0)),
    ("n", lambda: private_prediction_sets.suggested_bins(0, 1.0)),
    ("density", lambda: private_prediction_sets.simplified_upper_bound(1000, 0.1, 1.0, density=NAN)),
]


@pytest.mark.parametrize(("name", "ask"), ASKED)
def test_what_cannot_be_used_is_refused_by_name(name, ask):
    with refused(InputError, name):
        ask()


def test_what_lies_at_the_edge_is_answered():
    assert v1.bernstein_tail(INF, 1.0, 1.0) == v1.sum_tail(2, INF) == 0
    assert v1.sum_tail(3, 0.0) == pytest.approx(1, abs=1e-12)
    assert private_prediction_sets.weights([0], 1).tolist() == [0]
    assert v1.excess_rate(1, 0.5, 0.5) == 0
    assert v1.cutoff([0.1, 0.5], 0.4, [0.1, 0.2]) == 0.2


def divergence(p, q, epsilon):
    return sum(max(mass - math.exp(epsilon) * q.get(outcome, 0.0), 0.0) for outcome, mass in p.items())


def clones(epsilon_0, n, mirrored, whole=None):
    """Return the pair of distributions of Feldman, McMillan and Talwar, Theorem 3.2, outcome by outcome."""
    found = Counter()
    alike = math.exp(epsilon_0) / (1 + math.exp(epsilon_0))
    stays = math.exp(-(epsilon_0 if whole is None else whole))
    for c in range(n):
        for a in range(c + 1):
            for d in (0, 1):
                mass = stats.binom.pmf(c, n - 1, stays) * stats.binom.pmf(a, c, 0.5)
                here = (a + d, c - a + 1 - d)
                found[here[::-1] if mirrored else here] += mass * (alike if d else 1 - alike)
    return found


FEW = [(0.3, 1), (2.5, 1), (1.0, 2), (1.0, 7), (0.3, 40)]


@pytest.mark.parametrize(
    ("epsilon_0", "n"),
    [*FEW, *slow([pair for pair in itertools.product([0.3, 1.0, 2.5], [1, 2, 7, 40]) if pair not in FEW])],
)
def test_delta_is_the_divergence_of_the_clones(epsilon_0, n):
    p, q = clones(epsilon_0, n, mirrored=False), clones(epsilon_0, n, mirrored=True)
    for share in (0.0, 0.2, 0.5, 0.9, 0.999):
        epsilon = share * epsilon_0
        exact = max(divergence(p, q, epsilon), divergence(q, p, epsilon))
        assert exact - 1e-12 <= clones_delta(epsilon, epsilon_0, n) <= exact + 1e-12
    assert clones_delta(epsilon_0, epsilon_0, n) <= 1e-13


def shuffled(values, answers, epsilon_0):
    """Return the distribution of the counts of the answers of randomized response."""
    lie = 1 / (math.exp(epsilon_0) + answers - 1)
    found = Counter({(0,) * answers: 1.0})
    for value in values:
        fresh = Counter()
        for counts, mass in found.items():
            for said in range(answers):
                grown = (*counts[:said], counts[said] + 1, *counts[said + 1 :])
                fresh[grown] += mass * (math.exp(epsilon_0) * lie if said == value else lie)
        found = fresh
    return found


@pytest.mark.parametrize(("answers", "n"), [(2, 6), (2, 9), (3, 5)])
@pytest.mark.parametrize("epsilon_0", [0.5, 1.5, 3.0])
def test_no_data_set_of_shuffled_randomized_response_does_worse(answers, n, epsilon_0):
    others = list(itertools.combinations_with_replacement(range(answers), n - 1))
    for epsilon in np.array([0.0, 0.3, 0.7]) * epsilon_0:
        worst = max(
            divergence(shuffled((0, *rest), answers, epsilon_0), shuffled((1, *rest), answers, epsilon_0), epsilon)
            for rest in others
        )
        bound = clones_delta(epsilon, epsilon_0, n)
        assert worst <= bound + 1e-12
        assert 0 < bound <= 1


def test_delta_is_monotone():
    epsilons = [clones_delta(e, 2.0, 500) for e in np.linspace(0, 2, 21)]
    sizes = [clones_delta(0.3, 2.0, n) for n in (10, 30, 100, 300, 1000, 3000)]
    losses = [clones_delta(0.3, e, 300) for e in (0.3, 0.5, 1.0, 2.0, 3.0)]
    assert all(np.diff(epsilons) <= 1e-13)
    assert all(np.diff(sizes) <= 1e-13)
    assert all(np.diff(losses) >= -1e-13)
    assert epsilons[0] > epsilons[5] > epsilons[10] > 0


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon_0", "n", "delta"), [(0.5, 1000, 1e-6), (1.0, 10_000, 1e-6), (4.0, 200_000, 1e-8)])
def test_planning_is_the_inverse(epsilon_0, n, delta):
    epsilon = clones_epsilon(epsilon_0, n, delta)
    assert clones_delta(epsilon, epsilon_0, n) <= delta < clones_delta(epsilon - 2e-6, epsilon_0, n)
    assert epsilon < epsilon_0
    assert clones_epsilon(epsilon_0, 4 * n, delta) < epsilon < clones_epsilon(epsilon_0, n, delta / 10)


def test_nothing_is_gained_alone_and_arguments_are_checked():
    assert clones_epsilon(1.0, 1, 1e-9) > 0.999
    for arguments in ((-0.1, 1.0, 10), (math.nan, 1.0, 10), (0.1, 0.0, 10), (0.1, 1.0, 0)):
        with pytest.raises(InputError):
            clones_delta(*arguments)
    for delta in (0.0, 1.0, math.nan):
        with refused(InputError, "dp_delta"):
            clones_epsilon(1.0, 10, delta)
    for epsilon_0 in (-1.0, math.nan):
        with refused(InputError, "epsilon_0"):
            clones_epsilon(epsilon_0, 10, 0.1)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon_0", [0.5, 2.0])
def test_another_whole_loss_than_that_of_a_record(epsilon_0):
    for n, whole in ((2, 0.2), (9, 1.5), (9, 4.0), (30, 3.0)):
        p, q = clones(epsilon_0, n, False, whole), clones(epsilon_0, n, True, whole)
        for share in (0.0, 0.3, 0.8):
            epsilon = share * epsilon_0
            assert abs(divergence(p, q, epsilon) - clones_delta(epsilon, epsilon_0, n, whole=whole)) <= 1e-12
    assert clones_delta(0.1, epsilon_0, 40, whole=epsilon_0) == clones_delta(0.1, epsilon_0, 40)
    assert clones_delta(0.1, epsilon_0, 40, whole=9.0) > clones_delta(0.1, epsilon_0, 40)
    assert clones_epsilon(epsilon_0, 40, 1e-3, whole=60.0) > clones_epsilon(epsilon_0, 40, 1e-3)


def summed(laws):
    """Return the distribution of the sum of one-hot replies, outcome by outcome."""
    found = Counter({(0,) * len(laws[0]): 1.0})
    for law in laws:
        fresh = Counter()
        for counts, mass in found.items():
            for said, p in enumerate(law):
                fresh[(*counts[:said], counts[said] + 1, *counts[said + 1 :])] += mass * p
        found = fresh
    return found


@pytest.mark.parametrize(("n", "epsilon_0", "level"), [(1, 1.5, "1/2"), (2, 1.0, "1/2"), (2, 0.6, "1")])
def test_no_federation_of_small_silos_does_worse_than_the_bound(n, epsilon_0, level):
    """Test every adjacent pair in one silo, and every data set of the three others."""
    bins, mechanism = 3, PrivatePredictionSets(Fraction(level), 0.0, 2 * Fraction(level).numerator / epsilon_0)
    laws = {counts: mechanism_law(mechanism, counts) for counts in histograms(n, bins)}
    ratios = {(a, b): float(np.abs(np.log(laws[a] / laws[b])).max()) for a in laws for b in laws}
    near = [pair for pair in ratios if np.abs(np.subtract(*pair)).sum() == 2]
    one, whole = max(ratios[pair] for pair in near), max(ratios.values())
    assert one <= whole
    assert (whole > 1.5 * one) == (n > 1)
    worst = np.zeros(3)
    epsilons = one * np.array([0.0, 0.4, 0.8])
    for others in itertools.combinations_with_replacement(laws, 3):
        rest = [laws[counts] for counts in others]
        sums = {counts: summed([law, *rest]) for counts, law in laws.items()}
        for a, b in near:
            worst = np.maximum(worst, [divergence(sums[a], sums[b], epsilon) for epsilon in epsilons])
    bounds = np.array([clones_delta(epsilon, one, 4, whole=whole) for epsilon in epsilons])
    assert (worst <= bounds + 1e-12).all()
    assert worst.min() > 0


@pytest.mark.slow
def test_a_sum_of_silos_replies_has_the_loss_of_one_reply():
    """Theorem F11: at the published ranks for 20 silos the delta claimed from one record's loss is far too small."""
    m, n, epsilon_0 = 20, 20, 2.0
    mechanism = published_quantile(n, 17, epsilon_0)  # the rank of `best_published(20, 20, 0.5, 2.0, 4)`
    others = [mechanism_law(mechanism, (0, 0, 0, n))] * (m - 1)  # all their scores lie above
    here, there = mechanism_law(mechanism, (1, 17, 2, 0)), mechanism_law(mechanism, (0, 17, 2, 1))
    loss = float(np.abs(np.log(here / there)).max())
    p, q = summed([here, *others]), summed([there, *others])
    assert 0.6 < loss <= epsilon_0
    for share in (0.0, 0.2, 0.5):
        alone = divergence(dict(enumerate(here)), dict(enumerate(there)), share * loss)
        assert divergence(p, q, share * loss) == pytest.approx(alone, rel=1e-6)
        assert alone > 3 * clones_delta(share * loss, loss, m)  # the claim of the paper
        assert alone <= clones_delta(share * loss, loss, m, whole=n * mechanism.replace_one)
    most = max(math.log(p[counts] / q[counts]) for counts in p if counts in q)
    assert most == pytest.approx(float(np.log(here / there).max()), rel=1e-5)


@pytest.mark.parametrize(("m", "n", "alpha", "epsilon"), [(5, 60, 0.2, 10.0), (20, 12, 0.5, 3.0)])
def test_where_replies_cover_others_hide_nothing(m, n, alpha, epsilon):
    """Theorem F11, exactly: the probability that one of the others, whose scores lie above, replies below."""
    bins = 11 if n > 50 else 4
    choice = best_published(m, n, alpha, epsilon, bins)
    law = mechanism_law(published_quantile(n, choice.rank, epsilon), [0] * (bins - 1) + [n])
    any_below = -math.expm1((m - 1) * math.log1p(-law[:-1].sum()))
    assert 0 < any_below <= choice.gamma * alpha
    clones = (m - 1) * math.exp(-n * epsilon / 2)  # the largest value for any whole-input loss
    assert clones <= choice.gamma * alpha
