"""Theorems W3 and W3b and Lemma W4 in exact fractions: the price of the last rule, also for a secret n."""

import math
from fractions import Fraction

import numpy as np
import pytest

from tests.exact import histograms
from tests.one_number import Walks, guard, guarded, law_of, mass_from, mean_from, residual_life

NARROW = law_of({-1: 1, 0: 2, 1: 1})
PEAKED = law_of({-2: 1, -1: 2, 0: 4, 1: 2, 2: 1})
TWO_PEAKS = law_of({-3: 1, 3: 1})
COIN = law_of({-1: 1, 1: 1})
FAR = law_of({-4: 1, 0: 6, 4: 1})
UP = law_of({-1: 2, 2: 1})
DOWN = law_of({-2: 1, 1: 2})
LAWS = {"narrow": [NARROW], "peaked": [PEAKED], "coin": [COIN], "two peaks": [TWO_PEAKS], "far": [FAR]}
LAWS |= {"up": [UP], "down": [DOWN], "mixed": [UP, FAR, NARROW]}
SIZES = [(2, 12), (3, 8), (4, 6)]


def least(laws, sizes, *, beyond=0, first=False):
    """The least number of covered points less T, over every multiset and every T from -2 to N + beyond."""
    found = []
    for m, most in sizes:
        walks = Walks.of((laws * m)[: m - 1])
        for size in range(1, most + 1):
            targets = np.arange(-2, size + beyond + 1)
            covered = np.array([walks.covered(h, targets, first=first) for h in histograms(size, m)])
            found.append(Fraction(int((covered - targets * walks.parts).min()), walks.parts))
    return min(found)


@pytest.mark.parametrize("name", LAWS)
def test_the_last_rule_costs_at_most_the_residual_life(name):
    """Theorem W3: every multiset, noise vector and T <= N, T <= 0 included; without a price it fails."""
    assert -residual_life(LAWS[name]) <= least(LAWS[name], SIZES) < 0


def test_conditions_of_the_price_are_needed():
    """The controls: T > N, and the first rule, need more than the residual life."""
    assert residual_life([COIN]) == 1
    assert least([COIN], SIZES, beyond=3) < -1
    assert least([COIN], [(6, 5)]) >= -1 > least([COIN], [(6, 5)], first=True)


def chances(n, level, price, y, n_g, lowest):
    """The chance of +inf, and that of each target ceil(qN + price - (1-q)Z); targets below the lowest count as it."""
    size, rest = n + 1, 1 - level

    def at_least(k):
        return mass_from(y, k) if k >= 1 else 1 - mass_from(y, 1 - k)

    found, last = {}, math.ceil((level * size + price - lowest) / rest) + 1
    for z in range(n_g - n, max(last, n_g - n) + 1):
        target = max(lowest, math.ceil(level * size + price - rest * z))
        share = at_least(z) - at_least(z + 1) if z < last else at_least(z)
        found[target] = found.get(target, 0) + share
    return 1 - at_least(n_g - n), found


SECRET = {
    "few bins": (Fraction(3, 5), Fraction(1, 2), [NARROW] * 2, 16),
    "asymmetric": (Fraction(1, 2), Fraction(2, 3), [UP, FAR], 14),
    "high level": (Fraction(9, 10), Fraction(1, 3), [PEAKED] * 2, 24),
    "large numbers": (Fraction(4, 5), Fraction(4, 5), [PEAKED] * 2, 40),
    "four bins": (Fraction(3, 5), Fraction(2, 3), [UP, NARROW, UP], 22),
}


def least_of_secret(level, y, laws, most, *, price=None, n_g=None):
    """The least of N coverage - qN over Z, for every multiset of 2 to `most` points."""
    price = residual_life(laws) if price is None else price
    n_g = guard(y, level, price) if n_g is None else n_g
    walks, m, found = Walks.of(laws), len(laws) + 1, []
    lowest = -sum(max(law) for law in laws)
    for size in range(2, most + 1):
        infinite, shares = chances(size - 1, level, price, y, n_g, lowest)
        assert infinite + sum(shares.values()) == 1
        targets = np.array(list(shares))
        for h in histograms(size, m):
            covered = zip(walks.covered(h, targets).tolist(), shares.values(), strict=True)
            found.append(size * infinite + sum(Fraction(c, walks.parts) * p for c, p in covered) - level * size)
    return min(found)


@pytest.mark.slow(unless=("asymmetric", "few bins", "large numbers"))
@pytest.mark.parametrize("name", SECRET)
def test_a_secret_n_is_covered_from_one_record_on(name):
    """Theorem W3b for small n, and its control: a negative price and no guard."""
    level, y, laws, _ = SECRET[name]
    assert least_of_secret(level, y, laws, 7) >= 0
    assert least_of_secret(level, y, laws, 7, price=-1, n_g=1) < 0


def test_the_guard_is_needed():
    """The control: the right price, with a finite threshold from a noisy number of 1 on."""
    case = Fraction(9, 10), Fraction(29, 30), [PEAKED] * 2, 4
    assert least_of_secret(*case) >= 0 > least_of_secret(*case, n_g=1)


@pytest.mark.long
@pytest.mark.parametrize("name", SECRET)
def test_a_secret_n_is_covered_on_both_sides_of_the_guard(name):
    """Theorem W3b for n up to more than the guard."""
    level, y, laws, most = SECRET[name]
    assert guard(y, level, residual_life(laws)) < most
    assert least_of_secret(level, y, laws, most) >= 0


@pytest.mark.parametrize("y", [Fraction(k, 6) for k in range(1, 6)] + [Fraction(11, 12)])
def test_the_guard_in_closed_form(y):
    """Lemma W4: both sums of W3b at every n from 1 on, for every guard around the least one."""

    def sums(n_g):
        below = [(n_g - k + 1) * (1 - mass_from(y, k)) - mean_from(y, k) for k in range(1, n_g)]
        return below + [(n_g + a + 1) * mass_from(y, a + 1) - mean_from(y, a + 1) for a in range(40)]

    least_guard = guard(y, Fraction(1, 2), 0)
    assert [min(sums(n_g)) >= 0 for n_g in range(1, least_guard + 20)] == [
        guarded(y, k) for k in range(1, least_guard + 20)
    ]
    assert all(guarded(y, k) == (k >= least_guard) for k in range(1, least_guard + 20))
