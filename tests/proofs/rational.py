"""Exact laws as rational numbers: weights are powers of one rational x in place of exp(-1/scale).

Nothing else changes: both selectors depend on weights only, and the theorems hold for any base. With x rational every
probability is a rational number, and what is compared is compared exactly.
"""

from fractions import Fraction
from functools import cache, lru_cache


def weights(utilities, x):
    """x^(max u - u), the largest 1."""
    largest = max(utilities)
    return tuple(x ** int(largest - u) for u in utilities)


def exponential(w):
    """w_j / sum w."""
    return [one / sum(w) for one in w]


@lru_cache(maxsize=100_000)
def _integral(w):
    """int_0^1 prod (1 - s w_i) ds over sorted weights, from the coefficients of the polynomial."""
    coefficients = [Fraction(1)]
    for one in w:
        shifted = [Fraction(0), *(-one * c for c in coefficients)]
        coefficients = [a + b for a, b in zip([*coefficients, Fraction(0)], shifted, strict=True)]
    return sum(c / (k + 1) for k, c in enumerate(coefficients))


def permute_and_flip(w):
    """w_j int_0^1 prod_(i != j) (1 - s w_i) ds, as the library computes and proofs/Selectors.v defines it."""
    return [one * _integral(tuple(sorted(w[:j] + w[j + 1 :]))) for j, one in enumerate(w)]


def by_the_algorithm(w):
    """The law of the algorithm: candidates in random order, the first whose coin of probability w_j shows heads."""
    every = frozenset(range(len(w)))

    @cache
    def reached(left):
        """The probability that exactly these are not tried yet, and all others were rejected."""
        tried = every - left
        if not tried:
            return Fraction(1)
        return sum(reached(left | {i}) * (1 - w[i]) / (len(left) + 1) for i in tried)

    sets = [frozenset(i for i in every if k >> i & 1) for k in range(1, 2 ** len(w))]
    return [sum(reached(left) * w[j] / len(left) for left in sets if j in left) for j in range(len(w))]


LAWS = {"exponential": exponential, "permute_and_flip": permute_and_flip}


def rivals(heights, x):
    """G = max_g (w_1 + ... + w_(g-1)) / w_g, exactly; heights in units of x."""
    w = [x ** -int(h) for h in heights]
    return max(sum(w[:g]) / w[g] for g in range(len(w)))


def at_most_tail(probability, G, p, selector):
    """Whether a probability is at most tail, exactly, although (1-p)^(G+1) is not rational for a fractional G."""
    if selector == "exponential":
        return probability * (1 + G * p) <= G * p
    # P <= 1 - (1 - (1-p)^(G+1))/((G+1)p) is (1-p)^(G+1) >= 1 - (1-P)(G+1)p; both to the power of G's denominator.
    least = 1 - (1 - probability) * (G + 1) * p
    return least <= 0 or (1 - p) ** int((G + 1) * G.denominator) >= least**G.denominator
