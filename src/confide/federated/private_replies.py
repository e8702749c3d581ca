"""What the reply of a silo that runs the slope mechanism dominates, for a public or a secret number of records."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from confide.federated.order_statistics import RandomRankReply, ReplyLaw
from confide.guarantee import line_holds, rank_law
from confide.mechanisms import Slopes

_UNLIKELY = 1e-10
_LEVELS = 24


def slopes_reply(n: int | None, mechanism: Slopes, candidates: int, n_min: int) -> ReplyLaw:
    """The law that a silo's reply dominates; with n None for every number of scores from n_min on."""
    if n is None:
        return any_size_reply(mechanism, candidates, n_min)
    return private_reply(n, mechanism, candidates)


@lru_cache(maxsize=8192)
def private_reply(n: int, mechanism: Slopes, candidates: int) -> RandomRankReply:
    """The law that a silo's reply dominates, for a public number of scores n.

    Examples
    --------
    >>> mechanism = Slopes(Fraction(0), Fraction(90), 3, 1, 4.0, "permute_and_flip")
    >>> reply = private_reply(100, mechanism, 50)
    >>> round(float(reply.below(np.array([0.9]))[0]), 2)
    0.9
    """
    ranks, mass, bottom = rank_law(float(mechanism.target(n)), mechanism.slope_left, candidates, mechanism.selector)
    # The lowest ranks, together less likely than 1e-10, count as rank 0: it can only lower the certificate.
    first = int(np.searchsorted(bottom + np.cumsum(mass), _UNLIKELY))
    bottom += float(mass[:first].sum())
    kept, mass = ranks[first:], mass[first:]
    finite = kept <= n
    return RandomRankReply(n, tuple(kept[finite].tolist()), tuple(mass[finite].tolist()), max(bottom, 0.0))


@dataclass(frozen=True)
class AnySizeReply:
    """The worst reply over all numbers of scores from n_min on: for silos whose sizes are secret (Theorem F4).

    Parameters
    ----------
    steps
        Pairs (t, bound), rising: for every n >= n_min the reply is at most t with probability at most `bound`. Between
        two t the bound of the upper one is used, above the last one it is 1.
    """

    steps: tuple[tuple[float, float], ...]

    def below(self, t: NDArray[np.float64]) -> NDArray[np.float64]:
        """The step function, shape of t."""
        at = np.array([step[0] for step in self.steps])
        bound = np.array([step[1] for step in self.steps] + [1.0])
        found: NDArray[np.float64] = np.where(t <= 0, 0.0, bound[np.searchsorted(at, t, side="left")])
        return found


@lru_cache(maxsize=64)
def any_size_reply(mechanism: Slopes, candidates: int, n_min: int) -> AnySizeReply:
    """Bounds that hold for every secret n >= n_min, each proved by `line_holds` (docs/theory.md, Theorem 4)."""
    rate = float(mechanism.rate)
    gaps = np.geomspace(0.02, 1.0, _LEVELS)[::-1] * min(0.25, rate)
    steps = []
    for gap in gaps:
        t = Fraction(math.floor((rate - gap) * 10**5), 10**5)
        if t > 0:
            steps.append((float(t), _largest_failure(mechanism, candidates, n_min, t)))
    bounds = np.maximum.accumulate([bound for _, bound in steps])
    return AnySizeReply(tuple((t, float(b)) for (t, _), b in zip(steps, bounds, strict=True)))


def _largest_failure(mechanism: Slopes, candidates: int, n_min: int, t: Fraction) -> float:
    """The smallest delta on a grid for which the reply is below t with probability at most delta at every n."""

    def holds(log_delta: float) -> bool:
        rate, offset, slope = mechanism.rate, mechanism.offset, mechanism.slope_left
        return line_holds(rate, offset, t, math.exp(log_delta), n_min, slope, candidates, mechanism.selector)

    low, high = -16.0, -0.02
    if not holds(high):
        return 1.0
    if holds(low):
        return math.exp(low)
    while high - low > 0.06:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return math.exp(high)
