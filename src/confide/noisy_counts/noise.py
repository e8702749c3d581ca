"""Discrete Laplace noise, P(z) = tanh(eps/2) exp(-eps |z|), and sums of it: laws from a transform in closed form.

    E exp(s Z) = 1/(1 - (sinh(s/2)/sinh(eps/2))^2),  |s| < eps,    E exp(i t Z) = 1/(1 + (sin(t/2)/sinh(eps/2))^2).

A weighted sum V of independent noises has the product of their transforms, and its law is one inverse FFT, whatever
the number of noises. What the FFT wraps around is less than e^-35, by Chernoff's bound with the first formula.

Noise of a tiny epsilon takes more values than a table should have. It is counted in steps of g then: Z is
stochastically at most g (D + 1), D the noise of g epsilon (docs/theory-after-release.md, Lemma 2), so tails are bounded
from above with a table for g epsilon.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.errors import InputError
from confide.support import positive_integer, privacy_loss, refuse_marked

_LOST = 35.0
_WIDEST = 2**18
_LONGEST_LAW = 2**23


def log_mgf(s: ArrayLike, epsilon: float) -> NDArray[np.float64]:
    """Logarithm of E exp(s Z) for noise Z, P(z) proportional to exp(-epsilon abs(z)).

    Parameters
    ----------
    s
        Any shape; strictly between -epsilon and epsilon.
    epsilon
        One over the scale of the noise.

    Returns
    -------
    float64, shape of s.

    Raises
    ------
    InputError
        If epsilon is no privacy loss, or an s is not strictly between -epsilon and epsilon.

    Examples
    --------
    >>> float(log_mgf(0.5, 1.0).round(12))
    0.267884297718
    >>> float(np.log(np.exp(0.5 * np.arange(-80, 81)) @ (np.tanh(0.5) * np.exp(-abs(np.arange(-80, 81))))).round(12))
    0.267884297718
    """
    loss, size = privacy_loss("epsilon", epsilon), np.abs(np.asarray(s, dtype=np.float64))
    refuse_marked(~(size < loss), "s must lie strictly between -epsilon and epsilon", "that does not")
    result: NDArray[np.float64] = (
        2 * np.log(-np.expm1(-loss)) - np.log(-np.expm1(size - loss)) - np.log(-np.expm1(-size - loss))
    )
    return result


def noise_law(epsilon: float, noises: int = 1) -> NDArray[np.float64]:
    """The law of the sum of some noises: float64 of shape (2 r + 1,), for the values -r..r; beyond them is < 1e-14.

    Parameters
    ----------
    epsilon
        One over the scale of each noise.
    noises
        How many independent noises are added up.

    Raises
    ------
    InputTypeError, InputError
        If epsilon is no privacy loss, noises no positive integer, or the law has more than 2**23 values.

    Examples
    --------
    >>> law = noise_law(1.0, 2)
    >>> len(law) % 2, float(law.sum().round(12)), float(law[len(law) // 2].round(6))
    (1, 1.0, 0.280402)
    """
    loss, noises = privacy_loss("epsilon", epsilon), positive_integer("noises", noises, most=10**6)
    reach = _reach(loss, ((noises, 1),))
    if 2 * reach + 1 > _LONGEST_LAW:
        raise InputError("epsilon is too small for a table of the noise, which would have more than 2**23 values")
    if noises == 1:
        law: NDArray[np.float64] = np.tanh(loss / 2) * np.exp(-loss * np.abs(np.arange(-reach, reach + 1)))
        return law
    return _law(loss, ((noises, 1),), reach)


Parts = tuple[tuple[int, int], ...]
"""Of a weighted sum: how many noises, and their common weight, an integer of at least 0."""


@dataclass(frozen=True, eq=False)
class NoiseTail:
    """Upper bounds on P(V >= t) for a weighted sum V of noises; exact but for rounding where `step` is 1."""

    table: NDArray[np.float64]
    """P(V/step >= -r), ..., P(V/step >= r), 0."""
    step: int
    shift: int

    @property
    def zero(self) -> int:
        """Where the table has P(V >= 0)."""
        return len(self.table) // 2 - 1

    def at_least(self, t: NDArray[np.int64]) -> NDArray[np.float64]:
        """P(V >= t) for integers t of any shape."""
        steps = t if self.step == 1 else -((self.shift - t) // self.step)
        result: NDArray[np.float64] = self.table[np.clip(steps + self.zero, 0, len(self.table) - 1)]
        return result

    def beyond(self, probability: float) -> int:
        """The smallest r in sight with P(|V| > r) at most `probability`."""
        first = int(np.argmax(2 * self.table <= probability)) - self.zero
        return max(0, (first - 1) * self.step + self.shift)


@lru_cache(maxsize=32)
def noise_tail(epsilon: float, parts: Parts) -> NoiseTail:
    """The tail of V = sum of weight * (sum of as many noises of scale 1/epsilon), symmetric around 0."""
    step = -(-_reach(epsilon, parts) // _WIDEST)
    reach = _reach(step * epsilon, parts)
    tail = np.append(np.cumsum(_law(step * epsilon, parts, reach)[::-1])[::-1], 0.0)
    tail[0] = 1.0
    shift = sum(noises * weight for noises, weight in parts) * step if step > 1 else 0
    return NoiseTail(np.minimum(tail, 1.0), step, shift)


def _reach(epsilon: float, parts: Parts) -> int:
    """An r with P(V > r) <= e^-35: the best of Chernoff's bounds exp(log E exp(s V) - s r)."""
    s = np.linspace(0.02, 0.98, 49) * epsilon / max(weight for _, weight in parts)
    logs = sum(noises * log_mgf(weight * s, epsilon) for noises, weight in parts)
    return max(1, int(np.ceil(((logs + _LOST) / s).min())))


def _law(epsilon: float, parts: Parts, reach: int) -> NDArray[np.float64]:
    """The law of V on -reach..reach."""
    length = 1 << (2 * reach + 1).bit_length()
    turns, transform = np.arange(length // 2 + 1), np.ones(length // 2 + 1)
    narrow = np.sinh(min(epsilon, 700.0) / 2)
    for noises, weight in parts:
        transform *= (1 + (np.sin(np.pi / length * (turns * weight % length)) / narrow) ** 2) ** -float(noises)
    law = np.fft.irfft(transform, length).clip(0)
    return np.concatenate([law[-reach:], law[: reach + 1]])
