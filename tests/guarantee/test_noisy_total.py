"""The last rule with a noisy total in the place of a secret number of records: Theorem E2, by enumeration."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from confide.errors import InputError
from confide.guarantee import last_rule, total_deficit, total_offset
from tests.exact import histograms, leave_one_out

LAWS = {
    "flat top": np.array([0.1, 0.2, 0.4, 0.2, 0.1]),
    "two makers": np.convolve([0.25, 0.5, 0.25], [0.1, 0.8, 0.1]),
}
LEVELS = [Fraction(1, 2), Fraction(4, 5), Fraction(9, 10)]


def noises(law, m):
    half = len(law) // 2
    draws = np.array(list(itertools.product(range(-half, half + 1), repeat=m)))
    return draws, np.prod(law[draws + half], axis=1)


def index_law(h, draws, weights, level, offset):
    """The law of the index for a histogram, over all noise vectors; exact comparisons on multiples of 1/denominator."""
    noisy = np.array(h) + draws
    total, unit = noisy.sum(axis=1, keepdims=True), level.denominator
    target = level.numerator * (total + 1) + math.ceil(offset * unit)
    return np.bincount(last_rule(np.cumsum(noisy, axis=1) * unit >= target), weights=weights, minlength=len(h))


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("m", [2, 3, 4])
def test_every_histogram_is_covered(name, level, m):
    """Leave-one-out coverage of every multiset of up to six records, for one offset that knows none of them."""
    law = LAWS[name]
    draws, weights = noises(law, m)
    offset = total_offset(total_deficit(law, 1, m, level), level, 1)
    least = min(
        leave_one_out(lambda h: index_law(h, draws, weights, level, offset), h)
        for n in range(1, 6)
        for h in histograms(n + 1, m)
    )
    assert float(level) - 1e-9 <= least


@pytest.mark.parametrize("m", [2, 3, 4])
def test_the_deficit_is_at_most_the_weighted_sum(m):
    """P(B_J < r) <= P(N >= T(n) - r + 1) for every histogram and rank; the control with one rank less fails."""
    law, level, offset = LAWS["flat top"], Fraction(4, 5), Fraction(7, 5)
    draws, weights = noises(law, m)
    deficit = total_deficit(law, 1, m, level)
    half, worst = len(deficit.tails) // 2, {0: -1.0, 1: -1.0}
    for n in range(1, 6):
        top = level * (n + 1) + offset
        for h in histograms(n, m):
            law_of_index = index_law(h, draws, weights, level, offset)
            for r in range(1, n + 2):
                short = law_of_index[:-1][np.cumsum(h)[:-1] < r].sum()
                for less in worst:
                    place = half + int((top - r + 1 + less) * 5)
                    worst[less] = max(worst[less], short - (deficit.tails[place] if place < 2 * half + 1 else 0.0))
    assert worst[0] <= 1e-12
    assert worst[1] > 0.04


def test_without_an_offset_too_little_is_covered():
    """The control: the same rule with an offset of 0."""
    law, level, m = LAWS["flat top"], Fraction(9, 10), 3
    draws, weights = noises(law, m)
    least = min(
        leave_one_out(lambda h: index_law(h, draws, weights, level, Fraction(0)), h)
        for n in range(1, 6)
        for h in histograms(n + 1, m)
    )
    assert least < 0.86


def test_tails_against_all_noise():
    law, m, level = LAWS["flat top"], 3, Fraction(9, 10)
    draws, weights = noises(law, m)
    deficit, worst = total_deficit(law, 1, m, level), np.zeros(0)
    half = len(deficit.tails) // 2
    values = np.arange(-half, half + 1)
    for i in range(1, m):
        sums = draws[:, :i].sum(axis=1) - 9 * draws[:, i:].sum(axis=1)
        tails = np.array([weights[sums >= v].sum() for v in values])
        worst = tails if i == 1 else np.maximum(worst, tails)
    np.testing.assert_allclose(deficit.tails, worst, atol=1e-13)
    for x in (-3.3, 0.0, 0.25, 4.0):
        wanted = max(weights @ np.maximum(s - x, 0) for s in [(draws[:, 0] - 9 * draws[:, 1:].sum(axis=1)) / 10])
        assert deficit.above(x) >= wanted - 1e-12


@pytest.mark.parametrize(
    ("m", "ranks"), [(32, (10.5, 2.2, 2.2)), (128, (25.0, 4.75, 4.75)), (512, (57.15, 12.0, 9.75))]
)
def test_ranks_at_scale_1(m, ranks):
    """Discrete Laplace noise of scale 1 and level 0.9, for at least 1, 100 and 1000 records."""
    law = np.exp(-np.abs(np.arange(-70, 71))) * math.tanh(0.5)
    deficit = total_deficit(law, 1, m, Fraction(9, 10))
    assert tuple(float(total_offset(deficit, Fraction(9, 10), n_min)) for n_min in (1, 100, 1000)) == ranks


def test_levels_with_huge_denominators_are_refused():
    law = np.exp(-np.abs(np.arange(-70, 71))) * math.tanh(0.5)
    with pytest.raises(InputError, match="alpha: must be a rounder level"):
        total_deficit(law, 1, 512, Fraction(99_999, 100_000))
