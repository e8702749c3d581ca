"""The laws of the maximum and of the end of a noise walk, by convolution with a bounded truncation error.

In a noisy histogram the noise in the count of scores beyond candidate k is the sum of the noises of the bins beyond it.
As a function of k this is a random walk from the right. The selected candidate can fall short by as many ranks as the
walk's end, because the target must also be reached at every candidate beyond (docs/theory-last-rule.md, Theorem W1).
It can lie beyond the target by as many as the walk's maximum.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

_UNEVEN = 1e-12
_BEYOND = 1e-16
_LARGEST_EXPONENT = 600


@dataclass(frozen=True, eq=False)
class Maximum:
    """The law of M = max(0, S_1, ..., S_k), S a walk with discrete Laplace steps.

    `law` is float64 of shape (K+1,): P(M = 0), ..., P(M = K). `leaked` is the mass that passed K during the computation
    and counts as M = +inf. `tail_mean` is an upper bound on the integral of P(M > t) over t >= K.

    Examples
    --------
    >>> walk = maximum(1.0, 100)
    >>> round(walk.mean, 2), walk.leaked < 1e-12
    (9.79, True)
    """

    law: NDArray[np.float64]
    leaked: float
    tail_mean: float

    @property
    def mean(self) -> float:
        """E[M], never below the exact value except for rounding."""
        return self.above(0.0)

    def above(self, x: float) -> float:
        """E[(M - x)_+], never below the exact value except for rounding."""
        values = np.arange(len(self.law))
        kept = float(self.law @ np.maximum(values - x, 0))
        return kept + self.leaked * max(len(self.law) - 1 - x, 0.0) + self.tail_mean

    def at_most(self, x: float) -> float:
        """P(M <= x)."""
        return float(self.law[: max(0, math.floor(x) + 1)].sum())


Law: TypeAlias = NDArray[np.float64]


@lru_cache(maxsize=64)
def maximum(scale: float, steps: int) -> Maximum:
    """The law of max(0, S_1, ..., S_steps) for steps P(z) proportional to exp(-abs(z)/scale).

    By reversal max(0, S_1, ..., S_i) has the law of (X + M)_+ with M the maximum of one step fewer (Lindley 1952). So
    there is one convolution per step, and mass below 0 is moved to 0. Each convolution with a two-sided geometric law
    is a forward and a backward recursion, all terms non-negative.
    """
    from scipy.signal import lfilter

    a = math.exp(-1 / scale)
    top = math.ceil(scale * (9 * math.sqrt(2 * steps) + 40)) + 1
    unit, centre = (1 - a) / (1 + a), np.array([1.0])
    out = unit / (1 - a) * a
    law, leaked = np.zeros(top + 1), 0.0
    law[0] = 1.0
    for _ in range(steps):
        forward = lfilter(centre, [1.0, -a], law)
        backward = lfilter(centre, [1.0, -a], law[::-1])[::-1]
        law = unit * (forward + backward - law)
        law[0] += float(out * backward[0])
        leaked += float(out * forward[-1])
    return Maximum(law, leaked, _tail_mean(a, scale, steps, float(top)))


def walk_end(noise: Law, steps: int, reach: int | None = None) -> Law:
    """The law of max(0, S), S the end of the walk: the rank deficit of the last rule (Theorem W1).

    Parameters
    ----------
    noise
        P(X = -half), ..., P(X = half) of one step, float64 of odd length: symmetric, and not increasing with abs(X).
        For noise of several makers it is the convolution of their laws. Missing mass counts as X = +inf.
    steps
        Number of steps, at least 0: one less than the number of bins.
    reach
        `walk_reach(noise, steps)`, if it was computed before.

    Returns
    -------
    numpy.ndarray
        P(N = 0), P(N = 1), ..., float64. The mass missing to 1 counts as N = +inf: that of a walk with a missing step.
        Every P(N >= k) is exact but for rounding, about 1e-15 for every step.

    Raises
    ------
    ValueError
        If the law of a step is not symmetric, or increases with abs(X): the walk's end would not be enough.

    Examples
    --------
    >>> walk_end(np.array([0.25, 0.5, 0.25]), 2)
    array([0.6875, 0.25  , 0.0625])
    """
    half = len(noise) // 2
    rising = np.diff(noise[half:]).max(initial=0.0)
    if len(noise) % 2 == 0 or max(np.abs(noise - noise[::-1]).max(), rising) > _UNEVEN:
        raise ValueError("noise must be a symmetric law that does not increase away from 0")
    reach = walk_reach(noise, steps) if reach is None else reach
    ring = np.zeros(2 * reach + 2)
    np.add.at(ring, np.arange(-half, half + 1) % len(ring), noise)
    transform = np.fft.rfft(ring) ** steps
    positive = np.maximum(np.fft.irfft(transform, len(ring))[1 : reach + 1], 0.0)
    return np.append(transform[0].real - positive.sum(), positive)


def last_rule(reached: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The first candidate at which, and at all candidates beyond which, the target is reached (Theorem W1).

    Parameters
    ----------
    reached
        Whether the noisy count at or below each candidate reaches the target, bool of shape (..., m). The last
        candidate always counts as reached.

    Returns
    -------
    numpy.ndarray
        Indices below m, int64 of shape (...).

    Examples
    --------
    >>> int(last_rule(np.array([False, True, False, True, True])))
    3
    """
    kept = np.logical_and.accumulate(reached[..., -2::-1], axis=-1).sum(axis=-1)
    return np.asarray(reached.shape[-1] - 1 - kept, dtype=np.int64)


def chosen_by_last_rule(noisy: NDArray[np.int64], n: int, target: int) -> NDArray[np.int64]:
    """The candidates that noisy counts of shape (..., m) choose by the last rule.

    Candidate k reaches the target if n - (noisy counts beyond k) >= target, and the last candidate always does.

    Examples
    --------
    >>> int(chosen_by_last_rule(np.array([5, 4, -3, 3, 2]), 11, 7))
    3
    """
    beyond = noisy.sum(axis=-1, keepdims=True) - np.cumsum(noisy, axis=-1)
    reached = n - beyond >= target
    reached[..., -1] = True
    return last_rule(reached)


def walk_reach(noise: Law, steps: int) -> int:
    """A number that abs(S) exceeds with probability 1e-16 at most, by Chernoff's bound."""
    x = np.arange(len(noise)) - len(noise) // 2
    sd, most = math.sqrt(float(noise @ x**2)), steps * (len(noise) // 2)
    if sd == 0:
        return 0
    bounds: list[int] = [
        math.ceil((steps * math.log(float(noise @ np.exp(r * x))) - math.log(_BEYOND / 2)) / r)
        for r in (np.geomspace(0.01, 10, 61) / sd).tolist()
        if r * (len(noise) // 2) < _LARGEST_EXPONENT
    ]
    return min([most, *bounds])


def _tail_mean(a: float, scale: float, steps: int, top: float) -> float:
    """An upper bound on the integral of P(M > t) over t >= top, by Levy's inequality and Chernoff's bound.

    P(M > t) <= 2 P(S_steps >= t) <= 2 E[exp(r X)]^steps exp(-r t), so the integral is at most that at top over r.
    """
    best = math.inf
    for share in np.arange(0.02, 1.0, 0.02):
        r = share / scale
        growth = -math.log1p(-a * math.exp(r)) - math.log1p(-a * math.exp(-r)) + 2 * math.log1p(-a)
        best = min(best, math.log(2) + steps * growth - r * top - math.log(r))
    return math.exp(best)


def missed_by_last_rule(x: float, scale: float, bins: int, rate: float) -> float:
    """An upper bound on the mean number of missed points for a secret n and the last rule (Theorem W2).

    `x` is the target rank T(n) less n + 1, `rate` its growth with n + 1, in (0, 1). With S the noise of all bins and Y
    = S + U + U', U and U' uniform on (-1/2, 1/2), it is E[(D - x)_+] and, where x < 0, at most half a rank more. D is
    Y times the larger of rate and 1 - rate if Y > 0, and Y times the smaller one if Y < 0. The bound plus x never
    decreases with x.

    Examples
    --------
    >>> round(missed_by_last_rule(-10.0, 1.0, 128, 0.9) - 10, 2)
    4.93
    """
    total = total_above(scale, bins, 1.0)
    return missed_of_total(x, rate, total, float(total.law[0]))


def missed_of_total(x: float, rate: float, above: Callable[[float], float], zero: float) -> float:
    """The same for noise of any peaked law: `above` is y -> E[(S - y)_+] for the sum S of all noise, `zero` P(S = 0).

    Examples
    --------
    >>> total = total_above(1.0, 128, 1.0)
    >>> missed_of_total(-10.0, 0.9, total, float(total.law[0])) == missed_by_last_rule(-10.0, 1.0, 128, 0.9)
    True
    """
    large, small = max(rate, 1 - rate), min(rate, 1 - rate)

    def smooth(y: float) -> float:
        """E[(Y - y)_+] or a little more: U + U' is -1, 0 or 1 where a function is linear between integers."""
        return (above(y - 1) + 4 * above(y) + above(y + 1)) / 6

    most = min(0.5, zero / (8 * small))
    if x >= 0:
        return max(large * smooth(x / large), large * smooth(0.0) + most - x)
    return (large - small) * smooth(0.0) - x + small * smooth(-x / small) + most


class TotalAbove:
    """E[(weight S - x)_+] for the end S of the walk, by the discrete Fourier transform of its law.

    The law on a ring of `size` points differs from the law on the integers by mass beyond half the ring, which is
    bounded by Chernoff's bound and added.

    Examples
    --------
    >>> round(total_above(1.0, 100, 0.1)(0.0), 3)
    0.54
    """

    def __init__(self, scale: float, steps: int, weight: float) -> None:
        a = math.exp(-1 / scale)
        half = math.ceil(scale * (9 * math.sqrt(2 * steps) + 40)) + 1
        size = 2 * half
        angles = 2 * np.pi * np.arange(half + 1) / size
        transform = ((1 - a) ** 2 / (1 - 2 * a * np.cos(angles) + a * a)) ** steps
        ring = np.maximum(np.fft.irfft(transform, size), 0.0)
        self.values = weight * np.concatenate([np.arange(half), np.arange(-half, 0)])
        self.law = ring
        # P(|S| >= half) is at most (1/scale) times the bound on its integral; folded values are off by at most 2 half.
        self.beyond = weight * (1 + 2 * half / scale) * _tail_mean(a, scale, steps, float(half))

    def __call__(self, x: float) -> float:
        """E[(weight S - x)_+], never below the exact value except for rounding."""
        return float(self.law @ np.maximum(self.values - x, 0)) + self.beyond


total_above = lru_cache(maxsize=64)(TotalAbove)
"""E[(weight S_steps - x)_+] as a function of x."""
