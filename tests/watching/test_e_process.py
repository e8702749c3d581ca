"""E-values of noisy counts: their means by exact sums over the law, false alarms by simulation, power as published."""

import math

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from confide.noisy_counts import draw_counts
from confide.watching.e_process import (
    advance,
    bets,
    cash,
    confidence_sequence,
    entering_wealth,
    log_e_values,
    log_evidence,
)
from tests.exact_tests import LEVEL
from tests.watching.power import looks_to_alarm


def noise(epsilon, reach):
    """Values and probabilities of discrete Laplace noise, from its definition."""
    z = np.arange(-reach, reach + 1)
    return z, math.tanh(epsilon / 2) * np.exp(-epsilon * np.abs(z))


def mean_of_noise(rate, epsilon, slack):
    """E exp(rate noise), summed term by term until less than 1e-12 is left."""
    z, law = noise(epsilon, math.ceil(40 / slack))
    return float(np.sum(law * np.exp(rate * z)))


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.05, 0.3, 1.0, 4.0])
@pytest.mark.parametrize("least", [0.5, 0.88, 0.97])
def test_mean_of_bet_is_one_at_least_coverage_and_at_most_one_above(least, epsilon):
    """Every bet, every n up to 30: summed over covered records and noise. The batch size is not what was planned."""
    bet = bets([least], 100, epsilon)
    for s, u, price in zip(bet.covered[0], bet.missed[0], bet.price[0], strict=True):
        assert 0 < s < epsilon
        assert 0 < u < epsilon
        own = mean_of_noise(-s, epsilon, epsilon - s) * mean_of_noise(u, epsilon, epsilon - u) * math.exp(-price)
        for n in range(31):
            c = np.arange(n + 1)
            growth = np.exp(-s * c + u * (n - c))
            assert own * binom.pmf(c, n, least) @ growth == pytest.approx(1, abs=1e-9)
            for better in (least + 0.01, (1 + least) / 2, 1.0):
                assert own * binom.pmf(c, n, better) @ growth <= 1 + 1e-9


def outcomes(n, p, epsilon, reach=14):
    """All pairs of noisy counts of one batch, and their probabilities."""
    c = np.arange(n + 1)
    z, law = noise(epsilon, reach)
    x, y = np.broadcast_arrays(c[:, None, None] + z[:, None], n - c[:, None, None] + z)
    chances = binom.pmf(c, n, p)[:, None, None] * law[:, None] * law
    return x.ravel(), y.ravel(), chances.ravel()


@pytest.mark.parametrize("p", [0.8, 0.9, 1.0])
def test_total_wealth_is_supermartingale_with_adaptive_batches(p):
    """Three looks enumerated; how many records the next batch has depends on what was seen before."""
    epsilon, least, looks = 2.0, 0.8, 3
    bet = bets([least], 3, epsilon, drops=(0.1, 0.3))

    def after(log_wealth, x, y, look):
        log_e = y[:, None] * bet.missed - x[:, None] * bet.covered - bet.price
        return advance(log_wealth, log_e, entering_wealth(look, looks))

    first = outcomes(2, p, epsilon)
    one = after(np.full((1, 2), -np.inf), *first[:2], 1)
    before = np.exp(log_evidence(one, cash(1, looks)))
    assert first[2] @ before <= 1 + 1e-9
    for place in range(0, len(before), 97):
        size = int(first[0][place]) % 4
        x, y, chances = outcomes(size, p, epsilon)
        two = after(one[place], x, y, 2)
        value = np.exp(log_evidence(two, cash(2, looks)))
        mean = chances @ value
        assert mean <= before[place] * (1 + 1e-9)
        if p == least:
            assert mean == pytest.approx(before[place], rel=1e-6)
        last = outcomes(3 - size, p, epsilon)
        three = np.exp(log_evidence(after(two[len(x) // 2], *last[:2], 3), cash(3, looks)))
        assert last[2] @ three <= value[len(x) // 2] * (1 + 1e-9)


@pytest.mark.parametrize("looks", [1, 52, 1000])
def test_entered_wealth_and_cash_sum_to_one(looks):
    entered = np.cumsum([entering_wealth(look, looks) for look in range(1, 400)])
    assert entered + [cash(look, looks) for look in range(1, 400)] == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("noises", [(1, 1), (3, 2)])
def test_price_includes_several_noises(noises):
    bet = bets([0.7], 50, 1.0, drops=(0.1,), noises=noises)
    s, u = bet.covered[0, 0], bet.missed[0, 0]
    own = mean_of_noise(-s, 1.0, 1 - s) ** noises[0] * mean_of_noise(u, 1.0, 1 - u) ** noises[1]
    assert math.exp(bet.price[0, 0]) == pytest.approx(own, rel=1e-9)


@pytest.mark.parametrize("people", [2, 5])
def test_records_of_one_person_may_be_identical(people):
    """All people with all their records alike, and some with fewer: no more than 1, where bets on records are more."""
    epsilon, least = 1 / people, 0.88
    bet, careless = bets([least], 100, epsilon, per_person=people), bets([least], 100, epsilon)
    c = np.arange(13)
    for s, u, price in zip(bet.covered[0], bet.missed[0], bet.price[0], strict=True):
        assert 0 < s < epsilon
        assert 0 < u < epsilon
        own = mean_of_noise(-s, epsilon, epsilon - s) * mean_of_noise(u, epsilon, epsilon - u) * math.exp(-price)
        for records in range(1, people + 1):
            mean = own * binom.pmf(c, 12, least) @ np.exp(records * (-s * c + u * (12 - c)))
            assert mean <= 1 + 1e-9
            assert mean == pytest.approx(1, abs=1e-9) or records < people
    s, u = careless.covered[0, -1], careless.missed[0, -1]
    assert binom.pmf(c, 12, least) @ np.exp(people * (-s * c + u * (12 - c))) > 1.01


@pytest.mark.slow
def test_dependent_records_are_less_evidence():
    """Ten thousand records of a thousand people say as much as a thousand do, with the noise that protects people."""
    x, y = np.array([8400]), np.array([1600])
    many = log_e_values(bets([0.88], 10_000, 0.1, per_person=10), x, y)
    assert many == pytest.approx(log_e_values(bets([0.88], 1000, 1.0), x / 10, y / 10), rel=0.05, abs=0.05)
    wide, narrow = (confidence_sequence([8400], [1600], 10_000, 0.1, per_person=k)[0] for k in (10, 1))
    assert wide[0] < narrow[0]
    assert narrow[1] < wide[1]
    drop = 0.88, 500, 0.5, 0.9, 0.85
    assert looks_to_alarm(*drop, per_person=2) > 1.3 * looks_to_alarm(*drop)


@pytest.mark.parametrize(("epsilon", "least", "batch"), [(1e-6, 0.88, 10), (1e-3, 0.5, 1), (50.0, 0.999, 10**7)])
def test_extreme_choices_have_finite_bets(epsilon, least, batch):
    bet = bets([least, 0.01], batch, epsilon)
    assert all(np.isfinite(part).all() for part in (bet.covered, bet.missed, bet.price))
    assert (bet.covered < epsilon).all()
    assert (bet.missed < epsilon).all()
    assert np.isfinite(log_e_values(bet, [-(10**6), 10**8], [10**6, -(10**8)])).all()


ONE_START = {"entering_wealth": lambda t, _: float(t == 1) or 1e-300, "cash": lambda *_: 0.0}
"""All stakes enter at the first look."""


@pytest.mark.parametrize(
    ("n", "epsilon", "records"), [(100, 1.0, 2300), (500, 0.3, 3000), (1000, 0.1, 6000), (200, 0.3, 3600)]
)
def test_power_with_one_start_equals_published_power(n, epsilon, records):
    """Records after a drop from .9 to .85 until the alarm with probability .9; to one batch and a tenth."""
    found = looks_to_alarm(0.88, n, epsilon, 0.9, 0.85, **ONE_START)
    assert abs(found * n - records) <= max(n, 0.1 * records)


@pytest.mark.slow
def test_fresh_wealth_detects_late_drop_sooner():
    late = {"before": 20, "looks": 52}
    with_stakes = looks_to_alarm(0.88, 100, 1.0, 0.9, 0.85, **late)
    without = looks_to_alarm(0.88, 100, 1.0, 0.9, 0.85, **late, **ONE_START)
    assert with_stakes * 100 <= 3600
    assert without * 100 >= 5000


@pytest.mark.long
@pytest.mark.parametrize("p", [0.6, 0.9, 0.98])
def test_confidence_sequence_is_simultaneous(p):
    rng, missed_ever, paths = np.random.default_rng(2), 0, 200
    for _ in range(paths):
        c = rng.binomial(200, p, 60)
        x, y = draw_counts(c, 1.0), draw_counts(200 - c, 1.0)
        course = confidence_sequence(x.tolist(), y.tolist(), 200, 1.0)
        missed_ever += any(not low <= p <= high for low, high in course)
    assert binomtest(missed_ever, paths, 0.05, alternative="greater").pvalue > LEVEL


@pytest.mark.slow
def test_look_without_records_excludes_nothing():
    assert confidence_sequence([0], [0], 100, 0.1) == [(0.0, 1.0)]


@pytest.mark.slow
def test_confidence_sequence_narrows_and_shows_change():
    still = confidence_sequence([90] * 60, [10] * 60, 100, 1.0)
    widths = [high - low for low, high in still]
    assert sorted(widths, reverse=True) == widths
    assert widths[-1] < 0.06
    low, high = confidence_sequence([95] * 30 + [70] * 30, [5] * 30 + [30] * 30, 100, 1.0)[-1]
    assert high < low  # some records were covered less than others
