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

import numpy as np
from numpy.typing import NDArray

from confide.candidates import Candidates, Spread, spread_of

PRICE_OF_ALL = 8.0

# Decades by which the unit of residuals is wrong; several, so that a list is not judged by single positions in it.
_DECADES = (0.05, -0.37, 0.41, -0.9, 1.1, -2.15, 1.9)
_DECADES_WITHOUT_UNIT = (0.05, -0.63, 0.71, -1.4, 1.6, -4.9, 5.1)

# A guess of the threshold is more precise than a unit: distances are multiplied by this, as in the list around it.
_BREADTH_OF_A_GUESS = 0.3
_GAUSSIAN_WEIGHTS = (2.0, 1.5, 1.5, 1.5, 1.5, 1.0, 1.0)

# The share of the list that contains all scores, and where it begins.
_WINDOWS = ((0.3, 0.493), (0.3, 0.211), (0.31, 0.35), (0.1, 0.407), (0.104, 0.25))
_WINDOW_WEIGHT, _UNIFORM_WEIGHT = 0.4, 7.0

# The share of alpha beyond the empty candidate range, and the weight of the law.
_EMPTY_RANGES = ((0.7, 0.25), (0.9, 0.1))
_ATOM_WEIGHT = 0.3


@dataclass(frozen=True)
class ReferenceLaws:
    """k laws over m candidates, +inf included, with weights that sum to 1; the first is the typical one.

    `below` is P(score <= e_j), and `prices` the price of candidate j in units of alpha n ranks: both of shape (k, m).
    """

    below: NDArray[np.float64]
    prices: NDArray[np.float64]
    weights: NDArray[np.float64]


def law_of(candidates: Candidates) -> Spread | None:
    """The law by which these candidates are spread, from their recipe; None for your own lists."""
    kind = candidates.recipe["kind"]
    if kind == "spread":
        return spread_of(candidates.recipe)
    return Spread("probability") if kind in ("unit", "published") else None


def reference_laws(edges: NDArray[np.float64], spread: Spread | None, alpha: float, gaps: float = 1.0) -> ReferenceLaws:
    """The laws for finite candidates `edges`, shape (m-1,), of a kind of score (None if only the list is known).

    `gaps` multiplies the weight of the laws with an empty candidate range.
    """
    k = len(edges)
    shape = None if spread is None else spread.shape

    # The laws that the score suggests, and those of scores that crowd in a window of the list.
    rows, weights = suggested_laws(edges, spread)
    at = np.arange(1, k + 1) / k
    if spread is not None and spread.shape.has_unit:
        unit, far = _size_of_residuals(spread), 10.0 ** _breadth(spread)
        start, stop = (int(place) for place in np.searchsorted(edges, (unit / far, unit * far)))
        crowded = _gaussian(edges, spread, -1.6 * _breadth(spread))
    else:
        narrow = 0.4 if shape and shape.is_concentrated else 1.0
        rows += [np.clip((at - begin) / (narrow * share), 0, 1) for share, begin in _WINDOWS]
        weights += [_WINDOW_WEIGHT] * len(_WINDOWS)
        start, stop = int(0.3 * k), int(0.8 * k)
        crowded = np.clip(np.arange(1, k + 1) / max(start, 1), 0, 1)

    # An empty candidate range after the crowded ones, and all scores at the first candidate.
    for beyond, weight in _EMPTY_RANGES:
        top = 1 - beyond * alpha
        rows.append(top * crowded + (1 - top) * np.clip((np.arange(k) - stop) / max(k - 1 - stop, 1), 0, 1))
        weights.append(gaps * weight)
    rows.append(np.ones(k))
    weights.append(_ATOM_WEIGHT if shape is None else shape.atom_weight)

    # Prices in units of alpha n ranks.
    below = np.array(rows)
    prices = np.log(alpha / np.maximum(1 - below, alpha * math.exp(-PRICE_OF_ALL)))

    # Crossing an empty candidate range costs one unit more; in the last law all candidates but the first do.
    prices[-3:-1] += np.clip((np.arange(k) - start) / max(stop - start, 1), 0, 1)
    prices[-1, :1] = 0.0
    share = np.array(weights)
    return ReferenceLaws(
        np.column_stack([below, np.ones(len(rows))]),
        np.column_stack([prices, np.full(len(rows), PRICE_OF_ALL)]),
        share / share.sum(),
    )


def suggested_laws(edges: NDArray[np.float64], spread: Spread | None) -> tuple[list[NDArray[np.float64]], list[float]]:
    """The laws that the kind of score suggests, the typical one first, and their weights."""
    if spread is not None and spread.shape.has_unit:
        decades = _DECADES if spread.around or spread.unit is not None else _DECADES_WITHOUT_UNIT
        laws = [_gaussian(edges, spread, _breadth(spread) * decade) for decade in decades]
        return laws, list(_GAUSSIAN_WEIGHTS)
    shape = None if spread is None else spread.shape
    if shape is not None and shape.uniform is not None:
        uniform = shape.uniform(edges)
    else:
        uniform = np.arange(1, len(edges) + 1) / len(edges)
    return [uniform], [_UNIFORM_WEIGHT * (0.16 if shape and shape.is_concentrated else 1.0)]


def _size_of_residuals(spread: Spread) -> float:
    return abs(spread.around) / 1.64 if spread.around else spread.unit or 1.0


def _breadth(spread: Spread) -> float:
    return _BREADTH_OF_A_GUESS if spread.around else 1.0


def _gaussian(edges: NDArray[np.float64], spread: Spread, decades: float) -> NDArray[np.float64]:
    """P(score <= e_j) for Gaussian residuals whose unit is wrong by some decades."""
    from scipy.special import erf

    with np.errstate(over="ignore"):
        scaled: NDArray[np.float64] = erf(edges / _size_of_residuals(spread) / 10.0**decades / math.sqrt(2))
    return scaled if spread.kind == "residual" else (1 + scaled) / 2


@lru_cache(maxsize=256)
@np.errstate(under="ignore")
def typical_law(candidates: Candidates) -> NDArray[np.float64]:
    """P(score <= e_j) for typical scores, float64 of shape (m,)."""
    below = np.append(suggested_laws(candidates.edges, law_of(candidates))[0][0], 1.0)
    below.flags.writeable = False
    return below
