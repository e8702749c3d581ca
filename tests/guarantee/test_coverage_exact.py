"""Theorems C1 to C4: coverage by exact enumeration of small cases, with equal and rising weights."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from confide.guarantee import RecordCount, TargetGoal, TargetLine, line_holds, sharp_coverage
from confide.guarantee.random_rank import (
    competitor_ratio_right,
    conditional_failure,
    marginal_coverage,
    mean_overshoot,
    tail,
)
from confide.mechanisms.interface import certify
from confide.mechanisms.slopes import Slopes, slopes_for
from tests import designs
from tests.builders import slow
from tests.exact import histograms, mechanism_law, stepped, worst_coverage


@pytest.mark.slow
@pytest.mark.parametrize("slopes", [(13, 7), (1, 1), (9, 1), (2, 3)])
@pytest.mark.parametrize("epsilon", [1.0, 2.0])
def test_public_certificate_never_exceeds_the_exact_minimum(slopes, epsilon):
    """Theorem C2a, for whole and fractional target ranks."""
    for n, m in [(7, 4), (9, 3), (6, 5)]:
        for target in (Fraction(1), Fraction(7, 2), n - Fraction(3, 4), n - Fraction(1, 16), Fraction(n)):
            mechanism = slopes_for(Fraction(0), target, *slopes, "replace_one", epsilon)
            promised = sharp_coverage(n, target, mechanism.noise(m))
            assert worst_coverage(mechanism, n, m) >= promised - 1e-12


@pytest.mark.slow
def test_public_certificate_is_nearly_exact():
    """At T = n the certificate is within 0.015 of the exact minimum, and well above the random-rank lemma."""
    for n, m, left, right in [(8, 4, 18, 7), (10, 4, 1, 1), (12, 4, 7, 3)]:
        mechanism = slopes_for(Fraction(0), Fraction(n), left, right, "replace_one", 2.0)
        slope = mechanism.slope_left
        exact = worst_coverage(mechanism, n, m)
        sharp = float(sharp_coverage(n, Fraction(n), mechanism.noise(m)))
        assert 0 <= exact - sharp < 0.015
        assert sharp > marginal_coverage(n, n, slope, m - 1) + 0.03


@pytest.mark.slow(unless=("0.2-6.0-3", "0.5-2.0-4"))
@pytest.mark.parametrize(
    ("alpha", "epsilon", "m"), [("0.5", 2.0, 4), ("0.3", 4.0, 4), ("0.2", 6.0, 3), ("0.4", 3.0, 5)]
)
def test_planned_public_mechanism_covers(alpha, epsilon, m):
    """The mechanism of `calibrate(..., neighbors="replace_one")`, for every multiset of scores."""
    plan = planned(9 if m < 5 else 7, m, alpha=alpha, epsilon=epsilon)
    assert plan.mechanism is not None
    claimed = certify(plan.mechanism, plan.terms.alpha, m, RecordCount(plan.guarantee.n), None).coverage
    assert 1 - Fraction(alpha) <= Fraction(claimed) + Fraction(1, 10**15)
    assert worst_coverage(plan.mechanism, plan.n, m) >= claimed - 1e-12


AHEAD = {
    3: [(0, 0, 0), (0, 0.6, 1.2), (0, 0, 2), (0, 3, 3)],
    4: [(0, 0, 0, 0), (0, 0.5, 1, 1.5), (0, 0, 0, 2), (0, 2, 2, 2), (0, 0, 0.3, 4), (0, 1.1, 1.1, 2.4)],
    5: [(0, 0, 0, 0, 0), (0, 0, 0.4, 0.8, 1.2), (0, 0, 0, 3, 3), (0, 0.2, 1.5, 1.6, 5)],
}
"""Prior log-odds of m candidates relative to the first: none, equal steps, one step at any place, and others."""


def finely(mechanism, by=64):
    """The same mechanism in smaller units, so that heights can be distinguished."""
    return Slopes(**{**vars(mechanism), "left": by * mechanism.left, "right": by * mechanism.right,
                     "scale": by * mechanism.scale})  # fmt: skip


def public(n, target, left, right, epsilon):
    return finely(slopes_for(Fraction(0), target, left, right, "replace_one", epsilon))


def planned(n, m, **options):
    stated = {name: options.pop(name, None) for name in ("slopes", "rise")}
    choices = {"neighbors": "replace_one"} | options
    return designs.planned(designs.terms(candidates=m, **choices), n, **stated)


@pytest.mark.slow
@pytest.mark.parametrize("slopes", [(13, 7), *slow([((9, 1),), ((2, 3),)])])
@pytest.mark.parametrize(("n", "m", "epsilon"), [(9, 3, 2.0), *slow([(7, 4, 1.0), (6, 5, 2.0)])])
def test_rising_certificate_never_exceeds_the_exact_minimum(slopes, n, m, epsilon):
    """Theorem C2a with G in place of m - 1, for whole and fractional target ranks."""
    for target in (Fraction(1), Fraction(7, 2), n - Fraction(3, 4), n - Fraction(1, 16), Fraction(n)):
        for ahead in AHEAD[m]:
            mechanism = stepped(public(n, target, *slopes, epsilon), ahead)
            promised = mechanism.certified(Fraction(1, 2), m, RecordCount(n))
            assert worst_coverage(mechanism, n, m) >= promised - 1e-12


@pytest.mark.slow
def test_rising_certificate_is_nearly_exact():
    """At T = n it is within 0.01 of the minimum, and exact in one case; without the heights it is much further away."""
    given_away = []
    n = 8
    for ahead in [(0, 0.5, 1, 1.5), (0, 0.4, 0.4, 0.4), (0, 1, 2, 3)]:
        mechanism = stepped(public(n, Fraction(n), 18, 7, 2.0), ahead)
        exact = worst_coverage(mechanism, n, 4)
        sharp = float(mechanism.certified(Fraction(1, 2), 4, RecordCount(n)))
        flat = float(sharp_coverage(n, Fraction(n), replace(mechanism.noise(4), rivals=3.0)))
        assert 0 <= exact - sharp < 0.01
        assert mechanism.rivals(4) < 3
        assert sharp > flat + (0.003 if ahead[1] == ahead[3] else 0.025)
        given_away.append(exact - sharp)
    assert min(given_away) < 1e-4


PLANS = [
    ("0.5", 1.0, 4, 1.5, None),
    ("0.1", 1.0, 4, 0.7, None),
    ("0.1", 1.0, 4, 0.7, (1, 1)),
    ("0.2", 1.0, 3, 1.0, (1, 1)),
    ("0.1", 3.0, 4, 3.0, (13, 7)),
    ("0.2", 2.0, 5, 0.5, (1, 1)),
    ("0.3", 2.0, 4, 0.7, None),
    ("0.3", 0.5, 4, 20.0, None),
]


@pytest.mark.parametrize(("alpha", "epsilon", "m", "rise", "slopes"), PLANS)
def test_planned_public_rise_covers(alpha, epsilon, m, rise, slopes):
    """The mechanism of `calibrate(..., neighbors="replace_one")` with a rise, for every multiset of scores."""
    n = 9 if m < 5 else 7
    plan = planned(n, m, alpha=alpha, epsilon=max(epsilon, 3.0), rise=rise, slopes=slopes)
    if plan.mechanism is None:
        assert (alpha, n) == ("0.1", 9)  # (n + 1)(1 - alpha) is n itself: no rank is left for the noise
        return
    assert plan.mechanism.rivals(m) < m - 1
    claimed = certify(plan.mechanism, plan.terms.alpha, m, RecordCount(n), None).coverage
    assert claimed >= float(1 - plan.terms.alpha)
    assert worst_coverage(plan.mechanism, n, m) >= claimed - 1e-12


LINES = [(Fraction(0), Fraction(13, 2)), (Fraction(0), Fraction(4)), (Fraction(4, 5), Fraction(5, 2))]


@pytest.mark.slow(unless="2-4")
@pytest.mark.parametrize(("n", "m"), [(8, 4), (6, 5), (2, 4)])
def test_rank_deficit_is_dominated_by_the_tail(n, m):
    """Theorem C1 with G: P(B_J < r) <= tail(T - r + 1), and the law of the random rank is that of the tail."""
    for rate, offset in LINES:
        base = finely(slopes_for(rate, offset, 3, 1, "add_remove", 1.5))
        for ahead in AHEAD[m]:
            mechanism = stepped(base, ahead)
            target, slope, rivals = float(mechanism.target(n)), mechanism.slope_left, mechanism.rivals(m)
            short = np.arange(1, int(np.ceil(target)) + 1)
            bounds = tail(target - short + 1, slope, rivals)
            ranks, probabilities, bottom = mechanism.rank_law(n, m)
            law = bottom + np.array([probabilities[ranks < r].sum() for r in short])
            np.testing.assert_allclose(law, bounds, atol=1e-12)
            for h in histograms(n, m):
                reached = np.cumsum(h).astype(float)
                reached[-1] = np.inf
                p = mechanism_law(mechanism, h)
                assert ((reached < short[:, None]) @ p <= bounds + 1e-12).all()


@pytest.mark.slow
@pytest.mark.parametrize(("n", "m"), [(8, 4), (6, 5)])
def test_rising_rank_excess_is_dominated_by_the_tail(n, m):
    """Theorem C4: P(A_J - T >= d) <= tail(d) with heavier competitors and the bonus of +inf, and its mean."""
    for rate, offset in [(Fraction(0), Fraction(5, 2)), (Fraction(1, 2), Fraction(-3, 4))]:
        base = finely(slopes_for(rate, offset, 2, 3, "add_remove", 2.5))
        for ahead, start in zip(AHEAD[m] * 2, [0, 1.5, 4, 0.5, 0, 2, 3], strict=False):
            started = Slopes(**{**vars(base), "head_start": int(start * base.scale), "fade": int(0.1 * base.scale)})
            mechanism = stepped(started, ahead)
            weights = mechanism.log_prior_weights(m) / mechanism.scale
            weights[-1] += max(0, mechanism.head_start - n * mechanism.fade) / mechanism.scale
            target, right = float(mechanism.target(n)), competitor_ratio_right(weights)
            assert right == pytest.approx(max(np.exp(weights[j + 1 :] - weights[j]).sum() for j in range(m - 1)))
            beyond = np.arange(1, 4 * n) / 4
            bounds = tail(beyond, mechanism.slope_right, right)
            mean = mechanism.overshoot(n, m)
            assert mean == mean_overshoot(mechanism.slope_right, right)
            for h in histograms(n, m):
                excess = np.cumsum((0, *h))[:-1] - target
                p = mechanism_law(mechanism, h)
                assert ((excess >= beyond[:, None]) @ p <= bounds + 1e-12).all()
                assert p @ np.maximum(excess, 0) <= mean + 1e-12


def test_heavier_competitors_need_a_separate_tail():
    """Neither the tail of lighter competitors nor one without the bonus is enough for Theorem C4."""
    base = finely(slopes_for(Fraction(0), Fraction(2), 2, 3, "replace_one", 2.5))
    mechanism = stepped(base, (0, 0, 0, 3))
    headed = Slopes(**{**vars(base), "head_start": int(3 * base.scale)})
    h = (2, 0, 4, 0)
    for made in (mechanism, headed):
        beyond = mechanism_law(made, h)[3]  # six ranks lie before +inf, four beyond the target
        right = np.expm1(3) + 3
        assert beyond > tail(np.array(4.0), made.slope_right, 3)
        assert beyond <= tail(np.array(4.0), made.slope_right, right)
        lighter = slopes_for(Fraction(0), Fraction(2), 2, 3, "replace_one", 2.5).overshoot(6, 4)
        assert made.overshoot(6, 4) > 2 * lighter


MASSES = [(0.35, 0.24, 0.4, 0.01), (0.59, 0.01, 0.2, 0.2), (0.1, 0.49, 0.4, 0.01)]
"""P(score in bin j) of discrete laws, for which the coverage of a threshold is known."""


def worst_failure(mechanism, n, level):
    """The largest P(coverage given the data < level), each an exact sum over all samples of n scores."""
    samples = histograms(n, 4)
    laws = np.array([mechanism_law(mechanism, h) for h in samples])
    failing = (np.append(np.cumsum(masses)[:-1], 1.0) < level for masses in MASSES)
    each = (stats.multinomial(n, masses).pmf(np.array(samples)) for masses in MASSES)
    return max(p @ laws[:, bad].sum(axis=1) for p, bad in zip(each, failing, strict=True))


@pytest.mark.slow
def test_rising_conditional_failure_bounds_the_exact_failure():
    """Theorem C1b with G, for a public n: the exact sum over all samples, and a bound that is not loose."""
    closest = np.inf
    for ahead in AHEAD[4]:
        mechanism = stepped(public(12, Fraction(10), 3, 1, 3.0), ahead)
        bound = conditional_failure(12, 0.6, 10.0, mechanism.slope_left, mechanism.rivals(4))
        exact = worst_failure(mechanism, 12, 0.6)
        assert exact <= bound < 1
        closest = min(closest, bound / exact)
    assert closest < 3


@pytest.mark.slow
def test_secret_line_bounds_the_exact_failure_at_every_n():
    """Theorem C3 with G: the smallest delta that the certificate admits is not exceeded at any n, for any heights."""
    base = finely(slopes_for(Fraction(4, 5), Fraction(2), 3, 1, "add_remove", 4.0))
    for ahead in AHEAD[4][:3]:
        mechanism = stepped(base, ahead)

        def holds(delta, mechanism=mechanism):
            goal = TargetGoal(Fraction(3, 5), delta, n_min=1)
            return line_holds(TargetLine(mechanism.rate, mechanism.offset), goal, mechanism.noise(4))

        deltas = np.geomspace(1e-3, 0.9, 40)
        kept = min(delta for delta in deltas if holds(float(delta)))
        worst = max(worst_failure(mechanism, n, 0.6) for n in range(1, 11))
        assert worst <= kept < 0.9


@pytest.mark.slow
@pytest.mark.parametrize("neighbors", ["replace_one", "add_remove"])
def test_planned_training_conditional_mechanism_with_a_rise(neighbors):
    """The failure probability is at most delta, by the exact sum over all samples; a rise lowers the target."""
    options = {"alpha": "0.4", "epsilon": 2.0, "delta": "0.2", "neighbors": neighbors, "slopes": (3, 1)}
    flat, rising = (planned(12, 4, rise=rise, **options).mechanism for rise in (0.0, 2.0))
    assert rising.target(12) < flat.target(12)
    for n in [12] if neighbors == "replace_one" else range(1, 13):
        assert worst_failure(rising, n, 0.6) <= 0.2
