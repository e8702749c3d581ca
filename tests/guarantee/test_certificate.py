"""The numerical parts of the certificates: the concave program, its quadrature, the searches over targets."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate

from confide.guarantee.certificate import secret_shortfall, sharp_loss, sharp_loss_within, sharp_losses
from confide.guarantee.conditional import line_holds, public_target, secret_offset, tangent_rate
from confide.guarantee.marginal import public_shift, secret_prior_bonus, secret_shift
from confide.guarantee.random_rank import conditional_failure, mean_overshoot, rank_law, tail
from tests.builders import slow


def phi(counts, weights):
    """The probability that one of the candidates beats a competitor of weight 1."""
    total = float(counts @ weights)
    return total / (1 + total)


@pytest.mark.parametrize(
    ("x", "slope", "m"), [(1.0, 0.7, 50), *slow([(0.25, 1.3, 200), (4.0, 0.5, 30), (1.0, 3.0, 1000)])]
)
def test_sharp_loss_bounds_every_spread(x, slope, m):
    """L is above sum_e phi(K_e, K_(e+1), ...) for random spreads K, and some spread comes close."""
    rng = np.random.default_rng(5)
    bound = sharp_loss(x, slope, m - 1)
    depth = 40
    weights = np.exp(-slope * np.maximum(np.arange(depth) + x - 1, 0))
    best = 0.0
    spreads = [rng.multinomial(m - 1, rng.dirichlet(np.exp(-np.arange(depth) / rng.uniform(1, 8)))) for _ in range(40)]
    spreads += [np.eye(depth, dtype=int)[d] * (m - 1) for d in range(12)]
    for spread in spreads:
        total = sum(phi(spread[e:].astype(float), weights[e:]) for e in range(depth) if spread[e:].any())
        assert total <= bound + 1e-6
        best = max(best, total)
    assert best > 0.75 * bound


@pytest.mark.parametrize("slope", [0.01, 0.1, 0.7, 2.0])
def test_sharp_loss_grows_at_most_by_one_per_unit(slope):
    """h(x) = L(x) + x <= h(x + 1), and L falls with x. Therefore one unit interval is enough for all n."""
    for m in (2, 30, 1000):
        values = [sharp_loss(x, slope, m - 1) for x in (0.25, 0.5, 1.0, 1.25, 2.0, 2.25, 3.0, 8.0, 9.0)]
        slack = 2e-3 / min(slope, 1)
        assert all(a >= b - slack for a, b in itertools.pairwise(values))
        for low, high in [(0.25, 1.25), (1.0, 2.0), (1.25, 2.25), (2.0, 3.0), (8.0, 9.0)]:
            assert sharp_loss(low, slope, m - 1) <= 1 + sharp_loss(high, slope, m - 1) + slack


@pytest.mark.parametrize(("slope", "rivals"), [(0.05, 30.0), (0.7, 199.0), (0.7, 0.0), (3.0, 9.0), (1e5, 99.0)])
def test_sharp_loss_within_agrees_with_the_loss(slope, rivals):
    """Losses computed together equal single ones, and `sharp_loss_within` agrees with them."""
    x, competitor = np.array([0.1, 1.0, 0.4, 9.0, 2000.0, 0.5]), np.array([0.3, 1.0, 0.9, 1.0, 1.0, 0.0])
    alone = [sharp_loss(at, slope, rivals, competitor=c) for at, c in zip(x.tolist(), competitor.tolist(), strict=True)]
    assert sharp_losses(x, slope, rivals, competitor).tolist() == alone
    slack = 2e-3 / min(slope, 1) if slope > 0.5 else 0.01 / slope
    for at, lost in zip(x.tolist(), sharp_losses(x, slope, rivals).tolist(), strict=True):
        assert sharp_loss_within(lost + 1e-9, at, slope, rivals)
        assert sharp_loss_within(lost + 1, at, slope, rivals)
        assert not sharp_loss_within(lost - slack, at, slope, rivals)
        assert not sharp_loss_within(lost - 1e-7, at, slope, rivals)  # nor a lower bound
        assert not sharp_loss_within(-0.1, at, slope, rivals)


def test_sharp_loss_saves_ranks_against_the_lemma():
    """Ranks saved at slope 0.72: 6.4 -> 3.9, 9.6 -> 6.9, 12.8 -> 10.0."""
    for m, lemma, sharp in [(100, 6.4, 3.9), (1000, 9.6, 6.9), (10000, 12.8, 10.0)]:
        assert mean_overshoot(0.72, m - 1) == pytest.approx(lemma, abs=0.06)
        assert sharp_loss(1.0, 0.72, m - 1) - 1 == pytest.approx(sharp, abs=0.06)


def test_tail_keeps_its_digits():
    for p in (1.0, 0.5, 1e-3, 1e-6, 1e-9, 1e-12):
        for m in (1, 2, 50, 5000):
            got = float(tail(np.array(-math.log(p)), 1.0, m - 1))
            want = (m - 1) * p / (1 + (m - 1) * p)
            assert got == pytest.approx(want, rel=1e-9, abs=1e-300)


def test_mean_overshoot_is_the_integral_of_the_tail():
    for slope, m in [(0.3, 10), (1.0, 1000), (0.05, 200)]:
        want, _ = integrate.quad(lambda d: float(tail(np.array(d), slope, m - 1)), 0, 60 / slope, limit=500)  # noqa: B023
        assert mean_overshoot(slope, m - 1) == pytest.approx(want, rel=1e-6)


def test_rank_law_is_a_law():
    for target, slope, m in [(90.0, 1.0, 100), (3.5, 0.1, 10), (1000.25, 0.72, 1000)]:
        ranks, probabilities, bottom = rank_law(target, slope, m - 1)
        assert probabilities.min() >= 0
        assert bottom >= 0
        assert probabilities.sum() + bottom == pytest.approx(1.0, abs=1e-12)
        assert ranks[-1] == math.ceil(target)


def test_public_shift_is_the_smallest():
    from confide.guarantee.certificate import public_coverage

    for n, level, m in [(1000, Fraction(9, 10), 1000), (200, Fraction(4, 5), 50), (60, Fraction(1, 2), 7)]:
        target = public_shift(n, level, 0.7, 0.3, m - 1, 16)
        assert public_coverage(n, target, 0.7, 0.3, m - 1) >= level
        assert public_coverage(n, target - Fraction(1, 16), 0.7, 0.3, m - 1) < level
    assert public_shift(9, Fraction(9, 10), 0.7, 0.3, 999, 16) is None


def test_secret_offset_and_head_start_serve_every_n():
    """The two searched intervals cover all n: check the condition itself at each n up to 400."""
    level, left, right, rivals = Fraction(9, 10), 0.78, 0.33, 299
    offset = secret_shift(level, left, right, rivals, 20)
    ahead = secret_prior_bonus(level, offset, 0.0, 1, left, right, rivals)
    assert secret_shortfall(level, offset, ahead, 0.0, 1, left, right, rivals) <= 0
    assert secret_shortfall(level, offset, 0.8 * ahead, 0.0, 1, left, right, rivals) > 0
    for n in range(1, 400):
        target = level * (n + 1) + offset
        top = math.ceil(target)
        if top <= n:
            f = float(target - top + 1)
            lost = n - top + sharp_loss(f, left, rivals, competitor=math.exp(-right * (1 - f)))
        else:
            lost = sharp_loss(float(target - n + 1) + ahead, left, rivals)
        assert 1 - lost / (n + 1) >= float(level) - 1e-12


@pytest.mark.parametrize(("level", "delta", "n_min"), [(Fraction(9, 10), 0.05, 1), (Fraction(4, 5), 0.01, 50)])
def test_secret_line_holds_at_every_n(level, delta, n_min):
    """Theorem C3, by evaluating Theorem C1b at every n in a long range, and at powers of two far beyond."""
    rate = tangent_rate(level, delta, 500)
    offset = secret_offset(rate, level, delta, n_min, 500, 0.8, 99, 20)
    sizes = [*range(n_min, 1500), *(2**k for k in range(11, 26))]
    worst = max(conditional_failure(n, float(level), float(rate * (n + 1) + offset), 0.8, 99) for n in sizes)
    assert 0.3 * delta < worst <= delta
    assert not line_holds(rate, offset - 3, level, delta, n_min, 0.8, 99)


def test_public_target_is_the_smallest():
    target = public_target(800, Fraction(9, 10), 0.05, 0.7, 299, 16)
    assert conditional_failure(800, 0.9, float(target), 0.7, 299) <= 0.05
    assert conditional_failure(800, 0.9, float(target) - 1 / 16, 0.7, 299) > 0.05
    assert public_target(20, Fraction(9, 10), 0.05, 0.7, 299, 16) is None
