"""Private Prediction Sets, version 1: the noise quantile, its closed form, coverage and loss."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import confide
from confide.mechanisms.noisy_histogram import noisy_histogram_for
from confide.mechanisms.pps_laplace import (
    STEPS,
    LaplaceHistogram,
    closed_form,
    noise_bound,
    optimal_bins,
    pps_laplace_for,
    simulated_bound,
)
from confide.selection.lattice_noise import laplace_map, noisy_counts
from tests.exact import histograms, replaced, worst_log_ratio

TENTH = Fraction(1, 10)


@pytest.mark.parametrize(("m", "fails"), [(20, 0.01), (100, 0.005), (100, 0.05)])
def test_noise_quantile_agrees_with_direct_simulation(m, fails):
    """Fresh walks exceed zeta n with probability at most gamma alpha, and not much less; exact binomial tests at 1e-6.

    The order statistic lies about 4.75 standard deviations of its count beyond the quantile, so the true probability
    is at least fails - 10 sqrt(fails/50000) but for the same level.
    """
    rng, bound, over = np.random.default_rng(77), simulated_bound(m, fails), 0
    for _ in range(20):
        walks = np.abs(np.cumsum(rng.laplace(size=(4000, m)), axis=1)).max(axis=1)
        over += int(np.count_nonzero(walks > bound))
    assert stats.binomtest(over, 80_000, fails, alternative="greater").pvalue > 1e-6
    least = fails - 10 * math.sqrt(fails / 50_000)
    assert stats.binomtest(over, 80_000, least, alternative="less").pvalue > 1e-6


def test_noise_of_the_mechanism_stays_within_the_quantile():
    """The noise that OpenDP draws, on its lattice."""
    m, fails, scale = 40, 0.05, 2.0
    bound, over = noise_bound(m, fails, scale), 0
    for _ in range(25):
        noise = noisy_counts(np.zeros(20 * m, np.int64), scale * STEPS).reshape(20, m) / STEPS
        over += int(np.count_nonzero(np.abs(np.cumsum(noise, axis=1)).max(axis=1) > bound))
    assert stats.binomtest(over, 500, fails, alternative="greater").pvalue > 1e-6


@pytest.mark.parametrize("m", [1, 3, 10, 200])
@pytest.mark.parametrize("fails", [0.001, 0.05])
def test_closed_form_is_above_the_quantile(m, fails):
    """Corollary 1 is valid, and costs 1.3 times or more."""
    assert closed_form(m, fails, 1.0) > 1.3 * simulated_bound(m, fails)
    if m >= math.log(4 / fails):
        n, epsilon = 1000, 0.5
        printed = 4 * math.sqrt(2 * m * math.log(4 / fails)) / (n * epsilon)
        assert closed_form(m, fails, 2 / epsilon) / n == pytest.approx(printed)


def test_what_cannot_be_simulated_uses_the_closed_form():
    assert simulated_bound(100, 1e-6) is None
    assert simulated_bound(10**6, 0.01) is None
    assert noise_bound(10**6, 0.01, 2.0) == closed_form(10**6, 0.01, 2.0)


def test_loss_is_what_is_claimed():
    """Two counts change by one: OpenDP's map on the lattice, and the law of the release in a small case."""
    for epsilon in (0.1, 1.0, 3.3):
        mechanism = pps_laplace_for(100_000, TENTH, epsilon, 10)
        assert laplace_map(2 * STEPS, mechanism.scale * STEPS) <= epsilon * (1 + 1e-12)
        assert epsilon * (1 - 1e-12) < mechanism.replace_one <= epsilon
    mechanism = LaplaceHistogram(Fraction(3, 4), 0.01, 1.0)
    worst = worst_log_ratio(lambda h: two_bin_law(mechanism, h), histograms(12, 2), replaced)
    assert worst <= mechanism.replace_one + 1e-6
    assert worst > 0.49 * mechanism.replace_one  # of two bins only one enters


def two_bin_law(mechanism, h):
    """Two candidates: the first is released if h_2 + Lap <= n (1 - level)."""
    first = stats.laplace(scale=mechanism.scale).cdf(sum(h) * (1 - float(mechanism.level)) - h[1])
    return np.array([first, 1 - first])


def test_mechanism_matches_its_law():
    mechanism, counts = LaplaceHistogram(Fraction(3, 4), 0.01, 1.0), np.array([9, 4])
    draws = np.bincount([mechanism.choose(counts) for _ in range(4000)], minlength=2)
    assert stats.chisquare(draws, 4000 * two_bin_law(mechanism, counts)).pvalue > 1e-6


def test_claim_holds_and_is_computed_again():
    mechanism = pps_laplace_for(2000, TENTH, 1.0, 40)
    assert mechanism.certified(Fraction(9, 10), 40, 2000, None) == Fraction(9, 10)
    lower = LaplaceHistogram(mechanism.level - Fraction(1, 100), mechanism.gamma, mechanism.scale)
    assert lower.certified(Fraction(9, 10), 40, 2000, None) < Fraction(9, 10)
    assert pps_laplace_for(100, TENTH, 1.0, 40) is None


@pytest.mark.slow
def test_coverage_on_uniform_scores():
    """Coverage is at least .9 by an exact binomial test at level 1e-6; the upper bound holds."""
    rng, candidates, hits, covered = np.random.default_rng(8), confide.Candidates.unit(40), 0, []
    for _ in range(400):
        points = rng.random(2001)
        released = confide.calibrate(
            points[1:], 0.1, 1.0, mechanism="pps-laplace", neighbors="replace_one", candidates=candidates
        )
        hits += points[0] <= released.threshold
        covered.append(min(released.threshold, 1.0))
    assert stats.binomtest(hits, 400, 0.9, alternative="less").pvalue > 1e-6
    assert np.mean(covered) <= released.coverage_at_most() + 1 / 39


def test_our_calibration_of_the_same_histogram_costs_less():
    """The random rank needs no gamma and no two-sided quantile: half the ranks and less."""
    for n, epsilon, m in [(2000, 1.0, 40), (5000, 1.0, 100), (5000, 10.0, 100)]:
        published = float(pps_laplace_for(n, TENTH, epsilon, m).level) * n - 0.9 * (n + 1)
        ours = float(noisy_histogram_for(Fraction(9, 10), epsilon, m, n, 1).offset) - 0.9 * (n + 1)
        assert 0 < ours < published / 2


def test_number_of_bins_is_of_the_published_order():
    for n, epsilon in [(1000, 1.0), (5000, 1.0), (5000, 0.3)]:
        order = (n * epsilon) ** (2 / 3)
        assert order / 10 <= optimal_bins(n, TENTH, epsilon) <= 2 * order


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "epsilon"), [(1000, 1.0), *(pytest.param(5000, epsilon, marks=pytest.mark.long) for epsilon in (1.0, 10.0))]
)
def test_number_of_bins_minimises_the_mean_threshold_on_uniform_scores(n, epsilon):
    """Algorithm 5's objective by direct simulation: no other number of bins is better by 1 % of a threshold.

    Differences of means over 200 common data sets, judged with an error at level 1e-6.
    """
    rng, chosen = np.random.default_rng(5), optimal_bins(n, TENTH, epsilon)
    tried = sorted({chosen, *np.geomspace(10, 1000, 12).astype(int).tolist()})
    scores, means = np.sort(rng.random((200, n)), axis=1), {}
    for m in tried:
        mechanism, edges = pps_laplace_for(n, TENTH, epsilon, m), np.arange(1, m + 1) / m
        if mechanism is None:
            continue
        counts = np.array([np.diff(np.searchsorted(row, edges, side="right"), prepend=0) for row in scores])
        noisy = counts + rng.laplace(scale=mechanism.scale, size=counts.shape)
        beyond = noisy.sum(axis=1, keepdims=True) - np.cumsum(noisy, axis=1)
        reached = n - beyond >= float(mechanism.level) * n
        reached[:, -1] = True
        means[m] = edges[np.argmax(reached, axis=1)]
    assert len(means) >= 4
    for thresholds in means.values():
        gain = means[chosen] - thresholds
        assert gain.mean() - stats.norm.isf(1e-6) * gain.std(ddof=1) / math.sqrt(200) <= 0.01
