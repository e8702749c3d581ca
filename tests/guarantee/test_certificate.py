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
from confide.selection.selector import unit_nodes
from tests.builders import slow

SELECTORS = ["permute_and_flip", "exponential"]


def phi(counts, weights, selector):
    """The probability that one of the candidates beats a competitor of weight 1, by adaptive quadrature."""
    if selector == "exponential":
        total = float(counts @ weights)
        return total / (1 + total)
    keep = counts > 0
    k, w = counts[keep], weights[keep]

    def product(t):  # s = 1 - (1 - t)^2 would do; integrate in log s to resolve small s
        s = math.exp(t)
        return s * float(np.exp(np.sum(k * np.log1p(-np.minimum(s * w, 1 - 1e-16)))))

    value, _ = integrate.quad(product, -60, 0, limit=500)
    return 1 - value


@pytest.mark.parametrize("selector", [SELECTORS[0], *slow(SELECTORS[1:])])
@pytest.mark.parametrize(
    ("x", "slope", "m"), [(1.0, 0.7, 50), *slow([(0.25, 1.3, 200), (4.0, 0.5, 30), (1.0, 3.0, 1000)])]
)
def test_sharp_loss_bounds_every_spread(selector, x, slope, m):
    """L is above sum_e phi(K_e, K_(e+1), ...) for random spreads K, and some spread comes close."""
    rng = np.random.default_rng(5)
    bound = sharp_loss(x, slope, m - 1, selector)
    depth = 40
    weights = np.exp(-slope * np.maximum(np.arange(depth) + x - 1, 0))
    best = 0.0
    spreads = [rng.multinomial(m - 1, rng.dirichlet(np.exp(-np.arange(depth) / rng.uniform(1, 8)))) for _ in range(40)]
    spreads += [np.eye(depth, dtype=int)[d] * (m - 1) for d in range(12)]
    for spread in spreads:
        total = sum(phi(spread[e:].astype(float), weights[e:], selector) for e in range(depth) if spread[e:].any())
        assert total <= bound + 1e-6
        best = max(best, total)
    assert best > 0.75 * bound


@pytest.mark.parametrize("selector", SELECTORS)
@pytest.mark.parametrize("slope", [0.01, 0.1, 0.7, 2.0])
def test_sharp_loss_grows_at_most_by_one_per_unit(selector, slope):
    """h(x) = L(x) + x <= h(x + 1), and L falls with x. Therefore one unit interval is enough for all n."""
    for m in (2, 30, 1000):
        values = [sharp_loss(x, slope, m - 1, selector) for x in (0.25, 0.5, 1.0, 1.25, 2.0, 2.25, 3.0, 8.0, 9.0)]
        slack = 2e-3 / min(slope, 1)
        assert all(a >= b - slack for a, b in itertools.pairwise(values))
        for low, high in [(0.25, 1.25), (1.0, 2.0), (1.25, 2.25), (2.0, 3.0), (8.0, 9.0)]:
            assert sharp_loss(low, slope, m - 1, selector) <= 1 + sharp_loss(high, slope, m - 1, selector) + slack


@pytest.mark.parametrize("selector", SELECTORS)
@pytest.mark.parametrize(("slope", "rivals"), [(0.05, 30.0), (0.7, 199.0), (0.7, 0.0), (3.0, 9.0), (1e5, 99.0)])
def test_sharp_loss_within_agrees_with_the_loss(selector, slope, rivals):
    """Losses computed together equal single ones, and `sharp_loss_within` agrees with them."""
    x, competitor = np.array([0.1, 1.0, 0.4, 9.0, 2000.0, 0.5]), np.array([0.3, 1.0, 0.9, 1.0, 1.0, 0.0])
    alone = [
        sharp_loss(at, slope, rivals, selector, competitor=c)
        for at, c in zip(x.tolist(), competitor.tolist(), strict=True)
    ]
    assert sharp_losses(x, slope, rivals, selector, competitor).tolist() == alone
    slack = 2e-3 / min(slope, 1) if slope > 0.5 else 0.01 / slope
    for at, lost in zip(x.tolist(), sharp_losses(x, slope, rivals, selector).tolist(), strict=True):
        assert sharp_loss_within(lost + 1e-9, at, slope, rivals, selector)
        assert sharp_loss_within(lost + 1, at, slope, rivals, selector)
        assert not sharp_loss_within(lost - slack, at, slope, rivals, selector)
        assert not sharp_loss_within(lost - 1e-7, at, slope, rivals, selector)  # nor a lower bound
        assert not sharp_loss_within(-0.1, at, slope, rivals, selector)


def test_sharp_loss_saves_ranks_against_the_lemma():
    """Ranks saved at slope 0.72: 5.3 -> 3.5, 8.5 -> 6.5, 11.7 -> 9.6."""
    for m, lemma, sharp in [(100, 5.3, 3.5), (1000, 8.5, 6.5), (10000, 11.7, 9.6)]:
        assert mean_overshoot(0.72, m - 1, "permute_and_flip") == pytest.approx(lemma, abs=0.6)
        assert sharp_loss(1.0, 0.72, m - 1, "permute_and_flip") - 1 == pytest.approx(sharp, abs=0.06)


@pytest.mark.parametrize("selector", SELECTORS)
def test_tail_equals_its_integral_and_keeps_its_digits(selector):
    for p in (1.0, 0.5, 1e-3, 1e-6, 1e-9, 1e-12):
        for m in (1, 2, 50, 5000):
            got = float(tail(np.array(-math.log(p)), 1.0, m - 1, selector))
            if selector == "exponential":
                want = (m - 1) * p / (1 + (m - 1) * p)
            else:
                want, _ = integrate.quad(lambda s, m=m, p=p: -math.expm1((m - 1) * math.log1p(-s * p)), 0, 1, limit=200)
            assert got == pytest.approx(want, rel=1e-5, abs=1e-300)
            assert got >= want * (1 - 1e-9)


@pytest.mark.parametrize("selector", SELECTORS)
def test_mean_overshoot_is_the_integral_of_the_tail(selector):
    for slope, m in [(0.3, 10), (1.0, 1000), (0.05, 200)]:
        want, _ = integrate.quad(lambda d: float(tail(np.array(d), slope, m - 1, selector)), 0, 60 / slope, limit=500)  # noqa: B023
        assert mean_overshoot(slope, m - 1, selector) == pytest.approx(want, rel=1e-6)


def test_rank_law_is_a_law():
    for target, slope, m in [(90.0, 1.0, 100), (3.5, 0.1, 10), (1000.25, 0.72, 1000)]:
        ranks, probabilities, bottom = rank_law(target, slope, m - 1, "permute_and_flip")
        assert probabilities.min() >= 0
        assert bottom >= 0
        assert probabilities.sum() + bottom == pytest.approx(1.0, abs=1e-12)
        assert ranks[-1] == math.ceil(target)


def test_public_shift_is_the_smallest():
    from confide.guarantee.certificate import public_coverage

    for n, level, m in [(1000, Fraction(9, 10), 1000), (200, Fraction(4, 5), 50), (60, Fraction(1, 2), 7)]:
        target = public_shift(n, level, 0.7, 0.3, m - 1, "permute_and_flip", 16)
        assert public_coverage(n, target, 0.7, 0.3, m - 1, "permute_and_flip") >= level
        assert public_coverage(n, target - Fraction(1, 16), 0.7, 0.3, m - 1, "permute_and_flip") < level
    assert public_shift(9, Fraction(9, 10), 0.7, 0.3, 999, "permute_and_flip", 16) is None


def test_secret_offset_and_head_start_serve_every_n():
    """The two searched intervals cover all n: check the condition itself at each n up to 400."""
    level, left, right, rivals = Fraction(9, 10), 0.78, 0.33, 299
    offset = secret_shift(level, left, right, rivals, "permute_and_flip", 20)
    ahead = secret_prior_bonus(level, offset, 0.0, 1, left, right, rivals, "permute_and_flip")
    assert secret_shortfall(level, offset, ahead, 0.0, 1, left, right, rivals, "permute_and_flip") <= 0
    assert secret_shortfall(level, offset, 0.8 * ahead, 0.0, 1, left, right, rivals, "permute_and_flip") > 0
    for n in range(1, 400):
        target = level * (n + 1) + offset
        top = math.ceil(target)
        if top <= n:
            f = float(target - top + 1)
            lost = n - top + sharp_loss(f, left, rivals, "permute_and_flip", competitor=math.exp(-right * (1 - f)))
        else:
            lost = sharp_loss(float(target - n + 1) + ahead, left, rivals, "permute_and_flip")
        assert 1 - lost / (n + 1) >= float(level) - 1e-12


@pytest.mark.parametrize(("level", "delta", "n_min"), [(Fraction(9, 10), 0.05, 1), (Fraction(4, 5), 0.01, 50)])
def test_secret_line_holds_at_every_n(level, delta, n_min):
    """Theorem C3, by evaluating Theorem C1b at every n in a long range, and at powers of two far beyond."""
    rate = tangent_rate(level, delta, 500)
    offset = secret_offset(rate, level, delta, n_min, 500, 0.8, 99, "permute_and_flip", 20)
    sizes = [*range(n_min, 1500), *(2**k for k in range(11, 26))]
    worst = max(
        conditional_failure(n, float(level), float(rate * (n + 1) + offset), 0.8, 99, "permute_and_flip") for n in sizes
    )
    assert 0.3 * delta < worst <= delta
    assert not line_holds(rate, offset - 3, level, delta, n_min, 0.8, 99, "permute_and_flip")


def test_public_target_is_the_smallest():
    target = public_target(800, Fraction(9, 10), 0.05, 0.7, 299, "permute_and_flip", 16)
    assert conditional_failure(800, 0.9, float(target), 0.7, 299, "permute_and_flip") <= 0.05
    assert conditional_failure(800, 0.9, float(target) - 1 / 16, 0.7, 299, "permute_and_flip") > 0.05
    assert public_target(20, Fraction(9, 10), 0.05, 0.7, 299, "permute_and_flip", 16) is None


def test_quadrature_of_permute_and_flip():
    """int_0^1 (1 - s w)^K ds against its closed form, up to a million candidates of any weight, to 1e-10."""
    s, ds = unit_nodes()
    for K in np.unique(np.geomspace(1, 2**20, 40).astype(int)):
        for w in np.exp(-np.linspace(0, 20, 41)):
            exact = -math.expm1((K + 1) * math.log1p(-w)) / (w * (K + 1)) if w < 1 else 1 / (K + 1)
            assert abs(ds @ np.exp(K * np.log1p(-s * w)) - exact) < 1e-10
