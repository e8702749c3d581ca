"""The noise of counts: its law, moments and draws, and the privacy loss of noisy counts."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from confide.errors import InputError, InputTypeError
from confide.noisy_counts import _WIDEST, draw_counts, log_mgf, noise_law, noise_tail
from tests.federated.test_secure_sum import chi_square
from tests.refused import Refused

LEVEL = 1e-6


def law(ratio, reach):
    """P(z) = (1 - r)/(1 + r) r^|z| for a Fraction r = e^-epsilon."""
    return np.array([float((1 - ratio) / (1 + ratio) * ratio ** abs(z)) for z in range(-reach, reach + 1)])


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.05, 3.0, 0.7])
def test_draws_have_the_law(epsilon):
    noise = draw_counts(np.full(20_000, 7), epsilon) - 7
    assert chi_square(noise, noise_law(epsilon)) > LEVEL


def test_a_large_epsilon_gives_almost_no_noise():
    assert np.array_equal(draw_counts([7] * 1000, 50.0), [7] * 1000)  # fails once in 10**18
    assert noise_law(50.0)[1:-1].tolist() == [1.0]
    assert draw_counts([], 1.0).shape == (0,)


@pytest.mark.parametrize("ratio", [Fraction(1, 2), Fraction(9, 10), Fraction(1, 1000)])
@pytest.mark.parametrize("noises", [1, 2, 5])
def test_laws_are_those_of_sums(ratio, noises):
    found = noise_law(-math.log(ratio), noises)
    half = len(found) // 2
    wanted = one = law(ratio, half)
    for _ in range(noises - 1):
        wanted = np.convolve(wanted, one)[half:-half]
    np.testing.assert_allclose(found, wanted, atol=1e-15)
    assert found.sum() == pytest.approx(1, abs=1e-13)


@pytest.mark.parametrize("ratio", [Fraction(1, 2), Fraction(9, 10), Fraction(1, 1000)])
def test_moments_are_those_of_the_law(ratio):
    """E exp(s Z) from the geometric series in fractions, for rational e^s."""
    epsilon = -math.log(ratio)
    for x in (1 + (1 / ratio - 1) * Fraction(k, 10) for k in range(10)):
        right, left = 1 / (1 - ratio * x), ratio / x / (1 - ratio / x)
        wanted = math.log((1 - ratio) / (1 + ratio) * (right + left))
        for s in (math.log(x), -math.log(x)):
            assert log_mgf(s, epsilon) == pytest.approx(wanted, abs=1e-13)
    assert log_mgf([0.0], epsilon) == pytest.approx(0, abs=1e-15)


def test_tails_of_weighted_sums_are_summed():
    """9 A - 1 B' with two and three noises each, compared with a double sum."""
    ratio = Fraction(2, 3)
    tail, own, other = noise_tail(-math.log(ratio), ((2, 9), (3, 1))), law(ratio, 90), law(ratio, 90)
    own, other = np.convolve(own, own)[90:-90], np.convolve(np.convolve(other, other)[90:-90], other)[90:-90]
    z = np.arange(-90, 91)
    v = 9 * z[:, None] - z
    for t in (-(10**9), -200, -17, 0, 1, 8, 9, 100, 300, 10**9):
        assert float(tail.at_least(np.int64(t))) == pytest.approx(float(own @ (v >= t) @ other), abs=1e-13)
    both = np.convolve(own, other)
    for chance in (0.5, 0.05, 1e-3, 1e-9):
        r = noise_tail(-math.log(ratio), ((5, 1),)).beyond(chance)
        assert 1 - both[180 - r : 181 + r].sum() <= chance < 1 - both[181 - r : 180 + r].sum()


def test_tails_in_steps_are_bounds_from_above_and_close():
    """The noise of a small epsilon is counted in steps: never below the law, nor above the law a few steps away."""
    epsilon, weight = 0.001, 40
    tail = noise_tail(epsilon, ((1, weight),))
    assert tail.step > 1
    assert len(tail.table) <= 2 * _WIDEST + 40
    z = np.array([-30_000, -4000, -1, 0, 1, 50, 999, 5000, 20_000])
    exact = np.where(
        z > 0, np.exp(-epsilon * z) / (1 + np.exp(-epsilon)), 1 - np.exp(-epsilon * (1 - z)) / (1 + np.exp(-epsilon))
    )
    found = tail.at_least(weight * z)
    assert np.all(found >= exact * (1 - 1e-12))
    assert np.all(found <= np.minimum(1, exact * np.exp(3 * epsilon * tail.step)))
    r = tail.beyond(0.01)
    assert math.exp(-epsilon * (r // weight + 1)) * 2 / (1 + math.exp(-epsilon)) <= 0.01
    assert r <= weight * (math.log(200) / epsilon + 3 * tail.step)


@pytest.mark.slow
def test_tiny_losses_have_bounded_tables():
    for parts in (((1, 1), (1, 99)), ((10**4, 9), (10**4, 1))):
        assert len(noise_tail(1e-6, parts).table) <= 2 * _WIDEST + 2000


TABLES = [t for n in range(4) for t in itertools.combinations_with_replacement(range(6), n)]
"""Up to three records, each in one of three parts and covered or not: cell 2 k or 2 k + 1."""


def cells(table):
    return np.bincount(table, minlength=6) if table else np.zeros(6, dtype=np.int64)


def loss(counts, others, epsilon):
    """The largest |log P(outcome | counts) - log P(outcome | others)|, cell by cell; the noises are independent."""
    reach, law = 12, np.log(noise_law(epsilon))
    half, worst = len(law) // 2, 0.0
    for a, b in zip(counts, others, strict=True):
        outcome = np.arange(-reach, reach + 4)
        worst += np.abs(law[half + outcome - a] - law[half + outcome - b]).max()
    return worst


@pytest.mark.slow
def test_adding_a_record_costs_epsilon_over_all_parts():
    worst = max(loss(cells(t), cells((*t, more)), 0.7) for t in TABLES for more in range(6))
    assert worst == pytest.approx(0.7, abs=1e-12)


@pytest.mark.slow
def test_replacing_a_record_costs_twice_unless_the_scale_is_doubled():
    """The record decides its part: two cells change, so noise of scale 2/epsilon keeps the loss at epsilon."""
    pairs = [(t, (*t[:i], new, *t[i + 1 :])) for t in TABLES for i in range(len(t)) for new in range(6)]
    assert max(loss(cells(t), cells(u), 0.7) for t, u in pairs) == pytest.approx(1.4, abs=1e-12)
    assert max(loss(cells(t), cells(u), 0.35) for t, u in pairs) == pytest.approx(0.7, abs=1e-12)


@pytest.mark.slow
def test_one_count_per_part_of_public_size_costs_epsilon_to_replace():
    """A replaced record stays in its part: of the covered counts one changes by at most one."""
    pairs = [(t, (*t[:i], 2 * (t[i] // 2) + c, *t[i + 1 :])) for t in TABLES for i in range(len(t)) for c in (0, 1)]
    assert max(loss(cells(t)[1::2], cells(u)[1::2], 0.7) for t, u in pairs) == pytest.approx(0.7, abs=1e-12)
    assert max(loss(cells(t), cells(u), 0.7) for t, u in pairs) == pytest.approx(1.4, abs=1e-12)


@pytest.mark.parametrize(
    "row",
    [
        *(Refused(draw_counts, {"epsilon": 1.0}, {"counts": own}, "counts", kind=InputTypeError)
          for own in ([1.5], [True])),
        *(Refused(draw_counts, {"epsilon": 1.0}, {"counts": own}, "counts", kind=InputError)
          for own in ([-1, 3], [2**48 + 1], 7)),
        *(Refused(log_mgf, {"epsilon": 1.0}, {"s": own}, "s", kind=InputError) for own in (1.0, -1.0, np.nan, [0, 2])),
        Refused(noise_law, {}, {"epsilon": 1e-6}, "epsilon", kind=InputError),
        Refused(noise_law, {"epsilon": 1.0}, {"noises": 0}, "noises", kind=InputError),
    ],
    ids=str,
)  # fmt: skip
def test_refusals(row):
    row.check()
