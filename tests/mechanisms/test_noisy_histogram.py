"""The noisy histogram under the random-rank lemma: noise, the law of the walk, privacy, coverage."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import confide
from confide.guarantee.noise_walk import maximum, missed_by_last_rule
from confide.mechanisms.noisy_histogram import NoisyHistogram, noisy_histogram_for, optimal_bins
from confide.selection import noisy_counts
from confide.selection.selector import laplace_map
from tests.builders import slow
from tests.exact import added, assert_drawn_from, histograms, leave_one_out, replaced, worst_log_ratio


def unit_pmf(scale, reach):
    a = math.exp(-1 / scale)
    z = np.arange(-reach, reach + 1)
    return z, (1 - a) / (1 + a) * a ** np.abs(z)


def exact_law(mechanism, h, reach):
    """The output law by summing over all noise values up to `reach` in each bin."""
    z, p = unit_pmf(mechanism.scale, reach)
    m, unit = len(h), math.lcm(mechanism.rate.denominator, mechanism.offset.denominator)
    noise = np.stack(np.meshgrid(*[z] * m, indexing="ij"), axis=-1).reshape(-1, m)
    weight = np.prod(np.stack(np.meshgrid(*[p] * m, indexing="ij"), axis=-1).reshape(-1, m), axis=1)
    noisy = np.array(h) + noise
    total = noisy.sum(axis=1)
    n = total if mechanism.rate else np.full(len(total), sum(h))
    target = (mechanism.rate.numerator * unit // mechanism.rate.denominator) * (n + 1) + int(mechanism.offset * unit)
    reached = unit * (n[:, None] - (total[:, None] - np.cumsum(noisy, axis=1))) >= target[:, None]
    reached[:, -1] = True
    chosen = np.full(len(noisy), m - 1)
    for k in range(m - 2, -1, -1):
        chosen[reached[:, k] & (chosen == k + 1)] = k
    return np.bincount(chosen, weights=weight, minlength=m)


@pytest.mark.parametrize("scale", [0.4, *slow([1.0, 7.3])])
def test_installed_noise_matches_its_law(scale):
    """Chi-square at level 1e-6 of OpenDP's discrete Laplace sampler."""
    draws = noisy_counts(np.zeros(40_000, np.int64), scale)
    reach = math.ceil(scale * math.log(40_000 / 40))
    z, p = unit_pmf(scale, reach)
    observed = np.bincount(np.clip(draws, -reach, reach) + reach, minlength=len(z)).astype(float)
    wanted = p.copy()
    wanted[[0, -1]] /= 1 - math.exp(-1 / scale)  # the end cells contain the tails
    assert wanted.sum() == pytest.approx(1, abs=1e-12)
    assert stats.chisquare(observed, 40_000 * wanted).pvalue > 1e-6


@pytest.mark.parametrize("epsilon", [0.1, 0.7, 1.0, 3.3])
def test_scales_meet_opendp_privacy_map(epsilon):
    public = noisy_histogram_for(Fraction(1, 2), epsilon, 5, 10_000, 1)
    secret = noisy_histogram_for(Fraction(1, 2), epsilon, 5, None, 1)
    assert laplace_map(2, public.scale) <= epsilon * (1 + 1e-15)
    assert laplace_map(1, secret.scale) <= epsilon * (1 + 1e-15)
    assert epsilon * (1 - 1e-12) < public.replace_one <= epsilon
    assert epsilon * (1 - 1e-12) < secret.add_remove <= epsilon


@pytest.mark.slow
def test_maximum_of_the_walk_by_brute_force():
    """Two and three steps, all noise values."""
    for scale, steps in [(0.5, 2), (0.8, 3)]:
        z, p = unit_pmf(scale, 25)
        want = np.zeros(100)
        for values in itertools.product(range(len(z)), repeat=steps):
            walk = np.cumsum(z[list(values)])
            want[max(0, walk.max())] += math.prod(p[list(values)])
        got = maximum(scale, steps).law
        np.testing.assert_allclose(got[:12], want[:12], atol=1e-9)


def test_truncation_bounds_are_used_when_the_grid_is_too_short():
    """The tail of the law is in `leaked` and `tail_mean`: E[M] from a short grid is not smaller."""
    full = maximum(1.0, 50)
    short = type(full)(full.law[:20], float(full.law[20:].sum()), full.above(19.0))
    for x in (0.0, 5.0, 18.5):
        assert short.above(x) >= full.above(x) - 1e-12


@pytest.mark.parametrize("scale", [0.5, *slow([1.0])])
def test_privacy_by_enumeration(scale):
    """The privacy loss of the release is at most that of the noisy counts, under both adjacencies."""
    public = NoisyHistogram(Fraction(0), Fraction(3), scale)
    reach = math.ceil(34 * scale)
    worst = worst_log_ratio(lambda h: exact_law(public, h, reach), histograms(4, 3), replaced)
    assert worst <= public.replace_one + 1e-6
    secret = NoisyHistogram(Fraction(2, 3), Fraction(1), scale)
    starts = [h for n in range(4) for h in histograms(n, 3)]
    assert worst_log_ratio(lambda h: exact_law(secret, h, reach), starts, added) <= secret.add_remove + 1e-6
    assert worst_log_ratio(lambda h: exact_law(secret, h, reach), histograms(3, 3), replaced) <= (
        secret.replace_one + 1e-6
    )


@pytest.mark.slow
def test_mechanism_matches_its_law():
    """From counts to the chosen index, n public and n secret."""
    for mechanism in (
        NoisyHistogram(Fraction(0), Fraction(5), 1.0),
        NoisyHistogram(Fraction(2, 3), Fraction(1, 3), 1.0),
    ):
        assert_drawn_from(mechanism, [2, 3, 2], exact_law(mechanism, (2, 3, 2), 30), 4000)


@pytest.mark.slow
@pytest.mark.parametrize(("alpha", "epsilon"), [("0.3", 4.0), ("0.5", 2.0), ("0.2", 8.0)])
def test_public_coverage_for_every_multiset(alpha, epsilon):
    n, m, level = 9, 3, 1 - Fraction(alpha)
    mechanism = noisy_histogram_for(level, epsilon, m, n, 1)
    claimed = mechanism.certified(level, m, n, None)
    worst = min(leave_one_out(lambda h: exact_law(mechanism, h, 16), h) for h in histograms(n + 1, m))
    assert claimed >= level
    assert worst >= float(claimed) - 1e-6
    smaller = replace(mechanism, offset=mechanism.offset - 1)
    assert smaller.certified(level, m, n, None) < level


@pytest.mark.parametrize(("alpha", "epsilon", "n_min"), [("0.3", 2.0, 1), ("0.4", 3.0, 3), *slow([("0.5", 1.0, 1)])])
def test_secret_coverage_for_every_multiset_and_every_n(alpha, epsilon, n_min):
    level, m = 1 - Fraction(alpha), 3
    mechanism = noisy_histogram_for(level, epsilon, m, None, n_min)
    reach = math.ceil(16 * mechanism.scale)
    for n in range(n_min, 8):
        worst = min(leave_one_out(lambda h: exact_law(mechanism, h, reach), h) for h in histograms(n + 1, m))
        assert worst >= float(level) - 1e-6
    assert mechanism.certified(level, m, None, n_min) == level
    lower = replace(mechanism, offset=mechanism.offset - Fraction(1, 2))
    claimed = lower.certified(level, m, None, n_min)
    assert claimed < level
    for n in range(n_min, 6):
        worst = min(leave_one_out(lambda h: exact_law(lower, h, reach), h) for h in histograms(n + 1, m))
        assert worst >= float(claimed) - 1e-6


def test_the_target_is_a_line_in_n_plus_one():
    assert NoisyHistogram(Fraction(2, 3), Fraction(1, 3), 1.0).target(8) == Fraction(19, 3)
    assert NoisyHistogram(Fraction(0), Fraction(5), 1.0).target(8) == 5


def test_rank_law_and_upper_bound():
    mechanism = noisy_histogram_for(Fraction(9, 10), 1.0, 100, 1000, 1)
    ranks, probabilities, bottom = mechanism.rank_law(1000, 100)
    assert probabilities.sum() + bottom == pytest.approx(1)
    assert ranks.max() == mechanism.offset
    assert (ranks @ probabilities) / 1001 == pytest.approx(float(mechanism.certified(Fraction(9, 10), 100, 1000, None)))
    assert 0.9 < mechanism.coverage_at_most(1000, 100) < 0.96


@pytest.mark.slow
@pytest.mark.parametrize("neighbors", ["replace_one", "add_remove"])
def test_efficiency_and_coverage_on_uniform_scores(neighbors):
    """n=1000, epsilon=1, 50 candidates: coverage at least 0.9 by an exact binomial test at 1e-6, and at most 0.95."""
    rng, candidates, hits, covered = np.random.default_rng(4), confide.Candidates.unit(50), 0, []
    n_min = 200 if neighbors == "add_remove" else 1
    for _ in range(600):
        points = rng.random(1001)
        released = confide.calibrate(
            points[1:], 0.1, 1.0, mechanism="noisy-histogram", candidates=candidates, neighbors=neighbors, n_min=n_min
        )
        hits += points[0] <= released.threshold
        covered.append(min(released.threshold, 1.0))
    assert stats.binomtest(hits, 600, 0.9, alternative="less").pvalue > 1e-6
    assert np.mean(covered) + stats.norm.isf(1e-6) * np.std(covered) / math.sqrt(600) < 0.95


def secret_offset(scale, m, n_min, level=Fraction(9, 10)):
    """The least offset, to a hundredth of a rank, that is certified."""
    low, high = 0, 100_000
    while high - low > 1:
        middle = (low + high) // 2
        enough = NoisyHistogram(level, Fraction(middle, 100), scale).certified(level, m, None, n_min) >= level
        low, high = (low, middle) if enough else (middle, high)
    return high / 100


def test_ranks_that_the_noise_costs():
    """128 bins, epsilon = 1: ranks above 0.9 (n+1) for a public n; offsets for a secret one."""
    public = noisy_histogram_for(Fraction(9, 10), 1.0, 128, 10_000, 1)
    law = public.deficit(128)
    assert float(np.arange(len(law)) @ law) == pytest.approx(12.6, abs=0.05)
    assert 12 <= float(public.offset) - 0.9 * 10_001 <= 14
    assert secret_offset(1.0, 128, 100) == pytest.approx(4.93, abs=0.02)  # 4.7 is the exact bound


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 20.0])
@pytest.mark.parametrize("level", ["1/2", "9/10", "99/100"])
def test_a_secret_size_from_one_record_on_has_a_small_offset(epsilon, level):
    made = noisy_histogram_for(Fraction(level), epsilon, 40, None, 1)
    assert 0 < made.offset <= secret_offset(made.scale, 40, 1, Fraction(level)) + 1
    assert made.certified(Fraction(level), 40, None, 1) == Fraction(level)


@pytest.mark.parametrize(("numerator", "denominator"), [(1, 2), (7, 10), (3, 10), *slow([(9, 10), (19, 20)])])
@pytest.mark.parametrize("m", [2, 3, 5])
def test_missed_points_of_a_secret_size_are_bounded(numerator, denominator, m):
    """Theorem W2 at every x: sums over ranks of the largest P((1-q) X_1..i - q X_(i+1)..m >= T - r + 1) over i.

    The laws of the sums are exact on the lattice 1/denominator, for noise of scale 0.7. The control: the bound for a
    target that is two ranks larger is too small.
    """
    _, p = unit_pmf(0.7, 25)
    a, b = denominator - numerator, numerator

    def stretched(factor):
        law = np.zeros(2 * 25 * factor + 1)
        law[::factor] = p
        return law

    reach = m * 25 * max(a, b)
    tail = np.zeros(2 * reach + 1)
    for i in range(1, m):
        law = np.ones(1)
        for factor in [a] * i + [b] * (m - i):
            law = np.convolve(law, stretched(factor))
        padded = np.pad(law, reach - len(law) // 2)
        tail = np.maximum(tail, np.cumsum(padded[::-1])[::-1])
    excess, control, before = -1.0, -1.0, -math.inf
    for x in range(-6 * denominator, 6 * denominator + 1):  # x = T - (n+1) in steps of 1/denominator
        at = np.arange(x + denominator, reach + 1, denominator)  # T - r + 1 for r = n + 1, n, ...
        exact = float(tail[at[at >= -reach] + reach].sum())
        bound = missed_by_last_rule(x / denominator, 0.7, m, numerator / denominator)
        excess = max(excess, exact - bound)
        assert before <= bound + x / denominator + 1e-12
        before = bound + x / denominator
        control = max(control, exact - missed_by_last_rule(x / denominator + 2, 0.7, m, numerator / denominator))
    assert excess <= 1e-9 < 0.01 < control


@pytest.mark.slow
@pytest.mark.parametrize(("n", "epsilon"), [(500, 1.0), (1000, 3.0), (5000, 1.0)])
def test_number_of_bins_is_near_the_best(n, epsilon):
    """Mean thresholds on uniform scores, edges shifted: no other number of bins has 10 % less excess."""
    rng, runs = np.random.default_rng(0), 2000
    u, chosen = (np.arange(runs) + 0.5) / runs, optimal_bins(n, epsilon)

    def excess(m):
        mechanism = noisy_histogram_for(Fraction(9, 10), epsilon, m, n, 1)
        widths = np.full((runs, m + 1), 1 / m)
        widths[:, 0], widths[:, -1] = (1 - u) / m, u / m
        p = -math.expm1(-1 / mechanism.scale)
        counts = rng.multinomial(n, widths)
        noisy = counts + rng.geometric(p, counts.shape) - rng.geometric(p, counts.shape)
        beyond = noisy.sum(axis=1, keepdims=True) - np.cumsum(noisy, axis=1)
        reached = n - beyond >= float(mechanism.offset)
        reached[:, -1] = True
        above = m - np.argmax(reached, axis=1)
        return 0.1 - np.where(above > 0, above - 1 + u, 0).mean() / m

    ours = excess(chosen)  # standard errors are below 2 % of it
    assert all(ours < 1.1 * excess(round(chosen * share)) for share in (0.3, 0.5, 0.75, 1.5, 2.5))
