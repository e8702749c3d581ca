"""The law of the random rank for randomised labels, compared with exact binomials and independent arithmetic."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

from confide.guarantee import law_failure, mean_coverage, noise_tail, noisy_rank, noisy_rank_law
from confide.selection import change_probability, stay_probability


def kept_of(classes, epsilon):
    truth = stay_probability(classes, epsilon)
    return truth, float(Fraction(truth) - change_probability(classes, truth))


@pytest.mark.parametrize("n", [1, 2, 3, 7, 20, 61, 200, 1000])
def test_no_binomial_has_a_larger_tail(n):
    """sup over p of P(Bin(n, p) >= n p + x) is attained where n p + x is an integer: all of these are tried."""
    for kept in (0.3, 1.0):
        for deficit in {1, 2, 5, round(math.sqrt(n)), n}:
            x = kept * deficit
            counts = np.arange(math.ceil(x), n + 1)
            worst = stats.binom.sf(counts - 1, n, (counts - x) / n).max(initial=0.0)
            assert worst <= noise_tail(deficit, n, 0.5, kept) + 1e-12


def test_no_sum_of_different_labels_has_a_larger_tail():
    """All laws of the hits of four labels on a grid; for p above one half, those that are possible."""
    for truth, levels in ((0.5, np.linspace(0, 1, 6)), (0.9, (0.0, 0.03, 0.1, 0.9, 0.97, 1.0))):
        for chances in itertools.combinations_with_replacement(levels, 4):
            law = np.array([1.0])
            for h in chances:
                law = np.convolve(law, [1 - h, h])
            for deficit in (1, 2, 3, 4, 7):
                for kept in (0.25, 0.5, 1.0):
                    exact = law[np.arange(5) >= sum(chances) + kept * deficit - 1e-12].sum()
                    assert exact <= noise_tail(deficit, 4, truth, kept) + 1e-12


def test_tail_and_law_against_independent_arithmetic():
    n, truth, kept, rank = 900, 0.75, 0.5, 840
    with mpmath.workdps(40):

        def tail(deficit):
            x = mpmath.mpf(deficit) * kept
            bernstein = mpmath.exp(-(x**2) / (2 * (n * mpmath.mpf(truth) * (1 - mpmath.mpf(truth)) + x / 3)))
            normal = mpmath.ncdf(-2 * (x - 1) / mpmath.sqrt(n)) if x >= 1 else mpmath.mpf(1)
            return min(mpmath.mpf(1), bernstein, normal)

        assert all(abs(tail(w) - noise_tail(w, n, truth, kept)) < 1e-12 for w in range(1, 400, 7))
        mean = sum(1 - tail(rank - r + 1) for r in range(1, rank + 1)) / (n + 1)
    assert abs(mean_coverage(noisy_rank_law(rank, n, truth, kept), n) - mean) < 1e-12


@pytest.mark.parametrize("delta", [None, 0.05])
@pytest.mark.parametrize("classes", [2, 10, 1000])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0, 30.0])
def test_the_rank_is_the_least_that_keeps_the_level(classes, epsilon, delta):
    n, level = 5000, 0.9
    truth, kept = kept_of(classes, epsilon)
    rank = noisy_rank(level, n, truth, kept, delta)

    def keeps(one):
        law = noisy_rank_law(one, n, truth, kept)
        return mean_coverage(law, n) >= level if delta is None else law_failure(law, n, level) <= delta

    assert keeps(rank)
    assert not keeps(rank - 1)


def test_with_almost_no_noise_the_rank_is_almost_that_of_split_conformal():
    truth, kept = kept_of(10, 30.0)
    assert math.ceil(0.9 * 1001) <= noisy_rank(0.9, 1000, truth, kept) <= math.ceil(0.9 * 1001) + 1


@pytest.mark.parametrize("classes", [2, 3, 10])
@pytest.mark.parametrize("n", [40, 400])
def test_the_promise_holds_exactly_for_one_candidate(classes, n):
    """Sets of s of K classes that cover F0, and +inf: every law in closed form, no simulation.

    Hits of noisy labels are binomial with h = (p - q) F0 + q s. On average 1 - (1 - F0) P(passed) is covered.
    """
    alpha, delta = 0.1, 0.05
    tightest = 1.0
    for epsilon in (0.5, 1.0, 2.0, 4.0):
        truth, kept = kept_of(classes, epsilon)
        q = float(change_probability(classes, truth))
        ranks = noisy_rank(1 - alpha, n, truth, kept), noisy_rank(1 - alpha, n, truth, kept, delta)
        for s in range(1, classes):
            for below in (0.3, 0.1, 0.03, 0.01, 0.001):
                covers = 1 - alpha - below
                h = kept * covers + q * s
                passes = [stats.binom.sf(math.ceil(kept * k + q * s * n - 1e-9) - 1, n, h) for k in ranks]
                average = 1 - (1 - covers) * passes[0]
                assert average >= 1 - alpha
                assert passes[1] <= delta
                tightest = min(tightest, average)
    assert tightest < 0.98
