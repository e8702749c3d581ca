"""Theorem T1, the two-sided certificate: exact enumeration, a search for bad data, and its numerical parts."""

import itertools
import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest

from confide.guarantee import left_side, secret_n
from confide.guarantee.adversary import _ALL, Parts, _Search, accuracy, largest
from confide.guarantee.certificate import sharp_coverage, sharp_loss
from confide.guarantee.left_side import Case, LeftSide, Rows
from confide.guarantee.secret_n import (
    _cases_of_large_n,
    _groups_below,
    _halves,
    two_sided_offset,
    two_sided_prior_bonus,
    two_sided_secret,
    two_sided_shortfall,
)
from confide.guarantee.slope_noise import SlopeNoise
from confide.guarantee.two_sided import (
    adversaries,
    two_sided_coverage,
    two_sided_holds,
    two_sided_loss,
    two_sided_target_rank,
)
from confide.mechanisms import Slopes, certify
from tests.builders import slow


@lru_cache
def multisets(points, m):
    """Every way to put the points into m bins, shape (ways, m)."""
    cuts = itertools.combinations_with_replacement(range(points + 1), m - 1)
    return np.array([np.diff([0, *cut, points]) for cut in cuts])


def exact_laws(utilities):
    """The laws along the last axis."""
    p = np.exp(utilities - utilities.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True)


def least_coverage(points, target, left, right, log_weights, ahead=None):
    """The least leave-one-out coverage over all multisets; with `ahead`, +inf has that bonus and no left slope."""
    m = len(log_weights)
    ways = multisets(points, m)
    covered = np.zeros(len(ways))
    for b in range(m):
        has = ways[:, b] > 0
        counts = ways[has] - np.eye(m, dtype=int)[b]
        reached = np.cumsum(counts, axis=1)
        below = reached - counts
        short = left * np.maximum(target - reached, 0.0)
        if ahead is not None:
            short[:, -1] = 0.0
        utilities = log_weights - np.maximum(right * np.maximum(below - target, 0.0), short)
        utilities[:, -1] += ahead or 0.0
        covered[has] += ways[has, b] * exact_laws(utilities)[:, b:].sum(axis=1)
    return float(covered.min()) / points


def random_weights(rng, m):
    """Log weights that do not fall, their G, and the least ratio of one to the next."""
    logs = np.cumsum(np.append(0.0, rng.exponential(rng.choice([1e-9, 0.05, 0.3, 1.0]), m - 1)))
    weights = np.exp(logs - logs[-1])
    total = max(float(weights[:g].sum() / weights[g]) for g in range(1, m))
    return logs, total, math.exp(-float(np.diff(logs).max())) * (1 - 1e-12)


def test_never_above_the_exact_minimum():
    """Theorem T1a for every multiset of points, random weights and slopes, whole and fractional targets."""
    rng, gains = np.random.default_rng(2026), []
    for case in range(50):
        m, points = int(rng.integers(2, 6)), int(rng.integers(3, 10))
        left, right = rng.uniform(0.2, 1.6), rng.uniform(0.25, 1.3)
        logs, total, step = random_weights(rng, m)
        whole = Fraction(int(rng.integers(1, points)))
        target = whole if case % 2 else whole - Fraction(int(rng.integers(1, 16)), 16)
        known = step if case % 5 else 0.0
        exact = least_coverage(points, float(target), left, right, logs)
        promised = float(two_sided_coverage(points - 1, target, SlopeNoise(left, right, total, known)))
        assert promised <= exact + 1e-12
        gains.append(promised - float(sharp_coverage(points - 1, target, SlopeNoise(left, right, total))))
    assert np.mean(gains) > 0.04


def test_secret_n_with_a_head_start():
    """The bounds behind Theorem T1b at single n, T(n) below and above n, for intervals, and for many points beyond."""
    rng = np.random.default_rng(7)
    for _ in range(30):
        m, points = int(rng.integers(2, 6)), int(rng.integers(1, 9))
        n, left, right = points - 1, rng.uniform(0.2, 1.6), rng.uniform(0.25, 1.3)
        logs, total, step = random_weights(rng, m)
        target, ahead = float(rng.uniform(0.2, 0.95) * points + rng.uniform(0, 3)), float(rng.choice([0.0, 0.7, 3.0]))
        beyond = n - math.ceil(target)
        x = target - n + 1 if target > n else target - math.ceil(target) + 1
        exact = least_coverage(points, target, left, right, logs, ahead)
        noise = SlopeNoise(left, right, total, step)
        attempts = [(x, x, beyond, beyond, ahead)]
        if beyond >= 0:
            fewest, more = int(rng.integers(0, beyond + 1)), int(rng.integers(0, 4))
            attempts.append((max(0.0, x - 0.07), min(1.0, x + 0.05), fewest, None, 0.0))
            attempts.append((max(0.0, x - 0.07), min(1.0, x + 0.05), fewest, beyond + more, ahead / 2))
        for low, high, fewest, most, bonus in attempts:
            lost = largest(noise, list(adversaries(noise, low, high, fewest, most, bonus))) - x
            assert 1 - (max(beyond, 0) + lost) / points <= exact + 1e-12


def test_secret_mechanism_covers_for_every_n():
    """If the shortfall is at most 0, every n >= n_min is covered; without bonus, or offset, it is not."""
    rate, offset, left, right, m = Fraction(3, 5), Fraction(1, 2), 0.5, 0.5, 5

    noise = SlopeNoise(left, right, m - 1, step=1.0)

    def bonus(n):
        return max(0.0, 4 - 0.3 * n)

    def least(n, ahead):
        return least_coverage(n + 1, float(rate * (n + 1) + offset), left, right, np.zeros(m), ahead)

    assert two_sided_shortfall(rate, offset, bonus, 1, noise) <= 0
    assert min(least(n, bonus(n)) for n in range(1, 9)) >= rate - 1e-12
    assert two_sided_shortfall(rate, offset, lambda n: 0.0, 1, noise) > 0
    assert min(least(n, 0.0) for n in range(1, 4)) < rate
    assert two_sided_shortfall(rate, Fraction(-3, 2), bonus, 1, noise) > 0
    found = two_sided_prior_bonus(rate, offset, 0.3, 1, noise)
    assert found < 4
    assert min(least(n, max(0.0, found - 0.3 * n)) for n in range(1, 9)) >= rate - 1e-12


def missed_points(counts, target, left, right, log_weights):
    """Expected number of missed points, for cumulative counts of any size."""
    below, candidates = np.append(0, counts[:-1]), np.arange(len(counts))
    bins = np.flatnonzero(counts > below)
    reached = counts - (candidates >= bins[:, None])
    short = left * np.maximum(target - reached, 0.0)
    over = right * np.maximum(below - (candidates > bins[:, None]) - target, 0.0)
    utilities = log_weights - np.maximum(over, short)
    p = np.exp(utilities - utilities.max(axis=1, keepdims=True))
    laws = p / p.sum(axis=1, keepdims=True)
    return float((counts - below)[bins] @ np.where(candidates < bins[:, None], laws, 0.0).sum(axis=1))


@pytest.mark.parametrize(("x", "total"), [(1.0, 28.0), (0.4, 8.2)])
def test_a_search_for_bad_data_stays_below(x, total):
    """Hill climbing over counts of 60 points, candidates without points included: near the bound, never above it."""
    points, beyond, left, right = 60, 14, 0.45, 0.55
    flat = int(total) + 1
    logs = np.append(np.zeros(flat), math.log(flat / total) + np.arange(20) * math.log1p(1 / total))
    weights = np.exp(logs)
    most = max(float(weights[:g].sum() / weights[g]) for g in range(1, len(logs)))
    c = points - beyond - 1
    bound = two_sided_loss(x, SlopeNoise(left, right, most, total / (total + 1) * (1 - 1e-9)), beyond=beyond)

    def lost(counts):
        return missed_points(counts, c - 1 + x, left, right, logs) - beyond

    rng, m, starts = np.random.default_rng(5), len(logs), []
    for d, s, width in itertools.product(range(2, 9), (0, 2, 4), (2, 4, 20)):
        right_bins = [min(points, k) for k in range(c + 1 + s, points + width, width)]
        starts.append(np.append(np.full(m - len(right_bins), c - d), right_bins))
    worst = max(starts, key=lost)
    found = lost(worst)
    for _ in range(250):
        counts, i = worst.copy(), int(rng.integers(m - 1))
        counts[i : i + int(rng.integers(1, 9))] += int(rng.integers(-2, 3))
        counts[-1] = points
        counts = np.maximum.accumulate(np.clip(counts, 0, points))
        if (value := lost(counts)) > found:
            worst, found = counts, value
    assert found <= bound
    assert found > bound - 0.6


def program(q, mass, left, rho, kappa, s, right):
    """V^0 of docs/theory-two-sided.md, section 3, for whole targets."""
    y, rate, extra = math.exp(-left), math.exp(-right * s) * rho, math.exp(-right * s) * kappa
    weight = np.array([float(mass[e:] @ q[e:]) for e in range(len(q))])
    race = weight[0] + 1 + rate
    misses = weight / (weight + 1 + rate + y * (weight[0] - weight))
    return 1 - ((s + 1) * (1 + rate) + extra) / race + float(misses[1:].sum())


def test_bound_of_every_spread_and_chain():
    """No spread of the mass, no s and no chain of bins exceeds the maximum, and the best of some come near."""
    rng, left, right, total, depth = np.random.default_rng(3), 0.5, 0.5, 20.0, 16
    bound = two_sided_loss(1.0, SlopeNoise(left, right, total))
    q, best = np.exp(-left * np.arange(depth)), -math.inf
    trials = []
    for d, share, s, size in itertools.product((3, 4, 5), (0.0, 0.5), (1, 2, 3), (3, 4, 5)):
        trials.append((np.eye(depth)[d] * (1 - share) + np.eye(depth)[d + 1] * share, s, np.full(40, size)))
    for _ in range(20):
        mass = rng.dirichlet(np.exp(-np.abs(np.arange(depth) - rng.integers(2, 7))))
        trials.append((mass, int(rng.integers(0, 6)), rng.integers(1, 7, 40)))
    for mass, s, sizes in trials:
        begins = np.append(0, np.cumsum(sizes)[:-1])
        far = np.exp(-right * begins)
        rho, kappa = float(far.sum()), float(far @ (begins + math.exp(-right) * sizes))
        value = program(q, total * mass, left, rho, kappa, s, right)
        assert value <= bound + 1e-9
        best = max(best, value)
    assert best > bound - 0.06


def two_places(q, total, mean, rng):
    """A spread of the whole mass on one index left and one right of a mean weight."""
    left = int(rng.integers(0, np.count_nonzero(q > mean)))
    right = int(rng.integers(np.count_nonzero(q > mean), min(len(q), np.count_nonzero(q > mean) + 40)))
    share = (mean - q[right]) / (q[left] - q[right])
    return total * (np.eye(len(q))[left] * share + np.eye(len(q))[right] * (1 - share))


@pytest.mark.slow
def test_ranges_bound_every_s_inside():
    """The bound of a wide undivided range of s is above the program of every s, chain and spread in it."""
    rng, left, right, total = np.random.default_rng(11), 0.08, 0.1, 20.0
    q, low, high = np.exp(-left * np.arange(120)), 4.0, 6.0
    search, near = (
        _Search(SlopeNoise(left, right, total, 1.0), [Case(True, False, 1, 1, 2**40, None, 0)], None),
        [],
    )
    for first, final in ((0, 9), (3, 5), (6, 30), (20, 21), (0, int(search.far[0]))):
        corners = np.array([*range(6), _ALL])
        parts = search._solve(*(np.full(7, z) for z in (0, first, final)), corners, np.tile([low, high], (7, 1)))
        bound = parts.peak()[:-1].max()
        assert bound <= parts.peak()[-1] + 1e-9
        start, end = search._terms(*(np.array([z]) for z in (0, first, final, 2)))[0][0]
        for s in range(first, min(final, 60) + 1):
            line = start + (end - start) * (s - first) / (final - first)
            rate, later, in_bin, extra = search._terms(*(np.array([z]) for z in (0, s, s, 2)))[0][0, 0]
            assert line[0] <= rate + 1e-12
            assert line[1] >= later - 1e-12 or line[3] == 0
            assert line[2] <= in_bin + 1e-12
            assert line[3] <= extra + 1e-12
        for s in {first, final, *rng.integers(first, final + 1, 12).tolist()}:
            sizes = rng.integers(1, 60, 40) if s % 2 else np.full(40, 20)
            begins = np.append(0, np.cumsum(sizes)[:-1])
            far = np.exp(-right * begins)
            mass = two_places(q, total, float(rng.uniform(low, high)) / total, rng)
            kappa = float(far @ (begins + math.exp(-right) * sizes))
            near.append(bound - program(q, mass, left, float(far.sum()), kappa, s, right))
    assert min(near) > -1e-9
    assert min(near) < 3


def test_indices_beyond_the_depth_are_bounded(monkeypatch):
    """With only three indices in the table, lines stay above spreads that use the others."""
    monkeypatch.setattr(left_side, "_DEPTH", -3)
    rng, left, total = np.random.default_rng(4), 0.3, 12.0
    q, side = np.exp(-left * np.arange(40)), LeftSide(SlopeNoise(left, 0.4, total, 1.0),
                                                      [Case(True, False, 1, 1, 2**40, None, 0)])  # fmt: skip
    assert side.depth < 5
    for place in (3, 4, 6, 10, None):
        mass = total * (rng.dirichlet(np.ones(40) / 3) if place is None else np.eye(40)[place])
        weight, s, rho, kappa = float(mass @ q), int(rng.integers(0, 5)), 1.5, 3.0
        rate = math.exp(-0.4 * s) * rho
        one = Rows(np.array([0]), *np.array([[weight], [rate], [rate], [s + 1.0], [math.exp(-0.4 * s) * kappa]]))
        value, *_ = side.lines(one)
        assert value[0] >= program(q, mass, left, rho, kappa, s, 0.4) - 1e-9


def test_intervals_bound_all_their_points():
    noise = SlopeNoise(0.5, 0.5, 12.0, 12 / 13)
    whole = largest(noise, list(adversaries(noise, 0.4, 0.6, 2**40, None)))
    for x in (0.4, 0.5, 0.6):
        assert two_sided_loss(x, noise) + x <= whole + 0.02


def test_the_peak_of_a_mixture_of_two_lines_is_its_largest_value():
    """Point by point: the line of each end, weighted by the distance to the other one, at the worse end of s."""
    rng = np.random.default_rng(8)
    value, slope, number = rng.normal(size=(200, 2, 2)), 3 * rng.normal(size=(200, 2, 2)), np.zeros(200, int)
    weight = np.sort(rng.normal(size=(200, 2)), axis=1)
    parts = Parts(number, number, number, number, np.zeros(200), weight, value, slope, np.stack([value, slope], axis=1))
    width, share = np.diff(weight)[:, :, None], np.linspace(0, 1, 2001)
    first = value[:, :, :1] + slope[:, :, :1] * share * width
    second = value[:, :, 1:] - slope[:, :, 1:] * (1 - share) * width
    points = ((1 - share) * first + share * second).max(axis=(1, 2))
    higher = points > value.max(axis=(1, 2)) + 1e-6
    assert 20 < higher.sum() < 180  # both inside and at an end
    assert (parts.peak() >= points - 1e-12).all()
    assert (parts.peak() <= points + 1e-4).all()


def test_ranks_saved():
    """The savings that docs/theory-two-sided.md states."""
    for total, left, saved in [(3.6, 0.3, 1.6), (8.2, 0.35, 1.6), (28.0, 0.45, 1.6), (182.0, 0.55, 1.75)]:
        one = sharp_loss(1.0, left, total)
        two = two_sided_loss(1.0, SlopeNoise(left, 1 - left, total))
        assert one - two > saved


def test_small_slopes_and_few_candidates():
    """One candidate, grouped indices, and a target without points beyond it."""
    assert two_sided_loss(1.0, SlopeNoise(0.5, 0.5, 0.0)) == pytest.approx(0.0, abs=1e-6)
    alone = two_sided_loss(1.0, SlopeNoise(0.5, 0.5, 29.0), beyond=0)
    assert two_sided_loss(1.0, SlopeNoise(0.5, 0.5, 29.0)) < alone < sharp_loss(1.0, 0.5, 29.0)
    one, two = sharp_loss(1.0, 0.045, 300.0), two_sided_loss(1.0, SlopeNoise(0.045, 0.055, 300.0))
    assert 0.7 * one < two < 0.8 * one


@pytest.mark.parametrize(
    ("slopes", "total", "x", "beyond", "lost"),
    [
        (1.0, 999.0, 1.0, None, 9.824),
        (5.0, 28.0, 0.5, 0, 2.064),
        (0.1, 182.0, 1.0, None, 59.01),
    ],
)  # fmt: skip
def test_values_of_a_division_point_by_point(slopes, total, x, beyond, lost):
    """The maximum by single s, 12 weights and five corners: as large, or more, having fewer corners at small slopes."""
    noise = SlopeNoise(0.45 * slopes, 0.55 * slopes, total, total / (total + 1))
    found = two_sided_loss(x, noise, beyond=beyond)
    assert 0.93 * lost - 0.02 < found < lost + 2 * accuracy(lost)


def test_indices_behind_the_last_one_are_in_the_bound():
    """One recorded case: without the end of the table of weights the bound is lower by a millionth."""
    found = two_sided_loss(1.0, SlopeNoise(2.0, 1.0, 5.0), beyond=10)
    assert found == pytest.approx(0.5340834249, abs=3e-7)


def test_holds_agrees_with_target_rank_and_coverage():
    """The target rank that is returned holds; the next smaller ones do not; `two_sided_coverage` agrees."""
    level, noise = Fraction(9, 10), SlopeNoise(0.45, 0.55, 28.0, step=0.96)
    for n in (60, 1000):
        target = two_sided_target_rank(n, level, noise, 16)
        assert two_sided_holds(n, target, level, noise)
        assert not two_sided_holds(n, target - Fraction(1, 8), level, noise)
        coverage = two_sided_coverage(n, target, noise)
        assert level - Fraction(2, 100) / (n + 1) < coverage < level + Fraction(2, 10) / (n + 1)
    assert not two_sided_holds(30, Fraction(31), level, noise)
    assert not two_sided_holds(30, Fraction(0), level, noise)
    assert two_sided_target_rank(20, level, noise, 16) is None


def test_two_sided_is_used_only_where_the_sharp_one_fails():
    """If both hold, a release states the sharp certificate, which a reader checks without a search."""
    level = Fraction(7, 10)
    mechanism = Slopes(level, Fraction(3), left=1, right=1, scale=1.0)
    assert mechanism.two_sided(level, 3, 20, None)
    stated = certify(mechanism, 1 - level, 3, 20, None, None)
    assert stated.coverage > level
    assert stated.certificate is None


def test_slopes_are_not_searched_where_that_takes_minutes():
    terms = Fraction(9, 10), SlopeNoise(6e-6, 4e-6, 23.0), 16
    started = two_sided_loss.cache_info().misses
    assert two_sided_target_rank(9_000_000, *terms) is None
    assert two_sided_loss.cache_info().misses == started


def test_targets_and_offsets_are_the_smallest_that_pass():
    level, noise = Fraction(9, 10), SlopeNoise(0.35, 0.65, 8.2, step=0.89)
    target = two_sided_target_rank(100, level, noise, 8)
    assert two_sided_target_rank(10, level, noise, 8) is None
    offset = two_sided_offset(level, noise, 10)
    assert 1 < offset < 1.5
    assert offset >= target - level * 101 - Fraction(1, 8)

    def short(some):
        return two_sided_shortfall(level, some, lambda n: 6.0, 1, noise)

    assert short(offset + Fraction(1, 10)) <= 0 < short(offset - Fraction(1, 10))


@pytest.mark.parametrize("level", [Fraction(1, 2), *slow([Fraction(333, 1000), Fraction(9, 10), Fraction(19, 20)])])
def test_head_starts_are_the_least_that_readers_accept(level):
    noise = SlopeNoise(0.45, 0.55, 28.0, step=0.96)
    fade = 0.3 * float(1 - level)
    offset = two_sided_offset(level, noise, 20) + Fraction(1, 20)
    ahead = two_sided_prior_bonus(level, offset, fade, 1, noise)

    def short(some):
        return two_sided_shortfall(level, offset, lambda n: max(0.0, some - fade * n), 1, noise)

    assert short(ahead) <= 0 < short(ahead - 0.25)
    assert two_sided_prior_bonus(level, offset, fade, 1, noise, most=ahead - 0.1) == math.inf
    assert two_sided_prior_bonus(level, offset, fade, 1, noise, most=ahead) == ahead
    assert two_sided_prior_bonus(level, offset, fade, 20_000, noise) == 0
    assert two_sided_prior_bonus(level, offset - 1, fade, 1, noise) == math.inf


@pytest.mark.slow
def test_offset_and_head_start_go_together():
    """The faster the bonus fades, the larger the bonus or the offset must be."""
    level, noise = Fraction(9, 10), SlopeNoise(0.45, 0.55, 28.0, step=28 / 29)
    slow, fast, wide = (
        two_sided_secret(level, fade, most, 1, noise, 20) for fade, most in ((0.03, 5.0), (0.1, 6.0), (0.1, 10.0))
    )
    assert slow[0] == two_sided_offset(level, noise, 20) + Fraction(1, 20)
    assert slow[1] < 4
    assert slow[0] <= wide[0] < fast[0] <= slow[0] + 2
    assert fast[1] <= 6 < wide[1] <= 10
    for (offset, ahead), fade in ((slow, 0.03), (fast, 0.1), (wide, 0.1)):
        start = lambda n, ahead=ahead, fade=fade: max(0.0, ahead - fade * n)  # noqa: E731
        assert two_sided_shortfall(level, offset, start, 1, noise) <= 0
    assert two_sided_secret(level, 0.45, 2.0, 1, noise, 20) is None
    tiny = Fraction(1, 10**6)  # more numbers of records with few points beyond than the limit
    assert two_sided_secret(1 - tiny, 1e-6, 9.0, 1, noise, 10**6) is None
    assert two_sided_secret(level, 1e-6, 9.0, 1, SlopeNoise(1e-6, 1e-6, 28.0), 20) is None


@pytest.mark.parametrize("rate", [Fraction(9, 10), Fraction(99, 100), Fraction(2, 3)])
def test_groups_hold_every_n_once(rate):
    offset, enough = Fraction(47, 20), 12
    groups = _groups_below(rate, offset, 7, enough)
    found = sorted(size.n for group in groups for size in group)
    assert found == list(range(7, found[-1] + 1))
    assert found[-1] + 1 - math.ceil(rate * (found[-1] + 2) + offset) == enough
    for group in groups:
        assert sorted(group) == group
        assert sorted(itertools.chain(*_halves(group))) == group
    many = _cases_of_large_n(SlopeNoise(0.45, 0.55, 28.0, 1.0), rate, offset, enough)
    for n in range(found[-1] + 1, found[-1] + 101):
        target = rate * (n + 1) + offset
        x = float(target - math.ceil(target) + 1)
        assert any(case.low <= x <= case.high and case.beyond <= n - math.ceil(target) for case in many)


def test_search_with_the_scale_of_a_mechanism_is_its_certificate():
    """The bonus that the search finds, rounded as in the mechanism, was certified by the search itself."""
    rate, offset, scale = Fraction(9, 10), Fraction(5, 2), 37.0
    noise = SlopeNoise(0.45, 0.55, 28.0, step=0.96, scale=scale)
    ahead = two_sided_prior_bonus(rate, offset, 0.05, 1, noise)
    start, fade = math.ceil(ahead * scale), round(0.05 * scale)
    proved = secret_n._needing_of.cache_info().misses
    assert two_sided_shortfall(rate, offset, lambda n: max(0, start - fade * n) / scale, 1, noise) <= 0
    assert secret_n._needing_of.cache_info().misses == proved
    assert two_sided_shortfall(rate, offset, lambda n: max(0, start - 10 - fade * n) / scale, 1, noise) > 0


def test_sampled_bonuses_are_close_to_the_full_search():
    rate, offset, fade, noise = Fraction(9, 10), Fraction(5, 2), 0.05, SlopeNoise(0.45, 0.55, 28.0, step=0.96)
    some, every = (two_sided_prior_bonus(rate, offset, fade, 1, noise, sampled=sampled) for sampled in (True, False))
    assert every - 0.25 <= some <= every

    def short(bonus):
        return two_sided_shortfall(rate, offset, lambda n: max(0.0, bonus - fade * n), 1, noise)

    assert short(every) <= 0 < short(some - 0.25)
