"""Private Prediction Sets, versions 1 to 3, by number: against mpmath, fractions, enumeration and exact laws."""

import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from scipy import stats

from confide.mechanisms import pps_laplace
from confide.mechanisms.pps import PrivatePredictionSets, optimal_bins, pps_for
from confide.mechanisms.pps_laplace import LaplaceHistogram, uniform_threshold
from confide.papers import private_prediction_sets as pps
from confide.papers import private_prediction_sets_v1 as v1
from confide.support import scale_for
from tests.draws import always
from tests.exact import histograms, law, replaced

TENTH = Fraction(1, 10)

# n, epsilon, m*; q~, Theorem 3, `coverage_at_most` + 1/m; mean coverage on uniform scores, by thousands of exact laws
# each, within .0002
TABLE = [
    (1000, 1.0, 145, ".92508", "1.211", 1.0, 0.9448),
    (1000, 10.0, 212, ".90385", ".9383", 0.9187, 0.9062),
    (5000, 1.0, 308, ".90596", ".9641", 0.9313, 0.9097),
    (5000, 8.0, 4291, ".90114", ".9097", 0.9052, 0.9015),
    (30_000, 5.0, 19_306, ".90032", ".9029", 0.9016, 0.9004),
    (30_000, 1.0, 2023, ".90124", ".9126", 0.9064, 0.9018),
]


def exact_gamma(n, epsilon, alpha=TENTH):
    """gamma* in 50 digits, the smaller root of (9); it lies in (0, 1) in all of these cases."""
    a = mp.mpf(alpha.numerator) / alpha.denominator
    half = a * (1 - a) * mp.mpf(epsilon) * (n + 1) / 4 + a
    root = (half - mp.sqrt(half**2 - a**2)) / a**2
    assert 0 < root < 1
    return root


def exact_level(n, epsilon, m, gamma, alpha=TENTH):
    a = mp.mpf(alpha.numerator) / alpha.denominator
    return (n + 1) * (1 - a) / (n * (1 - gamma * a)) + 2 / (mp.mpf(epsilon) * n) * mp.log(m / (gamma * a))


def exact_theorem_3(n, epsilon, m, p_max, gamma, alpha=TENTH):
    a, q = mp.mpf(alpha.numerator) / alpha.denominator, exact_level(n, epsilon, m, gamma, alpha)
    noise = 2 * (1 + max(q / (1 - q), 1)) * mp.log(m / (gamma * a)) / ((n + 1) * mp.mpf(epsilon))
    return 1 - (1 - gamma) * a + (1 - gamma * a) * (2 * p_max + noise)


@pytest.fixture(autouse=True)
def fifty_digits():
    with mp.workdps(50):
        yield


@pytest.mark.parametrize(("n", "epsilon", "m", "level", "bound", "ours", "mean"), TABLE)
def test_level_and_theorem_3_at_the_published_settings(n, epsilon, m, level, bound, ours, mean):
    gamma = exact_gamma(n, epsilon)
    q, theorem = exact_level(n, epsilon, m, gamma), exact_theorem_3(n, epsilon, m, mp.mpf(1) / m, gamma)
    assert abs(pps.optimal_gamma(n, TENTH, epsilon) - gamma) <= 1e-12 * gamma
    assert abs(pps.adjusted_level(n, TENTH, epsilon, m) - q) <= 1e-12
    assert abs(pps.published_upper_bound(n, TENTH, epsilon, m, 1 / m) - theorem) <= 1e-12
    assert f"{float(q):.5f}".lstrip("0") == level
    assert f"{float(theorem):.{len(bound.split('.')[1])}f}".lstrip("0") == bound
    assert min(1.0, pps_for(n, TENTH, epsilon, m).coverage_at_most(n, m) + 1 / m) == pytest.approx(ours, abs=6e-5)
    assert mean <= ours <= float(theorem)


@pytest.mark.parametrize(("n", "epsilon", "m", "level", "bound", "ours", "mean"), TABLE)
def test_mean_coverage_on_uniform_scores(n, epsilon, m, level, bound, ours, mean):
    """The mean of the exact law of Algorithm 2, over simulated scores; it fails by chance once in a million runs."""
    rng, q, edges = np.random.default_rng(5), pps.adjusted_level(n, TENTH, epsilon, m), np.arange(1, m + 1) / m
    covered = []
    for _ in range(40):
        counts = np.bincount((rng.random(n) * m).astype(int), minlength=m)
        covered.append(pps.quantile_law(counts, q, epsilon) @ edges)
    error = stats.t.isf(5e-7, 39) * np.std(covered, ddof=1) / np.sqrt(40)
    assert abs(np.mean(covered) - mean) <= error + 1e-4
    assert error < 0.015


@pytest.mark.parametrize("alpha", [Fraction(1, 100), TENTH, Fraction(1, 2)])
@pytest.mark.parametrize(
    ("n", "epsilon", "m", "gamma"), [(50, 0.1, 1000, 0.5), (987, 2.5, 321, 1e-12), (9, 9.0, 2, 0.9)]
)
def test_equation_3_for_any_gamma(alpha, n, epsilon, m, gamma):
    exact = exact_level(n, epsilon, m, mp.mpf(gamma), alpha)
    assert abs(pps.adjusted_level(n, alpha, epsilon, m, gamma) - exact) <= 1e-12 * exact


@pytest.mark.parametrize(("n", "epsilon"), [(5, 0.1), (150, 0.1), (1000, 1.0), (30_000, 5.0)])
def test_equations_9_and_10(n, epsilon):
    """The roots solve (9); gamma* is the least of (3) on (0, 1) wherever (3) is below 1, and has no m in it."""
    a = mp.mpf(1) / 10
    for root in pps.gamma_roots(n, TENTH, epsilon):
        terms = (
            a**2 * mp.mpf(root) ** 2,
            (a * (1 - a) * mp.mpf(epsilon) * (n + 1) / 2 + 2 * a) * mp.mpf(root),
            mp.mpf(1),
        )
        assert abs(terms[0] - terms[1] + terms[2]) <= 1e-12 * max(terms)
    gamma, grid = pps.optimal_gamma(n, TENTH, epsilon), np.geomspace(1e-12, 0.999, 400)
    for m in (2, 100, 10**6):
        levels = [pps.adjusted_level(n, TENTH, epsilon, m, float(g)) for g in grid]
        assert min(pps.adjusted_level(n, TENTH, epsilon, m, gamma), 1) <= min(*levels, 1) + 1e-12
    assert (gamma == 1e-12) == (epsilon * (n + 1) < 18)  # 2 (1-alpha)/alpha: no root in (0, 1)


def test_theorem_2_is_proved_between_one_half_and_one():
    assert pps.coverage_is_proved(1000, TENTH, 1.0, 1000)
    assert not pps.coverage_is_proved(50, TENTH, 0.1, 1000)  # cut to 1
    assert 1 < pps.adjusted_level(2682, TENTH, 0.1, 10_000) < 1.02
    assert not pps.coverage_is_proved(2682, TENTH, 0.1, 10_000)  # by a hair
    assert not pps.coverage_is_proved(1000, "0.95", 0.3, 10_000)


@pytest.mark.parametrize(
    ("alpha", "n", "epsilon", "m", "covers"), [("0.9", 1000, 0.3, 10_000, 0.05), ("0.95", 200, 1.0, 10**6, 0.004)]
)
def test_theorem_2_fails_below_one_half(alpha, n, epsilon, m, covers):
    """alpha in (1/2, 1) as printed is no condition for the theorem: here coverage is far below 1 - alpha.

    A share 1.1 q~ of the scores lies in bin m-1, the others in bin m, and all other bins are empty. The mean of the
    exact law over the binomial number of scores in bin m-1.
    """
    q, k = pps.adjusted_level(n, alpha, epsilon, m), np.arange(n + 1)
    assert q < 0.5
    empty, last_but_one, last = q * n / (1 - q), q * (n - k) / (1 - q), k.astype(float)  # min(q, 1-q) w_j
    best = np.minimum(last_but_one, last)
    weight = [np.exp(-epsilon * (cost - best) / 2) for cost in (empty, last_but_one, last)]
    total = (m - 2) * weight[0] + weight[1] + weight[2]
    coverage = stats.binom.pmf(k, n, 1.1 * q) @ ((1.1 * q * weight[1] + weight[2]) / total)
    assert coverage < covers < 1 - float(alpha)
    few = pps.quantile_law([0, 0, 0, 40, n - 40], q, epsilon)  # the same law as the library's, for five bins
    np.testing.assert_allclose(few[:3], weight[0][40] / (3 * weight[0] + weight[1] + weight[2])[40], rtol=1e-9)


@pytest.mark.slow(unless="q4")
@pytest.mark.parametrize("q", [Fraction(7, 2**24), Fraction(1, 5), Fraction(1, 2), Fraction(9, 10), Fraction(1)])
def test_weights_and_law_of_algorithm_2(q):
    """Weights against rationals, the law against the exponential of rationals, and against the installed mechanism."""
    epsilon, installed = (
        0.75,
        PrivatePredictionSets(q, 0.1, scale_for(2 * max(q.numerator, q.denominator - q.numerator), 0.75)),
    )
    for h in histograms(6, 4):
        reached = [sum(h[: j + 1]) for j in range(4)]
        left, right = [b - c for b, c in zip(reached, h, strict=True)], [6 - b for b in reached]
        if q < 1:
            exact = [max(Fraction(a) / q, Fraction(b) / (1 - q)) for a, b in zip(left, right, strict=True)]
            np.testing.assert_allclose(pps.weights(h, float(q)), [float(w) for w in exact], rtol=1e-14)
            cost = [min(q, 1 - q) * w for w in exact]
        else:
            cost = [Fraction(b) for b in right]
        terms = [mp.exp(-mp.mpf(epsilon) * c.numerator / c.denominator / 2) for c in cost]
        found = pps.quantile_law(h, float(q), epsilon)
        assert max(abs(p - t / sum(terms)) for p, t in zip(found.tolist(), terms, strict=True)) <= 1e-14
        utilities = installed.utilities(np.array(h, dtype=np.int64))
        np.testing.assert_allclose(law(utilities, installed.scale), found, rtol=1e-12)


@pytest.mark.slow(unless="4.0-0.95")
@pytest.mark.parametrize("q", [0.3, 0.5, 0.8, 0.95])
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_lemma_1_for_every_histogram(q, epsilon):
    """Both deviations, each with probability 1 - delta, by enumeration; and their formula."""
    n, m = 9, 4
    for delta in (0.5, 0.1, 0.01):
        low = pps.least_share_at_or_below(n, q, epsilon, m, delta)
        high = pps.largest_share_below(n, q, epsilon, m, delta)
        log, one = 2 * mp.log(m / mp.mpf(delta)) / (n * mp.mpf(epsilon)), mp.mpf(1)
        assert abs(low - (mp.mpf(q) - max((1 - mp.mpf(q)) / mp.mpf(q), one) * log)) <= 1e-12
        assert abs(high - (mp.mpf(q) + max(mp.mpf(q) / (1 - mp.mpf(q)), one) * log)) <= 1e-12 * high
        for h in histograms(n, m):
            p, reached = pps.quantile_law(h, q, epsilon), np.cumsum(h)
            assert p[reached / n < low].sum() <= delta
            assert p[(reached - np.array(h)) / n > high].sum() <= delta
    assert pps.largest_share_below(n, 1.0, epsilon, m, 0.1) == np.inf


@pytest.mark.slow
@pytest.mark.parametrize("q", [0.3, 0.8])
def test_equation_4_for_every_histogram(q):
    n, m, epsilon = 9, 4, 4.0
    for delta in (0.5, 0.01):
        excess = pps.weight_excess(q, epsilon, m, delta)
        exact = 2 * max(1 / mp.mpf(q), 1 / (1 - mp.mpf(q))) * mp.log(m / mp.mpf(delta)) / epsilon
        assert abs(excess - exact) <= 1e-12 * exact
        for h in histograms(n, m):
            w = pps.weights(h, q)
            assert w.min() <= n + 1e-12
            assert pps.quantile_law(h, q, epsilon)[w >= w.min() + excess].sum() <= delta
    assert pps.weight_excess(1.0, epsilon, m, 0.1) == np.inf


@pytest.mark.parametrize(("n", "epsilon", "m", "level", "bound", "ours", "mean"), TABLE)
def test_equation_5(n, epsilon, m, level, bound, ours, mean):
    """The rank by its definition, in 50 digits, and what (5) asks of its mean."""
    gamma, a = exact_gamma(n, epsilon), mp.mpf(1) / 10
    rank = pps.lower_bound_rank(n, TENTH, float(gamma))
    short = 2 / mp.mpf(epsilon) * mp.log(m / (gamma * a))
    assert rank == mp.ceil(n * exact_level(n, epsilon, m, gamma) - short)
    assert mp.mpf(rank) / (n + 1) >= (1 - a) / (1 - gamma * a)
    assert pps.beta_of_quantile(n, Fraction(rank, n))[0] == rank


@pytest.mark.slow(unless=("0.5", "0.9", "q3"))
@pytest.mark.parametrize("q", ["0.25", "0.5", "0.9", Fraction(2, 3)])
def test_lemma_2(q):
    """The Beta law is that of the uniform order statistic; on five atoms F(F^-1(q)) lies between it and it + p_max."""
    n, masses = 12, np.array([0.1, 0.3, 0.05, 0.35, 0.2])
    a, b = pps.beta_of_quantile(n, q)
    rank = -(-n * Fraction(q) // 1)
    assert (a, b) == (rank, n - rank + 1)
    reached = np.cumsum(masses).round(12)
    # P(Z_(a) <= atom j) = P(Bin(n, F_j) >= a), in rationals
    chance = [float(sum(_binomial(n, i, Fraction(str(f))) for i in range(a, n + 1))) for f in reached.tolist()]
    for u in np.linspace(0, 1, 201):
        below = max((c for f, c in zip(reached, chance, strict=True) if f <= u), default=0.0)
        assert below <= stats.beta.cdf(u, a, b) + 1e-12
        assert below >= stats.beta.cdf(u - masses.max(), a, b) - 1e-12
    assert pps.beta_of_quantile(100, "0.9")[0] == 90  # not 91, as in floats


def _binomial(n, i, p):
    return (
        mp.binomial(n, i)
        * (mp.mpf(p.numerator) / p.denominator) ** i
        * (1 - mp.mpf(p.numerator) / p.denominator) ** (n - i)
    )


@pytest.mark.parametrize(("n", "epsilon", "m", "level", "bound", "ours", "mean"), TABLE[1:])
def test_equations_6_to_8_make_theorem_3(n, epsilon, m, level, bound, ours, mean):
    gamma, a, p_max = exact_gamma(n, epsilon), mp.mpf(1) / 10, mp.mpf(1) / m
    q = exact_level(n, epsilon, m, gamma)
    log, factor = mp.log(m / (gamma * a)), max(q / (1 - q), 1)
    steps = pps.upper_bound_steps(n, TENTH, epsilon, m, 1 / m)
    rank = mp.ceil(n * (q + 2 * factor * log / (mp.mpf(epsilon) * n)))
    assert steps.rank == rank
    assert abs(steps.quantile - (rank / (n + 1) + p_max)) <= 1e-12
    eight = (1 - a) / (1 - gamma * a) + 2 * (1 + factor) * log / ((n + 1) * mp.mpf(epsilon))
    assert abs(steps.printed_quantile - eight) <= 1e-12
    assert abs(steps.coverage - (gamma * a + (1 - gamma * a) * (rank / (n + 1) + 2 * p_max))) <= 1e-12
    # (8) leaves out the ceiling: it is below the rank's share, by less than 1/(n+1)
    assert 0 < rank / (n + 1) - eight < mp.mpf(1) / (n + 1)
    printed = pps.published_upper_bound(n, TENTH, epsilon, m, 1 / m)
    assert abs(printed - (gamma * a + (1 - gamma * a) * (eight + 2 * p_max))) <= 1e-12
    rigorous = pps.rigorous_upper_bound(n, TENTH, epsilon, m, 1 / m)
    if 1 / m >= 1 / (n + 1):
        assert rigorous <= printed
    assert ours - 6e-5 <= rigorous <= printed + 1 / (n + 1)


@pytest.mark.parametrize(("n", "m"), [(6, 3), (8, 4)])
def test_the_rigorous_theorem_3_holds_for_every_multiset(n, m):
    """Exact leave-one-out coverage of every multiset is at most the bound with its largest bin as p_max."""
    alpha, epsilon, gamma = Fraction(4, 5), 200.0, 0.05
    q = pps.adjusted_level(n, alpha, epsilon, m, gamma)
    assert q < 1
    laws = {h: pps.quantile_law(h, q, epsilon) for h in histograms(n, m)}
    sharp = 0
    for h in histograms(n + 1, m):
        covered = sum(c * laws[tuple(v - (i == b) for i, v in enumerate(h))][b:].sum() for b, c in enumerate(h) if c)
        bound = pps.rigorous_upper_bound(n, alpha, epsilon, m, max(h) / (n + 1), gamma)
        sharp += bound < 1
        assert covered / (n + 1) <= bound + 1e-12
    assert sharp > 5


def test_the_upper_bounds_say_nothing_above_level_one():
    assert pps.published_upper_bound(50, TENTH, 0.1, 1000, 0.001) == np.inf
    assert pps.rigorous_upper_bound(50, TENTH, 0.1, 1000, 0.001) == 1.0


def test_corollary_1_and_its_rate():
    """Theorem 3 at m = n epsilon and gamma = 1/m; times n epsilon over the logarithm it stays bounded."""
    assert pps.suggested_bins(30_000, 5.0, 0.25) == 37_500
    for n, epsilon in [(10_000, 1.0), (5000, 8.0)]:
        m = int(n * epsilon)
        exact = exact_theorem_3(n, epsilon, m, mp.mpf(2) / m, mp.mpf(1) / m)
        assert abs(pps.simplified_upper_bound(n, TENTH, epsilon, density=2.0) - exact) <= 1e-12
    sizes = 10 ** np.arange(5, 12)
    excess = np.array([pps.simplified_upper_bound(int(n), TENTH, 1.0) - 0.9 for n in sizes])
    scaled = excess * sizes / np.log(sizes / 0.1)
    # towards 2 (1 + .9/.1) 2 = 40, for log(m/(gamma alpha)) = 2 log n + log 10
    assert (scaled > 34).all()
    assert (scaled < 48).all()
    assert abs(scaled[-1] - 40) < 2


@pytest.mark.slow
@pytest.mark.parametrize(("n", "epsilon"), [(1000, 1.0), (1000, 10.0)])
def test_algorithm_5_and_the_exact_mean(n, epsilon):
    """m* minimises one random output; `optimal_bins` the mean: never worse in the mean, on the same scores."""
    first = pps.bins_and_gamma(n, TENTH, epsilon, np.random.default_rng(3), options=12)
    assert first == pps.bins_and_gamma(n, TENTH, epsilon, np.random.default_rng(3), options=12)
    assert first[1] == pps.optimal_gamma(n, TENTH, epsilon)
    tried = np.geomspace(1e2, 1e6, 12).astype(int)
    assert first[0] in tried
    best = optimal_bins(n, TENTH, epsilon, np.random.default_rng(3), options=12)
    scores, means = np.random.default_rng(3).random(n), {}
    for m in {first[0], best}:
        counts = np.bincount((scores * m).astype(int), minlength=m)
        q = pps.adjusted_level(n, TENTH, epsilon, m)
        means[m] = pps.quantile_law(counts, q, epsilon) @ (np.arange(1, m + 1) / m)
    assert means[best] <= means[first[0]] + 1e-9


def test_the_authors_grid_of_algorithm_5():
    m, _ = pps.bins_and_gamma(1000, TENTH, 1.0, np.random.default_rng(0), options=5, fewest=1e4)
    assert 10_000 <= m <= 1_000_000


# Figure 2 of version 3, read from the authors' vector file: epsilon, {n: q~}; the reading error is .001 to .002
FIGURE_2 = {
    1.0: {517: 0.962, 931: 0.937, 1680: 0.921, 3020: 0.914, 5430: 0.907, 9770: 0.904, 31_600: 0.901},
    10.0: {100: 0.943, 287: 0.916, 931: 0.905, 9770: 0.9005},
    0.1: {3820: 0.984, 7720: 0.947, 15_600: 0.922, 31_600: 0.912},
}


@pytest.mark.parametrize("epsilon", sorted(FIGURE_2))
def test_figure_2_of_version_3(epsilon):
    """(3) with gamma* at the m of the authors' grid, 1e4 to 1e6, gives the values that their plot file shows.

    Their m* is one random draw (Algorithm 5), so each value must lie between the levels of the grid's two ends.
    """
    for n, read in FIGURE_2[epsilon].items():
        low, high = (min(1.0, pps.adjusted_level(n, TENTH, epsilon, m)) for m in (10**4, 10**6))
        assert low - 0.0015 <= read <= high + 0.0015
        assert abs(pps.adjusted_level(n, TENTH, epsilon, 10_000) - read) <= 0.006
    assert pps.adjusted_level(1000, TENTH, 0.1, 10_000) > 1  # "1 up to n near 2500"
    assert pps.adjusted_level(1000, TENTH, 0.91, 10_000) == pytest.approx(0.937, abs=0.0015)
    assert pps.adjusted_level(1000, TENTH, 5.96, 10_000) == pytest.approx(0.908, abs=0.0015)


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
    chosen = pps_laplace.optimal_bins(n, TENTH, epsilon, aligned=True)
    assert uniform_threshold(n, TENTH, epsilon, chosen, aligned=True) < theirs
