"""Noise walks: the truncation error is bounded from above, and not by much."""

import math

import pytest

from confide.guarantee.noise_walk import _tail_mean


@pytest.mark.parametrize("scale", [0.5, 20.0, 3000.0])
@pytest.mark.parametrize("steps", [1, 2])
@pytest.mark.parametrize("far", [0.0, 1.0, 10.0])
def test_the_tail_is_bounded_from_above(scale, steps, far):
    """One step has P(X = k) = (1 - a)/(1 + a) a^|k|, so that P(X > t) sums to a^(top + 1)/(1 - a^2); two have more."""
    a, top = math.exp(-1 / scale), math.floor(far * scale)
    tail = a ** (top + 1) / (1 - a**2)
    assert tail <= _tail_mean(a, scale, steps, float(top)) <= 25 * (1 + far) ** steps * tail
