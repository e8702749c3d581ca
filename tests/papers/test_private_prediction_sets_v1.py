"""Private Prediction Sets, version 1: each numbered statement against independent arithmetic."""

import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from scipy import stats

from confide.mechanisms.pps_laplace import LaplaceHistogram, optimal_bins, uniform_threshold
from confide.papers import private_prediction_sets_v1 as v1
from tests.draws import always
from tests.exact import histograms, replaced

TENTH = Fraction(1, 10)


def test_definition_1_is_replacement():
    for h in histograms(4, 3):
        near = {tuple(other) for other in replaced(h)} | {h}
        for other in histograms(4, 3):
            assert v1.are_neighbours(h, other) == (tuple(other) in near)
    assert not v1.are_neighbours([1, 2], [1, 3])


def test_algorithm_2_by_its_formula():
    """F~(s) = 1 - (1/n) sum_j noisy_j 1{s < e_j} at and between the edges, in fractions."""
    noisy, n = [Fraction(7, 2), Fraction(-1, 2), Fraction(5, 4), Fraction(1, 8)], 5
    edges = [Fraction(j, 4) for j in range(5)]
    found = v1.private_distribution([float(v) for v in noisy], n)
    for k, e in enumerate(edges):
        for s in (e, e + Fraction(1, 9)):
            want = 1 - sum(v for v, right in zip(noisy, edges[1:], strict=True) if s < right) / n
            assert found[min(k, 4)] == float(want)
    assert found.shape == (5,)
    assert found[-1] == 1.0


def test_algorithm_3_answers_as_the_mechanism_but_for_the_first_edge(draw_with):
    """(4) over the edges: the mechanism has the same rule and no edge at 0; a level above 1 is never reached."""
    mechanism, counts = LaplaceHistogram(Fraction(3, 4), 0.01, 1.0), np.array([30, 40, 20, 10])
    rng = np.random.default_rng(3)
    for _ in range(50):
        noisy = counts + rng.integers(-8, 9, 4)
        draw_with(noisy_counts=always(noisy * 2**20))
        assert (mechanism.choose(counts) + 1) / 4 == max(0.25, v1.calibrate(noisy, 100, 0.75))
    assert v1.calibrate([30, 40, 20, 10], 100, 1.01) == math.inf
    assert v1.calibrate([0, 0, 0, 10], 100, 0.75) == 0.0


def walks_inside(m, t):
    """P(max_(k<=m) |S_k| < t) by m integrations of sums of c x^p e^(r x), in 40 digits."""
    mp.mp.dps = 40
    t = mp.mpf(t)

    def primitive(terms):
        out = {}
        for (p, r), c in terms.items():
            if r == 0:
                out[p + 1, r] = out.get((p + 1, r), 0) + c / (p + 1)
            else:
                factor = c / r
                for q in range(p, -1, -1):
                    out[q, r] = out.get((q, r), 0) + factor
                    factor *= -mp.mpf(q) / r
        return out

    def at(terms, x):
        return sum(c * x**p * mp.e ** (r * x) for (p, r), c in terms.items())

    def shift(terms, rate):
        return {(p, r + rate): c for (p, r), c in terms.items()}

    # f is even; on x >= 0 the next one is (1/2)(e^-x (int_0^t e^-y f + int_0^x e^y f) + e^x int_x^t e^-y f).
    f = {(0, -1): mp.mpf(1) / 2}
    for _ in range(m - 1):
        down, up = primitive(shift(f, -1)), primitive(shift(f, 1))
        constant = at(down, t) - at(down, mp.mpf(0)) - at(up, mp.mpf(0))
        new = {}
        parts = [({(0, 0): constant}, -1), (up, -1), ({(0, 0): at(down, t)}, 1), ({k: -c for k, c in down.items()}, 1)]
        for terms, rate in parts:
            for key, c in shift(terms, rate).items():
                new[key] = new.get(key, 0) + c / 2
        f = new
    whole = primitive(f)
    return 2 * (at(whole, t) - at(whole, mp.mpf(0)))


@pytest.mark.parametrize("m", [1, 2, 3, 5, 9])
def test_theorem_2_exceedance_by_integration(m):
    """(3): the sum over eigenvalues against m integrations, at 1e-12."""
    for t in (0.5, 2.0, 9.0):
        assert v1.exceedance(1, m, 2.0, t) == pytest.approx(float(1 - walks_inside(m, t)), abs=1e-12)
        assert v1.exceedance(500, m, 0.4, t / 100) == pytest.approx(v1.exceedance(1, m, 2.0, t), abs=1e-12)


@pytest.mark.parametrize("m", [3, 36, 2000])
@pytest.mark.parametrize("nu", [0.05, 1e-3, 1e-5])
def test_theorem_2_zeta_is_the_smallest(m, nu):
    found = v1.zeta(5000, m, 1.0, nu)
    assert v1.exceedance(5000, m, 1.0, found) <= nu < v1.exceedance(5000, m, 1.0, found * (1 - 1e-6))


def test_theorem_2_zeta_by_simulation():
    """Simulated from above: fresh walks exceed it at most nu of the time, and it costs a few per cent more."""
    rng, m, nu = np.random.default_rng(77), 20, 0.01
    bound = v1.simulated_zeta(1, m, 2.0, nu, rng, walks=20_000)
    over = int((np.abs(np.cumsum(rng.laplace(size=(20_000, m)), axis=1)).max(axis=1) > bound).sum())
    assert stats.binomtest(over, 20_000, nu, alternative="greater").pvalue > 1e-6
    # The order statistic overshoots by some 10 standard deviations of its count at most, but for 1e-6.
    assert v1.zeta(1, m, 2.0, nu) < bound < v1.zeta(1, m, 2.0, nu - 10 * math.sqrt(nu / 20_000))
    assert v1.simulated_zeta(1, m, 2.0, 1e-6, rng) == v1.simulated_zeta(1, m, 2.0, 1e-5, rng, walks=2000) == math.inf


@pytest.mark.parametrize(("n", "alpha", "gamma"), [(5000, "1/10", 0.01), (37, "1/20", 0.5), (1000, "3/10", 1e-4)])
def test_theorem_2_level_and_coverage(n, alpha, gamma):
    """(4), and the end of the proof: (1-gamma alpha) ceil((n+1)(1-alpha)/(1-gamma alpha))/(n+1) >= 1-alpha."""
    mp.mp.dps = 40
    a, g = Fraction(alpha), Fraction(gamma)
    level = (n + 1) * (1 - a) / (n * (1 - g * a)) + Fraction(1, 64)
    assert v1.adjusted_level(n, a, gamma, 1 / 64) == pytest.approx(float(level), rel=1e-12)
    rank = math.ceil((level - Fraction(1, 64)) * n)
    assert v1.coverage_lower_bound(n, a, gamma) == pytest.approx(float((1 - g * a) * rank / (n + 1)), rel=1e-12)
    assert v1.coverage_lower_bound(n, a, gamma) >= 1 - float(a)


@pytest.mark.parametrize(
    ("n", "m", "epsilon", "gamma"), [(5000, 36, 1.0, 0.01), (1000, 10, 8.0, 0.2), (30000, 900, 0.1, 1e-3)]
)
def test_corollary_1_bounds_zeta_by_levy_and_bernstein(n, m, epsilon, gamma):
    """(6) in 40 digits; twice Bernstein's tail of the sum at (6) is gamma alpha, as in B.2; it is above zeta."""
    mp.mp.dps = 40
    found = v1.simplified_zeta(n, m, epsilon, TENTH, gamma)
    printed = 4 * mp.sqrt(2 * m * mp.log(4 / (mp.mpf(gamma) / 10))) / (n * mp.mpf(epsilon))
    assert found == pytest.approx(float(printed), rel=1e-12)
    nu, b = v1.subexponential_parameters(2 / epsilon)
    assert (nu, b) == pytest.approx((4 / epsilon, 2 * math.sqrt(2) / epsilon), rel=1e-12)
    assert 2 * v1.bernstein_tail(n * found, math.sqrt(m) * nu, b) == pytest.approx(gamma / 10, rel=1e-9)
    assert found > 1.3 * v1.zeta(n, m, epsilon, gamma / 10)


def test_corollary_1_holds_from_a_least_gamma():
    assert v1.simplified_zeta(1000, 6, 1.0, 0.1, 0.1) > 0  # 4 exp(-6)/alpha = .0992


def test_theorem_3_exactly():
    """The printed bound in fractions; the ceiling of (13) instead of (14) is never larger."""
    for n, a, g, z, p in [
        (5000, "1/10", 0.01, 0.01, 1 / 36),
        (60, "1/5", 0.25, 0.03125, 0.25),
        (999, "1/20", 0.1, 0.002, 0.01),
    ]:
        alpha, gamma, noise, mass = Fraction(a), Fraction(g), Fraction(z), Fraction(p)
        want = 1 - alpha + gamma * alpha + (1 - gamma * alpha) * (Fraction(1, n + 1) + mass + 2 * noise)
        assert v1.coverage_upper_bound(n, alpha, g, z, p) == pytest.approx(float(want), rel=1e-12)
        rank = math.ceil(n * ((n + 1) * (1 - alpha) / (n * (1 - gamma * alpha)) + 2 * noise))
        sharper = gamma * alpha + (1 - gamma * alpha) * min(1, Fraction(rank, n + 1) + mass)
        assert v1.coverage_upper_bound_by_rank(n, alpha, g, z, p) == pytest.approx(float(sharper), rel=1e-12)
        assert sharper <= want


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "epsilon", "m", "gamma", "bound"),
    [
        (1000, 8.0, 89, 0.01412537544622754, 0.9374),
        (5000, 1.0, 65, 0.0223872113856834, 0.949),
        (5000, 8.0, 232, 0.005011872336272725, 0.9133),
        (30000, 1.0, 191, 0.00794328234724282, 0.9158),
    ],
)
def test_theorem_3_values(n, epsilon, m, gamma, bound):
    """With the simulated zeta and even bins; the exact zeta makes all of them smaller."""
    simulated = v1.simulated_zeta(n, m, epsilon, gamma / 10, np.random.default_rng(20210212))
    assert v1.coverage_upper_bound(n, TENTH, gamma, simulated, 1 / m) == pytest.approx(bound, abs=2e-4)
    exact = v1.zeta(n, m, epsilon, gamma / 10)
    assert v1.coverage_upper_bound(n, TENTH, gamma, exact, 1 / m) < bound


def test_theorem_3_bounds_the_coverage_on_uniform_scores():
    """The mean coverage of the mechanism, simulated, is at most the bound and at least 1 - alpha."""
    n, m, epsilon = 5000, 36, 1.0
    mean = uniform_threshold(n, TENTH, epsilon, m, runs=4000, aligned=True)
    least = min(v1.coverage_upper_bound(n, TENTH, g, v1.zeta(n, m, epsilon, g / 10), 1 / m) for g in v1.GAMMAS)
    assert 0.9 + 0.01 < mean < least - 0.01  # the mean's standard error is .0002


def test_corollary_2_has_the_rate_of_its_statement():
    """m proportional to (n epsilon)^(2/3), gamma = 1/m: the excess keeps to the rate; -2/3 does not."""
    ratios = []
    for n in (10**3, 10**5, 10**7, 10**9):
        m = v1.balanced_bins(n, 1.0)
        a, z = 0.1, v1.zeta(n, m, 1.0, 0.1 / m)
        by_hand = v1.coverage_upper_bound(n, TENTH, 1 / m, z, 2.5 / m)
        assert v1.simplified_upper_bound(n, TENTH, 1.0, density=2.5) == by_hand
        rate = math.sqrt(math.log(n / a)) / n ** (2 / 3)
        assert v1.excess_rate(n, TENTH, 1.0) == pytest.approx(rate, rel=1e-12)
        ratios.append((by_hand - 0.9) / rate)
    assert max(ratios) < 1.2 * min(ratios)
    assert round((10**9) ** (-2 / 3)) == 0  # the slip: no bin at all


@pytest.mark.slow
@pytest.mark.parametrize("m", [1, 2, 7, 36, 400])
def test_lemma_1_levy(m):
    """The tail of the sum by its density in 30 digits, and Levy's inequality with the exact left-hand side."""
    mp.mp.dps = 30
    nu = m - mp.mpf(1) / 2
    for sd in (0.5, 2.0, 4.0):
        t = sd * math.sqrt(2 * m)
        if m <= 36:
            scale = mp.sqrt(mp.pi) * mp.gamma(m) * mp.mpf(2) ** nu
            density = lambda x: x**nu * mp.besselk(nu, x) / scale  # noqa: E731, B023
            want = 2 * mp.quad(density, [t, t + 5, t + 20, t + 60, t + 200])
            assert v1.sum_tail(m, t) == pytest.approx(float(want), abs=1e-12)
        assert v1.exceedance(1, m, 2.0, t) <= v1.levy_bound(m, t) == 2 * v1.sum_tail(m, t)


def test_lemma_2_holds_on_its_interval_and_not_far_beyond():
    mp.mp.dps = 40
    for b in (0.5, 1.0, 4.0):
        nu, width = v1.subexponential_parameters(b)
        assert (nu, width) == pytest.approx((2 * b, float(mp.sqrt(2) * b)), rel=1e-12)
        for share in np.linspace(-0.999, 0.999, 41):
            rate = share / width
            moment = mp.mpf(1) / (1 - mp.mpf(b) ** 2 * mp.mpf(rate) ** 2)
            assert v1.laplace_moment(b, rate) == pytest.approx(float(moment), rel=1e-12)
            bound = mp.e ** (2 * mp.mpf(b) ** 2 * mp.mpf(rate) ** 2)
            assert v1.moment_bound(nu, rate) == pytest.approx(float(bound), rel=1e-12)
            assert v1.laplace_moment(b, rate) <= v1.moment_bound(nu, rate) * (1 + 1e-15)
        assert v1.laplace_moment(b, 0.95 / b) > v1.moment_bound(nu, 0.95 / b)


def test_lemma_3_bernstein():
    """Its two regimes in 40 digits, meeting at nu^2/b; it bounds the tails of Laplace sums."""
    mp.mp.dps = 40
    for nu, b in [(2.0, math.sqrt(2)), (5.0, 0.3)]:
        for t in (0.0, 0.7, 2.0, 30.0, 200.0):
            near = t <= nu**2 / b
            want = 2 * mp.e ** (-(mp.mpf(t) ** 2) / (2 * mp.mpf(nu) ** 2) if near else -mp.mpf(t) / (2 * mp.mpf(b)))
            assert v1.bernstein_tail(t, nu, b) == pytest.approx(float(want), rel=1e-12)
        edge = nu**2 / b
        assert v1.bernstein_tail(edge, nu, b) == pytest.approx(v1.bernstein_tail(edge * (1 + 1e-12), nu, b), rel=1e-9)
    nu, b = v1.subexponential_parameters(1.0)
    for m in (1, 5, 40):
        for t in (0.1, 1.0, 5.0, 25.0, 120.0):
            assert v1.sum_tail(m, t) <= v1.bernstein_tail(t, math.sqrt(m) * nu, b)


@pytest.mark.parametrize("q", [Fraction(1, 2), Fraction(9, 10), Fraction(91, 100)])
def test_lemma_4_both_sides(q):
    """F(F^-1(q)) of a law on five points lies between Z and Z + p_max in distribution, exactly."""
    n, masses = 23, [Fraction(1, 10), Fraction(3, 10), Fraction(1, 20), Fraction(2, 5), Fraction(3, 20)]
    rank, rest = v1.beta_of_quantile(n, q)
    assert (rank, rest) == (math.ceil(n * q), n - math.ceil(n * q) + 1)
    beta, points = stats.beta(rank, rest), np.cumsum([float(p) for p in masses])
    at_most = stats.binom.sf(rank - 1, n, np.append(points[:-1], 1.0))  # P(F(F^-1(q)) <= point), as no larger is drawn
    for i, u in enumerate(points):
        before = at_most[i - 1] if i else 0.0
        assert before <= at_most[i] <= beta.cdf(u) + 1e-12  # never below Z: P(<= u) is largest at the points
        assert before >= beta.cdf(u - float(max(masses))) - 1e-12  # never above Z + p_max: smallest just before them


@pytest.mark.slow
def test_algorithm_5_by_a_loop():
    """The same draws by hand: n scores first, then noise for each m; the smallest output wins."""
    n, epsilon, bins = 800, 2.0, [15, 30, 60, 120]
    rng = np.random.default_rng(11)
    scores, outputs = rng.random(n), []
    for m in bins:
        gamma = min(v1.GAMMAS, key=lambda g: v1.adjusted_level(n, TENTH, g, v1.zeta(n, m, epsilon, g / 10)))
        level = v1.adjusted_level(n, TENTH, gamma, v1.zeta(n, m, epsilon, gamma / 10))
        counts = [sum((j / m < scores) & (scores <= (j + 1) / m)) for j in range(m)]
        noisy = counts + rng.laplace(scale=2 / epsilon, size=m)
        first = next(k for k in range(m + 1) if 1 - noisy[k:].sum() / n >= level)
        outputs.append((first / m, m, gamma))
    assert v1.optimal_bins(n, epsilon, TENTH, np.random.default_rng(11), bins=bins) == min(outputs)[1:]


@pytest.mark.long
def test_algorithm_5_is_a_matter_of_chance_where_means_are_not():
    """Twelve runs do not agree on m*; the choice by means costs no more than theirs on average."""
    n, epsilon = 1000, 3.0
    runs = [v1.optimal_bins(n, epsilon, TENTH, np.random.default_rng(seed))[0] for seed in range(12)]
    assert len(set(runs)) > 3
    theirs = np.mean([uniform_threshold(n, TENTH, epsilon, m, aligned=True) for m in runs])
    chosen = optimal_bins(n, TENTH, epsilon, aligned=True)
    assert uniform_threshold(n, TENTH, epsilon, chosen, aligned=True) < theirs
