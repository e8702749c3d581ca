"""Public reference laws of scores, and the price of a threshold under each. They affect efficiency, never validity.

The price of a miscoverage u instead of alpha is ln(alpha/u), in units of alpha n ranks. It is the logarithm of the
growth of sets if scores have an exponential tail, and increases by one rank per rank at alpha. It is capped at
`PRICE_OF_ALL`, which is also the price of +inf. So one number covers thresholds that are slightly too large, beyond all
data, or infinite.

The laws: the one that the kind of score suggests (uniform scores; Gaussian residuals whose unit is wrong by up to a
factor of 100); scores concentrated in a window of the list, narrow or wide; an empty candidate range over half of the
list; all scores at the first candidate.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from confide.candidates import Candidates, Spread, spread_of

# The price of +inf, and the largest price of any threshold.
PRICE_OF_ALL = 8.0

# Gaussian residuals: the decades by which their unit is wrong, and the weights of these laws. There are several so
# that a list is not judged by single positions in it.
_WRONG_UNITS = {0.05: 2.0, -0.37: 1.5, 0.41: 1.5, -0.9: 1.5, 1.1: 1.5, -2.15: 1.0, 1.9: 1.0}
_WITHOUT_UNIT = {0.05: 2.0, -0.63: 1.5, 0.71: 1.5, -1.4: 1.5, 1.6: 1.5, -4.9: 1.0, 5.1: 1.0}

# A guess of the threshold is more precise than a unit: distances are multiplied by this, as in the list around it.
_BREADTH_OF_A_GUESS = 0.3

# The weight of the uniform law, or of the law that a kind of score concentrated in a part of the list suggests.
_UNIFORM_WEIGHT = 7.0
_CONCENTRATED_WEIGHT = 0.16 * _UNIFORM_WEIGHT

# Scores in a window of the list: the share of the list that it takes, and where it begins; the weight of each law.
# Windows of a kind of score that is concentrated are narrower.
_WINDOWS = ((0.3, 0.493), (0.3, 0.211), (0.31, 0.35), (0.1, 0.407), (0.104, 0.25))
_WINDOW_WEIGHT = 0.4
_NARROW = 0.4

# An empty candidate range: the share of alpha beyond it, and the weight of the law. Where it lies in a list without a
# unit, as shares of the list.
_EMPTY_RANGES = ((0.7, 0.25), (0.9, 0.1))
_RANGE_BEGINS = 0.3
_RANGE_ENDS = 0.8

# The decades by which residuals that crowd before an empty range are smaller than their size.
_CROWDED_DECADES = -1.6

# The weight of the law with all scores at the first candidate, if only the list is known.
_ATOM_WEIGHT = 0.3


@dataclass(frozen=True)
class ReferenceLaws:
    """k laws over m candidates, +inf included, with weights that sum to 1; the first is the typical one.

    `below` is P(score <= e_j), and `prices` the price of candidate j in units of alpha n ranks: both of shape (k, m).
    """

    below: NDArray[np.float64]
    prices: NDArray[np.float64]
    weights: NDArray[np.float64]


class _Law(NamedTuple):
    """P(score <= e_j) for the finite candidates, shape (m-1,), and the weight of this law."""

    below: NDArray[np.float64]
    weight: float


def law_of(candidates: Candidates) -> Spread | None:
    """The law by which these candidates are spread, from their recipe; None for your own lists."""
    kind = candidates.recipe["kind"]
    if kind == "spread":
        return spread_of(candidates.recipe)
    return Spread("probability") if kind in ("unit", "published") else None


@lru_cache(maxsize=256)
@np.errstate(under="ignore")
def typical_law(candidates: Candidates) -> NDArray[np.float64]:
    """P(score <= e_j) for typical scores, float64 of shape (m,)."""
    typical, *_ = _suggested_laws(candidates.edges, law_of(candidates))
    below = np.append(typical.below, 1.0)
    below.flags.writeable = False
    return below


def reference_laws(edges: NDArray[np.float64], spread: Spread | None, alpha: float, gaps: float = 1.0) -> ReferenceLaws:
    """The laws for finite candidates `edges`, shape (m-1,), of a kind of score (None if only the list is known).

    `gaps` multiplies the weight of the laws with an empty candidate range.
    """
    # Scores that crowd in a window of the list.
    k = len(edges)
    shape = None if spread is None else spread.shape
    laws = _suggested_laws(edges, spread)
    if shape is None or not shape.has_unit:
        places = np.arange(1, k + 1) / k
        narrow = _NARROW if shape and shape.scores.are_concentrated else 1.0
        laws += [_Law(np.clip((places - begin) / (narrow * share), 0, 1), _WINDOW_WEIGHT) for share, begin in _WINDOWS]

    # An empty candidate range after the crowded ones, and all scores at the first candidate.
    empty = _empty_range(edges, spread)
    rest = np.clip((np.arange(k) - empty.stop) / max(k - 1 - empty.stop, 1), 0, 1)
    for beyond, weight in _EMPTY_RANGES:
        top = 1 - beyond * alpha
        laws.append(_Law(top * empty.crowded + (1 - top) * rest, gaps * weight))
    laws.append(_Law(np.ones(k), _ATOM_WEIGHT if shape is None else shape.scores.atom_weight))

    # Prices in units of alpha n ranks.
    below = np.array([law.below for law in laws])
    prices = np.log(alpha / np.maximum(1 - below, alpha * math.exp(-PRICE_OF_ALL)))

    # Crossing an empty candidate range costs one unit more; in the last law all candidates but the first do.
    with_range = slice(-1 - len(_EMPTY_RANGES), -1)
    prices[with_range] += np.clip((np.arange(k) - empty.start) / max(empty.stop - empty.start, 1), 0, 1)
    prices[-1, :1] = 0.0

    # The candidate +inf is above all scores, and has the largest price.
    weights = np.array([law.weight for law in laws])
    return ReferenceLaws(
        np.column_stack([below, np.ones(len(laws))]),
        np.column_stack([prices, np.full(len(laws), PRICE_OF_ALL)]),
        weights / weights.sum(),
    )


class _EmptyRange(NamedTuple):
    """The positions of an empty range of candidates, and the law of the scores that crowd before it, shape (m-1,)."""

    start: int
    stop: int
    crowded: NDArray[np.float64]


def _empty_range(edges: NDArray[np.float64], spread: Spread | None) -> _EmptyRange:
    """An empty range over part of the list; of residuals from far below their size to far above it."""
    k = len(edges)
    if spread is None or not spread.shape.has_unit:
        start = int(_RANGE_BEGINS * k)
        return _EmptyRange(start, int(_RANGE_ENDS * k), np.clip(np.arange(1, k + 1) / max(start, 1), 0, 1))
    size = _size_of_residuals(spread)
    factor = 10.0 ** _breadth(spread)
    start, stop = (int(place) for place in np.searchsorted(edges, (size / factor, size * factor)))
    return _EmptyRange(start, stop, _gaussian(edges, spread, _CROWDED_DECADES * _breadth(spread)))


def _suggested_laws(edges: NDArray[np.float64], spread: Spread | None) -> list[_Law]:
    """The laws that the kind of score suggests, the typical one first."""
    if spread is not None and spread.shape.has_unit:
        wrong_units = _WRONG_UNITS if spread.around or spread.unit is not None else _WITHOUT_UNIT
        breadth = _breadth(spread)
        return [_Law(_gaussian(edges, spread, breadth * decades), weight) for decades, weight in wrong_units.items()]
    shape = None if spread is None else spread.shape
    if shape is not None and shape.scores.uniform is not None:
        uniform = shape.scores.uniform(edges)
    else:
        uniform = np.arange(1, len(edges) + 1) / len(edges)
    return [_Law(uniform, _CONCENTRATED_WEIGHT if shape and shape.scores.are_concentrated else _UNIFORM_WEIGHT)]


def _size_of_residuals(spread: Spread) -> float:
    # A guess is about the 90 % quantile of absolute Gaussian residuals, which is 1.64 of their scale.
    return abs(spread.around) / 1.64 if spread.around else spread.unit or 1.0


def _breadth(spread: Spread) -> float:
    return _BREADTH_OF_A_GUESS if spread.around else 1.0


def _gaussian(edges: NDArray[np.float64], spread: Spread, decades: float) -> NDArray[np.float64]:
    """P(score <= e_j) for Gaussian residuals whose unit is wrong by some decades."""
    from scipy.special import erf

    with np.errstate(over="ignore"):
        scaled: NDArray[np.float64] = erf(edges / _size_of_residuals(spread) / 10.0**decades / math.sqrt(2))
    return scaled if spread.kind == "residual" else (1 + scaled) / 2
