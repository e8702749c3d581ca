"""Broken mechanisms that were written after the audit, and that it was not changed for; docs/audit.md has the score."""

import math

import numpy as np

from tests.audit import others

RNG = np.random.default_rng()


def grid_over_the_range(scores):
    """The candidates are spread between the smallest and the largest private score."""
    edges = np.linspace(scores.min(), scores.max(), 11)[1:]
    below = np.searchsorted(np.sort(scores), edges, side="right")
    utilities = -np.abs(below - 0.9 * len(scores))
    return float(edges[np.argmax(utilities + RNG.exponential(2.0, 10))])


def noise_scaled_by_n(scores):
    """Laplace noise as for a mean, whose sensitivity is 1/n; a quantile's is 1."""
    return float(np.quantile(scores, 0.9) + RNG.laplace(0.0, 1 / len(scores)))


def rounded_to_the_data(scores):
    """An honest threshold, then the next private score, so that the set is no larger than it must be."""
    threshold = others.honest(scores)
    return float(min(scores[scores >= threshold], default=math.inf))


def told_by_ties(scores):
    """Ties are broken by a step, if there are any."""
    threshold = others.honest(scores)
    return threshold if len(np.unique(scores)) == len(scores) else threshold + 1e-9


def undershoot_rewarded_for_odd_n(scores):
    """The slope for ranks short of the target has the wrong sign where n is odd."""
    n, ordered = len(scores), np.append(np.sort(scores), math.inf)
    short = np.arange(1, n + 2) - 0.9 * (n + 1) - 2
    utilities = np.where(short < 0, short if n % 2 == 0 else -0.05 * short, -0.5 * short)
    return float(ordered[np.argmax(utilities + RNG.exponential(2.0, n + 1))])


def seldom_the_maximum(scores):
    """One call in a thousand takes a way out that was left in for tests."""
    return float(scores.max()) if RNG.random() < 0.001 else others.honest(scores)
