"""Lemma P3: the zCDP loss of a range, compared with exact divergences of every order, and its inverse."""

import math
from fractions import Fraction

import numpy as np
import pytest

from confide.mechanisms import slopes_for
from confide.selection import range_of_zcdp, zcdp_of_range
from confide.support import float_above
from tests.exact import histograms, mechanism_law, renyi, replaced, zcdp

RANGES = [1e-3, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 20.0, 60.0]
ORDERS = [1 + 1e-4, 1.01, 1.1, 1.25, 1.5, 1.75, 1.99, 2.0, 2.01, 2.5, 3.0, 5.0, 10.0, 50.0, 1e3]


def two_points(eta, order):
    """The Renyi divergences of this order of all two-point laws whose log-odds differ by eta, on a fine grid."""
    start = np.linspace(-order * eta - 20, 20, 20001)  # log-odds of the second law
    log_odds = [np.logaddexp(0, start + eta * step) for step in (0.0, 1.0, order)]
    return (log_odds[2] - order * log_odds[1] + (order - 1) * log_odds[0]) / (order - 1)


@pytest.mark.parametrize("eta", RANGES)
def test_every_order_of_every_two_point_law(eta):
    """No order is above order * rho, and those near 1 are as close as the grid allows: no smaller number is valid."""
    rho = zcdp_of_range(eta)
    rounding = 1e-9 if eta >= 0.5 else 1e-5
    for order in ORDERS:
        allowed = 1e-14 * (1 + order * (eta + 20)) / (order - 1)  # error of the subtracted floats
        assert two_points(eta, order).max() <= order * rho + allowed
    start = np.linspace(-eta - 20, 20, 400001)
    p = 1 / (1 + np.exp(-start - eta))
    kl = np.logaddexp(0, start) - np.logaddexp(0, start + eta) + eta * p
    assert kl.max() == pytest.approx(rho, rel=rounding)


def test_a_smaller_bound_would_fail():
    """The test above detects errors: it fails for a loss that is 0.1 % smaller."""
    assert two_points(2.0, 1 + 1e-4).max() > (1 + 1e-4) * 0.999 * zcdp_of_range(2.0)


@pytest.mark.slow
@pytest.mark.parametrize(("slopes", "epsilon"), [((13, 7), 1.0), ((3, 1), 2.5), ((1, 1), 6.0)])
def test_enumerated_laws_of_the_exponential_mechanism(slopes, epsilon):
    """Every order, for all neighbouring histograms; 2.5 and 6 are ranges where epsilon^2/8 is much too large."""
    mechanism = slopes_for(Fraction(0), Fraction(4), *slopes, "replace_one", epsilon)
    rho, laws = zcdp_of_range(mechanism.replace_one), {h: mechanism_law(mechanism, h) for h in histograms(6, 4)}
    worst = max(
        renyi(laws[h], laws[g], order) / order for h in laws for g in replaced(h) for order in (1.0001, 1.5, 2, 4, 16)
    )
    assert 0.5 * rho < worst <= rho + 1e-9


def test_never_below_and_at_most_a_float_above():
    for eta in [1e-12, 1e-9, 1e-6, 1e-3, *(i / 97 for i in range(1, 400)), 50.0, 700.0, 1e4, 1e6]:
        stated = zcdp_of_range(eta)
        assert Fraction(math.nextafter(stated, 0)) < zcdp(eta) <= Fraction(stated)
        assert stated <= float_above(Fraction(eta) ** 2 / 8)
        both = zcdp_of_range(eta, eta)
        assert Fraction(math.nextafter(both, 0)) < 2 * zcdp(eta) <= Fraction(both) <= Fraction(zcdp_of_range(2 * eta))
    assert zcdp_of_range(0.0) == zcdp_of_range() == 0.0
    assert zcdp_of_range(math.inf, 1.0) == math.inf


def test_the_largest_range_that_a_loss_allows():
    for rho in [1e-14, 1e-9, 1e-6, 0.01, 0.125, 0.5, 1.0, 2.0, 7.77, 100.0, 9e5]:
        eta = range_of_zcdp(rho)
        assert zcdp_of_range(eta) <= rho < zcdp_of_range(math.nextafter(eta, math.inf))
        assert eta >= math.sqrt(8 * rho) * (1 - 1e-15)
    assert [round(range_of_zcdp(rho), 3) for rho in (0.125, 0.5, 2.0)] == [1.007, 2.056, 4.453]
    assert range_of_zcdp(1e6) == 1e6
