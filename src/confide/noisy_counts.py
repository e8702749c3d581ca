"""Exact statements about counts with discrete Laplace noise, computed from the noisy counts alone.

In this order: the law of the noise and counts with it; the tail of weighted sums of noises; the tail of covered records
plus noise; and finite-sample intervals for a coverage, noise included (Theorem A2 of docs/theory-after-release.md).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.errors import InputError, InputTypeError
from confide.selection import noisy_counts
from confide.support import (
    MOST_RECORDS,
    Level,
    as_number,
    exact_level,
    positive_integer,
    privacy_loss,
    raise_for_rows,
    require,
    scale_for,
)

__all__ = [
    "coverage_interval", "coverage_share", "draw_counts", "log_mgf", "noise_beyond", "noise_law", "noise_variance",
    "one_count_interval", "simultaneous",
]  # fmt: skip

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Noise Z has the law P(z) = tanh(eps/2) exp(-eps |z|), and
#
#     E exp(s Z) = 1/(1 - (sinh(s/2)/sinh(eps/2))^2),  |s| < eps,    E exp(i t Z) = 1/(1 + (sin(t/2)/sinh(eps/2))^2).
#
# A weighted sum V of independent noises has the product of their transforms, and its law is one inverse FFT for every
# number of noises. The mass that wraps around is less than e^-35, by Chernoff's bound with the first formula.
#
# Noise of a tiny epsilon has too many values for a table. It is then counted in steps of g: Z is stochastically at most
# g (D + 1) with D the noise of g epsilon (docs/theory-after-release.md, Lemma A3). So tails are bounded from above with
# a table for g epsilon.

# Minus the logarithm of the mass that a table may lose, as above.
_LOST = 35.0

# Noise that reaches farther is counted in steps.
_WIDEST = 2**18

# The most values of a law that is returned.
_LONGEST_LAW = 2**23


def log_mgf(s: ArrayLike, epsilon: float) -> Floats:
    """Logarithm of E exp(s Z) for noise Z, P(z) proportional to exp(-epsilon abs(z)); abs(s) is below epsilon."""
    loss = privacy_loss("epsilon", epsilon)
    size = np.abs(np.asarray(s, dtype=np.float64))
    raise_for_rows("s", ~(size < loss), "must lie strictly between -epsilon and epsilon", "that does not")
    result: Floats = 2 * np.log(-np.expm1(-loss)) - np.log(-np.expm1(size - loss)) - np.log(-np.expm1(-size - loss))
    return result


def noise_law(epsilon: float, noises: int = 1) -> Floats:
    """The law of the sum of some noises: float64 of shape (2 r + 1,), for the values -r..r; beyond them is < 1e-14.

    epsilon is one over the scale of each noise. Raises an error if the law has more than 2**23 values.
    """
    loss = privacy_loss("epsilon", epsilon)
    noises = positive_integer("noises", noises, most=10**6)
    reach = _reach(loss, ((noises, 1),))
    if 2 * reach + 1 > _LONGEST_LAW:
        raise InputError("epsilon", "must be larger for a table of the noise of at most 2**23 values", got=f"{loss:g}")
    if noises == 1:
        law: Floats = np.tanh(loss / 2) * np.exp(-loss * np.abs(np.arange(-reach, reach + 1)))
        return law
    return _law(loss, ((noises, 1),), reach)


def _half_sinh(epsilon: float) -> np.float64:
    """sinh(eps/2), and at most sinh(350), whose square is still a float."""
    half_sinh: np.float64 = np.sinh(min(epsilon, 700.0) / 2)
    return half_sinh


def noise_variance(epsilon: float) -> float:
    """The variance of one noise of scale 1/epsilon."""
    return float(0.5 / _half_sinh(epsilon) ** 2)


def draw_counts(counts: Sequence[int] | NDArray[np.integer], epsilon: float) -> Ints:
    """Counts plus independent noise Z, P(z) proportional to exp(-epsilon abs(z)). It cannot be seeded.

    The loss is epsilon times the L1 distance of neighbouring counts: epsilon if one record more or less changes one
    count by one, 2 epsilon if a replaced record can change two. Counts are integers from 0 to 2**48, shape (k,).
    """
    loss = privacy_loss("epsilon", epsilon)
    exact = np.asarray(counts)
    require("counts", exact.ndim == 1, "must have one dimension", got=f"shape {exact.shape}")
    if exact.size and exact.dtype.kind not in "iu":
        raise InputTypeError("counts", "must be integers", got=f"dtype {exact.dtype}")
    raise_for_rows("counts", (exact < 0) | (exact > MOST_RECORDS), "must lie between 0 and 2**48", "outside")
    return noisy_counts(exact.astype(np.int64), scale_for(1, loss))


# Terms of a weighted sum: the number of noises, and their common weight, an integer of at least 0.
Parts = tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False)
class NoiseTail:
    """Upper bounds on P(V >= t) for a weighted sum V of noises; exact except for rounding if `step` is 1."""

    table: Floats
    """P(V/step >= -r), ..., P(V/step >= r), 0."""
    step: int
    shift: int  # what counting in steps can add to V at most; 0 without steps

    @property
    def zero(self) -> int:
        """The index of P(V >= 0) in the table."""
        return len(self.table) // 2 - 1

    def at_least(self, t: Ints) -> Floats:
        """P(V >= t) for integers t of any shape."""
        steps = t if self.step == 1 else -((self.shift - t) // self.step)
        return self.table[np.clip(steps + self.zero, 0, len(self.table) - 1)]

    def beyond(self, probability: float) -> int:
        """The smallest r of the table with P(|V| > r) at most `probability`."""
        first = int(np.argmax(2 * self.table <= probability)) - self.zero
        return max(0, (first - 1) * self.step + self.shift)


@lru_cache(maxsize=32)
def noise_tail(epsilon: float, parts: Parts) -> NoiseTail:
    """The tail of V, the sum over terms of weight * (sum of noises of scale 1/epsilon), symmetric around 0."""
    step = -(-_reach(epsilon, parts) // _WIDEST)  # rounded up
    reach = _reach(step * epsilon, parts)
    tail = np.append(np.cumsum(_law(step * epsilon, parts, reach)[::-1])[::-1], 0.0)
    tail[0] = 1.0
    shift = sum(noises * weight for noises, weight in parts) * step if step > 1 else 0
    return NoiseTail(np.minimum(tail, 1.0), step, shift)


def noise_beyond(epsilon: float, parts: Parts, probability: float) -> int:
    """An r with P(abs(V) > r) of at most `probability`: the least one, or a bound of Chernoff for coarse tables."""
    lost = float(-np.log(probability / 2))
    if _reach(epsilon, parts) > _WIDEST:
        return _reach(epsilon, parts, lost)
    return noise_tail(epsilon, parts).beyond(probability)


def _reach(epsilon: float, parts: Parts, lost: float = _LOST) -> int:
    """An r with P(V > r) <= e^-lost: the best of Chernoff's bounds exp(log E exp(s V) - s r)."""
    s = np.linspace(0.02, 0.98, 49) * epsilon / max(weight for _, weight in parts)
    logs = sum(noises * log_mgf(weight * s, epsilon) for noises, weight in parts)
    return max(1, int(np.ceil(((logs + lost) / s).min())))


def _law(epsilon: float, parts: Parts, reach: int) -> Floats:
    """The law of V on -reach..reach."""
    length = 1 << (2 * reach + 1).bit_length()
    turns = np.arange(length // 2 + 1)
    transform = np.ones(len(turns))
    for noises, weight in parts:
        sines = np.sin(np.pi / length * (turns * weight % length))
        transform *= (1 + (sines / _half_sinh(epsilon)) ** 2) ** -float(noises)
    law = np.fft.irfft(transform, length).clip(0)
    return np.concatenate([law[-reach:], law[: reach + 1]])


# Upper bounds on the probability that T = L C - a n + V reaches a value, with C ~ Bin(n, p) and V a weighted sum of
# noises.
#
# C runs over a window of 8 standard deviations and 30, beyond which lies less than 3e-14, by Bernstein's inequality.
# Inside, probabilities are computed from their ratios and from their sum, which is 1. Where the standard deviation
# is above 128, values of C are taken together in blocks of a 128th of it: C counts as the end of its block, which can
# only raise T. So no window has more than 4200 values.

# Larger than the error of windows, tables and floating-point numbers.
ROUNDING = 1e-12

# The standard deviation above which values are taken in blocks, and the blocks in a standard deviation.
_WIDE = 128.0
_BLOCKS_PER_SPREAD = 128

# The most values in a window of blocks, and the most probabilities that are computed at once.
_MOST_BLOCKS = 4200
_MOST_AT_ONCE = 2**20


@dataclass(frozen=True, eq=False)
class CountSum:
    """The statistic L C - a n + V, with the tail of V."""

    noise: NoiseTail
    a: int
    L: int

    def reaches(self, value: Ints, n: Ints, p: Floats) -> Floats:
        """Upper bounds on P(L C - a n + V >= value), all of shape (k,), with p in (0, 1)."""
        spread = np.sqrt(n * p * (1 - p))
        result = np.empty(len(n))
        for rows, law in ((spread <= _WIDE, _narrow_law), (spread > _WIDE, _wide_law)):
            places = np.flatnonzero(rows)
            if not places.size:
                continue
            most = 16 * float(spread[places].max()) + 64 if law is _narrow_law else _MOST_BLOCKS
            for block in np.array_split(places, int(len(places) * most / _MOST_AT_ONCE) + 1):
                c, masses = law(n[block, None], p[block, None], spread[block, None])
                needed = (value + self.a * n)[block, None] - self.L * c
                result[block] = np.einsum("ij,ij->i", masses, self.noise.at_least(needed))
        return result + ROUNDING


def _narrow_law(n: Ints, p: Floats, spread: Floats) -> tuple[Ints, Floats]:
    """Values of C and their probabilities, every value of the window."""
    low = np.maximum(np.floor(n * p - 8 * spread - 30), 0).astype(np.int64)
    high = np.minimum(np.ceil(n * p + 8 * spread + 30).astype(np.int64), n)
    c = low + np.arange(int((high - low).max()) + 1)
    masses = np.ones(c.shape)
    np.cumprod((n - c[:, :-1]) / (c[:, :-1] + 1) * (p / (1 - p)), axis=1, out=masses[:, 1:])
    return c, masses / masses.sum(axis=1, keepdims=True)


def _wide_law(n: Ints, p: Floats, spread: Floats) -> tuple[Ints, Floats]:
    """Ends of blocks of values of C, and bounds on the blocks' probabilities: the largest one times their size."""
    step = np.floor(spread / _BLOCKS_PER_SPREAD).astype(np.int64)
    low = np.floor(n * p - 8 * spread - 30).astype(np.int64)
    c = low + step * np.arange(int(np.ceil((16 * spread + 62) / step).max()) + 1)
    mode = np.floor((n + 1) * p).astype(np.int64)
    return c, step * _largest(np.clip(mode, c - step + 1, c), n, p)


def _largest(c: Ints, n: Ints, p: Floats) -> Floats:
    """An upper bound on P(C = c), by Stirling's formula with its bounds, for 0 < c < n."""
    rest = n - c
    away = c - n * p
    exponent = n * p * _entropy(away / (n * p)) + n * (1 - p) * _entropy(-away / (n * (1 - p)))
    stirling = 1 / (12 * n) - 1 / (12 * c + 1) - 1 / (12 * rest + 1)
    return np.sqrt(n / (2 * np.pi * c * rest)) * np.exp(stirling - exponent)


def _entropy(d: Floats) -> Floats:
    """(1 + d) log(1 + d) - d for |d| < 0.07, by its series, because the formula cancels there."""
    result = np.zeros_like(d)
    for k in range(15, 1, -1):
        result = result * d + (-1.0) ** k / (k * (k - 1))
    return result * d * d


# Intervals for a coverage p from noisy counts x = C + Z of covered and y = M + Z' of missed records. A secret n costs
# almost nothing, because it enters T below as n (p - w). Theorem A2 writes H for T.
#
# Fix a public weight w. Let T = (1-w) x - w y = C - w n + V with V = (1-w) Z - w Z'. The law of V depends on neither n
# nor p, and P_(n,p)(T >= t) grows with p. The lower end of the interval is the largest p with
#
#     sup over n in R of P_(n,p)(T >= t) <= (error - beta)/2,
#     R = {n >= 0: |x + y - n| <= r},  P(|Z + Z'| > r) <= beta;
#
# the upper end is the same for missed records. A public n is the only element of R, and beta = 0.

# The part of the error that is used for the secret n.
_FOR_SIZE = 0.02

# Halvings of [0, 1] in the search for a coverage, which it resolves to 1e-9.
_HALVINGS = 30

_LEAST_ERROR = 1e-9
_MOST_NOISES = 10**4
_MOST_NOISY = 4 * MOST_RECORDS


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
        shortest if it is right. The guess is not used with `size`.
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
    x, y, n = _counts(covered, missed, size)
    in_covered, in_missed = _noises(noises)
    if n is None:
        weight = exact_level("guess", guess).limit_denominator(100)
    else:  # the weight of the least noise, which needs no guess
        weight = Fraction(in_covered, in_covered + in_missed).limit_denominator(20)
    law = _NoiseLaw(privacy_loss("epsilon", epsilon), weight, in_covered, in_missed)
    return _interval(x, y, n, law, _error(error))


def one_count_interval(
    covered: ArrayLike, size: ArrayLike, epsilon: float, *, error: float = 0.05
) -> tuple[Floats, Floats]:
    """Intervals for the coverage of each part from its noisy count of covered records and its public size.

    Like `coverage_interval`, without a noisy count of missed records. Under "replace_one" one noisy count per part is
    enough, at half the loss of two if a replaced record stays in its part.
    """
    x = _integers("covered", covered)
    n = _public_sizes(size, np.shape(covered))
    return _interval(x, n - x, n, _NoiseLaw(privacy_loss("epsilon", epsilon), Fraction(0), 1, 0), _error(error))


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
    part = x.clip(0) if n is None else (x + n - y).clip(0, 2 * n)
    whole = x.clip(0) + y.clip(0) if n is None else 2 * n
    share: Floats = np.divide(part, whole, out=np.full(x.shape, np.nan), where=whole > 0)
    return share


class _NoiseLaw(NamedTuple):
    """The noises of scale 1/epsilon in counts of covered and of missed records, and w of T = (1-w) x - w y."""

    epsilon: float
    weight: Fraction
    in_covered: int
    in_missed: int


def _interval(x: Ints, y: Ints, n: Ints | None, law: _NoiseLaw, error: float) -> tuple[Floats, Floats]:
    # The tail of V, and the sizes in R, in blocks.
    a = law.weight.numerator
    L = law.weight.denominator
    terms = ((law.in_covered, L - a), (law.in_missed, a))
    noise = noise_tail(law.epsilon, tuple((noises, weight) for noises, weight in terms if weight))
    beta = error * _FOR_SIZE if n is None else 0.0
    blocks = _Blocks(n.reshape(-1, 1), 1) if n is not None else _blocks(x + y, law, beta)

    # Both ends; a part without records may have any coverage.
    t = ((L - a) * x - a * y).ravel()
    level = (error - beta) / 2
    low = _lower(CountSum(noise, a, L), t, blocks, level)
    high = np.minimum(np.nextafter(1 - _lower(CountSum(noise, L - a, L), -t, blocks, level), 2), 1)
    empty = blocks.first[:, -1] + blocks.length <= 1  # no n in R but 0
    return np.where(empty, 0.0, low).reshape(x.shape), np.where(empty, 1.0, high).reshape(x.shape)


class _Blocks(NamedTuple):
    """Blocks of sizes that together cover R: their first sizes, shape (parts, blocks), and the sizes in each."""

    first: Ints
    length: int


def _blocks(total: Ints, law: _NoiseLaw, beta: float) -> _Blocks:
    """Blocks that lower t by at most a hundredth of the standard deviation of T in the smallest part."""
    epsilon, weight, in_covered, in_missed = law
    reach = noise_tail(epsilon, ((in_covered + in_missed, 1),)).beyond(beta - 2 * ROUNDING)
    w = float(weight)
    smallest = max(0, int(total.min())) if total.size else 0
    variance = smallest * w * (1 - w) + 2 * (in_covered * (1 - w) ** 2 + in_missed * w**2) / epsilon**2
    length = min(2 * reach + 1, max(1, int(0.01 * math.sqrt(variance) / max(min(w, 1 - w), 1e-9))))
    return _Blocks(total.reshape(-1, 1) + np.arange(-reach, reach + 1, length), length)


def _lower(statistic: CountSum, t: Ints, blocks: _Blocks, level: float) -> Floats:
    """The largest p found with P(L C - a n + V >= t) <= level for every n of the blocks, for each part.

    With one n more, C is the same or one more. So the sizes m..m+h-1 of a block are bounded by m with t lowered by
    (L-a) (h-1), and by m+h-1 with t lowered by a (h-1): the one that lowers less is taken.
    """
    # One size and one lower t for each block.
    a = statistic.a
    L = statistic.L
    from_below = 2 * a >= L
    t = t - (L - a if from_below else a) * (blocks.length - 1)
    sizes = np.maximum(blocks.first if from_below else blocks.first + blocks.length - 1, 0)
    low = np.zeros(len(t))
    high = np.ones(len(t))
    worst = sizes[:, sizes.shape[1] // 2].copy()
    left = np.arange(len(t))

    # Each round adds one deciding size, so there are at most as many rounds as blocks.
    while left.size:
        found = _largest_fits(statistic, t[left], worst[left], high[left], level)
        low[left] = found
        high[left] = found
        left = left[found > 0]
        # Parts for which another size decides go on.
        width = sizes.shape[1]
        chances = statistic.reaches(np.repeat(t[left], width), sizes[left].ravel(), np.repeat(low[left], width))
        chances = chances.reshape(-1, width)
        bad = chances.max(axis=1) > level
        left = left[bad]
        worst[left] = sizes[left, chances[bad].argmax(axis=1)]
    return low * (1 - 2.0**-50)  # n p is a rounded number


def _largest_fits(statistic: CountSum, t: Ints, n: Ints, top: Floats, level: float) -> Floats:
    """The largest p below `top` found with P(L C - a n + V >= t) <= level, for each of some sizes, by bisection."""
    bottom = np.zeros(len(t))
    for _ in range(_HALVINGS):
        middle = (bottom + top) / 2
        fits = statistic.reaches(t, n, middle) <= level
        bottom = np.where(fits, middle, bottom)
        top = np.where(fits, top, middle)
    return bottom


def _error(value: Any) -> float:
    chance = as_number("error", value, "a number between 0 and 1")
    require("error", _LEAST_ERROR <= chance < 1, f"must lie between {_LEAST_ERROR:g} and 1", got=repr(chance))
    return chance


def _noises(value: Any) -> tuple[int, int]:
    pair = value if isinstance(value, tuple | list) else (value, value)
    require("noises", len(pair) == 2, "must be one number or two", got=str(len(pair)))
    covered, missed = (positive_integer("noises", number, most=_MOST_NOISES) for number in pair)
    return covered, missed


def _counts(covered: ArrayLike, missed: ArrayLike, size: ArrayLike | None) -> tuple[Ints, Ints, Ints | None]:
    x = _integers("covered", covered)
    y = _integers("missed", missed)
    require("missed", x.shape == y.shape, f"must have the shape of covered, {x.shape}", got=str(y.shape))
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
