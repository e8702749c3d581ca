"""Theorem P1, Lemma P2 and Theorem C1 over all small cases, in rational numbers: no float, no tolerance.

Weights are powers of one rational x in place of exp(-1/scale). Nothing else changes: the law depends on weights only,
and the theorems hold for any base. With x rational every probability is rational, and compared exactly.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from confide.mechanisms.slopes import Slopes, add_remove_range, replace_one_range
from tests.exact import Stepped, added, histograms, replaced


def weights(utilities, x):
    """x^(max u - u), the largest 1."""
    largest = max(utilities)
    return tuple(x ** int(largest - u) for u in utilities)


def exponential(w):
    """w_j / sum w."""
    return [one / sum(w) for one in w]


def rivals(heights, x):
    """G = max_g (w_1 + ... + w_(g-1)) / w_g, exactly; heights in units of x."""
    w = [x ** -int(h) for h in heights]
    return max(sum(w[:g]) / w[g] for g in range(len(w)))


def at_most_tail(probability, G, p):
    """Whether a probability is at most G p / (1 + G p), exactly."""
    return probability * (1 + G * p) <= G * p


BASES = [Fraction(1, 2), Fraction(9, 10)]


def mechanism(rate, offset, left, right, heights=None, head_start=0, fade=0):
    """A mechanism with scale 1, so that its utilities are the exponents."""
    terms = (Fraction(rate), Fraction(offset), left, right, 1.0, head_start, fade)
    return Slopes(*terms) if heights is None else Stepped(*terms, steps=heights)


def law_of(one, x):
    """Exact laws, each computed once."""
    known = {}

    def law(h):
        if h not in known:
            known[h] = exponential(weights(one.utilities(np.array(h)).tolist(), x))
        return known[h]

    return law


def worst(law, starts, neighbours):
    """The largest ratio of the probabilities of one output, both ways, exactly."""
    pairs = ((law(h), law(g)) for h in starts for g in neighbours(h))
    return max(max(a / b, b / a) for p, q in pairs for a, b in zip(p, q, strict=True))


PUBLIC = [
    (mechanism(0, target, left, right, heights), n, m)
    for target, (left, right), (n, m), heights in [
        (Fraction(2), (1, 1), (4, 4), None),
        (Fraction(5, 2), (2, 1), (4, 3), None),
        (Fraction(3), (1, 3), (3, 4), (0, 0, 1, 2)),
        (Fraction(3, 2), (3, 2), (5, 3), (0, 4, 4)),
    ]
]
SECRET = [
    (mechanism(Fraction(1, 2), 0, 1, 1), 4, 3),
    (mechanism(Fraction(2, 3), 1, 2, 1, None, 5, 0), 4, 3),
    (mechanism(Fraction(3, 4), Fraction(1, 2), 1, 2, (0, 1, 3), 6, 2), 4, 3),
    (mechanism(Fraction(1, 2), 1, 1, 3, (0, 0, 2, 2), 4, 1), 3, 4),
]


@pytest.mark.slow
def test_replacing_a_record_costs_at_most_the_range():
    """Theorem P1a: all histograms, all neighbours, all outputs."""
    for (one, n, m), x in itertools.product(PUBLIC, BASES):
        distance = replace_one_range(one.left, one.right, one.unit)
        assert worst(law_of(one, x), histograms(n, m), replaced) <= x**-distance


@pytest.mark.slow
def test_adding_a_record_costs_at_most_the_range():
    """Theorem P1b, for every n from 0: with heights, and a bonus that fades or not."""
    for (one, most, m), x in itertools.product(SECRET, BASES):
        distance = add_remove_range(one.left, one.right, one.rate, one.unit, one.fade if one.head_start else 0)
        law, starts = law_of(one, x), [h for n in range(most) for h in histograms(n, m)]
        assert worst(law, starts, added) <= x**-distance


def test_groups_cost_as_many_times_as_much_as_records():
    """Theorem P1c: two records added, exactly."""
    one, most, m = SECRET[2]
    distance = add_remove_range(one.left, one.right, one.rate, one.unit, one.fade)
    law, starts = law_of(one, BASES[0]), [h for n in range(most - 1) for h in histograms(n, m)]
    twice = worst(law, starts, lambda h: (k for g in added(h) for k in added(g)))
    assert twice <= BASES[0] ** (-2 * distance)


def test_a_smaller_loss_would_fail():
    """The inequalities are tight: one step less fails, and so does a bonus without its fade."""
    one = mechanism(0, 2, 1, 1)
    assert worst(law_of(one, Fraction(1, 16)), histograms(4, 4), replaced) > Fraction(1, 16) ** -1
    one = mechanism(Fraction(1, 2), 0, 1, 1, None, 40, 6)
    unpaid = add_remove_range(1, 1, one.rate, one.unit)
    assert worst(law_of(one, Fraction(1, 2)), histograms(2, 3), added) > 2**unpaid


def test_a_range_of_utilities_bounds_every_ratio():
    """Lemma P2 for all pairs of vectors of three small integers."""
    vectors = list(itertools.product(range(3), repeat=3))
    x = Fraction(2, 3)
    laws = {u: exponential(weights(u, x)) for u in vectors}
    for u, v in itertools.product(vectors, repeat=2):
        change = [a - b for a, b in zip(u, v, strict=True)]
        most = x ** -(max(change) - min(change))
        assert all(a <= most * b for a, b in zip(laws[u], laws[v], strict=True)), (u, v)


def rising_cases(m, highest):
    """Non-decreasing heights, integers from 0 on."""
    return [(0, *rest) for rest in itertools.combinations_with_replacement(range(highest + 1), m - 1)]


def check_rising(m, most, highest, terms, x):
    """P(B_J < k) <= tail(T - k + 1) for every histogram, every k <= ceil(T); +inf never falls short."""
    checked = 0
    for heights in rising_cases(m, highest):
        G = rivals(heights, x)
        for one in (mechanism(*term[:4], heights, *term[4:]) for term in terms):
            for n in range(1, most + 1):
                T = one.target(n)
                for h in histograms(n, m):
                    law = exponential(weights(one.utilities(np.array(h)).tolist(), x))
                    counts = np.cumsum(h)[:-1].tolist()
                    for k in range(1, math.ceil(T) + 1):
                        p = x ** int(one.left * one.unit * (T - k + 1))
                        short = sum(law[j] for j, count in enumerate(counts) if count < k)
                        assert at_most_tail(short, G, p), (heights, one, h, k)
                        checked += 1
    return checked


TERMS = [
    (0, 2, 1, 1),
    (0, Fraction(3, 2), 2, 1),
    (Fraction(1, 2), Fraction(1, 2), 1, 1),
    (Fraction(2, 3), 2, 1, 2, 3, 1),
]


@pytest.mark.slow
@pytest.mark.parametrize("x", BASES)
def test_rising_weights(x):
    """The core of Theorem C1, also where the target rank exceeds n."""
    assert check_rising(4, 4, 2, TERMS, x) > 5000


def test_a_smaller_tail_would_fail():
    """All left candidates at one rank attain the tail of the exponential mechanism, so nothing smaller is a bound."""
    x, one = Fraction(1, 2), mechanism(0, 2, 1, 1)
    law = exponential(weights(one.utilities(np.array([0, 0, 3])).tolist(), x))
    G, p = Fraction(2), x**2
    assert law[0] + law[1] == G * p / (1 + G * p)
    assert not at_most_tail(law[0] + law[1], G - Fraction(1, 100), p)
