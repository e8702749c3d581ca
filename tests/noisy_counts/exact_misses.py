"""The probability that an interval misses, by enumeration: laws in closed form, from fractions, no library code."""

import math
from functools import lru_cache

import numpy as np

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
