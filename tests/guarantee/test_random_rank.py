"""The numbers of the random-rank lemma: binomial tails of any size, and ranks grouped conservatively."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from confide.guarantee import conditional
from confide.guarantee.random_rank import binomial_at_least, conditional_failure, rank_law, tail
from confide.guarantee.slope_noise import SlopeNoise
from tests.builders import slow


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


def test_binomial_tails_count_outcomes():
    assert binomial_at_least(np.array([1, 2, 3]), 3, 0.5).tolist() == [7 / 8, 4 / 8, 1 / 8]


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
        block = conditional._block_failure(np.array([target]), np.array([n]), level, SlopeNoise(slope, slope, rivals))[
            0
        ]
        assert block >= exact - 1e-9
        assert block <= exact * 1.25 + 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("level", [0.99, *slow([0.1, 0.5, 0.9])])
@pytest.mark.parametrize("slope", [0.5, *slow([40.0])])
def test_a_line_holds_exactly_where_every_n_does(level, slope):
    """The search in blocks agrees with single n, for lines just high enough and just too low."""
    from fractions import Fraction

    exact_level = Fraction(str(level))
    delta, rivals, n_min = 0.05, 50, 20
    rate = conditional.tangent_rate(exact_level, delta, 100)
    noise = SlopeNoise(slope, slope, rivals)
    arguments = (exact_level, delta, n_min, noise)

    def every_n(offset):
        n = np.arange(n_min, 4000)
        target = float(rate) * (n + 1) + float(offset)
        return bool(np.all(conditional._block_failure(target, n, level, noise) <= delta))

    low, high = -100 * 64, 200 * 64
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if every_n(Fraction(middle, 64)) else (middle, high)
    assert not conditional.line_holds(rate, Fraction(low, 64), *arguments)
    assert conditional.line_holds(rate, Fraction(high, 64) + Fraction(1, 10**6), *arguments)


def one_by_one(target, n, level, slope, rivals):
    """The grouped failure probability of Theorem C1b, deficit after deficit, at every n."""
    step = max(1, int(0.1 / slope), int(0.02 * math.sqrt(float(n.min()) * level * (1 - level))))
    total, survival = np.zeros(len(n)), np.ones(len(n))
    for d in range(0, math.ceil((math.log(rivals) + 25) / slope) + 1, step):
        beyond = tail(target - np.ceil(target) + d + step, slope, rivals)
        rank = np.ceil(target).astype(np.int64) - d - step + 1
        fails = np.where(rank <= 0, 1.0, np.where(rank > n, 0.0, binomial_at_least(np.clip(rank, 1, n), n, level)))
        total += (survival - beyond) * fails
        survival = beyond
    return total + survival


@pytest.mark.parametrize(
    ("level", "delta", "n_min", "n_typical", "slope", "rivals"),
    [
        (Fraction(9, 10), 0.05, 1, 1000, 0.72, 1000),
        (Fraction(4, 5), 0.1, 300, 300, 0.4, 50),
        *slow(
            [
                (Fraction(1, 2), 0.01, 1, 1000, 0.05, 1000),
                (Fraction(99, 100), 0.2, 1, 20_000, 2.5, 100),
                (Fraction(1, 5), 0.05, 50, 500, 0.3, 20),
            ]
        ),
    ],
)
def test_the_search_for_an_offset_agrees_with_trying_every_n(
    monkeypatch, level, delta, n_min, n_typical, slope, rivals
):
    """Skipping and batching do not change the offset: it equals that of the direct search."""
    rate, unit = conditional.tangent_rate(level, delta, n_typical), 20
    n = np.unique(np.geomspace(n_min, 20 * max(n_min, n_typical), 400).astype(np.int64))

    def fails(offset):
        found = one_by_one(float(rate) * (n + 1) + offset, n, float(level), slope, rivals)
        return bool((found > delta).any())

    low, high = 0.0, 1.0
    while fails(high):
        low, high = high, 2 * high
    while high - low > 0.05 / slope:
        middle = (low + high) / 2
        low, high = (middle, high) if fails(middle) else (low, middle)
    monkeypatch.setattr(conditional, "line_holds", lambda *_: True)  # tested above
    margin = max(1 / unit, math.sqrt(n_typical * float(level * (1 - level))) / 25, n_typical * float(1 - level) / 1000)
    noise = SlopeNoise(slope, slope, rivals)
    made = conditional.conditional_offset(rate, level, delta, n_min, n_typical, noise, unit)
    assert made == conditional.ceil_to(high + margin, unit)
    target = float(rate) * (n + 1) + low
    at_once = conditional._block_failure(target, n, float(level), noise)
    np.testing.assert_allclose(at_once, one_by_one(target, n, float(level), slope, rivals), rtol=1e-12)
