"""The candidates right of g in the two-sided certificate: their least weight R and least coverage X.

R = w exp(-rs) rho and X = w exp(-rs) [kappa + (1-v)(s+1) rho], where the pairs (rho, kappa) of all ways to put points
into bins lie above a polygon (docs/theory-two-sided.md, section 4, where kappa is kappa_0). Only its corners count.
"""

import math
from functools import lru_cache

import numpy as np

from confide.guarantee.left_side import Array

_LEAST, _RATIO = 0.4, 2.7
"""Slopes of the polygon's edges: the smallest one above 0, and their growth factor."""
_LONGEST = 400
"""Largest number of points right of g's bin that earn credit; more would only add to it."""
_MOST_AHEAD = 8.0
"""Largest prior bonus in log-odds that is counted right of g; more would only add to the credit."""


@lru_cache(maxsize=4096)
def corners(slope: float, fewest: int, most: int, bonus: float | None) -> Array:
    """rho, kappa, and the next larger rho at the corners of a polygon below every chain of fewest .. most points.

    Shape (corners + 1, 3); the last row lies below all others. With a prior bonus the last candidate is counted as
    well, as the last bin or behind it.
    """
    finite, multipliers = _chains(slope), _multipliers(slope)
    if bonus is None or fewest >= finite.shape[1]:
        line = finite[:, min(fewest, finite.shape[1] - 1)]
    else:
        numbers = range(fewest, min(most, finite.shape[1] - 1) + 1)
        ahead = math.exp(min(bonus, _MOST_AHEAD))
        lines = [np.min(finite[:, : n + 1] + ahead * _last_bins(slope, n), axis=1) for n in numbers]
        line = np.min([*lines, finite[:, -1]] if most >= finite.shape[1] else lines, axis=0)
    rho = np.append(np.diff(line) / np.diff(multipliers), 1.0 if bonus is not None or fewest else 0.0)
    kappa = np.maximum(line - multipliers * rho, 0.0)
    table = np.stack([rho, kappa, np.append(rho[0], rho[:-1])], axis=1)
    return np.vstack([table, [rho.min(), kappa.min(), rho.min()]])


def corner_count(slope: float) -> int:
    """Number of corners of the polygon."""
    return len(_multipliers(slope))


@lru_cache(maxsize=64)
def _multipliers(slope: float) -> Array:
    """Slopes of the polygon's edges, up to 8 where the loss per rank is 1/2, and in proportion to its inverse."""
    return np.append(0.0, _LEAST * _RATIO ** np.arange(4 + max(0, math.ceil(math.log(0.5 / slope, _RATIO)))))


def _last_bins(slope: float, n: int) -> Array:
    """Kappa + multiplier rho of a bin that begins after 0, 1, .. n of n points and contains the others."""
    t, multipliers = np.arange(n + 1), _multipliers(slope)[:, None]
    bins: Array = np.exp(-slope * t) * (t + multipliers + math.exp(-slope) * (n - t))
    return bins


@lru_cache(maxsize=64)
def _chains(slope: float) -> Array:
    """Smallest kappa + multiplier rho over all ways to put 0, 1, .. points into bins right of g: (multipliers, points).

    A bin of s points that begins after t others adds exp(-slope t) to rho and exp(-slope t) (t + exp(-slope) s) to
    kappa. The last candidate is not counted.
    """
    top = min(_LONGEST, max(2, int(14 / slope)))
    finite = np.zeros((len(_multipliers(slope)), top + 1))
    for n in range(1, top + 1):
        finite[:, n] = np.min(finite[:, :n] + _last_bins(slope, n)[:, :n], axis=1)
    return finite
