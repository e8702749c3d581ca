"""Noise walks: the truncation error is bounded from above, and not by much."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from confide.guarantee.noise_walk import _tail_mean, last_rule, maximum, walk_end
from tests.exact import histograms, leave_one_out

LAWS = {
    "flat top": [0.1, 0.25, 0.3, 0.25, 0.1],
    "discrete Laplace, scale 1": np.exp(-np.abs(np.arange(-3.0, 4))),
    "two makers": np.convolve([0.2, 0.6, 0.2], [0.1, 0.8, 0.1]),
}


@pytest.mark.parametrize("scale", [0.5, 20.0, 3000.0])
@pytest.mark.parametrize("steps", [1, 2])
@pytest.mark.parametrize("far", [0.0, 1.0, 10.0])
def test_the_tail_is_bounded_from_above(scale, steps, far):
    """One step has P(X = k) = (1 - a)/(1 + a) a^|k|, so that P(X > t) sums to a^(top + 1)/(1 - a^2); two have more."""
    a, top = math.exp(-1 / scale), math.floor(far * scale)
    tail = a ** (top + 1) / (1 - a**2)
    assert tail <= _tail_mean(a, scale, steps, float(top)) <= 25 * (1 + far) ** steps * tail


def step_law(name):
    """P(X = -half), ..., P(X = half), exactly 1 in all."""
    law = np.asarray(LAWS[name], dtype=float)
    return law / law.sum()


def every_noise(law, m):
    """All noise vectors of m bins, and their probabilities."""
    half = len(law) // 2
    vectors = np.array(list(itertools.product(range(-half, half + 1), repeat=m)), dtype=np.int64)
    return vectors, np.prod(law[vectors + half], axis=1)


def at_least(law):
    """P(N >= 0), P(N >= 1), ..."""
    return np.cumsum(law[::-1])[::-1]


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("steps", range(6))
def test_walk_end_against_all_walks(name, steps):
    law = step_law(name)
    walks, weights = every_noise(law, steps)
    wanted = np.bincount(np.maximum(walks.sum(axis=1), 0), weights=weights)
    got = walk_end(law, steps)
    np.testing.assert_allclose(got, wanted[: len(got)], atol=1e-14)
    assert wanted[len(got) :].sum() < 1e-15


def test_walk_end_keeps_its_digits():
    """Against repeated convolution in extended precision; the tail beyond its end is below 1e-16."""
    steps, z = 127, np.arange(-80, 81)
    law = np.exp(-np.abs(z) / 2) * math.tanh(1 / 4)
    wanted, step = np.ones(1, dtype=np.longdouble), law.astype(np.longdouble)
    for _ in range(steps):
        wanted = np.convolve(wanted, step)
    wanted = wanted[len(wanted) // 2 :]
    got = walk_end(law, steps)
    assert np.abs(at_least(wanted)[1 : len(got)] - at_least(got)[1:]).max() < 1e-15 * steps
    assert wanted[len(got) :].sum() < 1e-16


def test_beyond_the_grid_only_the_tail_is_left():
    """E[(M - x)_+] decreases in x, and never below the bound on what lies beyond the grid."""
    walk = maximum(1.0, 100)
    end = len(walk.law) - 1
    excess = [walk.above(x) for x in (0, 1, end - 1, end, end + 0.5, end + 10, 2 * end)]
    assert excess == sorted(excess, reverse=True)
    assert excess[3:] == [walk.tail_mean] * 4
    leaky = replace(walk, leaked=0.1)
    assert leaky.above(end + 5) == walk.tail_mean
    assert leaky.above(end - 5) == pytest.approx(walk.above(end - 5) + 0.5)


def test_missing_mass_is_a_walk_that_never_ends():
    """A step with mass 1 - 0.01 makes three steps with mass (1 - 0.01)^3, and no rank beyond."""
    law = walk_end(0.99 * step_law("flat top"), 3)
    assert law.sum() == pytest.approx(0.99**3, abs=1e-14)
    np.testing.assert_allclose(law, 0.99**3 * walk_end(step_law("flat top"), 3), atol=1e-14)


@pytest.mark.parametrize("law", [[0.2, 0.3, 0.5], [0.4, 0.2, 0.4], [0.25, 0.25, 0.25, 0.25]])
def test_other_laws_are_refused(law):
    with pytest.raises(ValueError, match="symmetric law that does not increase away from 0"):
        walk_end(np.array(law), 2)


def chosen(noisy, n, target):
    """The index by the last rule, candidate by candidate."""
    index = len(noisy) - 1
    while index and n - noisy[index:].sum() >= target:
        index -= 1
    return index


@pytest.mark.parametrize("m", range(1, 5))
def test_last_rule_stops_at_the_first_gap_from_the_right(m):
    rng = np.random.default_rng(0)
    noisy = rng.integers(-3, 6, (300, m))
    reached = 9 - (noisy.sum(axis=1, keepdims=True) - np.cumsum(noisy, axis=1)) >= 5
    assert last_rule(reached).tolist() == [chosen(row, 9, 5) for row in noisy]


def index_laws(law, n, m, target):
    """The law of the index for every histogram of n records, over all noise vectors."""
    vectors, weights = every_noise(law, m)
    laws = {}
    for h in histograms(n, m):
        noisy = np.array(h) + vectors
        beyond = noisy.sum(axis=1, keepdims=True) - np.cumsum(noisy, axis=1)
        laws[h] = np.bincount(last_rule(n - beyond >= target), weights=weights, minlength=m)
    return laws


def largest_excess(laws, deficit, target, extra=0):
    """The largest P(B_J < r) - P(N >= target + extra - r + 1) over all histograms and r; the last candidate has all."""
    tail, worst = np.append(at_least(deficit), np.zeros(50)), -1.0
    for h, p in laws.items():
        short = [p[:-1][np.cumsum(h)[:-1] < r].sum() for r in range(1, target + 1)]
        allowed = tail[target + extra - np.arange(1, target + 1) + 1]
        worst = max(worst, float((np.array(short) - allowed).max()))
    return worst


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("m", [2, 3, 4])
@pytest.mark.parametrize("n", range(1, 6))
def test_the_deficit_is_at_most_the_end_of_the_walk(name, m, n):
    """Theorem W1: every histogram, noise vector, target and rank; and leave-one-out coverage of n + 1 records."""
    law = step_law(name)
    deficit = walk_end(law, m - 1)
    for target in range(1, n + 1):
        laws = index_laws(law, n, m, target)
        assert largest_excess(laws, deficit, target) <= 1e-12
        promised = float(np.maximum(target - np.arange(len(deficit)), 0) @ deficit) / (n + 1)
        assert min(leave_one_out(laws.__getitem__, h) for h in histograms(n + 1, m)) >= promised - 1e-12


def test_a_deficit_of_one_rank_less_is_too_small():
    """The control: the same inequality with the deficit of one rank less, or of one step less, does not hold."""
    law = step_law("flat top")
    laws = index_laws(law, 5, 4, 4)
    assert largest_excess(laws, walk_end(law, 3), 4) <= 1e-12
    assert largest_excess(laws, walk_end(law, 3), 4, extra=1) > 0.1
    assert largest_excess(laws, walk_end(law, 2), 4) > 0.01


def test_a_law_with_two_peaks_needs_more_than_the_end():
    """The other control: without its condition the theorem is false, so `walk_end` refuses such laws."""
    law = np.array([0.45, 0.0, 0.1, 0.0, 0.45])
    end = np.convolve(law, law)
    deficit = np.append(end[:5].sum(), end[5:])
    assert largest_excess(index_laws(law, 5, 3, 4), deficit, 4) > 0.1
