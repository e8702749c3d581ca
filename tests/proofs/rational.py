"""Exact laws as rational numbers: weights are powers of one rational x in place of exp(-1/scale).

Nothing else changes: the law depends on weights only, and the theorems hold for any base. With x rational every
probability is a rational number, and what is compared is compared exactly.
"""


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
