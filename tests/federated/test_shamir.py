"""Shamir's shares modulo 2**61 - 1, compared with Python's integers, and enumerated over a small field."""

import itertools

import numpy as np
import pytest

from confide.federated import sharing
from confide.federated.sharing import BITS, MOST_POINTS, NotOnePolynomialError, P, add, combine, deal, times


def elements(values):
    return np.array(values, dtype=np.uint64)


EDGES = [0, 1, 2, 2**29 - 1, 2**29, 2**32 - 1, 2**32, 2**32 + 1, 2**60, P - 2, P - 1]


def test_the_modulus_is_a_prime():
    """Lucas-Lehmer test: 2**q - 1 is a prime if s_(q-2) = 0, with s_0 = 4 and s_i = s_(i-1)**2 - 2."""
    s = 4
    for _ in range(BITS - 2):
        s = (s * s - 2) % P
    assert s == 0


def test_products_and_sums_are_exact():
    rng = np.random.default_rng(0)
    a = EDGES + rng.integers(0, P, 2000, dtype=np.uint64).tolist()
    for x in (0, 1, 2, 3, 63, 64, 1000, MOST_POINTS - 1, MOST_POINTS):
        assert times(elements(a), np.uint64(x)).tolist() == [v * x % P for v in a]
    for one, other in itertools.product(EDGES, EDGES):
        assert add(elements([one]), elements([other])).tolist() == [(one + other) % P]


def test_shares_lie_on_the_polynomial_of_the_drawn_coefficients(monkeypatch):
    rng = np.random.default_rng(1)
    drawn = rng.integers(0, P, (4, 3), dtype=np.uint64)
    monkeypatch.setattr(sharing, "_uniform", lambda rows, size: drawn)
    values = [5, -7, -(2**59)]
    shares = deal(np.array(values), openers=9, threshold=5)
    for i, j in itertools.product(range(9), range(3)):
        powers = [int(c) * (i + 1) ** (4 - e) for e, c in enumerate(drawn[:, j])]
        assert int(shares[i, j]) == (values[j] + sum(powers)) % P


@pytest.mark.parametrize(("openers", "threshold"), [(3, 2), (5, 4), (7, 5), (64, 50)])
def test_any_shares_that_are_enough_open_the_sum(openers, threshold):
    rng = np.random.default_rng(2)
    values = rng.integers(-(2**58), 2**58, (3, 4))
    total = deal(values[0], openers, threshold)
    for row in values[1:]:
        total = add(total, deal(row, openers, threshold))
    for size in {threshold, openers}:
        some = sorted(rng.choice(openers, size, replace=False))
        opened = combine({int(i) + 1: total[i] for i in some}, threshold)
        assert opened.values.tolist() == values.sum(axis=0).tolist()
        assert opened.wrong is None
    with pytest.raises(ValueError):
        combine({i + 1: total[i] for i in range(threshold - 1)}, threshold)


def test_one_wrong_share_is_noticed_and_with_one_more_named():
    values, t = np.array([3, 1, 4]), 4
    shares = deal(values, 6, t)
    for liar, place in itertools.product(range(1, 7), range(3)):
        lied = {i + 1: shares[i].copy() for i in range(6)}
        lied[liar][place] = (int(lied[liar][place]) + 17) % P
        assert combine(lied, t).wrong == liar
        assert combine(lied, t).values.tolist() == [3, 1, 4]
        five = {point: lied[point] for point in lied if point == liar or point != 1 + liar % 6}
        with pytest.raises(NotOnePolynomialError):
            combine(five, t)
    lied = {i + 1: shares[i].copy() for i in range(6)}
    lied[1][0], lied[2][1] = (int(lied[1][0]) + 1) % P, (int(lied[2][1]) + 1) % P
    with pytest.raises(NotOnePolynomialError):  # two values that differ in place are not equal
        combine(lied, t)


def test_impossible_numbers_are_refused():
    for openers, threshold in ((3, 1), (3, 4), (MOST_POINTS + 1, 2)):
        with pytest.raises(ValueError):
            deal(np.array([1]), openers, threshold)


def test_coefficients_are_uniform_and_never_the_modulus(monkeypatch):
    """A draw of P itself would be a second zero, so that it is drawn again."""
    served = [P, P + 2**BITS, 6]
    monkeypatch.setattr(sharing.secrets, "token_bytes", lambda n: served.pop(0).to_bytes(8, "little"))
    assert sharing._uniform(1, 1).tolist() == [[6]]
    assert not served


@pytest.mark.parametrize(("openers", "threshold"), [(3, 2), (4, 3), (5, 3)])
def test_fewer_shares_than_needed_are_uniform_over_a_small_field(monkeypatch, openers, threshold):
    """For all polynomials modulo 7, any threshold - 1 shares have the same uniform distribution for every value."""
    monkeypatch.setattr(sharing, "BITS", 3)
    monkeypatch.setattr(sharing, "P", 7)
    all_of = np.array(list(itertools.product(range(7), repeat=threshold - 1)), dtype=np.uint64).T
    asked = []
    monkeypatch.setattr(sharing, "_uniform", lambda rows, size: asked.append(rows) or all_of)
    monkeypatch.setattr(sharing, "_SPLIT", 3)
    for value in range(7):
        shares = deal(np.full(all_of.shape[1], value), openers, threshold)
        for some in itertools.combinations(range(openers), threshold - 1):
            assert len({tuple(column) for column in shares[list(some)].T.tolist()}) == all_of.shape[1]
    assert set(asked) == {threshold - 1}  # with fewer coefficients fewer share holders could read
