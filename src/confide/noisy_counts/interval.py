"""Exact intervals for a coverage p from noisy counts x = C + Z of covered and y = M + Z' of missed records.

This is Theorem A2 of docs/theory-after-release.md, which writes H for T. A secret n costs almost nothing, because it
enters T as n (p - w).
"""

import math
from fractions import Fraction
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.errors import InputError, InputTypeError
from confide.noisy_counts.noise import ROUNDING, NoiseTail, noise_tail, reaches
from confide.support import MOST_RECORDS, Level, exact_level, positive_integer, privacy_loss, raise_for_rows

# Fix a public weight w. Let T = (1-w) x - w y = C - w n + V with V = (1-w) Z - w Z'. The law of V depends on neither n
# nor p, and P_(n,p)(T >= t) grows with p. The lower end of the interval is the largest p with
#
#     sup over n in R of P_(n,p)(T >= t) <= (error - beta)/2,
#     R = {n >= 0: |x + y - n| <= r},  P(|Z + Z'| > r) <= beta;
#
# the upper end is the same for missed records. A public n is the only element of R, and beta = 0.

# The part of the error that is used for the secret n.
_FOR_SIZE = 0.02

_HALVINGS = 30
_MOST_NOISY = 4 * MOST_RECORDS
_LEAST_ERROR, _MOST_NOISES = 1e-9, 10**4

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def coverage_interval(
    covered: ArrayLike,
    missed: ArrayLike,
    epsilon: float,
    *,
    error: float = 0.05,
    guess: Level = 0.9,
    noises: int | tuple[int, int] = 1,
    size: ArrayLike | None = None,
) -> tuple[Floats, Floats]:
    """Intervals for the coverage of each part from noisy counts of its covered and missed records.

    Each contains its part's coverage with probability at least 1 - error over the records and the noise, for every
    coverage and every number of records. The records of a part must be independent, covered with the same probability,
    and none of those that the threshold was calibrated on. Time and memory are bounded for all counts.

    Parameters
    ----------
    epsilon
        One over the scale of each noise.
    error
        Probability that an interval may miss; for several disjoint parts at once see `simultaneous`.
    guess
        A public guess of the coverage, not computed from these records. Intervals are valid for every guess, and
        shortest if it is right. It is not used with `size`.
    noises
        Number of noises in each count, for counts that are sums of noisy cells; or two numbers, for covered and
        for missed.
    size
        The numbers of records, if they are public; None if they are secret.

    Examples
    --------
    >>> low, high = coverage_interval([905, 88], [95, 13], 1.0)
    >>> low.round(3), high.round(3)
    (array([0.885, 0.781]), array([0.922, 0.932]))
    """
    loss, chance = privacy_loss("epsilon", epsilon), _error(error)
    x, y, n = _counts(covered, missed, size)
    of_covered, of_missed = _noises(noises)
    # A public size needs no guess: its weight is that of the least noise.
    weight = exact_level("guess", guess) if n is None else Fraction(of_covered, of_covered + of_missed)
    return _interval(x, y, n, loss, chance, weight.limit_denominator(100 if n is None else 20), (of_covered, of_missed))


def one_count_interval(
    covered: ArrayLike, size: ArrayLike, epsilon: float, *, error: float = 0.05, noises: int = 1
) -> tuple[Floats, Floats]:
    """Intervals for the coverage of each part from its noisy count of covered records and its public size.

    Like `coverage_interval`, without a noisy count of missed records. Under "replace_one" one noisy count per part is
    enough, at half the loss of two if a replaced record stays in its part.
    """
    loss, chance = privacy_loss("epsilon", epsilon), _error(error)
    noises = positive_integer("noises", noises, most=_MOST_NOISES)
    x, n = _integers("covered", covered), _public_sizes(size, np.shape(covered))
    return _interval(x, n - x, n, loss, chance, Fraction(0), (noises, 0))


def simultaneous(error: float, parts: int) -> float:
    """The error of each of some disjoint parts, so that all intervals hold at once with probability 1 - error.

    1 - (1 - error)^(1/parts): parts that share no record and no noise have independent intervals, given their sizes.
    The number of parts must be public and fixed beforehand: all that were counted, not those that are shown.
    """
    each = -math.expm1(math.log1p(-_error(error)) / positive_integer("parts", parts, most=10**7))
    return each * (1 - 1e-15)


def coverage_share(covered: ArrayLike, missed: ArrayLike, size: ArrayLike | None = None) -> Floats:
    """An estimate of each part's coverage, for display: the share of covered among noisy counts; nan without records.

    A reader can compute it from the two published counts. It needs neither the unknown size nor a guess. Only this
    displayed value is clipped; intervals and sums use the counts as they are. With public sizes it is the mean of
    covered/size and 1 - missed/size.
    """
    x, y, n = _counts(covered, missed, size)
    top, whole = (x.clip(0), x.clip(0) + y.clip(0)) if n is None else ((x + n - y).clip(0, 2 * n), 2 * n)
    share: Floats = np.divide(top, whole, out=np.full(x.shape, np.nan), where=whole > 0)
    return share


def _interval(
    x: Ints, y: Ints, n: Ints | None, epsilon: float, error: float, weight: Fraction, noises: tuple[int, int]
) -> tuple[Floats, Floats]:
    a, L = weight.numerator, weight.denominator
    # The tail of V, and the sizes in R, in blocks.
    noise = noise_tail(epsilon, tuple((k, w) for k, w in zip(noises, (L - a, a), strict=True) if w) or ((1, 1),))
    beta = error * _FOR_SIZE if n is None else 0.0
    sizes, block = _sizes(x + y, n, epsilon, weight, noises, beta)
    level, t = (error - beta) / 2, (L - a) * x - a * y
    # Both ends; a part without records may have any coverage.
    low = _lower(noise, a, L, t.ravel(), sizes, block, level)
    high = np.minimum(np.nextafter(1 - _lower(noise, L - a, L, -t.ravel(), sizes, block, level), 2), 1)
    empty = sizes[:, -1] + block <= 1  # no n in R but 0
    return np.where(empty, 0.0, low).reshape(x.shape), np.where(empty, 1.0, high).reshape(x.shape)


def _sizes(
    total: Ints, n: Ints | None, epsilon: float, weight: Fraction, noises: tuple[int, int], beta: float
) -> tuple[Ints, int]:
    """The first sizes of blocks that cover R, shape (parts, blocks), and how many sizes a block has.

    A block lowers t by at most a hundredth of the standard deviation of T in the smallest part.
    """
    if n is not None:
        return n.reshape(-1, 1), 1
    reach, w = noise_tail(epsilon, ((sum(noises), 1),)).beyond(beta - 2 * ROUNDING), float(weight)
    smallest = max(0, int(total.min())) if total.size else 0
    variance = smallest * w * (1 - w) + 2 * (noises[0] * (1 - w) ** 2 + noises[1] * w**2) / epsilon**2
    block = min(2 * reach + 1, max(1, int(0.01 * math.sqrt(variance) / max(min(w, 1 - w), 1e-9))))
    return total.reshape(-1, 1) + np.arange(-reach, reach + 1, block), block


def _lower(noise: NoiseTail, a: int, L: int, t: Ints, first: Ints, block: int, level: float) -> Floats:
    """The largest p found with P(L C - a n + V >= t) <= level for every n of the blocks, for each part.

    With one n more, C is the same or one more. So the sizes m..m+h-1 of a block are bounded by m with t lowered by
    (L-a) (h-1), and by m+h-1 with t lowered by a (h-1): the one that lowers less is taken.
    """
    # One size and one lower t for each block.
    from_below = 2 * a >= L
    t = t - (L - a if from_below else a) * (block - 1)
    sizes = np.maximum(first if from_below else first + block - 1, 0)
    low, high, worst = np.zeros(len(t)), np.ones(len(t)), sizes[:, sizes.shape[1] // 2].copy()
    left = np.arange(len(t))

    # Each round adds one deciding size, so there are at most as many rounds as blocks.
    while left.size:
        bottom, top = np.zeros(len(left)), high[left]
        for _ in range(_HALVINGS):
            middle = (bottom + top) / 2
            fits = reaches(noise, a, L, t[left], worst[left], middle) <= level
            bottom, top = np.where(fits, middle, bottom), np.where(fits, top, middle)
        low[left], high[left] = bottom, bottom
        left = left[bottom > 0]
        if not left.size:
            break
        # Parts for which another size decides go on.
        width = sizes.shape[1]
        chances = reaches(noise, a, L, np.repeat(t[left], width), sizes[left].ravel(), np.repeat(low[left], width))
        chances = chances.reshape(-1, width)
        bad = chances.max(axis=1) > level
        left = left[bad]
        worst[left] = sizes[left, chances[bad].argmax(axis=1)]
    return low * (1 - 2.0**-50)  # n p is a rounded number


def _error(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InputTypeError("error", "must be a number between 0 and 1", got=type(value).__name__)
    chance = float(value)
    if not _LEAST_ERROR <= chance < 1:
        raise InputError("error", f"must lie between {_LEAST_ERROR:g} and 1", got=repr(chance))
    return chance


def _noises(value: Any) -> tuple[int, int]:
    pair = value if isinstance(value, tuple | list) else (value, value)
    if len(pair) != 2:
        raise InputError("noises", "must be one number or two", got=str(len(pair)))
    covered, missed = (positive_integer("noises", number, most=_MOST_NOISES) for number in pair)
    return covered, missed


def _counts(covered: ArrayLike, missed: ArrayLike, size: ArrayLike | None) -> tuple[Ints, Ints, Ints | None]:
    """Counts and sizes as int64 of one shape."""
    x, y = _integers("covered", covered), _integers("missed", missed)
    if x.shape != y.shape:
        raise InputError("missed", f"must have the shape of covered, {x.shape}", got=str(y.shape))
    return x, y, None if size is None else _public_sizes(size, x.shape)


def _public_sizes(size: ArrayLike, shape: tuple[int, ...]) -> Ints:
    n = _integers("size", size)
    raise_for_rows("size", n.ravel() < 0, "must be at least 0", "negative")
    if n.ndim and n.shape != shape:
        raise InputError("size", f"must be one number or have the shape of the counts, {shape}", got=str(n.shape))
    return np.broadcast_to(n, shape)


def _integers(name: str, values: ArrayLike) -> Ints:
    array = np.asarray(values)
    if array.size and array.dtype.kind not in "iu":
        raise InputTypeError(name, "must be integers", got=f"dtype {array.dtype}")
    far = (array.ravel() > _MOST_NOISY) | (array.ravel() < -_MOST_NOISY)
    raise_for_rows(name, far, "must lie within +-2**50", "that do not")
    return array.astype(np.int64)
