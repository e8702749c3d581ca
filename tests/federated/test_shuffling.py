"""The clones bound: against direct sums, against real randomizers shuffled in small populations, and monotone."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from scipy import stats

from confide.errors import InputError
from confide.federated import clones_delta, clones_epsilon


def divergence(p, q, epsilon):
    return sum(max(mass - math.exp(epsilon) * q.get(outcome, 0.0), 0.0) for outcome, mass in p.items())


def clones(epsilon_0, n, mirrored):
    """The pair of laws of Feldman, McMillan and Talwar, Theorem 3.2, outcome by outcome."""
    found = Counter()
    alike = math.exp(epsilon_0) / (1 + math.exp(epsilon_0))
    for c in range(n):
        for a in range(c + 1):
            for d in (0, 1):
                mass = stats.binom.pmf(c, n - 1, math.exp(-epsilon_0)) * stats.binom.pmf(a, c, 0.5)
                here = (a + d, c - a + 1 - d)
                found[here[::-1] if mirrored else here] += mass * (alike if d else 1 - alike)
    return found


@pytest.mark.some(5)
@pytest.mark.parametrize("epsilon_0", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("n", [1, 2, 7, 40])
def test_delta_is_the_divergence_of_the_clones(epsilon_0, n):
    p, q = clones(epsilon_0, n, mirrored=False), clones(epsilon_0, n, mirrored=True)
    for share in (0.0, 0.2, 0.5, 0.9, 0.999):
        epsilon = share * epsilon_0
        exact = max(divergence(p, q, epsilon), divergence(q, p, epsilon))
        assert exact - 1e-12 <= clones_delta(epsilon, epsilon_0, n) <= exact + 1e-12
    assert clones_delta(epsilon_0, epsilon_0, n) <= 1e-13


def shuffled(values, answers, epsilon_0):
    """The law of how often each answer of randomized response was given."""
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
        with pytest.raises(InputError):
            clones_epsilon(1.0, 10, delta)
