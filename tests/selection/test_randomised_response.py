"""Randomised response: its loss exactly, and the law of the sampler."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

from confide.selection import change_probability, randomised_response, stay_probability
from confide.selection.noise import _measurement


@pytest.mark.parametrize("classes", [2, 3, 10, 1000])
@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 5.0, 30.0])
def test_the_loss_is_epsilon(classes, epsilon):
    """The largest log-ratio over all labels, neighbours and outcomes, of exact probabilities, is p/q."""
    truth = stay_probability(classes, epsilon)
    p, q = Fraction(truth), change_probability(classes, truth)
    assert p + (classes - 1) * q == 1
    with mpmath.workdps(50):
        loss = mpmath.log(mpmath.mpf(p.numerator) / p.denominator / (mpmath.mpf(q.numerator) / q.denominator))
        assert loss <= epsilon
        assert epsilon - loss < max(1e-9 * epsilon, 1e-12) if epsilon < 15 else epsilon - loss < 0.1
    assert p >= q


def test_opendp_states_the_same_loss():
    assert _measurement(10, stay_probability(10, 1.0)).map(1) == pytest.approx(1.0, abs=1e-12)


def test_the_law_of_the_sampler():
    """Chi-square of all cells at once; a correct sampler fails once in a million runs."""
    classes, epsilon, n = 3, 1.0, 6000
    truth = stay_probability(classes, epsilon)
    labels = np.repeat(np.arange(classes), n // classes)
    drawn = randomised_response(labels, classes, epsilon)
    seen = np.zeros((classes, classes))
    np.add.at(seen, (labels, drawn), 1)
    law = np.full((classes, classes), float(change_probability(classes, truth)))
    np.fill_diagonal(law, truth)
    expected = law * (n // classes)
    statistic = ((seen - expected) ** 2 / expected).sum()
    assert stats.chi2.sf(statistic, classes * (classes - 1)) > 1e-6


def test_two_draws_differ():
    labels = np.zeros(200, dtype=np.int64)
    assert (randomised_response(labels, 2, 0.1) != randomised_response(labels, 2, 0.1)).any()
