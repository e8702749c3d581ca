"""The competitor ratio G, the only property of the prior weights in the certificates, and fractional values of it."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate

from confide.guarantee.random_rank import competitor_ratio, competitor_ratio_right, mean_overshoot, tail
from confide.mechanisms.slopes import Slopes


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


@pytest.mark.parametrize("rivals", [1e-3, 0.3, 1.0, 2.7, 48.2, 4000.5])
@pytest.mark.parametrize("p", [1.0, 0.6, 1e-2, 3e-6, 1e-9])
def test_tails_for_fractional_competitor_ratios(rivals, p):
    """G p / (1 + G p), with its digits."""
    together = rivals * p
    assert float(tail(np.array(-math.log(p)), 1.0, rivals)) == pytest.approx(together / (1 + together), rel=1e-12)


@pytest.mark.parametrize(("slope", "rivals"), [(0.3, 0.4), (1.0, 1.0), (0.5, 20.5), (0.05, 3000.0)])
def test_mean_overshoot_for_fractional_competitor_ratios(slope, rivals):
    def missed(d):
        return float(tail(np.array(d), slope, rivals))

    corner = max(math.log(rivals), 0.0) / slope
    first, _ = integrate.quad(missed, 0, corner, limit=300)
    last, _ = integrate.quad(missed, corner, corner + 40 / slope, limit=300)
    assert mean_overshoot(slope, rivals) == pytest.approx(first + last, rel=1e-5)


def test_log_weights_are_heights_plus_the_remaining_head_start():
    """In units of the scale. The prior bonus belongs to +inf, and fades with n to 0."""
    mechanism = Slopes(Fraction(9, 10), Fraction(2), 9, 11, 180.0, 585, 6, Fraction(1, 2), 2520)
    heights = mechanism.log_prior_weights(4)
    for n, ahead in ((0, 585), (20, 465), (97, 3), (98, 0), (1000, 0)):
        wanted = (heights + np.array([0, 0, 0, ahead])) / 180
        np.testing.assert_allclose(mechanism.log_weights(4, n), wanted, rtol=1e-12)
