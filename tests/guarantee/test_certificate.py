"""The certificates in numbers: the concave program, searches over targets, and the competitor ratio G."""

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from confide.guarantee import TargetGoal, TargetLine, conditional
from confide.guarantee.certificate import sharp_coverage, sharp_loss, sharp_losses, sharp_target_rank
from confide.guarantee.conditional import conditional_offset, conditional_target_rank, line_holds, tangent_rate
from confide.guarantee.random_rank import (
    SlopeNoise,
    binomial_at_least,
    competitor_ratio,
    competitor_ratio_right,
    conditional_failure,
    rank_law,
    tail,
)
from confide.mechanisms.slopes import Slopes
from tests.exact import climbed


def test_sharp_loss_bounds_every_spread():
    """All spreads of twelve parts over five indices: none above L, the best near it, and above that of less mass."""
    cuts = np.array(list(itertools.combinations(range(16), 4)))
    parts = np.diff(np.column_stack([np.full(len(cuts), -1), cuts, np.full(len(cuts), 16)]), axis=1) - 1
    terms = [(1.0, 0.7, 6.0, 1.0), (0.25, 1.3, 40.0, 0.4), (3.5, 0.6, 9.0, 1.0), (0.6, 3.0, 2.0, 0.0)]
    for x, slope, rivals, c in terms:
        weights = parts * (rivals / 12) * np.exp(-slope * np.maximum(np.arange(5) + x - 1, 0))
        ahead = np.cumsum(weights[:, ::-1], axis=1)[:, ::-1]
        missed = 1 - c + (ahead / (1 + ahead)) @ [c, 1, 1, 1, 1]
        bound, less = (sharp_losses(np.array([x]), slope, mass, np.array([c]))[0] for mass in (rivals, 0.9 * rivals))
        assert less < missed.max() <= bound < missed.max() + 0.05


@pytest.mark.long
def test_sharp_loss_is_the_maximum_of_random_programs():
    """It lies between the value of a spread and the dual bound of an iteration; grouped small slopes are above both."""
    rng = np.random.default_rng(1)
    for case in range(60):
        slope, rivals = np.exp(rng.uniform(np.log([0.05, 0.05]), np.log([4.0, 3000.0])))
        x, c = (rng.uniform(0, 1), np.exp(-rng.uniform(0, 2))) if case % 2 else (rng.uniform(1, 12), 1.0)
        value, most = climbed(x, slope, rivals, c)
        assert value <= sharp_losses(np.array([x]), slope, rivals, np.array([c]))[0] <= most + 1e-10
    for slope in (0.004, 0.0199):
        value, most = climbed(0.7, slope, 50.0, 0.9, gap=0.01 / slope)
        assert most < sharp_losses(np.array([0.7]), slope, 50.0, np.array([0.9]))[0] < 1.015 * value


@pytest.mark.parametrize(("slope", "rivals"), [(0.01, 30.0), (0.7, 199.0), (0.7, 0.0), (3.0, 1e-100), (1e5, 99.0)])
def test_sharp_loss_falls_with_x(slope, rivals):
    """Losses computed together equal single ones, are finite and fall: an interval of x is bounded by its lower end."""
    x = np.array([0.0, 0.1, 0.4, 0.5, 1.0, 1.25, 9.0, 2000.0, 1e9])
    lost = sharp_losses(x, slope, rivals)
    assert lost.tolist() == [sharp_loss(at, slope, rivals) for at in x.tolist()]
    assert (np.diff(lost) <= 1e-9).all()
    assert 0 <= lost[-1] < 1e-9


def test_sharp_target_rank_is_the_smallest():
    for n, level, m in [(1000, Fraction(9, 10), 1000), (200, Fraction(4, 5), 50), (60, Fraction(1, 2), 7)]:
        noise = SlopeNoise(0.7, 0.3, m - 1)
        target = sharp_target_rank(n, level, noise, 16)
        assert sharp_coverage(n, target, noise) >= level
        assert sharp_coverage(n, target - Fraction(1, 16), noise) < level
    assert sharp_target_rank(9, Fraction(9, 10), SlopeNoise(0.7, 0.3, 999), 16) is None


@pytest.mark.slow
@pytest.mark.parametrize(("level", "delta", "n_min"), [(Fraction(9, 10), 0.05, 1), (Fraction(4, 5), 0.01, 50)])
def test_secret_line_holds_at_every_n(level, delta, n_min):
    """Theorem C3, by evaluating Theorem C1b at every n in a long range, and at powers of two far beyond."""
    rate = tangent_rate(level, delta, 500)
    goal = TargetGoal(level, delta, n_min)
    offset = conditional_offset(rate, goal, 500, SlopeNoise(0.8, 0.3, 99), 20)
    sizes = [*range(n_min, 1500), *(2**k for k in range(11, 26))]
    worst = max(conditional_failure(n, float(level), float(rate * (n + 1) + offset), 0.8, 99) for n in sizes)
    assert 0.3 * delta < worst <= delta
    assert not line_holds(TargetLine(rate, offset - 3), goal, SlopeNoise(0.8, 0.3, 99))


def test_conditional_target_rank_is_the_smallest():
    target = conditional_target_rank(800, Fraction(9, 10), 0.05, SlopeNoise(0.7, 0.3, 299), 16)
    assert conditional_failure(800, 0.9, float(target), 0.7, 299) <= 0.05
    assert conditional_failure(800, 0.9, float(target) - 1 / 16, 0.7, 299) > 0.05
    assert conditional_target_rank(20, Fraction(9, 10), 0.05, SlopeNoise(0.7, 0.3, 299), 16) is None


def test_a_rank_above_n_stands_for_infinity_and_never_fails():
    assert conditional_failure(20, 0.9, 500.0, 0.7, 299) < 1e-9


# --- binomial tails of any size, and ranks grouped conservatively


@pytest.mark.parametrize("n", [1, 2, 10, 1000, 10**6, 2**24, 2**31, 2**40])
@pytest.mark.parametrize("p", [1e-6, 0.1, 0.5, 0.9, 1 - 1e-6])
def test_binomial_tails(n, p):
    """Compared with scipy's law, where it is exact enough, and with the symmetry of the law everywhere."""
    spread = np.sqrt(n * p * (1 - p))
    r = np.unique(np.clip(np.round(n * p + spread * np.array([-6, -3, -1, 0, 1, 3, 6])), 1, n)).astype(np.int64)
    value = binomial_at_least(r, n, p)
    np.testing.assert_allclose(value, stats.binom.sf(r - 1, n, p), rtol=1e-8)
    inner = r[(r > 1) & (r < n)]
    if inner.size:
        complement = binomial_at_least(n - inner + 1, n, 1 - p)
        np.testing.assert_allclose(binomial_at_least(inner, n, p) + complement, 1, atol=1e-6)


@pytest.mark.parametrize("slope", [0.0099, 0.003, 0.0005])
def test_grouped_ranks_are_smaller_ranks(slope):
    """Small slopes: ranks are grouped, and R only falls, so every failure probability only rises, and by little."""
    n, rivals, level = 200_000, 100, 0.9
    target = 0.9 * n + 300 + 8 / slope
    ranks, probabilities, bottom = rank_law(target, slope, rivals)
    assert np.diff(ranks).min() > 1
    assert probabilities.min() >= 0
    assert probabilities.sum() + bottom == pytest.approx(1, abs=1e-12)
    at_least = np.cumsum(probabilities[::-1])[::-1]
    np.testing.assert_allclose(at_least, 1 - tail(target - ranks + 1, slope, rivals), atol=1e-12)

    every = np.arange(ranks[0], ranks[-1] + 1)
    exact = 1 - tail(target - every + 1, slope, rivals)
    law = exact - np.append(exact[1:], 0)
    fine = 1 - exact[0] + np.sum(law * binomial_at_least(np.minimum(every, n), n, level) * (every <= n))
    grouped = conditional_failure(n, level, target, slope, rivals)
    assert fine - 1e-12 <= grouped <= fine * 1.1 + 1e-9


@pytest.mark.parametrize("slope", [80.0, 5.0, 0.7, 0.05])
@pytest.mark.parametrize("n", [1, 5, 50, 1000, 10**6])
def test_blocks_are_never_better_than_the_lemma(slope, n):
    """The bound for a secret n is above the failure of Theorem C1b, and close to it for the slopes in use."""
    rivals, level = 1000, 0.9
    for beyond in (0.001, 0.5, 3.3, 20 + 8 / slope):
        target = min(level * (n + 1) + beyond, n - 1e-3)
        exact = conditional_failure(n, level, target, slope, rivals)
        block = conditional._failures(np.array([target]), np.array([n]), level, SlopeNoise(slope, slope, rivals))[0]
        assert block >= exact - 1e-9
        assert block <= exact * 1.25 + 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("level", [0.99, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("slope", [0.5, 40.0])
def test_a_line_holds_exactly_where_every_n_does(level, slope):
    """The search in blocks agrees with single n, for lines just high enough and just too low."""
    exact_level = Fraction(str(level))
    delta, rivals, n_min = 0.05, 50, 20
    rate = conditional.tangent_rate(exact_level, delta, 100)
    noise = SlopeNoise(slope, slope, rivals)
    goal = TargetGoal(exact_level, delta, n_min)

    def every_n(offset):
        n = np.arange(n_min, 4000)
        target = float(rate) * (n + 1) + float(offset)
        return bool(np.all(conditional._failures(target, n, level, noise) <= delta))

    low, high = -100 * 64, 200 * 64
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if every_n(Fraction(middle, 64)) else (middle, high)
    assert not line_holds(TargetLine(rate, Fraction(low, 64)), goal, noise)
    assert line_holds(TargetLine(rate, Fraction(high, 64) + Fraction(1, 10**6)), goal, noise)


def exact_rivals(heights, scale):
    """G in 60 digits, from the integers that the mechanism adds."""
    with localcontext(prec=60):
        weights = [(Decimal(int(height)) / Decimal(scale)).exp() for height in heights]
        before, worst = Decimal(0), Decimal(0)
        for weight in weights:
            worst, before = max(worst, before / weight), before + weight
        return worst


HEIGHTS = {
    "none": np.zeros(500, dtype=np.int64),
    "even steps": np.arange(300) * 7,
    "one step at the end": np.append(np.zeros(99, dtype=np.int64), 5000),
    "one step at the beginning": np.append(0, np.full(99, 5000)),
    "any": np.sort(np.random.default_rng(3).integers(0, 30_000, 400)),
    "far": np.arange(60) * 10**6,
    "one": np.zeros(1, dtype=np.int64),
}


@pytest.mark.parametrize("name", HEIGHTS)
@pytest.mark.parametrize("scale", [1000.0, 777.7, 1e-3 / 3])
def test_competitor_ratio_is_rounded_up_by_less_than_a_billionth(name, scale):
    """Never below the exact G, and above it by less than a billionth: a certificate must not underestimate G."""
    heights = HEIGHTS[name] if scale > 1 else HEIGHTS[name] // 10**6
    exact = exact_rivals(heights, scale)
    found = competitor_ratio(heights / scale)
    assert exact <= Decimal(found) <= exact * (1 + Decimal("1e-9")) + Decimal("1e-300")


@pytest.mark.parametrize(("flat", "rise"), [(Fraction(0), 900), (Fraction(95, 2), 20_000), (Fraction(7, 3), 41)])
@pytest.mark.parametrize("m", [2, 13, 481])
def test_competitor_ratio_of_a_mechanism(m, flat, rise):
    """From the stated integers `flat` and `rise`, with the heights computed in fractions here."""
    mechanism = Slopes(Fraction(0), Fraction(9), 9, 11, 1024.5, flat=flat, rise=rise)
    steps = m - flat
    heights = [math.floor(rise * max(j - flat, Fraction(0)) / steps) if steps > 0 else 0 for j in range(1, m + 1)]
    if steps > 0:
        assert mechanism.log_prior_weights(m).tolist() == heights
        assert heights[-1] == rise
    exact = exact_rivals(mechanism.log_prior_weights(m), mechanism.scale)
    assert exact <= Decimal(mechanism.rivals(m)) <= exact * (1 + Decimal("1.001e-3"))
    assert mechanism.rivals(m) <= m - 1


@pytest.mark.parametrize(("flat", "rise"), [(Fraction(0), 900), (Fraction(95, 2), 20_000), (Fraction(7, 3), 0)])
@pytest.mark.parametrize("m", [2, 13, 481])
def test_the_stated_step_is_no_more_than_any_ratio_of_neighbours(m, flat, rise):
    """The a of Theorem T1 from the stated integers: rounded down by little; 1 for equal weights."""
    mechanism = Slopes(Fraction(0), Fraction(9), 9, 11, 1024.5, flat=flat, rise=rise)
    with localcontext(prec=60):
        weights = [(Decimal(int(height)) / Decimal(mechanism.scale)).exp() for height in mechanism.log_prior_weights(m)]
        least = min(one / following for one, following in pairwise(weights))
    assert least - Decimal("1.001e-4") <= Decimal(mechanism.step(m)) <= least
    assert rise or mechanism.step(m) == 1


def test_competitors_on_the_right_are_those_on_the_left_of_the_mirror_image():
    log_weights = np.array([0.0, 0.5, 0.5, 2.0])
    weights = np.exp(log_weights)
    assert competitor_ratio_right(log_weights) == pytest.approx(
        max(weights[j + 1 :].sum() / weights[j] for j in range(3))
    )
    assert competitor_ratio(log_weights) == pytest.approx(max(weights[:j].sum() / weights[j] for j in range(1, 4)))
