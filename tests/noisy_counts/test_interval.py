"""Intervals from noisy counts hold, by exact enumeration and by simulation with the sampler's noise."""

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest
from scipy.special import betaincinv
from scipy.stats import binom

from confide.errors import InputError, InputTypeError
from confide.noisy_counts import (
    ROUNDING,
    CountSum,
    coverage_interval,
    coverage_share,
    draw_counts,
    noise_tail,
    one_count_interval,
    simultaneous,
)
from tests.refused import Refused

RARE = 1e-8
"""Outcomes with a smaller probability are not computed; they count as missed."""


@lru_cache
def binomial(n, p):
    """P(C = 0), ..., P(C = n) for a Fraction p."""
    return np.array([float(math.comb(n, c) * p**c * (1 - p) ** (n - c)) for c in range(n + 1)])


@lru_cache
def noise(ratio, noises, reach):
    """P(z) = (1 - r)/(1 + r) r^|z| for a Fraction r = e^-epsilon, or a sum of several, on -reach..reach."""
    law = np.array([float((1 - ratio) / (1 + ratio) * ratio ** abs(z)) for z in range(-reach, reach + 1)])
    total = law
    for _ in range(noises - 1):
        total = np.convolve(total, law)[reach:-reach]
    return total


@lru_cache
def outcomes(n, p, ratio, noises=(1, 1)):
    """P(x, y) for x and y in -reach..n+reach; n - x - y is noise alone."""
    reach = math.ceil(math.log(1e-8) / math.log(ratio)) + 4 * (max(noises) - 1)
    own, other = (noise(ratio, k, reach) for k in noises)
    joint = np.zeros((n + 2 * reach + 1,) * 2)
    for c, chance in enumerate(binomial(n, p)):
        joint[c : c + 2 * reach + 1, n - c : n - c + 2 * reach + 1] += chance * np.outer(own, other)
    return joint, reach


def misses(interval, n, shares, ratio, noises=(1, 1)):
    """For each p the probability that interval(x, y) misses it; x and y arrays."""
    tables = [outcomes(n, p, ratio, noises) for p in shares]
    reach = tables[0][1]
    places = np.nonzero(np.max([joint for joint, _ in tables], axis=0) > RARE)
    low, high = interval(places[0] - reach, places[1] - reach)
    assert np.all((low >= 0) & (low <= high) & (high <= 1))
    return [1 - joint[places][(low <= p) & (high >= p)].sum() for p, (joint, _) in zip(shares, tables, strict=True)]


def tail(w, n, p, ratio, t, noises=(1, 1)):
    """P((1-w) x - w y >= t), by summing over the covered and both noises."""
    reach = math.ceil(math.log(1e-15) / math.log(ratio)) + 5 * (max(noises) - 1)
    own, other = (noise(ratio, k, reach) for k in noises)
    z = np.arange(-reach, reach + 1)
    units = w.denominator
    v = (units - w.numerator) * z[:, None] - w.numerator * z
    return sum(
        chance * own[row] @ other_row
        for c, chance in enumerate(binomial(n, p))
        for row, other_row in [(slice(None), (v + units * c - w.numerator * n >= units * t) @ other)]
    )


LEVEL = 1e-6 / 2
"""Level of each of at most two statistical tests: a correct library fails once in a million times."""

SHARES = [Fraction(1, 2), Fraction(4, 5), Fraction(9, 10), Fraction(19, 20), Fraction(99, 100)]
RATIOS = {0.5: Fraction(math.exp(-0.5)), 1.0: Fraction(math.exp(-1)), 3.0: Fraction(math.exp(-3))}


def clopper_pearson(c, n, error=0.05):
    low, high = (
        betaincinv(np.maximum(c, 1), n - c + 1, error / 2),
        betaincinv(c + 1, np.maximum(n - c, 1), 1 - error / 2),
    )
    return np.where(c == 0, 0, low), np.where(c == n, 1, high)


def test_with_almost_no_noise_it_is_the_clopper_pearson_interval():
    c = np.array([0, 1, 45, 50])
    found = coverage_interval(c, 50 - c, 60.0, size=50)
    np.testing.assert_allclose(found, clopper_pearson(c, 50), atol=1e-8)
    np.testing.assert_allclose(one_count_interval(c, 50, 60.0), clopper_pearson(c, 50), atol=1e-8)


@pytest.mark.slow
def test_misses_enumerated_for_a_secret_size():
    """Twenty records at epsilon 1: an independent program gave the largest probability of a miss over these p."""
    found = misses(lambda x, y: coverage_interval(x, y, 1.0), 20, SHARES, RATIOS[1.0])
    assert max(found) == pytest.approx(0.04198, abs=1e-5)
    assert found.index(max(found)) == 3
    assert all(miss <= 0.05 for miss in found)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", RATIOS)
@pytest.mark.parametrize("n", [0, 5, 20, 60])
def test_misses_enumerated_over_a_grid(n, epsilon):
    found = misses(lambda x, y: coverage_interval(x, y, epsilon), n, SHARES, RATIOS[epsilon])
    assert max(found) <= 0.04199


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "epsilon", "guess", "noises", "error"),
    [
        (10, 1.0, Fraction(1, 2), (1, 1), 0.05),
        pytest.param(10, 1.0, Fraction(19, 20), (1, 1), 0.2, marks=pytest.mark.slow),
        (12, 3.0, Fraction(1, 5), (2, 1), 0.1),
        (6, 3.0, Fraction(999, 1000), (1, 1), 0.05),
        pytest.param(8, 1.0, Fraction(9, 10), (1, 3), 0.05, marks=pytest.mark.slow),
    ],
)
def test_misses_enumerated_for_other_guesses_errors_and_noises(n, epsilon, guess, noises, error):
    def interval(x, y):
        return coverage_interval(x, y, epsilon, error=error, guess=guess, noises=noises)

    assert max(misses(interval, n, SHARES, RATIOS[epsilon], noises)) <= error


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "error"), [(1.0, 0.05), (0.5, 0.2), (3.0, 0.05)])
def test_misses_enumerated_for_a_public_size(epsilon, error):
    """Two counts, and one count alone."""
    n = 20
    both = misses(lambda x, y: coverage_interval(x, y, epsilon, error=error, size=n), n, SHARES, RATIOS[epsilon])
    one = misses(lambda x, y: one_count_interval(x, n, epsilon, error=error), n, SHARES, RATIOS[epsilon])
    assert max(both) <= error
    assert max(one) <= error


@pytest.mark.slow
@pytest.mark.parametrize("case", [(14, 6, 3.0, (2, 1)), (18, 3, 3.0, 1), (-2, 4, 1.0, 1)])
def test_ends_are_those_of_the_definition(case):
    """At the lower end every size in reach has a tail of at most the level; just above, one has more."""
    x, y, epsilon, noises = case
    k = noises if isinstance(noises, tuple) else (1, 1)
    low, high = coverage_interval(x, y, epsilon, noises=noises, error=0.05)
    ratio, w, level = RATIOS[epsilon], Fraction(9, 10), (0.05 - 0.001) / 2
    law = noise(ratio, sum(k), 60)
    reach = next(r for r in range(60) if 1 - law[60 - r : 60 + r + 1].sum() <= 0.001)
    sizes = [n for n in range(x + y - reach, x + y + reach + 1) if n >= 0]

    def worst(p, weight, first, second, order):
        t = (1 - weight) * first - weight * second
        return max(tail(weight, n, Fraction(p), ratio, t, order) for n in sizes)

    for end, arguments in ((float(low), (w, x, y, k)), (1 - float(high), (1 - w, y, x, k[::-1]))):
        if end > 0:
            assert worst(end, *arguments) <= level
        assert worst(min(end + 1e-5, 1), *arguments) > level


def test_windows_and_blocks_bound_the_tail_from_above_and_closely():
    """Compared with scipy's binomial law, below and above the size from which values are taken together."""
    for n, p, epsilon in (
        (400, 0.9, 1.0),
        (60_000, 0.5, 0.5),
        (400_000, 0.9, 1.0),
        (10**7, 0.5, 0.05),
        (10**7, 0.97, 2.0),
    ):
        noise, sd = noise_tail(epsilon, ((1, 1), (1, 9))), math.sqrt(n * p * (1 - p))
        c = np.arange(max(0, int(n * p - 9 * sd) - 40), min(n, int(n * p + 9 * sd) + 40) + 1)
        block = int(sd / 128) if sd > 128 else 0
        t = np.rint([(10 * p - 9) * n + 10 * far * sd for far in (-1.5, 0.3, 2.1, 4.0)]).astype(np.int64)

        def exact(t, n=n, p=p, c=c, noise=noise):
            return np.array([binom.pmf(c, n, p) @ noise.at_least(one + 9 * n - 10 * c) for one in t])

        found = CountSum(noise, 9, 10).reaches(t, np.full(4, n), np.full(4, p))
        assert np.all(found >= exact(t) * (1 - 1e-9))
        assert np.all(
            found <= exact(t - 20 * block) * (1 + 1e-7) + block * 3 / sd * exact(t - 20 * block) + 2 * ROUNDING
        )


@pytest.mark.long
def test_all_parts_at_once_are_missed_as_seldom_as_stated():
    """Ten disjoint parts of 100 records, 150 times, and their total, from ten cells."""
    rng, repeats, share, error = np.random.default_rng(), 150, 0.9, simultaneous(0.05, 10)
    c = rng.binomial(100, share, (repeats, 10))
    x, y = (draw_counts(one.ravel(), 1.0).reshape(one.shape) for one in (c, 100 - c))
    low, high = coverage_interval(x, y, 1.0, error=error)
    missed = int(((low > share) | (high < share)).any(axis=1).sum())
    assert binom.sf(missed - 1, repeats, 0.05) > LEVEL
    low, high = coverage_interval(x.sum(axis=1), y.sum(axis=1), 1.0, noises=10)
    missed = int(((low > share) | (high < share)).sum())
    assert binom.sf(missed - 1, repeats, 0.05) > LEVEL


@pytest.mark.slow
def test_widths_compared_with_clopper_and_pearson():
    """At most what is stated in docs/theory-after-release.md, to two decimals. The seed is fixed."""
    rng, draws = np.random.default_rng(1), 120

    def ratio(n, epsilon, error=0.05, noises=1):
        c = rng.binomial(n, 0.9, draws)
        a, b, d, e = rng.geometric(1 - np.exp(-epsilon), (4, noises, draws)).sum(axis=1)
        ends, plain = (
            coverage_interval(c + a - b, n - c + d - e, epsilon, error=error, noises=noises),
            clopper_pearson(c, n, error),
        )
        return (ends[1] - ends[0]).mean() / (plain[1] - plain[0]).mean()

    assert ratio(1000, 1.0) < 1.005
    assert ratio(100, 1.0, simultaneous(0.05, 10)) < 1.115
    assert ratio(1000, 1.0, noises=10) < 1.08


@pytest.mark.slow
def test_ends_rise_with_the_covered_and_fall_with_the_missed():
    x, y = (one.ravel() for one in np.meshgrid(np.arange(-4, 60, 4), np.arange(-4, 40, 4), indexing="ij"))
    for ends in (
        coverage_interval(x, y, 0.5),
        coverage_interval(x, y, 0.5, guess="0.3", noises=(1, 2)),
        coverage_interval(x, y, 0.5, size=50),
    ):
        for end in ends:
            table = end.reshape(16, 11)
            assert np.all(np.diff(table, axis=0) >= -1e-8)
            assert np.all(np.diff(table, axis=1) <= 1e-8)


@pytest.mark.slow
def test_parts_do_not_depend_on_other_parts():
    """Parts share only the size of blocks, whose effect is far below the widths."""
    x, y = np.array([900, 4, 0, -3, 10**6]), np.array([100, 2, 0, 1, 10**5])
    low, high = coverage_interval(x, y, 1.0)
    for i in range(5):
        alone = coverage_interval(x[i], y[i], 1.0)
        assert np.abs(alone - np.array([low[i], high[i]])).max() <= 0.01 * (high[i] - low[i])


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1e-6, 1e6, 0.01, 1.0, 50.0])
def test_every_count_gives_an_interval(epsilon):
    """Negative, empty and huge counts, in bounded time, tiny and large losses."""
    x = np.array([0, -(10**6), 5, 2**49, -(2**49), 0, 10**7, 3])
    y = np.array([0, -(10**6), -5, 2**40, 2**49, 2**50, 10**6, 0])
    ends = [coverage_interval(x, y, epsilon), one_count_interval(x, 10**6, epsilon)]
    ends.append(
        coverage_interval(x, y, epsilon, size=np.array([0, 1, 2, 2**50, 0, 10**6, 11 * 10**6, 3]), noises=(3, 1))
    )
    for low, high in ends:
        assert np.all((low >= 0) & (low <= high) & (high <= 1))
    assert ends[0][0][0] == 0
    assert ends[0][1][0] == 1


@pytest.mark.slow(unless="shape1")
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3)])
def test_shapes(shape):
    x = np.full(shape, 90)
    for low, high in (
        coverage_interval(x, x, 1.0),
        coverage_interval(x, x, 1.0, size=180),
        one_count_interval(x, 100, 1.0),
    ):
        assert low.shape == high.shape == shape
        assert low.dtype == high.dtype == np.float64
    assert coverage_share(x, x).shape == shape


def test_a_part_without_records_may_have_any_coverage():
    assert coverage_interval([0, 3], [0, -2], 60.0, size=0) == pytest.approx(np.array([[0, 0], [1, 1]]), abs=0)


def test_estimates_are_shares_of_what_is_shown():
    np.testing.assert_array_equal(coverage_share([9, -1, 3, 0], [1, 4, -2, 0]), [0.9, 0, 1, np.nan])
    np.testing.assert_array_equal(coverage_share([9, -1, 30, 0], [1, 14, -2, 0], 10), [0.9, 0, 1, 0.5])
    assert np.isnan(coverage_share(0, 0, 0))


def test_the_error_of_each_of_many_parts():
    for parts in (1, 2, 10, 10**6):
        each = Fraction(simultaneous(0.05, parts))
        assert (1 - float(each)) ** parts >= 0.95 - 1e-9
        assert each == pytest.approx(0.05 / parts, rel=0.03)
    assert (1 - Fraction(simultaneous(0.05, 3))) ** 3 >= 1 - Fraction(0.05)


COUNTS = {"covered": [1], "missed": [2], "epsilon": 1.0}
REFUSED = [
    *(({"covered": own}, "covered", InputTypeError) for own in ([1.5], [True], ["a"])),
    *(({"missed": own}, "missed", InputTypeError) for own in ([1.5], [True], ["a"])),
    *(({"covered": [own]}, "covered", InputError) for own in (2**50 + 1, -(2**50) - 1)),
    ({"missed": [1, 2]}, "missed", InputError),
    *(({"epsilon": own}, "epsilon", InputError) for own in (0.0, 1e7)),
    *(({"error": own}, "error", InputError) for own in (0, float("nan"), 1)),
    *(({"error": own}, "error", InputTypeError) for own in ("small", True)),
    ({"guess": 1.5}, "guess", InputError),
    *(({"noises": own}, "noises", InputError) for own in (0, (1, 2, 3), (1, 10**5))),
    ({"noises": 1.5}, "noises", InputTypeError),
    *(({"size": own}, "size", InputError) for own in (-1, [1, 2])),
    ({"size": 2.5}, "size", InputTypeError),
]


@pytest.mark.parametrize(
    "row",
    [
        *(Refused(coverage_interval, COUNTS, change, argument, kind=kind) for change, argument, kind in REFUSED),
        Refused(one_count_interval, {"covered": [1], "epsilon": 1.0}, {"size": None}, "size", kind=InputTypeError),
        Refused(simultaneous, {"error": 0.05}, {"parts": 0}, "parts", kind=InputError),
        Refused(simultaneous, {"error": 0.05}, {"parts": 2.5}, "parts", kind=InputTypeError),
    ],
    ids=str,
)
def test_refusals(row):
    row.check()
