"""One-shot federated conformal prediction: every numbered statement against independent arithmetic."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from confide.errors import InputError
from confide.federated import (
    RandomRankReply,
    best_published,
    conditional_coverage_failure,
    coverage_fraction,
    order_statistic_coverage,
    poisson_binomial,
    published_quantile,
    qq_coverage,
)
from confide.papers import different_silos
from confide.papers import one_shot_federated as paper
from confide.papers.fedcp_qq import best_qq, best_qq_unequal
from tests.refused import refused

HALVES = [lambda u: np.minimum(2 * u, 1)] * 5
PAIRS = [(2, 3), (3, 3), (3, 4)]


def published_sum(l, k, m, n):
    """(5) as it stands, term by term."""
    total = Fraction(0)
    for j in range(k, m + 1):
        for term in itertools.product(*[range(l, n + 1)] * j, *[range(l)] * (m - j)):
            total += math.comb(m, j) * Fraction(math.prod(math.comb(n, i) for i in term), math.comb(m * n, sum(term)))
    return 1 - total / (m * n + 1)


def subset_sum(sizes, ranks, k):
    """Appendix A.1 as it stands: a sum over all sets A of agents."""
    m, total = len(sizes), Fraction(0)
    for j in range(k, m + 1):
        for chosen in itertools.combinations(range(m), j):
            spans = [range(ranks[a], sizes[a] + 1) if a in chosen else range(ranks[a]) for a in range(m)]
            for term in itertools.product(*spans):
                ways = math.prod(math.comb(n, i) for n, i in zip(sizes, term, strict=True))
                total += Fraction(ways, math.comb(sum(sizes), sum(term)))
    return 1 - total / (sum(sizes) + 1)


# Section 2


@pytest.mark.parametrize(("n", "alpha"), [(1, "1/2"), (9, "1/10"), (10, "1/10"), (37, "1/3")])
def test_theorem_2_1(n, alpha):
    low, high = paper.split_conformal_bounds(n, alpha)
    wanted = 1 - Fraction(alpha)
    assert (low, high) == (pytest.approx(float(wanted), abs=1e-15), pytest.approx(float(wanted + Fraction(1, n + 1))))
    rank = paper.conformal_rank(n, alpha)
    assert wanted <= Fraction(rank, n + 1) < wanted + Fraction(1, n + 1)
    # Coverage by enumeration: the new score is equally likely to have any rank among n + 1.
    covered = sum(new <= rank for new in range(1, n + 2))
    assert low <= covered / (n + 1) <= high


def test_order_statistic_2():
    assert paper.order_statistic([3.0, 1.0, 2.0], 3) == 3.0
    assert paper.order_statistic([3.0, 1.0, 2.0], 4) == math.inf


# Sections 3.1 to 3.3


def test_definition_3_1():
    scores = np.random.default_rng(0).random((6, 9))
    assert paper.quantile_of_quantiles(scores, 7, 4) == sorted(sorted(one)[6] for one in scores.tolist())[3]
    assert paper.quantile_of_quantiles([[0.1], [0.2, 0.3]], 2, 1) == 0.3
    assert paper.quantile_of_quantiles([[0.1], [0.2, 0.3]], 2, 2) == math.inf


@pytest.mark.parametrize(("m", "n"), PAIRS)
def test_theorem_3_2(m, n):
    """(5), literally, in rationals; by grouped totals; by rectangles (A.2); and as our integral."""
    for l, k in itertools.product(range(1, n + 1), range(1, m + 1)):
        exact = published_sum(l, k, m, n)
        assert paper.qq_coverage_sum(l, k, m, n) == exact
        assert float(qq_coverage(l, k, m, n)) == pytest.approx(float(exact), abs=1e-12)
        assert paper.qq_coverage_by_rectangles(l, k, m, n) == pytest.approx(float(exact), abs=1e-12)


@pytest.mark.parametrize(("l", "k", "m", "n"), [(18, 4, 5, 20), (9, 9, 10, 10), (36, 3, 4, 40)])
def test_theorem_3_2_beyond_enumeration(l, k, m, n):
    exact = float(paper.qq_coverage_sum(l, k, m, n))
    assert float(qq_coverage(l, k, m, n)) == pytest.approx(exact, abs=1e-12)
    assert paper.qq_coverage_by_rectangles(l, k, m, n) == pytest.approx(exact, abs=1e-12)


def test_ties_only_add_to_coverage_12():
    """All scores on three points: every data set of 2 agents of 2, and its coverage."""
    mass = [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)]
    for l, k in itertools.product((1, 2), (1, 2)):
        covered = Fraction(0)
        for data in itertools.product(range(3), repeat=4):
            threshold = paper.quantile_of_quantiles([data[:2], data[2:]], l, k)
            covered += math.prod(mass[i] for i in data) * sum(mass[: int(threshold) + 1])
        assert covered > paper.qq_coverage_sum(l, k, 2, 2)


@pytest.mark.parametrize(("m", "n"), [(1, 8), (8, 1), (2, 5), (3, 4), (4, 3)])
def test_algorithm_1_6(m, n):
    """The least M that is at least the level, also where a level is met exactly; of equal pairs any."""
    table = {(l, k): paper.qq_coverage_sum(l, k, m, n) for l in range(1, n + 1) for k in range(1, m + 1)}
    exact = {value for value in table.values() if value.denominator <= 10**6}
    for wanted in exact | {Fraction(1, 2), Fraction(9, 10), Fraction(7, 10)}:
        reached = [value for value in table.values() if value >= wanted]
        found = best_qq(m, n, wanted)
        if not reached:
            assert found is None
        else:
            assert table[found.ranks[0], found.k] == min(reached)
            assert found.coverage == pytest.approx(float(min(reached)), abs=1e-13)
            replies = [RandomRankReply.fixed(size, l) for size, l in zip([n] * m, found.ranks, strict=True)]
            assert order_statistic_coverage(replies, found.k) == pytest.approx(found.coverage, abs=1e-13)


def test_equal_pairs_of_algorithm_1():
    """M(3, 2) = 1/2 at (m, n) = (3, 5), by symmetry: a tie with the level itself, which quadrature may miss."""
    assert paper.qq_coverage_sum(3, 2, 3, 5) == Fraction(1, 2)
    assert best_qq(3, 5, 0.5).coverage == 0.5


@pytest.mark.parametrize("m", [9, 29, 99, 999])
@pytest.mark.parametrize("alpha", ["0.1", "0.25", "0.3"])
def test_one_score_each_is_split_conformal(m, alpha):
    """The particular case n = 1; and one agent with m scores."""
    assert best_qq(m, 1, 1 - Fraction(alpha)).k == paper.conformal_rank(m, alpha)
    assert best_qq(1, m, 1 - Fraction(alpha)).ranks == (paper.conformal_rank(m, alpha),)
    unequal = best_qq_unequal([1] * m, 1 - Fraction(alpha), [1] * m)
    assert unequal.k == paper.conformal_rank(m, alpha)


def test_many_scores_each():
    """The particular case n -> inf: any k will do in the limit, at a rate of 1/sqrt(n); before, small k cover less."""
    for n in (10**4, 10**8):
        coverage = qq_coverage(paper.conformal_rank(n, 0.1), np.arange(1, 6), 5, n)
        assert np.abs(coverage - 0.9).max() < 0.5 / math.sqrt(n)
        assert coverage[0] < 0.9 < coverage[-1]


FIGURE_1 = [
    (5, 10, 0.92563, 0.91961, 0.99091),
    (5, 20, 0.91369, 0.90990, 0.94762),
    (5, 50, 0.90568, 0.90398, 0.91961),
    (5, 100, 0.90287, 0.90200, 0.90990),
    (20, 10, 0.90478, 0.90498, 0.99091),
    (20, 20, 0.90081, 0.90249, 0.94762),
    (20, 50, 0.90040, 0.90100, 0.91961),
    (20, 100, 0.90029, 0.90050, 0.90990),
]


@pytest.mark.parametrize(("m", "n", "exact", "centralised", "one_agent"), FIGURE_1)
def test_figure_1(m, n, exact, centralised, one_agent):
    found = paper.upper_bounds(m, n, 0.1)
    assert (found.exact, found.centralised, found.one_agent) == pytest.approx((exact, centralised, one_agent), abs=5e-6)
    assert found.constant == pytest.approx((m * n + 1) * (found.exact - 0.9))
    best = best_qq(m, n, 0.9)
    if m * n <= 100:
        rational = paper.qq_coverage_sum(best.ranks[0], best.k, m, n)
        assert found.exact == pytest.approx(float(rational), abs=1e-12)


@pytest.mark.parametrize(("m", "n", "constant"), [(2, 1267, 1.85), (3, 1276, 2.54), (5, 405, 3.88), (10, 683, 5.54)])
def test_the_constant_of_the_conjecture_grows_with_m(m, n, constant):
    """Section 3.3 conjectures M(l*, k*) <= 1-alpha + O(1/(mn+1))."""
    assert paper.upper_bounds(m, n, 0.1).constant == pytest.approx(constant, abs=5e-3)


@pytest.mark.parametrize(("m", "n", "cells"), [(5, 10, 4), (10, 20, 19)])
def test_figures_6_and_7(m, n, cells):
    """How many cells reach .9; and A.2: M is non-decreasing in l and in k."""
    table = paper.qq_coverage_table(m, n)
    assert table.shape == (n, m)
    assert int((table >= 0.9).sum()) == cells
    assert (np.diff(table, axis=0) > 0).all()
    assert (np.diff(table, axis=1) > 0).all()
    l, k = n - 1, m // 2
    assert table[l - 1, k - 1] == pytest.approx(float(paper.qq_coverage_sum(l, k, m, n)), abs=1e-12)


# Section 3.4


@pytest.mark.parametrize(("m", "n"), [(5, 200), (20, 50)])
def test_theorem_3_3_is_implied_by_the_exact_law(m, n):
    """The published deviation is a bound on the exact failure probability."""
    for l in (int(0.9 * n), int(0.93 * n), int(0.97 * n)):
        k = paper.published_conditional_k(l, m, n, 0.9)
        if k is not None:
            for delta in (0.5, 0.2, 0.05, 0.01):
                level = 0.9 - paper.published_deviation(m, n, delta)
                assert conditional_coverage_failure([RandomRankReply.fixed(n, l)] * m, k, level) <= delta
                bound = paper.conditional_miscoverage(l, k, m, n, 0.1, delta)
                assert bound == pytest.approx(1 - level, abs=1e-14)


def test_theorem_3_3_by_mpmath():
    with mpmath.workdps(40):
        for m, n, delta in [(5, 200, "0.05"), (1, 1, "0.5"), (100, 10, "0.001")]:
            exact = mpmath.sqrt(mpmath.log(1 / mpmath.mpf(delta)) / (2 * m * n))
            assert paper.published_deviation(m, n, delta) == pytest.approx(float(exact), rel=1e-12)


def test_theorem_3_3_asks_for_the_product():
    """Algorithm 1's own pair does not have it: the theorem is not about (l*, k*)."""
    best = best_qq(5, 200, 0.9)
    assert paper.published_conditional_k(best.ranks[0], 5, 200, 0.9) == 5
    with refused(InputError, "l k"):
        paper.conditional_miscoverage(best.ranks[0], best.k, 5, 200, 0.1, 0.05)
    assert paper.published_conditional_k(179, 5, 200, 0.9) is None


# Section 3.5 and Appendix C.3


def test_proposition_3_4_of_five_silos_with_half_as_large_scores():
    """True coverage .457, M = .9137, E[TV] = .552, and the bound .361 that follows."""
    best = best_qq(5, 20, 0.9)
    l, k = best.ranks[0], best.k
    found = different_silos.non_iid_bound(HALVES, l, k, 20)
    assert found.iid_coverage == pytest.approx(0.9137, abs=5e-5)
    assert found.distance == pytest.approx(0.552, abs=5e-4)
    assert found.coverage_at_least == pytest.approx(0.361, abs=5e-4)
    true = different_silos.non_iid_coverage(HALVES, l, k, 20)
    assert true == pytest.approx(0.457, abs=5e-4)
    # A threshold for scores half as large covers half of what it should, exactly: U/2 has half the threshold of U.
    assert true == pytest.approx(float(paper.qq_coverage_sum(l, k, 5, 20) / 2), abs=1e-12)
    replies = [RandomRankReply.fixed(20, l)] * 5
    assert different_silos.loss_of_equal_treatment(replies) == pytest.approx(
        0.0, abs=1e-15
    )  # about sizes, not distributions


def test_proposition_3_4_in_rationals():
    """One and two silos of one half as large score each: polynomials, with kinks at 1/3 and 1/2."""
    one = different_silos.non_iid_bound(HALVES[:1], 1, 1, 1)
    assert one.distance == pytest.approx(0.25, abs=1e-14)  # E|min(2U, 1) - U|
    # For u < 1/2, p = 2u, q = u: TV = q0 - p0 where p1 > q1 (u < 1/3), else p2 - q2; for u >= 1/2, 1 - u^2.
    third, half = Fraction(1, 3), Fraction(1, 2)

    def first(u):  # integral of (1-u)^2 - (1-2u)^2 = 2u - 3u^2
        return u**2 - u**3

    def second(u):  # of 4u^2 - u^2
        return u**3

    def third_part(u):  # of 1 - u^2
        return u - u**3 / 3

    exact = first(third) + second(half) - second(third) + third_part(Fraction(1)) - third_part(half)
    assert different_silos.non_iid_bound(HALVES[:2], 1, 1, 1).distance == pytest.approx(float(exact), abs=1e-12)


def test_proposition_3_4_loses_nothing_for_iid_silos():
    found = different_silos.non_iid_bound([lambda u: u] * 4, 9, 3, 10)
    assert found.distance == 0.0
    assert found.coverage_at_least == pytest.approx(float(paper.qq_coverage_sum(9, 3, 4, 10)), abs=1e-12)


@pytest.mark.parametrize(
    "silos",
    [
        [lambda u: u, lambda u: u**2, lambda u: np.sqrt(u)],
        [lambda u: np.minimum(2 * u, 1), lambda u: np.maximum(2 * u - 1, 0), lambda u: u],
        [lambda u: u**3, lambda u: u**3, lambda u: (u > 0.5) * 1.0],
    ],
)
@pytest.mark.parametrize("auxiliary", [None, lambda u: 1 - u, lambda u: 2 * u % 1])
def test_proposition_3_4_is_a_lower_bound(silos, auxiliary):
    """Remark C.2: for whatever auxiliary scores, dependent on the others or not."""
    for k in (1, 2, 3):
        true = different_silos.non_iid_coverage(silos, 9, k, 10)
        assert different_silos.non_iid_bound(silos, 9, k, 10, auxiliary).coverage_at_least <= true + 1e-9


def test_remark_c_2_the_conjectured_choice_is_good_and_not_the_best():
    """Test and auxiliary scores need not be equal: with F~(S~) = 2 F(S) mod 1 the bound of the five silos is .431."""
    same = different_silos.non_iid_bound(HALVES, 19, 3, 20)
    doubled = different_silos.non_iid_bound(HALVES, 19, 3, 20, lambda u: 2 * u % 1)
    assert same.coverage_at_least == pytest.approx(0.3613, abs=5e-5)
    assert doubled.coverage_at_least == pytest.approx(0.4313, abs=5e-5)
    # On the lower half both laws are one; on the upper half all silos are below, and P(not all) = M(l, m) in the mean.
    assert doubled.distance == pytest.approx(float(paper.qq_coverage_sum(19, 5, 5, 20) / 2), abs=1e-12)
    assert different_silos.non_iid_bound(HALVES, 19, 3, 20, lambda u: 1 - u).distance > same.distance


def test_total_variation_by_enumeration():
    rng = np.random.default_rng(1)
    p, q = rng.random((2, 4, 3))
    for node in range(3):
        laws = []
        for one in (p[:, node], q[:, node]):
            law = [0.0] * 5
            for outcome in itertools.product((0, 1), repeat=4):
                law[sum(outcome)] += math.prod(x if o else 1 - x for x, o in zip(one.tolist(), outcome, strict=True))
            laws.append(law)
        exact = sum(abs(a - b) for a, b in zip(*laws, strict=True)) / 2
        assert different_silos.total_variation(p, q)[node] == pytest.approx(exact, abs=1e-14)


def test_theorem_c_3_both_sides():
    """The upper side holds, and two agents meet it exactly; the lower one holds with 0.24 here, and not with 1/4."""
    rng = np.random.default_rng(3)
    for m in (2, 3, 6, 20):
        p = np.hstack([rng.random((m, 100)), rng.random((m, 100)) ** 8, (rng.random((m, 20)) < 0.5) * 1.0])
        distance = different_silos.distance_to_binomial(p)
        assert (distance <= different_silos.ehm_bound(p) + 1e-14).all()
        assert (distance >= different_silos.ehm_lower_bound(p, 0.24) - 1e-14).all()
        if m == 2:
            np.testing.assert_allclose(distance, different_silos.ehm_bound(p), atol=1e-13)
    near = np.tile([0.45, 0.55], 500)[:, None]
    ratio = different_silos.distance_to_binomial(near) / different_silos.ehm_lower_bound(near, 1.0)
    assert ratio == pytest.approx(1 / math.sqrt(2 * math.pi * math.e), abs=2e-3)


def test_theorem_c_3_by_mpmath():
    p = [0.3, 0.7, 0.95]
    with mpmath.workdps(30):
        exact = [mpmath.mpf(x) for x in p]
        q = sum(exact) / 3
        a = 1 - q**4 - (1 - q) ** 4
        b = 1 - sum(x * (1 - x) for x in exact) / (3 * q * (1 - q))
        assert float(different_silos.ehm_bound(p)) == pytest.approx(float(a * b * 3 / 4), rel=1e-12)
        assert float(different_silos.ehm_lower_bound(p, 0.125)) == pytest.approx(float(a * b / 8), rel=1e-12)
    assert different_silos.ehm_bound(np.zeros((3, 1))) == 0
    assert different_silos.ehm_bound(np.full((3, 1), 0.5)) == 0


def test_loss_of_equal_treatment():
    """Unequal sizes, one distribution: whatever k is, the coverage of equal replies of the same mean is as near."""
    replies = [RandomRankReply.fixed(n, l) for n, l in [(20, 18), (50, 46), (200, 181)]]
    loss = different_silos.loss_of_equal_treatment(replies)
    assert 0 < loss <= different_silos.loss_of_equal_treatment(replies, exact=False)
    x, w = np.polynomial.legendre.leggauss(400)
    mean = np.mean([reply.below((x + 1) / 2) for reply in replies], axis=0)
    for k in (1, 2, 3):
        as_if_equal = 1 - poisson_binomial(np.tile(mean, (3, 1)))[:, k:].sum(axis=1) @ w / 2
        assert abs(order_statistic_coverage(replies, k) - as_if_equal) <= loss + 1e-9


# Section 4 and Appendix C.4


@pytest.mark.parametrize(("rank", "epsilon"), [(6, 1.0), (8, 4.0), (5, 2.0)])
def test_algorithm_2_is_what_a_silo_draws(rank, epsilon):
    """By mpmath from the text's formula; and the mechanism of `fedcp2-qq` has that law."""
    counts, n = [3, 0, 4, 2, 1], 10
    q = max(rank / n, 0.5)
    with mpmath.workdps(30):
        exact_q = max(mpmath.mpf(rank) / n, mpmath.mpf(1) / 2)
        weights = [max(sum(counts[:b]) / exact_q, sum(counts[b + 1 :]) / (1 - exact_q)) for b in range(5)]
        sensitivity = max(1 / exact_q, 1 / (1 - exact_q))
        terms = [mpmath.exp(-epsilon * w / (2 * sensitivity)) for w in weights]
        exact = [float(term / sum(terms)) for term in terms]
    np.testing.assert_allclose(paper.quantile_law(counts, q, epsilon), exact, rtol=1e-12)
    assert paper.quantile_sensitivity(q) == pytest.approx(float(sensitivity), rel=1e-12)
    mechanism = published_quantile(n, rank, epsilon)
    exponents = mechanism.utilities(np.array(counts)) / mechanism.scale
    np.testing.assert_allclose(np.exp(exponents) / np.exp(exponents).sum(), exact, rtol=1e-12)


@pytest.mark.parametrize("q", [0.5, 0.8])
def test_algorithm_2_keeps_9(q):
    """Every pair of histograms that differ in one score: no ratio above exp(epsilon)."""
    worst, epsilon = 0.0, 1.5
    histograms = [h for h in itertools.product(range(6), repeat=3) if sum(h) == 5]
    for one in histograms:
        law = paper.quantile_law(one, q, epsilon)
        for i, j in itertools.permutations(range(3), 2):
            if one[i]:
                other = list(one)
                other[i], other[j] = other[i] - 1, other[j] + 1
                worst = max(worst, float(np.log(law / paper.quantile_law(other, q, epsilon)).max()))
    assert 0.5 * epsilon < worst <= epsilon + 1e-12


@pytest.mark.parametrize("q", [0.5, 0.75, 0.9])
def test_lemma_c_4(q):
    """Whatever the scores, the share at or below the output falls short with probability at most delta."""
    n, bins, epsilon = 12, 4, 6.0
    for counts in itertools.product(range(n + 1), repeat=bins):
        if sum(counts) == n and not counts[1] % 3:
            law, share = paper.quantile_law(counts, q, epsilon), np.cumsum(counts) / n
            for delta in (0.5, 0.1, 0.01):
                short = q - paper.quantile_shortfall(n, bins, epsilon, delta)
                assert law[share < short - 1e-12].sum() <= delta
    exact = 2 * mpmath.log(mpmath.mpf(100) / mpmath.mpf("0.05")) / 1000
    assert paper.quantile_shortfall(200, 100, 5.0, 0.05) == pytest.approx(float(exact), rel=1e-12)


@pytest.mark.parametrize(("m", "epsilon", "bins", "gamma"), [(5, 5.0, 100, 0.02), (10, 0.7, 30, 0.4), (1, 2.0, 8, 0.9)])
def test_correction_10(m, epsilon, bins, gamma):
    with mpmath.workdps(40):
        share = 1 - (1 - mpmath.mpf(gamma) / 10) ** (mpmath.mpf(1) / m)
        exact = mpmath.ceil(2 / mpmath.mpf(epsilon) * mpmath.log(bins / share))
    assert paper.private_correction(m, 0.1, epsilon, bins, gamma) == int(exact)


@pytest.mark.parametrize("gamma", [0.001, 0.02, 0.3, 0.9])
def test_theorem_4_1(gamma):
    """(20), (21): M(l, k)(1 - gamma alpha) is at least 1 - alpha, for the least M that allows it."""
    found = paper.private_ranks(3, 30, 0.2, 8.0, 20, gamma)
    table = {(l, k): paper.qq_coverage_sum(l, k, 3, 30) for l in range(20, 31) for k in (1, 2, 3)}
    share = Fraction(gamma) * Fraction(1, 5)
    enough = {pair: value for pair, value in table.items() if value * (1 - share) >= Fraction(4, 5)}
    l, k = min(enough, key=enough.get)
    l_cor = paper.private_correction(3, 0.2, 8.0, 20, gamma)
    if l + l_cor > 30:
        assert found is None
    else:
        assert (found.l, found.k, found.correction) == (l, k, l_cor)
        assert found.quantile == pytest.approx((l + l_cor) / 30)
        assert found.coverage_at_least == pytest.approx(float(enough[l, k] * (1 - share)), abs=1e-12)
        assert found.coverage_at_least >= 0.8


def test_quantile_is_never_below_the_median():
    assert paper.private_ranks(3, 400, 0.7, 20.0, 10, 0.05).quantile == 0.5
    assert paper.private_ranks(3, 20, 0.1, 0.1, 10, 0.05) is None


@pytest.mark.slow(unless=("2-10-0.1-1.0-100", "3-40-0.3-2.0-10"))
@pytest.mark.parametrize(
    ("m", "n", "alpha", "epsilon", "bins"),
    [(5, 200, 0.1, 10.0, 100), (5, 200, 0.1, 5.0, 100), (3, 40, 0.3, 2.0, 10), (2, 10, 0.1, 1.0, 100)],
)
def test_choosing_gamma_by_all_pairs(m, n, alpha, epsilon, bins):
    """Every pair (l, k) at the largest gamma that selects it; no gamma of a grid does better."""
    table = paper.qq_coverage_table(m, n)
    options = []
    for (l, k), value in np.ndenumerate(table):
        gamma = (1 - (1 - alpha) / value) / alpha
        if 1e-12 < gamma < 1:
            rank = l + 1 + paper.private_correction(m, alpha, epsilon, bins, gamma * (1 - 1e-12))
            options += [table[rank - 1, k]] if rank <= n else []
    found = paper.best_gamma(m, n, alpha, epsilon, bins)
    assert (found is None) == (not options)
    if found is not None:
        assert found.compensation == pytest.approx(min(options), abs=1e-13)
        again = paper.private_ranks(m, n, alpha, epsilon, bins, found.gamma)
        assert (again.l + again.correction, again.k) == (found.rank, found.k)
        for gamma in np.geomspace(1e-4, 0.99, 25):
            other = paper.private_ranks(m, n, alpha, epsilon, bins, float(gamma))
            if other is not None:
                aimed = table[other.l + other.correction - 1, other.k - 1]
                assert aimed >= found.compensation - 1e-13


@pytest.mark.parametrize(("epsilon", "compensation"), [(10.0, 0.91497), (5.0, 0.92567), (1.0, 0.99900)])
def test_published_compensation_at_its_best(epsilon, compensation):
    assert best_published(5, 200, 0.1, epsilon, 100).compensation == pytest.approx(compensation, abs=5e-6)


@pytest.mark.slow
def test_figure_2_falls_as_n_and_epsilon_grow():
    by_n = [paper.best_gamma(10, n, 0.1, 5.0, 100).compensation for n in (50, 200, 1000)]
    by_epsilon = [paper.best_gamma(10, 200, 0.1, epsilon, 100).compensation for epsilon in (1.0, 5.0, 20.0)]
    assert by_n == sorted(by_n, reverse=True)
    assert by_epsilon == sorted(by_epsilon, reverse=True)
    assert min(by_n + by_epsilon) >= 0.9


def test_remark_4_2():
    assert paper.loss_of_pipeline(0.5, 2.0) == paper.loss_of_pipeline(2.0, 0.5) == 2.0


# Appendix A


@pytest.mark.parametrize(
    ("sizes", "ranks"),
    [((2, 3), (2, 2)), ((1, 3, 4), (1, 2, 4)), ((2, 1, 5), (3, 1, 6)), ((1, 1), (1, 2)), ((3,), (4,))],
)
def test_unequal_sizes_a_1(sizes, ranks):
    replies = [RandomRankReply.fixed(n, l) for n, l in zip(sizes, ranks, strict=True)]
    for k in range(1, len(sizes) + 1):
        exact = subset_sum(sizes, ranks, k)
        assert paper.unequal_coverage_sum(sizes, ranks, k) == exact
        assert order_statistic_coverage(replies, k) == pytest.approx(float(exact), abs=1e-12)


def test_unequal_ranks_a_1():
    """l_j = ceil((1-alpha)(n_j+1)), in exact arithmetic, and the least k that reaches the level."""
    sizes = [12, 25, 40]
    ranks = paper.unequal_ranks(sizes, 0.2)
    assert ranks == tuple(math.ceil(Fraction(4, 5) * (n + 1)) for n in sizes)
    chosen = best_qq_unequal(sizes, 0.8, ranks)
    table = [paper.unequal_coverage_sum(sizes, ranks, k) for k in (1, 2, 3)]
    assert chosen.k == 1 + next(i for i, value in enumerate(table) if value >= Fraction(4, 5))
    assert chosen.coverage == pytest.approx(float(table[chosen.k - 1]), abs=1e-12)


@pytest.mark.parametrize("r", [0, 3, 7, 12])
def test_rectangles_11(r):
    """Against all ways to draw r of 12 from three urns of four."""
    for low, high in [((0, 0, 0), (4, 4, 4)), ((2, 2, 0), (4, 4, 1)), ((1, 0, 0), (3, 2, 2))]:
        ways = sum(
            math.prod(math.comb(4, i) for i in drawn)
            for drawn in itertools.product(*[range(a, b + 1) for a, b in zip(low, high, strict=True)])
            if sum(drawn) == r
        )
        found = paper.rectangle_probability(np.array(low), np.array(high), 4, r)
        assert found == pytest.approx(ways / math.comb(12, r), abs=1e-12)


@pytest.mark.parametrize(("k", "m", "n"), [(1, 1, 1), (3, 5, 2), (40, 50, 30), (999, 1000, 7)])
def test_proposition_a_1(k, m, n):
    with mpmath.workdps(40):
        part = 1 / mpmath.mpf(n)
        exact = mpmath.gamma(k + part) / mpmath.gamma(k) * mpmath.gamma(m + 1) / mpmath.gamma(m + 1 + part)
    assert paper.largest_scores_coverage(k, m, n) == pytest.approx(float(exact), rel=1e-12)
    assert float(qq_coverage(n, k, m, n)) == pytest.approx(float(exact), abs=1e-12)
    if m * n <= 50:
        assert float(paper.qq_coverage_sum(n, k, m, n)) == pytest.approx(float(exact), abs=1e-12)


@pytest.mark.parametrize("n", [1, 5, 20])
def test_proposition_a_1_in_the_limit(n):
    """Coverage tends to 1-alpha at rate 1/m; before that it can be less, as m = 10 and n = 1 show."""
    for m in (10**3, 10**5):
        k = paper.largest_scores_k(m, n, 0.1)
        assert k == math.ceil(m * Fraction(9, 10) ** n)
        assert abs(paper.largest_scores_coverage(k, m, n) - 0.9) < 20 / m
    assert paper.qq_coverage_sum(1, paper.largest_scores_k(10, 1, 0.1), 10, 1) == Fraction(9, 11)
    assert paper.largest_scores_k(5, 1000, 0.1) == 1


@pytest.mark.parametrize(("k", "n"), [(1, 1), (1, 7), (6, 3), (40, 11)])
def test_lemma_c_5(k, n):
    with mpmath.workdps(40):
        part = 1 / mpmath.mpf(n)
        exact = sum(mpmath.gamma(j + part) / mpmath.gamma(j + 1) for j in range(k))
        closed = n * k * mpmath.gamma(k + part) / mpmath.gamma(k + 1)
    assert paper.gamma_sum(k, n) == pytest.approx(float(exact), rel=1e-12)
    assert float(closed) == pytest.approx(float(exact), rel=1e-12)


@pytest.mark.parametrize(("l", "n"), [(1, 1), (3, 8), (8, 8), (17, 30)])
def test_lemma_c_1(l, n):
    """Scores of density 2x on [0, 1], F(x) = x^2, in rationals; the density is the derivative."""
    for x in (Fraction(1, 4), Fraction(1, 2), Fraction(9, 10)):
        below = x**2
        cdf = sum(math.comb(n, i) * below**i * (1 - below) ** (n - i) for i in range(l, n + 1))
        density = l * math.comb(n, l) * 2 * x * below ** (l - 1) * (1 - below) ** (n - l)
        assert float(paper.order_statistic_cdf(float(below), l, n)) == pytest.approx(float(cdf), rel=1e-12)
        found = paper.order_statistic_density(float(below), 2 * float(x), l, n)
        assert float(found) == pytest.approx(float(density), rel=1e-12)


def test_sums_take_any_number_of_records():
    """The polynomials are whole numbers in one base: no coefficient runs into the next."""
    for sizes, ranks in [([60, 70], [50, 66]), ([1, 90, 3], [1, 80, 2])]:
        replies = [RandomRankReply.fixed(n, l) for n, l in zip(sizes, ranks, strict=True)]
        for k in (1, 2):
            exact = float(coverage_fraction(sizes, ranks, k))
            assert order_statistic_coverage(replies, k) == pytest.approx(exact, abs=1e-12)
