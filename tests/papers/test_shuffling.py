"""The clones bound, compared with direct sums and with real randomizers in small populations; and its monotonicity."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from confide.errors import InputError
from confide.federated import best_published
from confide.federated.protocols.fedcp2_qq import published_quantile
from confide.mechanisms import PrivatePredictionSets
from confide.papers.shuffling import clones_delta, clones_epsilon
from tests.builders import slow
from tests.exact import histograms, mechanism_law
from tests.refused import refused


def divergence(p, q, epsilon):
    return sum(max(mass - math.exp(epsilon) * q.get(outcome, 0.0), 0.0) for outcome, mass in p.items())


def clones(epsilon_0, n, mirrored, whole=None):
    """Return the pair of distributions of Feldman, McMillan and Talwar, Theorem 3.2, outcome by outcome."""
    found = Counter()
    alike = math.exp(epsilon_0) / (1 + math.exp(epsilon_0))
    stays = math.exp(-(epsilon_0 if whole is None else whole))
    for c in range(n):
        for a in range(c + 1):
            for d in (0, 1):
                mass = stats.binom.pmf(c, n - 1, stays) * stats.binom.pmf(a, c, 0.5)
                here = (a + d, c - a + 1 - d)
                found[here[::-1] if mirrored else here] += mass * (alike if d else 1 - alike)
    return found


FEW = [(0.3, 1), (2.5, 1), (1.0, 2), (1.0, 7), (0.3, 40)]


@pytest.mark.parametrize(
    ("epsilon_0", "n"),
    [*FEW, *slow([pair for pair in itertools.product([0.3, 1.0, 2.5], [1, 2, 7, 40]) if pair not in FEW])],
)
def test_delta_is_the_divergence_of_the_clones(epsilon_0, n):
    p, q = clones(epsilon_0, n, mirrored=False), clones(epsilon_0, n, mirrored=True)
    for share in (0.0, 0.2, 0.5, 0.9, 0.999):
        epsilon = share * epsilon_0
        exact = max(divergence(p, q, epsilon), divergence(q, p, epsilon))
        assert exact - 1e-12 <= clones_delta(epsilon, epsilon_0, n) <= exact + 1e-12
    assert clones_delta(epsilon_0, epsilon_0, n) <= 1e-13


def shuffled(values, answers, epsilon_0):
    """Return the distribution of the counts of the answers of randomized response."""
    lie = 1 / (math.exp(epsilon_0) + answers - 1)
    found = Counter({(0,) * answers: 1.0})
    for value in values:
        fresh = Counter()
        for counts, mass in found.items():
            for said in range(answers):
                grown = (*counts[:said], counts[said] + 1, *counts[said + 1 :])
                fresh[grown] += mass * (math.exp(epsilon_0) * lie if said == value else lie)
        found = fresh
    return found


@pytest.mark.parametrize(("answers", "n"), [(2, 6), (2, 9), (3, 5)])
@pytest.mark.parametrize("epsilon_0", [0.5, 1.5, 3.0])
def test_no_data_set_of_shuffled_randomized_response_does_worse(answers, n, epsilon_0):
    others = list(itertools.combinations_with_replacement(range(answers), n - 1))
    for epsilon in np.array([0.0, 0.3, 0.7]) * epsilon_0:
        worst = max(
            divergence(shuffled((0, *rest), answers, epsilon_0), shuffled((1, *rest), answers, epsilon_0), epsilon)
            for rest in others
        )
        bound = clones_delta(epsilon, epsilon_0, n)
        assert worst <= bound + 1e-12
        assert 0 < bound <= 1


def test_delta_is_monotone():
    epsilons = [clones_delta(e, 2.0, 500) for e in np.linspace(0, 2, 21)]
    sizes = [clones_delta(0.3, 2.0, n) for n in (10, 30, 100, 300, 1000, 3000)]
    losses = [clones_delta(0.3, e, 300) for e in (0.3, 0.5, 1.0, 2.0, 3.0)]
    assert all(np.diff(epsilons) <= 1e-13)
    assert all(np.diff(sizes) <= 1e-13)
    assert all(np.diff(losses) >= -1e-13)
    assert epsilons[0] > epsilons[5] > epsilons[10] > 0


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon_0", "n", "delta"), [(0.5, 1000, 1e-6), (1.0, 10_000, 1e-6), (4.0, 200_000, 1e-8)])
def test_planning_is_the_inverse(epsilon_0, n, delta):
    epsilon = clones_epsilon(epsilon_0, n, delta)
    assert clones_delta(epsilon, epsilon_0, n) <= delta < clones_delta(epsilon - 2e-6, epsilon_0, n)
    assert epsilon < epsilon_0
    assert clones_epsilon(epsilon_0, 4 * n, delta) < epsilon < clones_epsilon(epsilon_0, n, delta / 10)


def test_nothing_is_gained_alone_and_arguments_are_checked():
    assert clones_epsilon(1.0, 1, 1e-9) > 0.999
    for arguments in ((-0.1, 1.0, 10), (math.nan, 1.0, 10), (0.1, 0.0, 10), (0.1, 1.0, 0)):
        with pytest.raises(InputError):
            clones_delta(*arguments)
    for delta in (0.0, 1.0, math.nan):
        with refused(InputError, "dp_delta"):
            clones_epsilon(1.0, 10, delta)
    for epsilon_0 in (-1.0, math.nan):
        with refused(InputError, "epsilon_0"):
            clones_epsilon(epsilon_0, 10, 0.1)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon_0", [0.5, 2.0])
def test_another_whole_loss_than_that_of_a_record(epsilon_0):
    for n, whole in ((2, 0.2), (9, 1.5), (9, 4.0), (30, 3.0)):
        p, q = clones(epsilon_0, n, False, whole), clones(epsilon_0, n, True, whole)
        for share in (0.0, 0.3, 0.8):
            epsilon = share * epsilon_0
            assert abs(divergence(p, q, epsilon) - clones_delta(epsilon, epsilon_0, n, whole=whole)) <= 1e-12
    assert clones_delta(0.1, epsilon_0, 40, whole=epsilon_0) == clones_delta(0.1, epsilon_0, 40)
    assert clones_delta(0.1, epsilon_0, 40, whole=9.0) > clones_delta(0.1, epsilon_0, 40)
    assert clones_epsilon(epsilon_0, 40, 1e-3, whole=60.0) > clones_epsilon(epsilon_0, 40, 1e-3)


def summed(laws):
    """Return the distribution of the sum of one-hot replies, outcome by outcome."""
    found = Counter({(0,) * len(laws[0]): 1.0})
    for law in laws:
        fresh = Counter()
        for counts, mass in found.items():
            for said, p in enumerate(law):
                fresh[(*counts[:said], counts[said] + 1, *counts[said + 1 :])] += mass * p
        found = fresh
    return found


@pytest.mark.parametrize(("n", "epsilon_0", "level"), [(1, 1.5, "1/2"), (2, 1.0, "1/2"), (2, 0.6, "1")])
def test_no_federation_of_small_silos_does_worse_than_the_bound(n, epsilon_0, level):
    """Test every adjacent pair in one silo, and every data set of the three others."""
    bins, mechanism = 3, PrivatePredictionSets(Fraction(level), 0.0, 2 * Fraction(level).numerator / epsilon_0)
    laws = {counts: mechanism_law(mechanism, counts) for counts in histograms(n, bins)}
    ratios = {(a, b): float(np.abs(np.log(laws[a] / laws[b])).max()) for a in laws for b in laws}
    near = [pair for pair in ratios if np.abs(np.subtract(*pair)).sum() == 2]
    one, whole = max(ratios[pair] for pair in near), max(ratios.values())
    assert one <= whole
    assert (whole > 1.5 * one) == (n > 1)
    worst = np.zeros(3)
    epsilons = one * np.array([0.0, 0.4, 0.8])
    for others in itertools.combinations_with_replacement(laws, 3):
        rest = [laws[counts] for counts in others]
        sums = {counts: summed([law, *rest]) for counts, law in laws.items()}
        for a, b in near:
            worst = np.maximum(worst, [divergence(sums[a], sums[b], epsilon) for epsilon in epsilons])
    bounds = np.array([clones_delta(epsilon, one, 4, whole=whole) for epsilon in epsilons])
    assert (worst <= bounds + 1e-12).all()
    assert worst.min() > 0


@pytest.mark.slow
def test_a_sum_of_silos_replies_has_the_loss_of_one_reply():
    """Theorem F11: at the published ranks for 20 silos the delta claimed from one record's loss is far too small."""
    m, n, epsilon_0 = 20, 20, 2.0
    mechanism = published_quantile(n, 17, epsilon_0)  # the rank of `best_published(20, 20, 0.5, 2.0, 4)`
    others = [mechanism_law(mechanism, (0, 0, 0, n))] * (m - 1)  # all their scores lie above
    here, there = mechanism_law(mechanism, (1, 17, 2, 0)), mechanism_law(mechanism, (0, 17, 2, 1))
    loss = float(np.abs(np.log(here / there)).max())
    p, q = summed([here, *others]), summed([there, *others])
    assert 0.6 < loss <= epsilon_0
    for share in (0.0, 0.2, 0.5):
        alone = divergence(dict(enumerate(here)), dict(enumerate(there)), share * loss)
        assert divergence(p, q, share * loss) == pytest.approx(alone, rel=1e-6)
        assert alone > 3 * clones_delta(share * loss, loss, m)  # the claim of the paper
        assert alone <= clones_delta(share * loss, loss, m, whole=n * mechanism.replace_one)
    most = max(math.log(p[counts] / q[counts]) for counts in p if counts in q)
    assert most == pytest.approx(float(np.log(here / there).max()), rel=1e-5)


@pytest.mark.parametrize(("m", "n", "alpha", "epsilon"), [(5, 60, 0.2, 10.0), (20, 12, 0.5, 3.0)])
def test_where_replies_cover_others_hide_nothing(m, n, alpha, epsilon):
    """Theorem F11, exactly: the probability that one of the others, whose scores lie above, replies below."""
    bins = 11 if n > 50 else 4
    choice = best_published(m, n, alpha, epsilon, bins)
    law = mechanism_law(published_quantile(n, choice.rank, epsilon), [0] * (bins - 1) + [n])
    any_below = -math.expm1((m - 1) * math.log1p(-law[:-1].sum()))
    assert 0 < any_below <= choice.gamma * alpha
    clones = (m - 1) * math.exp(-n * epsilon / 2)  # the largest value for any whole-input loss
    assert clones <= choice.gamma * alpha
