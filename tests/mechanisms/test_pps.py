"""Private Prediction Sets, versions 1 to 3: levels, noise quantiles, true loss, coverage, defects."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from confide.guarantee import RecordCount
from confide.mechanisms.noisy_histogram import noisy_histogram_for
from confide.mechanisms.pps import PrivatePredictionSets, adjusted_level, optimal_gamma, pps_for
from confide.mechanisms.pps_laplace import (
    ROUNDING,
    STEPS,
    LaplaceHistogram,
    noise_bound,
    noise_closed_form,
    optimal_bins,
    pps_laplace_for,
    uniform_threshold,
    walk_stays_below,
)
from confide.selection import noisy_counts
from confide.selection.draws import laplace
from confide.support import scale_for
from tests.exact import assert_drawn_from, histograms, mechanism_law, replaced, worst_coverage, worst_log_ratio

TENTH = Fraction(1, 10)


def at_level(q, epsilon=1.0):
    return PrivatePredictionSets(q, 0.01, scale_for(2 * max(q.numerator, q.denominator - q.numerator), epsilon))


def formula(h, q, epsilon, factor):
    """P(j) proportional to exp(-epsilon factor w_j / 2), w_j = max(A_j/q, (n-B_j)/(1-q)), as printed."""
    B = np.cumsum(h)
    w = np.maximum((B - np.array(h)) / q, (B[-1] - B) / (1 - q))
    p = np.exp(-epsilon * factor * (w - w.min()) / 2)
    return p / p.sum()


def test_level_is_rounded_up_by_less_than_one_part_in_ten_million():
    for n, epsilon, m in [(1000, 1.0, 1000), (321, 2.5, 77), (40_000, 0.2, 5000)]:
        exact = adjusted_level(n, TENTH, epsilon, m, optimal_gamma(n, TENTH, epsilon, m))
        assert 0 <= float(pps_for(n, TENTH, epsilon, m).level) - exact < 1e-7


@pytest.mark.parametrize(("q", "exact"), [(Fraction(9, 10), 0.5556), (Fraction(97, 100), 0.5155), (Fraction(1), 0.5)])
def test_waste(q, exact):
    """Claimed epsilon 1, true loss 1/(2q): about 0.55. By exact enumeration."""
    mechanism = at_level(q)
    worst = worst_log_ratio(lambda h: mechanism_law(mechanism, h), histograms(30, 3), replaced)
    assert mechanism.claimed == 1.0
    assert worst <= mechanism.replace_one + 1e-9
    assert worst == pytest.approx(exact, abs=1e-4)


@pytest.mark.parametrize(("q", "loss"), [(0.9, 0.5556), (0.97, 1.7182), (0.995, 10.0503)])
def test_published_code_leaks(q, loss):
    """The authors' code has min(alpha, 1-alpha) where the paper has min(q, 1-q): its loss is alpha/(2q(1-q)) epsilon.

    At claimed epsilon 1 and alpha .1 that is 1.72 at q = .97 and 10 at q = .995. Exact enumeration.
    """
    worst = worst_log_ratio(lambda h: formula(h, q, 1.0, 0.1), histograms(30, 3), replaced)
    assert worst == pytest.approx(loss, abs=1e-4)
    assert worst == pytest.approx(0.1 / (2 * q * (1 - q)), rel=1e-4)


@pytest.mark.slow
def test_stated_loss_is_a_bound_for_more_bins_and_any_epsilon():
    for q in (Fraction(1, 5), Fraction(9, 10), Fraction(1)):
        for epsilon in (0.3, 2.0):
            mechanism = at_level(q, epsilon)
            assert worst_log_ratio(lambda h, m=mechanism: mechanism_law(m, h), histograms(8, 5), replaced) <= (
                mechanism.replace_one + 1e-9
            )
            assert mechanism.replace_one <= mechanism.claimed <= epsilon


@pytest.mark.long
def test_sampler_matches_the_law():
    mechanism, counts = at_level(Fraction(4, 5), 1.5), [3, 0, 5, 1, 2, 0, 1]
    assert_drawn_from(mechanism, counts, mechanism_law(mechanism, counts), 5000)


@pytest.mark.parametrize("q", [Fraction(2, 5), Fraction(4, 5), Fraction(15, 16), Fraction(1)])
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_certified_coverage_holds_for_every_multiset(q, epsilon):
    """Exact leave-one-out coverage is never below the certified one, also for capped levels."""
    mechanism = at_level(q, epsilon)
    for n, m in [(7, 4), (5, 5)]:
        claimed = float(mechanism.certified(Fraction(99, 100), m, RecordCount(n)))
        assert worst_coverage(mechanism, n, m) >= claimed - 1e-12


@pytest.mark.parametrize(("n", "epsilon", "m"), [(400, 2.0, 100), (1000, 1.0, 1000), (5000, 0.3, 1000)])
def test_published_claim_follows_from_the_lemma(n, epsilon, m):
    """Uncapped, the random-rank lemma certifies more than the 1 - alpha that the paper claims."""
    mechanism = pps_for(n, TENTH, epsilon, m)
    assert mechanism.level < 1
    assert mechanism.certified(Fraction(9, 10), m, RecordCount(n)) == Fraction(9, 10)
    assert mechanism.certified(Fraction(1), m, RecordCount(n)) > Fraction(9, 10)


def test_capped_level_undercovers():
    """If the level is capped at 1 the claim fails: with n=50, epsilon=0.1, uniform scores have mean coverage 0.70."""
    mechanism = pps_for(50, TENTH, 0.1, 1000)
    assert mechanism.level == 1
    scores, edges = (np.arange(50) + 0.5) / 50, np.append(np.arange(1, 1000) / 1000, np.inf)
    counts = np.diff(np.searchsorted(scores, edges, side="right"), prepend=0)
    coverage = mechanism_law(mechanism, counts) @ np.minimum(edges, 1)
    assert 0.65 < coverage < 0.75
    assert mechanism.certified(Fraction(9, 10), 1000, RecordCount(50)) < Fraction(7, 10)
    assert mechanism.coverage_at_most(50, 1000) == 1.0  # too few records


@pytest.mark.slow
def test_noise_of_the_mechanism_stays_within_the_quantile():
    """The noise that OpenDP draws, on its lattice."""
    m, fails, scale = 40, 0.05, 2.0
    bound, over = noise_bound(m, fails, scale), 0
    for _ in range(25):
        noise = noisy_counts(np.zeros(20 * m, np.int64), scale * STEPS).reshape(20, m) / STEPS
        over += int(np.count_nonzero(np.abs(np.cumsum(noise, axis=1)).max(axis=1) > bound))
    assert stats.binomtest(over, 500, fails, alternative="greater").pvalue > 1e-6


def test_probabilities_too_small_for_the_sum_use_the_closed_form():
    """Many bins need no other method: a walk of a million steps is nearly a Brownian motion."""
    assert noise_bound(100, 1e-10, 2.0) == noise_closed_form(100, 1e-10, 2.0)
    assert noise_bound(100, 1e-8, 2.0) < noise_closed_form(100, 1e-8, 2.0) / 1.2
    brownian = math.sqrt(2e6) * stats.norm.isf(0.01 / 4)  # P(max |W| > x) is 4 P(N > x) up to 1e-16
    assert noise_bound(10**6, 0.01, 1.0) == pytest.approx(brownian, rel=2e-3)


@pytest.mark.slow
def test_sums_over_eigenvalues_are_probabilities():
    """Between 0 and 1, rising with t, falling with m, within the margin reserved for rounding."""
    t = np.linspace(0.2, 60, 120)
    last = np.ones(len(t))
    for m in (1, 2, 3, 10, 100, 10_000):
        p = walk_stays_below(m, t)
        assert (np.abs(p - 0.5) < 0.5 + ROUNDING).all()
        assert (np.diff(p) > -ROUNDING).all()
        assert (p < last + ROUNDING).all()
        last = p


@pytest.mark.slow
def test_loss_is_what_is_claimed():
    """Two counts change by one: OpenDP's map on the lattice, and the law of the release in a small case."""
    for epsilon in (0.1, 1.0, 3.3):
        mechanism = pps_laplace_for(100_000, TENTH, epsilon, 10)
        assert laplace(mechanism.scale * STEPS).map(2 * STEPS) <= epsilon * (1 + 1e-12)
        assert epsilon * (1 - 1e-12) < mechanism.replace_one <= epsilon
    mechanism = LaplaceHistogram(Fraction(3, 4), 0.01, 1.0)
    worst = worst_log_ratio(lambda h: two_bin_law(mechanism, h), histograms(12, 2), replaced)
    assert worst <= mechanism.replace_one + 1e-6
    assert worst > 0.49 * mechanism.replace_one  # of two bins only one enters


def two_bin_law(mechanism, h):
    """Two candidates: the first is released if h_2 + Lap <= n (1 - level)."""
    first = stats.laplace(scale=mechanism.scale).cdf(sum(h) * (1 - float(mechanism.level)) - h[1])
    return np.array([first, 1 - first])


@pytest.mark.parametrize(
    ("level", "counts", "chosen"),
    [("3/4", [75, 25], 0), ("3/4", [74, 26], 1), ("3/4", [10, 60, 5, 25], 2), ("3/4", [0, 0, 74, 26], 3)],
)
def test_without_noise_the_first_candidate_at_the_level_is_chosen(draw_with, level, counts, chosen):
    draw_with(noisy_counts=lambda counts, scale: counts)
    assert LaplaceHistogram(Fraction(level), 0.01, 1.0).choose(np.array(counts)) == chosen


@pytest.mark.long
def test_mechanism_matches_its_law():
    mechanism = LaplaceHistogram(Fraction(3, 4), 0.01, 1.0)
    assert_drawn_from(mechanism, [9, 4], two_bin_law(mechanism, [9, 4]), 4000)


def test_the_law_of_the_rank_is_one():
    mechanism = pps_laplace_for(1000, TENTH, 1.0, 50)
    ranks, probabilities, bottom = mechanism.rank_law(1000, 50)
    assert len(ranks) == 1
    assert probabilities.sum() + bottom == pytest.approx(1)
    assert bottom == pytest.approx(mechanism.gamma / 100)
    ranks, probabilities, bottom = mechanism.rank_law(1, 50)  # the noise is larger than all ranks
    assert (len(ranks), len(probabilities), bottom) == (0, 0, 1.0)


def test_claim_holds_and_is_computed_again():
    mechanism = pps_laplace_for(2000, TENTH, 1.0, 40)
    assert mechanism.certified(Fraction(9, 10), 40, RecordCount(2000)) == Fraction(9, 10)
    lower = LaplaceHistogram(mechanism.level - Fraction(1, 100), mechanism.gamma, mechanism.scale)
    assert lower.certified(Fraction(9, 10), 40, RecordCount(2000)) < Fraction(9, 10)
    assert pps_laplace_for(100, TENTH, 1.0, 40) is None


def test_our_calibration_of_the_same_histogram_costs_less():
    """The last rule needs no gamma and no two-sided quantile: at most a tenth of the ranks."""
    for n, epsilon, m in [(2000, 1.0, 40), (5000, 1.0, 100), (5000, 10.0, 100)]:
        published = float(pps_laplace_for(n, TENTH, epsilon, m).level) * n - 0.9 * (n + 1)
        ours = n - noisy_histogram_for(Fraction(9, 10), epsilon, n).beyond - 0.9 * (n + 1)
        assert 0 < ours < published / 10


def test_upper_bound_is_theorem_3_or_less():
    """gamma alpha + (1 - gamma alpha)(...) at the level's own gamma, and smaller than failure probability + rest."""
    for n, epsilon, m in [(5000, 1.0, 65), (5000, 8.0, 232), (1000, 8.0, 89)]:
        mechanism = pps_laplace_for(n, TENTH, epsilon, m)
        fails, level = mechanism.gamma / 10, float(mechanism.level)
        over = noise_bound(m, fails, mechanism.scale)
        theorem = 0.9 + fails + (1 - fails) * (1 / (n + 1) + 2 * over / n)
        added = min(
            (level * n + noise_bound(m, f, mechanism.scale) + 1) / (n + 1) + f for f in np.geomspace(1e-4, 0.1, 13)
        )
        assert mechanism.coverage_at_most(n, m) <= theorem + 1e-6  # the level is rounded up
        assert mechanism.coverage_at_most(n, m) < added - 5e-4
    assert pps_laplace_for(1000, TENTH, 0.3, 10).coverage_at_most(1000, 10) == 1.0


@pytest.mark.long
@pytest.mark.parametrize(("n", "epsilon"), [(1000, 3.0), (1000, 8.0), (5000, 1.0), (5000, 10.0)])
def test_number_of_bins_has_the_least_excess_on_uniform_scores(n, epsilon):
    """With edges j/m no other number of bins has an excess, mean threshold - 0.9, that is 3 % smaller, at level 1e-6.

    Means over 20,000 public simulations for each; a direct simulation confirms them.
    """
    rng, chosen, runs = np.random.default_rng(5), optimal_bins(n, TENTH, epsilon, aligned=True), 1000
    tried = (np.geomspace(0.12, 2, 6) * (n * epsilon) ** (2 / 3)).astype(int).tolist()
    for m in (chosen, tried[3]):
        mechanism, edges = pps_laplace_for(n, TENTH, epsilon, m), np.arange(1, m + 1) / m
        bins, rows = np.ceil(rng.random((runs, n)) * m).astype(int) - 1, np.arange(runs)[:, None]
        counts = np.bincount((rows * m + bins).ravel(), minlength=runs * m).reshape(runs, m)
        noisy = counts + rng.laplace(scale=mechanism.scale, size=counts.shape)
        beyond = noisy.sum(axis=1, keepdims=True) - np.cumsum(noisy, axis=1)
        reached = n - beyond >= float(mechanism.level) * n
        reached[:, -1] = True
        direct = edges[np.argmax(reached, axis=1)]
        error = direct.std(ddof=1) * math.sqrt(1 / runs + 1 / 20_000)
        assert abs(uniform_threshold(n, TENTH, epsilon, m, 20_000, aligned=True) - direct.mean()) < 5.5 * error
    error = math.sqrt(2 / 20_000) * direct.std(ddof=1)
    ours = uniform_threshold(n, TENTH, epsilon, chosen, 20_000, aligned=True) - 0.9
    for m in tried:
        theirs = uniform_threshold(n, TENTH, epsilon, m, 20_000, aligned=True) - 0.9
        assert ours <= 1.03 * theirs + stats.norm.isf(1e-7) * error


@pytest.mark.long
def test_what_algorithm_5_gains_is_where_its_edges_lie():
    """36 bins have the edge 0.9167 just above the level, and 10 % less excess than 65; shifted, 10 % more."""
    fit, usual = optimal_bins(5000, TENTH, 1.0, aligned=True), optimal_bins(5000, TENTH, 1.0)
    assert fit == 36
    assert 50 < usual < 80  # 65 by the rule "the level and half a bin"

    def excess(m, aligned):
        return uniform_threshold(5000, TENTH, 1.0, m, 20_000, aligned=aligned) - 0.9

    assert excess(fit, True) < 0.95 * excess(usual, True)  # standard errors are below 0.0001
    assert excess(fit, False) > 1.05 * excess(usual, False)
    assert all(excess(usual, False) < 1.03 * excess(m, False) for m in (20, 36, 100, 200))
