"""P-COQS and Rob-FCP by their programs: the exact law of an answer, what it covers, and a certificate."""

import itertools
import math

import mpmath
import numpy as np
import pytest

from benchmarks.newer_methods import pcoqs_law, rob_fcp_bound


def enumerated(scores, rho, delta, decimals):
    """The program, halving by halving, on all sequences of answers, in thirty digits: chances by answer."""
    times = math.ceil(math.log2(1 / delta))
    found = {}
    with mpmath.workdps(30):
        scale = mpmath.sqrt(mpmath.mpf(times) / (2 * mpmath.mpf(rho)))
        wanted = math.ceil(0.9 * (len(scores) + 1))
        for goes_left in itertools.product([True, False], repeat=times):
            left, right, chance = 0.0, 1.0, mpmath.mpf(1)
            for reached in goes_left:
                middle = (left + right) / 2
                short = mpmath.ncdf((wanted - sum(0 <= s <= middle for s in scores)) / scale)
                chance *= 1 - short if reached else short
                left, right = (left, middle) if reached else (middle + delta, right)
            answer = round((left + right) / 2, decimals)
            found[answer] = found.get(answer, 0) + chance
    return found


@pytest.mark.slow
@pytest.mark.parametrize("decimals", [1, 2])
@pytest.mark.parametrize("scores", [(0.1, 0.3, 0.3, 0.72, 0.9), (0.5,) * 4, (0.0, 0.05, 1.0, 1.7)])
def test_the_law_is_that_of_the_program(scores, decimals):
    """Against all 128 sequences of seven halvings."""
    answers, chances = pcoqs_law(np.array(scores), 0.1, 0.4, delta=0.01, decimals=decimals)
    theirs = enumerated(scores, 0.4, 0.01, decimals)
    assert set(answers.tolist()) == set(theirs)
    for answer, chance in zip(answers.tolist(), chances.tolist(), strict=True):
        assert abs(chance - theirs[answer]) < 1e-12


@pytest.mark.slow
def test_the_unrounded_law_is_a_sum_over_the_same_paths():
    """Coverage of the scores themselves, and the mean answer, from sixteen-digit decimals that round nothing."""
    scores = (0.1, 0.3, 0.3, 0.72, 0.9)
    answers, chances = pcoqs_law(np.array(scores), 0.1, 0.4, delta=0.01, decimals=None)
    theirs = enumerated(scores, 0.4, 0.01, 16)
    assert abs(answers @ chances - sum(answer * chance for answer, chance in theirs.items())) < 1e-12
    for score in scores:
        assert abs(chances[answers >= score].sum() - sum(c for a, c in theirs.items() if a >= score)) < 1e-12


def coverage(scores, below, **options):
    answers, chances = pcoqs_law(np.array(scores), 0.1, 0.5, **options)
    return float(chances @ below(answers))


RNG = np.random.default_rng(5)


def test_small_scores_are_not_covered_at_all():
    """u/200: the quantile .0045 is rounded to 0, below every score, but for less than one chance in a million."""
    answers, chances = pcoqs_law(RNG.random(1000) / 200, 0.1, 0.5)
    assert chances[answers == 0].sum() > 1 - 1e-6


def test_scores_near_one_are_all_covered():
    """u^(1/50): the quantile .998 is rounded to 1."""
    assert coverage(RNG.random(1000) ** 0.02, lambda a: np.clip(a, 0, 1) ** 50) > 1 - 1e-6


@pytest.mark.parametrize("decimals", [2, None])
def test_residuals_end_at_the_upper_bound(decimals):
    """Exp(1) residuals and the default bounds: it answers 1, which covers 1 - 1/e = .632."""
    found = coverage(RNG.exponential(size=1000), lambda a: 1 - np.exp(-a), decimals=decimals)
    assert found == pytest.approx(1 - math.exp(-1), abs=1e-6)


def two_values(high):
    scores = np.repeat([high - 0.5, high], [850, 150])
    return coverage(scores, lambda a: np.where(a >= high, 1.0, np.where(a >= high - 0.5, 0.85, 0.0)), decimals=None)


@pytest.mark.slow
def test_unrounded_search_misses_ties():
    """85 % of the scores at one value, 15 % at another: the middle of the last interval lies below it, or above."""
    assert two_values(0.9) == pytest.approx(0.85, abs=1e-9)
    found = [two_values(j / 100) for j in range(50, 100)]
    assert {round(one, 6) for one in found} == {0.85, 1.0}


@pytest.mark.slow
def test_on_even_scores_it_covers_the_level_in_the_mean():
    """.9003 rounded, .9001 unrounded: the plain threshold of the same data, whose mean is 901/1001, as control."""
    rng, rounded, plain = np.random.default_rng(6), [], []
    for _ in range(60):
        scores = rng.random(1000)
        rounded.append(coverage(scores, lambda a: a))
        plain.append(np.sort(scores)[900])
    apart = np.array(rounded) - plain
    assert abs(apart.mean() + 901 / 1001 - 0.9003) < 6 * apart.std() / np.sqrt(60)
    assert abs(apart.mean()) < 0.002


@pytest.mark.parametrize("setting", [(17, 3, 200, 2), (17, 3, 200, 100), (17, 3, 10_000, 10), (100, 0, 17, 1)])
def test_the_certificate_is_the_programs(setting):
    """Rob-FCP's lower bound in fifty digits, written down from the program's formula."""
    honest, byzantine, n, bins = setting
    with mpmath.workdps(50):
        tau, beta = mpmath.mpf(byzantine) / honest, mpmath.mpf("0.05")
        z = mpmath.sqrt(2) * mpmath.erfinv(1 - beta / (bins * honest))
        wide = bins * z / 2 / mpmath.sqrt(n) * (1 + tau) / (1 - tau)
        low = mpmath.mpf("0.9") - mpmath.mpf(1) / (n + honest) - wide
    assert abs(rob_fcp_bound(*setting) - low) < 1e-12 * max(1, abs(low))


@pytest.mark.parametrize(
    ("n", "found"), [(200, (0.574, None, None)), (10_000, (0.854, 0.641, None))]
)  # None: below zero
def test_it_is_vacuous_at_the_sizes_of_hospitals(n, found):
    for bins, stated in zip((2, 10, 100), found, strict=True):
        value = rob_fcp_bound(17, 3, n, bins)
        assert value < 0 if stated is None else round(value, 3) == stated
