"""Theorems C1 to C4: coverage, by exact leave-one-out enumeration of small cases."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from confide.guarantee.certificate import sharp_coverage
from confide.guarantee.random_rank import conditional_failure, marginal_coverage, tail
from confide.mechanisms.certify import certify
from confide.mechanisms.slopes import slopes_for
from tests import designs
from tests.exact import histograms, mechanism_law, worst_coverage


def planned(n, m, **options):
    return designs.planned(designs.terms(candidates=m, **({"neighbors": "replace_one"} | options)), n)


@pytest.mark.slow
@pytest.mark.parametrize("slopes", [(13, 7), (1, 1), (9, 1), (2, 3)])
@pytest.mark.parametrize("epsilon", [1.0, 2.0])
def test_public_certificate_never_exceeds_the_exact_minimum(slopes, epsilon):
    """Theorem C2a, for whole and fractional target ranks."""
    for n, m in [(7, 4), (9, 3), (6, 5)]:
        for target in (
            Fraction(1),
            Fraction(7, 2),
            Fraction(n) - Fraction(3, 4),
            Fraction(n) - Fraction(1, 16),
            Fraction(n),
        ):
            mechanism = slopes_for(Fraction(0), target, *slopes, "replace_one", epsilon)
            promised = sharp_coverage(n, target, mechanism.noise(m))
            assert worst_coverage(mechanism, n, m) >= promised - 1e-12


def test_public_certificate_is_nearly_exact():
    """At T = n the certificate is within 0.015 of the exact minimum, and well above the random-rank lemma."""
    for n, m, left, right in [(8, 4, 18, 7), (10, 4, 1, 1), (12, 4, 7, 3)]:
        mechanism = slopes_for(Fraction(0), Fraction(n), left, right, "replace_one", 2.0)
        slope = mechanism.slope_left
        exact = worst_coverage(mechanism, n, m)
        sharp = float(sharp_coverage(n, Fraction(n), mechanism.noise(m)))
        assert 0 <= exact - sharp < 0.015
        assert sharp > marginal_coverage(n, n, slope, m - 1) + 0.03


@pytest.mark.parametrize(
    ("alpha", "epsilon", "m"), [("0.5", 2.0, 4), ("0.3", 4.0, 4), ("0.2", 6.0, 3), ("0.4", 3.0, 5)]
)
def test_planned_public_mechanism_covers(alpha, epsilon, m):
    """The mechanism of `calibrate(..., neighbors="replace_one")`, for every multiset of scores."""
    plan = planned(9 if m < 5 else 7, m, alpha=alpha, epsilon=epsilon)
    assert plan.mechanism is not None
    claimed = certify(plan.mechanism, plan.terms.alpha, m, plan.guarantee.n, None, None).coverage
    assert 1 - Fraction(alpha) <= Fraction(claimed) + Fraction(1, 10**15)
    assert worst_coverage(plan.mechanism, plan.n, m) >= claimed - 1e-12


@pytest.mark.slow
def test_rank_deficit_is_dominated_by_the_tail():
    """Theorem C1: P(B_J < r) <= tail(T - r + 1), for all counts; B_J of the infinite candidate counts as n + 1."""
    for rate, offset in [(Fraction(0), Fraction(13, 2)), (Fraction(0), Fraction(4)), (Fraction(4, 5), Fraction(5, 2))]:
        mechanism = slopes_for(rate, offset, 3, 1, "add_remove", 1.5)
        for n, m in [(8, 4), (6, 5), (2, 4)]:
            target = float(mechanism.target(n))
            for h in histograms(n, m):
                reached = np.cumsum(h).astype(float)
                reached[-1] = np.inf
                p = mechanism_law(mechanism, h)
                for r in range(1, int(np.ceil(target)) + 1):
                    bound = tail(np.array(target - r + 1), mechanism.slope_left, m - 1)
                    assert p[reached < r].sum() <= bound + 1e-12


def test_rank_excess_is_dominated_by_the_tail():
    """Theorem C4: P(A_J - T >= d) <= tail(d) with the right slope."""
    mechanism = slopes_for(Fraction(0), Fraction(7, 2), 3, 2, "replace_one", 1.5)
    for n, m in [(8, 4), (6, 5)]:
        for h in histograms(n, m):
            begins = np.cumsum((0, *h))[:-1]
            p = mechanism_law(mechanism, h)
            for d in np.arange(0.5, n - 3):
                bound = tail(np.array(d), mechanism.slope_right, m - 1)
                assert p[begins - 3.5 >= d].sum() <= bound + 1e-12


def test_conditional_failure_bounds_the_exact_failure():
    """Theorem C1b on two-point scores, where the coverage of each threshold is known: an exact sum over all samples."""
    n, level, edges = 12, 0.6, 3
    masses = np.array([0.35, 0.24, 0.4, 0.01])  # P(score in bin j)
    coverage = np.cumsum(masses)
    coverage[-1] = 1.0
    mechanism = slopes_for(Fraction(0), Fraction(10), 3, 1, "replace_one", 3.0)
    failure = 0.0
    for h in histograms(n, edges + 1):
        weight = stats.multinomial(n, masses).pmf(h)
        failure += weight * mechanism_law(mechanism, h)[coverage < level].sum()
    bound = conditional_failure(n, level, 10.0, mechanism.slope_left, edges)
    assert failure <= bound < 1
    assert bound < 10 * failure
