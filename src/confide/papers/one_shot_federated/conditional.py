"""Section 3.4: coverage given the calibration data; its exact law: `confide.federated.conditional_coverage_failure`."""

import math
from fractions import Fraction

from confide.errors import InputError
from confide.papers.one_shot_federated.split_conformal import refuse_pair
from confide.support import Level, exact_level, positive_integer


def published_deviation(m: int, n: int, delta: Level) -> float:
    """Theorem 3.3, (8): if l k >= (1-alpha) m n, coverage given the data is at least 1-alpha minus this.

    With probability 1-delta: sqrt(log(1/delta) / (2 m n)), by the one-sided inequality of Dvoretzky, Kiefer, Wolfowitz
    and Massart, which is proved for delta up to 1/2. Not proved for the pair (l*, k*) of Algorithm 1, whose product can
    be smaller.

    Raises
    ------
    InputError
        If delta is not in (0, 0.5].

    Examples
    --------
    >>> round(published_deviation(5, 200, 0.05), 4)
    0.0387
    """
    exact = exact_level("delta", delta)
    if exact > Fraction(1, 2):
        raise InputError(f"delta must be in (0, 0.5], as Theorem 3.3 asks; found {float(exact):g}")
    return math.sqrt(-math.log(float(exact)) / (2 * positive_integer("m", m) * positive_integer("n", n)))


def published_conditional_k(l: int, m: int, n: int, level: Level) -> int | None:
    """Theorem 3.3: the smallest k to which it applies, l k >= level m n with level = 1-alpha; None if that exceeds m.

    Examples
    --------
    >>> published_conditional_k(190, 5, 200, 0.9)
    5
    """
    k = math.ceil(exact_level("level", level) * m * n / l)
    return k if k <= m else None


def conditional_miscoverage(l: int, k: int, m: int, n: int, alpha: Level, delta: Level) -> float:
    """Theorem 3.3, (7) and (8): with probability 1-delta the miscoverage given the data is at most this.

    alpha + sqrt(log(1/delta) / (2 m n)) for the set (4) of a pair (l, k) with l k >= (1-alpha) m n.

    Raises
    ------
    InputError
        If l k < (1-alpha) m n, if delta is not in (0, 0.5], or if the pair is none.

    Examples
    --------
    >>> round(conditional_miscoverage(190, 5, 5, 200, 0.1, 0.05), 4)
    0.1387
    """
    refuse_pair(l, k, m, n)
    level = exact_level("alpha", alpha)
    if l * k < (1 - level) * m * n:
        raise InputError(
            f"l k must be at least (1-alpha) m n = {float((1 - level) * m * n):g}, as Theorem 3.3 asks; found {l * k}"
        )
    return float(level) + published_deviation(m, n, delta)
