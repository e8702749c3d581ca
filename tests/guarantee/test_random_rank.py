"""The numbers of the random-rank lemma: binomial tails of any size, and ranks grouped conservatively."""

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
