"""Private Prediction Sets, versions 2 and 3: level, true loss, coverage, defects."""

from fractions import Fraction

import numpy as np
import pytest

from confide.mechanisms.pps import PrivatePredictionSets, adjusted_level, optimal_gamma, pps_for
from confide.support import scale_for
from tests.exact import assert_drawn_from, histograms, mechanism_law, replaced, worst_coverage, worst_log_ratio

TENTH = Fraction(1, 10)


def at_level(q, epsilon=1.0):
    return PrivatePredictionSets(q, 0.01, scale_for(2 * max(q.numerator, q.denominator - q.numerator), epsilon))


def formula(h, q, epsilon, factor):
    """P(j) proportional to exp(-epsilon factor w_j / 2), w_j = max(A_j/q, (n-B_j)/(1-q)), as printed."""
    B = np.cumsum(h)
    w = np.maximum((B - np.array(h)) / q, (B[-1] - B) / (1 - q))
    p = np.exp(-epsilon * factor * (w - w.min()) / 2)
    return p / p.sum()


def test_level_is_rounded_up_by_less_than_one_part_in_ten_million():
    for n, epsilon, m in [(1000, 1.0, 1000), (321, 2.5, 77), (40_000, 0.2, 5000)]:
        exact = adjusted_level(n, TENTH, epsilon, m, optimal_gamma(n, TENTH, epsilon, m))
        assert 0 <= float(pps_for(n, TENTH, epsilon, m).level) - exact < 1e-7


@pytest.mark.parametrize(("q", "exact"), [(Fraction(9, 10), 0.5556), (Fraction(97, 100), 0.5155), (Fraction(1), 0.5)])
def test_waste(q, exact):
    """Claimed epsilon 1, true loss 1/(2q): about 0.55. By exact enumeration."""
    mechanism = at_level(q)
    worst = worst_log_ratio(lambda h: mechanism_law(mechanism, h), histograms(30, 3), replaced)
    assert mechanism.claimed == 1.0
    assert worst <= mechanism.replace_one + 1e-9
    assert worst == pytest.approx(exact, abs=1e-4)


@pytest.mark.parametrize(("q", "loss"), [(0.9, 0.5556), (0.97, 1.7182), (0.995, 10.0503)])
def test_published_code_leaks(q, loss):
    """The authors' code has min(alpha, 1-alpha) where the paper has min(q, 1-q): its loss is alpha/(2q(1-q)) epsilon.

    At claimed epsilon 1 and alpha .1 that is 1.72 at q = .97 and 10 at q = .995. Exact enumeration.
    """
    worst = worst_log_ratio(lambda h: formula(h, q, 1.0, 0.1), histograms(30, 3), replaced)
    assert worst == pytest.approx(loss, abs=1e-4)
    assert worst == pytest.approx(0.1 / (2 * q * (1 - q)), rel=1e-4)


@pytest.mark.slow
def test_stated_loss_is_a_bound_for_more_bins_and_any_epsilon():
    for q in (Fraction(1, 5), Fraction(9, 10), Fraction(1)):
        for epsilon in (0.3, 2.0):
            mechanism = at_level(q, epsilon)
            assert worst_log_ratio(lambda h, m=mechanism: mechanism_law(m, h), histograms(8, 5), replaced) <= (
                mechanism.replace_one + 1e-9
            )
            assert mechanism.replace_one <= mechanism.claimed <= epsilon


@pytest.mark.slow
def test_sampler_matches_the_law():
    mechanism, counts = at_level(Fraction(4, 5), 1.5), [3, 0, 5, 1, 2, 0, 1]
    assert_drawn_from(mechanism, counts, mechanism_law(mechanism, counts), 5000)


@pytest.mark.parametrize("q", [Fraction(2, 5), Fraction(4, 5), Fraction(15, 16), Fraction(1)])
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_certified_coverage_holds_for_every_multiset(q, epsilon):
    """Exact leave-one-out coverage is never below the certified one, also for capped levels."""
    mechanism = at_level(q, epsilon)
    for n, m in [(7, 4), (5, 5)]:
        claimed = float(mechanism.certified(Fraction(99, 100), m, n, None))
        assert worst_coverage(mechanism, n, m) >= claimed - 1e-12


@pytest.mark.parametrize(("n", "epsilon", "m"), [(400, 2.0, 100), (1000, 1.0, 1000), (5000, 0.3, 1000)])
def test_published_claim_follows_from_the_lemma(n, epsilon, m):
    """Uncapped, the random-rank lemma certifies more than the 1 - alpha that the paper claims."""
    mechanism = pps_for(n, TENTH, epsilon, m)
    assert mechanism.level < 1
    assert mechanism.certified(Fraction(9, 10), m, n, None) == Fraction(9, 10)
    assert mechanism.certified(Fraction(1), m, n, None) > Fraction(9, 10)


def test_capped_level_undercovers():
    """If the level is capped at 1 the claim fails: with n=50, epsilon=0.1, uniform scores have mean coverage 0.70."""
    mechanism = pps_for(50, TENTH, 0.1, 1000)
    assert mechanism.level == 1
    scores, edges = (np.arange(50) + 0.5) / 50, np.append(np.arange(1, 1000) / 1000, np.inf)
    counts = np.diff(np.searchsorted(scores, edges, side="right"), prepend=0)
    coverage = mechanism_law(mechanism, counts) @ np.minimum(edges, 1)
    assert 0.65 < coverage < 0.75
    assert mechanism.certified(Fraction(9, 10), 1000, 50, None) < Fraction(7, 10)
    assert mechanism.coverage_at_most(50, 1000) == 1.0  # too few records
