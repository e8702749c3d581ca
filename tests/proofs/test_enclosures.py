"""The integrals of the certificates between two floats: the guarantees hold despite quadrature and rounding."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from confide import plan
from confide.guarantee import RecordCount, two_sided
from confide.guarantee.certificate import sharp_coverage, sharp_loss, sharp_target_rank, worst_loss
from confide.guarantee.random_rank import SlopeNoise, conditional_failure, tail
from confide.guarantee.two_sided import two_sided_holds, two_sided_loss
from confide.mechanisms.interface import certify
from tests.proofs.enclosures import Box, Sharp, errors, watched


def test_exponentials():
    """The exp of `intervals` compared with mpmath's interval arithmetic, and ln 2; 1e-12 wide at most."""
    mpmath.iv.dps = 30
    for x in [0.0, 1e-9, 0.3, math.log(2) / 2, 0.7, 5.0, 33.3, 300.0, *np.geomspace(1e-6, 200, 150)]:
        found, true = Box.of(x).exp_minus(), mpmath.iv.exp(-mpmath.iv.mpf(float(x)))
        assert found.low <= true.a
        assert true.b <= found.high
        assert found.high - found.low <= 1e-12 * found.high


def test_sharp_losses_are_above_their_enclosures():
    """The library's L(x) is proved by its enclosure, which is lower by less than 1e-9."""
    for x, slope, rivals in [(1.0, 0.72, 200.0), (2.3, 1.3, 28.0), (1.0, 0.021, 999.0), (1.0, 0.005, 5.0)]:
        assert 0 <= sharp_loss(x, slope, rivals) - Sharp(x, slope, rivals).bound() <= 1e-9


def proven_coverage(n, target, left, right, rivals):
    """Marginal coverage by the enclosure of L(x), as a fraction."""
    top = math.ceil(target)
    x = float(target - top + 1)
    lost = Sharp(x, left, rivals, math.exp(-right * (1 - x)) * (1 - 1e-15)).bound()
    return (top + 1 - Fraction(lost)) / (n + 1)


@pytest.mark.slow
@pytest.mark.parametrize("rivals", [8.2, 36.5, 480.0])
def test_sharp_targets_keep_their_promise(rivals):
    """Every target rank that the sharp certificate gives, for public n, proves its level by the enclosure alone."""
    for level in (Fraction(8, 10), Fraction(9, 10), Fraction(95, 100)):
        for left, right in [(0.45, 0.55), (0.7, 0.3), (0.1, 0.1), (1.5, 1.5)]:
            noise = SlopeNoise(left, right, rivals)
            target = sharp_target_rank(2000, level, noise, 16)
            assert target is not None
            proven = proven_coverage(2000, target, left, right, rivals)
            stated = sharp_coverage(2000, target, noise)
            assert proven >= level
            assert 0 <= proven - stated <= 1e-12


@pytest.mark.slow
def test_the_worst_loss_is_one_of_all_fractional_parts():
    """The same for secret n: L(f) + f for every fractional part f that a target rank can have."""
    for left, right, rivals in [(0.45, 0.55, 36.5), (0.8, 0.3, 480.0), (0.2, 0.25, 28.0)]:
        worst = worst_loss(20, SlopeNoise(left, right, rivals))
        for k in range(1, 21):
            lost = Sharp(k / 20, left, rivals, math.exp(-right * (1 - k / 20)) * (1 - 1e-15)).bound()
            assert lost + k / 20 <= worst + 1e-12


@pytest.mark.slow
def test_lines_of_the_two_sided_search(monkeypatch):
    """Some lines of one search, drawn at random, exceed the library's by less than the margin that it adds."""
    with watched(monkeypatch) as found:
        assert two_sided_holds(1000, Fraction(3613, 4), Fraction(9, 10), SlopeNoise(0.45, 0.55, 28.0, step=0.9))
    exceed = errors(found, np.random.default_rng(3), 100)
    assert len(found) > 1000
    assert np.abs(exceed).max() <= 1e-9  # they are the same numbers, and not only upper bounds


@pytest.mark.slow
@pytest.mark.parametrize(
    ("left", "right", "rivals", "step"),
    [
        (0.45, 0.55, 28.0, 0.9),
        (0.7, 0.3, 999.0, 1.0),
        (0.12, 0.13, 60.0, 0.95),
        (1.0, 1.0, 8.2, 0.5),
        (0.03, 0.03, 28.0, 0.97),
        (0.3, 0.7, 3.6, 0.0),
        (2.0, 0.3, 999.0, 0.3),
        (3.0, 1.0, 8.2, 0.3),
        (0.006, 0.006, 20.0, 0.9),
        (1e-3, 0.01, 20.0, 0.9),
    ],
)
def test_lines_of_searches_of_many_kinds(monkeypatch, left, right, rivals, step):
    with watched(monkeypatch) as found:
        noise = SlopeNoise(left, right, rivals, step)
        loss = min(two_sided_loss(1.0, noise, 100), two_sided_loss(0.5, noise, 5, at_least=True))
    assert errors(found, np.random.default_rng(5), 500).max() <= two_sided._SPARE / 10 * max(1.0, loss)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 2.0])
@pytest.mark.parametrize("n", [300, 1000])
def test_promises_of_plans(monkeypatch, epsilon, n):
    """The guarantee of a release, certified again with recorded lines: it holds, and so do the lines."""
    made = plan(0.1, epsilon, n, neighbors="replace_one")
    certify.cache_clear()
    with watched(monkeypatch) as found:
        promise = certify(made.mechanism, made.terms.alpha, made.candidates.size, RecordCount(n), made.terms.delta)
    assert len(found)  # the sharp certificate does not reach it
    assert promise.coverage == 0.9
    assert errors(found, np.random.default_rng(7), 500).max() <= two_sided._SPARE / 10


def test_tails_to_twelve_digits():
    """tail(d) compared with its closed form in intervals of 150 digits."""
    mpmath.iv.dps = 150
    for G, slope in [(0.5, 0.3), (28.0, 0.45), (999.0, 0.05), (1e6, 1.5)]:
        for d in [0.01, 0.5, 1.0, 7.25, 30.0, 80.0]:
            p = mpmath.iv.exp(-mpmath.iv.mpf(slope) * d)
            true, found = G * p / (1 + G * p), float(tail(np.array([d]), slope, G)[0])
            assert found >= true.b * (1 - mpmath.mpf(10) ** -10) - mpmath.mpf(10) ** -15


def binomial_at_least(n, level):
    """P(Bin(n, level) >= r) for r = 0 .. n, in whole numbers over one denominator."""
    a, b = level.numerator, level.denominator
    terms = [math.comb(n, k) * a**k * (b - a) ** (n - k) for k in range(n + 1)]
    sums = [0]
    for term in reversed(terms):
        sums.append(sums[-1] + term)
    return sums[:0:-1], b**n


@pytest.mark.slow
def test_training_conditional_plans_keep_their_promise():
    """Theorem C3, public n: the failure probability in intervals, binomials in whole numbers, is at most delta."""
    made = plan(0.1, 1.0, 500, neighbors="replace_one", delta=0.05)
    one, m = made.mechanism, made.candidates.size
    mpmath.iv.dps = 400  # tails far below the target are e^-200, and differ from 1 - (1 - ...) by that
    n, target, G = 500, made.mechanism.target(500), mpmath.iv.mpf(one.rivals(m))
    slope = mpmath.iv.mpf(one.unit * one.left) / mpmath.iv.mpf(one.scale)
    fails, whole = binomial_at_least(n, Fraction(9, 10))

    def missed(r):
        """tail(T - r + 1), the probability that R < r."""
        d = target - r + 1
        p = mpmath.iv.exp(-slope * d.numerator / d.denominator)
        return G * p / (1 + G * p)

    ranks = range(1, math.ceil(target) + 1)
    below = [missed(r) for r in ranks] + [mpmath.iv.mpf(1)]
    failure = below[0]
    for r, low, high in zip(ranks, below[:-1], below[1:], strict=True):
        failure += (high - low) * (mpmath.iv.mpf(fails[r]) / whole)
    assert failure.b <= mpmath.mpf(5) / 100
    stated = conditional_failure(n, 0.9, float(target), one.slope_left, one.rivals(m))
    assert abs(stated - failure.b) < 1e-9
