"""FedCP-QQ, P-COQS and Rob-FCP: coverage by enumeration, exact laws, and arguments that are refused."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

from benchmarks.newer_methods import pcoqs_law, rob_fcp_bound
from confide.errors import InputError
from confide.papers import fedcp_qq as paper
from confide.papers import one_shot_federated, opendp_quantile, private_prediction_sets
from confide.papers import private_prediction_sets_v1 as v1
from tests.exact import histograms
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


def enumerated(scores, rho, delta, decimals):
    """The program, halving by halving, on all sequences of answers, in thirty digits: chances by answer."""
    times = math.ceil(math.log2(1 / delta))
    found = {}
    with mpmath.workdps(30):
        scale = mpmath.sqrt(mpmath.mpf(times) / (2 * mpmath.mpf(rho)))
        wanted = math.ceil(0.9 * (len(scores) + 1))
        for goes_left in itertools.product([True, False], repeat=times):
            left, right, chance = 0.0, 1.0, mpmath.mpf(1)
            for reached in goes_left:
                middle = (left + right) / 2
                short = mpmath.ncdf((wanted - sum(0 <= s <= middle for s in scores)) / scale)
                chance *= 1 - short if reached else short
                left, right = (left, middle) if reached else (middle + delta, right)
            answer = round((left + right) / 2, decimals)
            found[answer] = found.get(answer, 0) + chance
    return found


@pytest.mark.slow
@pytest.mark.parametrize("decimals", [1, 2])
@pytest.mark.parametrize("scores", [(0.1, 0.3, 0.3, 0.72, 0.9), (0.5,) * 4, (0.0, 0.05, 1.0, 1.7)])
def test_the_law_is_that_of_the_program(scores, decimals):
    """Against all 128 sequences of seven halvings."""
    answers, chances = pcoqs_law(np.array(scores), 0.1, 0.4, delta=0.01, decimals=decimals)
    theirs = enumerated(scores, 0.4, 0.01, decimals)
    assert set(answers.tolist()) == set(theirs)
    for answer, chance in zip(answers.tolist(), chances.tolist(), strict=True):
        assert abs(chance - theirs[answer]) < 1e-12


@pytest.mark.slow
def test_the_unrounded_law_is_a_sum_over_the_same_paths():
    """Coverage of the scores themselves, and the mean answer, from sixteen-digit decimals that round nothing."""
    scores = (0.1, 0.3, 0.3, 0.72, 0.9)
    answers, chances = pcoqs_law(np.array(scores), 0.1, 0.4, delta=0.01, decimals=None)
    theirs = enumerated(scores, 0.4, 0.01, 16)
    assert abs(answers @ chances - sum(answer * chance for answer, chance in theirs.items())) < 1e-12
    for score in scores:
        assert abs(chances[answers >= score].sum() - sum(c for a, c in theirs.items() if a >= score)) < 1e-12


def coverage(scores, below, **options):
    answers, chances = pcoqs_law(np.array(scores), 0.1, 0.5, **options)
    return float(chances @ below(answers))


RNG = np.random.default_rng(5)


def test_small_scores_are_not_covered_at_all():
    """u/200: the quantile .0045 is rounded to 0, below every score, but for less than one chance in a million."""
    answers, chances = pcoqs_law(RNG.random(1000) / 200, 0.1, 0.5)
    assert chances[answers == 0].sum() > 1 - 1e-6


def test_scores_near_one_are_all_covered():
    """u^(1/50): the quantile .998 is rounded to 1."""
    assert coverage(RNG.random(1000) ** 0.02, lambda a: np.clip(a, 0, 1) ** 50) > 1 - 1e-6


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


@pytest.mark.slow
def test_on_even_scores_it_covers_the_level_in_the_mean():
    """.9003 rounded, .9001 unrounded: the plain threshold of the same data, whose mean is 901/1001, as control."""
    rng, rounded, plain = np.random.default_rng(6), [], []
    for _ in range(60):
        scores = rng.random(1000)
        rounded.append(coverage(scores, lambda a: a))
        plain.append(np.sort(scores)[900])
    apart = np.array(rounded) - plain
    assert abs(apart.mean() + 901 / 1001 - 0.9003) < 6 * apart.std() / np.sqrt(60)
    assert abs(apart.mean()) < 0.002


@pytest.mark.parametrize("setting", [(17, 3, 200, 2), (17, 3, 200, 100), (17, 3, 10_000, 10), (100, 0, 17, 1)])
def test_the_certificate_is_the_programs(setting):
    """Rob-FCP's lower bound in fifty digits, written down from the program's formula."""
    honest, byzantine, n, bins = setting
    with mpmath.workdps(50):
        tau, beta = mpmath.mpf(byzantine) / honest, mpmath.mpf("0.05")
        z = mpmath.sqrt(2) * mpmath.erfinv(1 - beta / (bins * honest))
        wide = bins * z / 2 / mpmath.sqrt(n) * (1 + tau) / (1 - tau)
        low = mpmath.mpf("0.9") - mpmath.mpf(1) / (n + honest) - wide
    assert abs(rob_fcp_bound(*setting) - low) < 1e-12 * max(1, abs(low))


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
    ("p", lambda: one_shot_federated.ehm_bound([])),
    ("p", lambda: one_shot_federated.ehm_lower_bound([2.0], 0.1)),
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
    ("scores_below", lambda: one_shot_federated.non_iid_bound([lambda u: 2 * u], 1, 1, 1)),
    ("l", lambda: one_shot_federated.non_iid_coverage([lambda u: u] * 5, 21, 1, 20)),
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
