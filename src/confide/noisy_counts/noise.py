"""Discrete Laplace noise, P(z) = tanh(eps/2) exp(-eps |z|), and sums of it: laws from a transform in closed form."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.errors import InputError, InputTypeError
from confide.selection import noisy_counts
from confide.support import MOST_RECORDS, positive_integer, privacy_loss, raise_for_rows, scale_for

#     E exp(s Z) = 1/(1 - (sinh(s/2)/sinh(eps/2))^2),  |s| < eps,    E exp(i t Z) = 1/(1 + (sin(t/2)/sinh(eps/2))^2).
#
# A weighted sum V of independent noises has the product of their transforms, and its law is one inverse FFT for every
# number of noises. The mass that wraps around is less than e^-35, by Chernoff's bound with the first formula.
#
# Noise of a tiny epsilon has too many values for a table. It is then counted in steps of g: Z is stochastically at most
# g (D + 1) with D the noise of g epsilon (docs/theory-after-release.md, Lemma A3). So tails are bounded from above with
# a table for g epsilon.

_LOST = 35.0
_WIDEST = 2**18
_LONGEST_LAW = 2**23


def log_mgf(s: ArrayLike, epsilon: float) -> NDArray[np.float64]:
    """Logarithm of E exp(s Z) for noise Z, P(z) proportional to exp(-epsilon abs(z)); abs(s) is below epsilon."""
    loss, size = privacy_loss("epsilon", epsilon), np.abs(np.asarray(s, dtype=np.float64))
    raise_for_rows("s", ~(size < loss), "must lie strictly between -epsilon and epsilon", "that does not")
    result: NDArray[np.float64] = (
        2 * np.log(-np.expm1(-loss)) - np.log(-np.expm1(size - loss)) - np.log(-np.expm1(-size - loss))
    )
    return result


def noise_law(epsilon: float, noises: int = 1) -> NDArray[np.float64]:
    """The law of the sum of some noises: float64 of shape (2 r + 1,), for the values -r..r; beyond them is < 1e-14.

    epsilon is one over the scale of each noise. Raises an error if the law has more than 2**23 values.
    """
    loss, noises = privacy_loss("epsilon", epsilon), positive_integer("noises", noises, most=10**6)
    reach = _reach(loss, ((noises, 1),))
    if 2 * reach + 1 > _LONGEST_LAW:
        raise InputError("epsilon", "must be larger for a table of the noise of at most 2**23 values", got=f"{loss:g}")
    if noises == 1:
        law: NDArray[np.float64] = np.tanh(loss / 2) * np.exp(-loss * np.abs(np.arange(-reach, reach + 1)))
        return law
    return _law(loss, ((noises, 1),), reach)


# Terms of a weighted sum: the number of noises, and their common weight, an integer of at least 0.
Parts = tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False)
class NoiseTail:
    """Upper bounds on P(V >= t) for a weighted sum V of noises; exact except for rounding if `step` is 1."""

    table: NDArray[np.float64]
    """P(V/step >= -r), ..., P(V/step >= r), 0."""
    step: int
    shift: int

    @property
    def zero(self) -> int:
        """The index of P(V >= 0) in the table."""
        return len(self.table) // 2 - 1

    def at_least(self, t: NDArray[np.int64]) -> NDArray[np.float64]:
        """P(V >= t) for integers t of any shape."""
        steps = t if self.step == 1 else -((self.shift - t) // self.step)
        result: NDArray[np.float64] = self.table[np.clip(steps + self.zero, 0, len(self.table) - 1)]
        return result

    def beyond(self, probability: float) -> int:
        """The smallest r of the table with P(|V| > r) at most `probability`."""
        first = int(np.argmax(2 * self.table <= probability)) - self.zero
        return max(0, (first - 1) * self.step + self.shift)


@lru_cache(maxsize=32)
def noise_tail(epsilon: float, parts: Parts) -> NoiseTail:
    """The tail of V, the sum over terms of weight * (sum of noises of scale 1/epsilon), symmetric around 0."""
    step = -(-_reach(epsilon, parts) // _WIDEST)
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


def noise_variance(epsilon: float) -> float:
    """The variance of one noise of scale 1/epsilon."""
    return float(0.5 / np.sinh(min(epsilon, 700.0) / 2) ** 2)


def _reach(epsilon: float, parts: Parts, lost: float = _LOST) -> int:
    """An r with P(V > r) <= e^-lost: the best of Chernoff's bounds exp(log E exp(s V) - s r)."""
    s = np.linspace(0.02, 0.98, 49) * epsilon / max(weight for _, weight in parts)
    logs = sum(noises * log_mgf(weight * s, epsilon) for noises, weight in parts)
    return max(1, int(np.ceil(((logs + lost) / s).min())))


def _law(epsilon: float, parts: Parts, reach: int) -> NDArray[np.float64]:
    """The law of V on -reach..reach."""
    length = 1 << (2 * reach + 1).bit_length()
    turns, transform = np.arange(length // 2 + 1), np.ones(length // 2 + 1)
    narrow = np.sinh(min(epsilon, 700.0) / 2)
    for noises, weight in parts:
        transform *= (1 + (np.sin(np.pi / length * (turns * weight % length)) / narrow) ** 2) ** -float(noises)
    law = np.fft.irfft(transform, length).clip(0)
    return np.concatenate([law[-reach:], law[: reach + 1]])


# Counts with discrete Laplace noise of scale 1/epsilon, drawn by OpenDP's secure sampler.


def draw_counts(counts: Sequence[int] | NDArray[np.integer], epsilon: float) -> NDArray[np.int64]:
    """Counts plus independent noise Z, P(z) proportional to exp(-epsilon abs(z)). It cannot be seeded.

    The loss is epsilon times the L1 distance of neighbouring counts: epsilon if one record more or less changes one
    count by one, 2 epsilon if a replaced record can change two. Counts are integers from 0 to 2**48, shape (k,).
    """
    loss, exact = privacy_loss("epsilon", epsilon), np.asarray(counts)
    if exact.ndim != 1:
        raise InputError("counts", "must have one dimension", got=f"shape {exact.shape}")
    if exact.size and exact.dtype.kind not in "iu":
        raise InputTypeError("counts", "must be integers", got=f"dtype {exact.dtype}")
    raise_for_rows("counts", (exact < 0) | (exact > MOST_RECORDS), "must lie between 0 and 2**48", "outside")
    return noisy_counts(exact.astype(np.int64), scale_for(1, loss))


# Upper bounds on the probability that T = L C - a n + V reaches a value, with C ~ Bin(n, p) and V a weighted sum of
# noises.
#
# C runs over a window of 8 standard deviations and 30, beyond which lies less than 3e-14, by Bernstein's inequality.
# Inside, probabilities are computed from their ratios and from their sum, which is 1. Where the standard deviation
# is above 128, values of C are taken together in blocks of a 128th of it: C counts as the end of its block, which can
# only raise T. So no window has more than 4200 values.

# Larger than the error of windows, tables and floating-point numbers.
ROUNDING = 1e-12

_MOST_AT_ONCE = 2**20
_WIDE, _PER_SPREAD = 128.0, 128


def reaches(
    noise: NoiseTail, a: int, L: int, value: NDArray[np.int64], n: NDArray[np.int64], p: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Upper bounds on P(L C - a n + V >= value), all of shape (k,), with p in (0, 1)."""
    spread, result = np.sqrt(n * p * (1 - p)), np.empty(len(n))
    for rows, law in ((spread <= _WIDE, _narrow_law), (spread > _WIDE, _wide_law)):
        places = np.flatnonzero(rows)
        if not places.size:
            continue
        most = 16 * float(spread[places].max()) + 64 if law is _narrow_law else 4200
        for block in np.array_split(places, int(len(places) * most / _MOST_AT_ONCE) + 1):
            c, masses = law(n[block, None], p[block, None], spread[block, None])
            result[block] = np.einsum("ij,ij->i", masses, noise.at_least((value + a * n)[block, None] - L * c))
    return result + ROUNDING


def _narrow_law(
    n: NDArray[np.int64], p: NDArray[np.float64], spread: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Values of C and their probabilities, every value of the window."""
    low = np.maximum(np.floor(n * p - 8 * spread - 30), 0).astype(np.int64)
    high = np.minimum(np.ceil(n * p + 8 * spread + 30).astype(np.int64), n)
    c = low + np.arange(int((high - low).max()) + 1)
    masses = np.ones(c.shape)
    np.cumprod((n - c[:, :-1]) / (c[:, :-1] + 1) * (p / (1 - p)), axis=1, out=masses[:, 1:])
    return c, masses / masses.sum(axis=1, keepdims=True)


def _wide_law(
    n: NDArray[np.int64], p: NDArray[np.float64], spread: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Ends of blocks of values of C, and bounds on the blocks' probabilities: the largest one times their size."""
    step = np.floor(spread / _PER_SPREAD).astype(np.int64)
    low = np.floor(n * p - 8 * spread - 30).astype(np.int64)
    c = low + step * np.arange(int(np.ceil((16 * spread + 62) / step).max()) + 1)
    mode = np.floor((n + 1) * p).astype(np.int64)
    return c, step * _largest(np.clip(mode, c - step + 1, c), n, p)


def _largest(c: NDArray[np.int64], n: NDArray[np.int64], p: NDArray[np.float64]) -> NDArray[np.float64]:
    """An upper bound on P(C = c), by Stirling's formula with its bounds, for 0 < c < n."""
    rest, away = n - c, c - n * p
    exponent = n * p * _entropy(away / (n * p)) + n * (1 - p) * _entropy(-away / (n * (1 - p)))
    stirling = 1 / (12 * n) - 1 / (12 * c + 1) - 1 / (12 * rest + 1)
    result: NDArray[np.float64] = np.sqrt(n / (2 * np.pi * c * rest)) * np.exp(stirling - exponent)
    return result


def _entropy(d: NDArray[np.float64]) -> NDArray[np.float64]:
    """(1 + d) log(1 + d) - d for |d| < 0.07, by its series, because the formula cancels there."""
    result = np.zeros_like(d)
    for k in range(15, 1, -1):
        result = result * d + (-1.0) ** k / (k * (k - 1))
    return result * d * d
