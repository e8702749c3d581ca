"""Public laws of scores that a plan is judged by, and what a threshold costs under each.

The price of missing u instead of alpha is ln(alpha/u), in units of alpha n ranks: the logarithm of how much larger sets
grow if scores have an exponential tail; it rises by one rank per rank at alpha. It ends at `PRICE_OF_ALL`, which is
also what +inf costs, so that one number weighs thresholds that are a little large, beyond all data, or infinite.

The laws: what the kind of score suggests (evenly spread scores; residuals of a bell whose unit is wrong by up to a
factor of 100); scores crowded into a window of the list, narrow or wide; a desert without scores over half of the list;
all scores at the first candidate. They touch efficiency, never validity.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from confide.candidates import Candidates, Spread, SpreadKind

PRICE_OF_ALL = 8.0

_UNIT_WRONG = (0.05, -0.37, 0.41, -0.9, 1.1, -2.15, 1.9)
"""Decades by which the unit of residuals is wrong; several, so that no list is judged by where its candidates fall."""
_NO_UNIT = (0.05, -0.63, 0.71, -1.4, 1.6, -4.9, 5.1)
_OF_A_GUESS = 0.3
"""A guess of the threshold is better than a unit: everything lies so many times nearer, as the list around it does."""
_WRONG_GUESS = 0.1
"""Where half of a list is spread for a guess that is wrong, the weight of the laws without a guess."""
_BELL_WEIGHTS = (2.0, 1.5, 1.5, 1.5, 1.5, 1.0, 1.0)

_WINDOWS = ((0.3, 0.493), (0.3, 0.211), (0.31, 0.35), (0.1, 0.407), (0.104, 0.25))
"""What share of the list holds all scores, and where it begins."""
_WINDOW_WEIGHT, _EVEN_WEIGHT = 0.4, 7.0

_DESERTS = ((0.7, 0.25), (0.9, 0.1))
"""What share of alpha lies beyond the desert, and the weight of the law."""
_ATOM_WEIGHT, _ATOM_WEIGHT_OF_RANKS = 0.3, 1.5

_SPREAD_AS: dict[str, SpreadKind] = {
    "unit": "probability", "published": "probability", "signed_unit": "margin", "mass": "mass", "ranks": "rank",
    "anything": "any", "geometric": "residual", "sinh": "signed",
}  # fmt: skip
"""Lists that are no quantiles of a law, and how they are spread."""


@dataclass(frozen=True)
class ReferenceLaws:
    """k laws over m candidates, +inf included; the first is the typical one.

    Parameters
    ----------
    below
        P(score <= e_j), float64 of shape (k, m).
    prices
        What candidate j costs, in units of alpha n ranks, float64 of shape (k, m).
    weights
        Of the laws, summing to 1, shape (k,).
    """

    below: NDArray[np.float64]
    prices: NDArray[np.float64]
    weights: NDArray[np.float64]


def law_of(candidates: Candidates) -> Spread | None:
    """By which law these candidates are spread, from their recipe; None for lists of the user's own."""
    recipe = dict(candidates.recipe)
    kind = recipe.pop("kind")
    if kind == "spread":
        return Spread(recipe["of"], recipe.get("unit"), recipe.get("around"), recipe.get("hedged", False))
    return Spread(_SPREAD_AS[kind]) if kind in _SPREAD_AS else None


def reference_laws(edges: NDArray[np.float64], law: Spread | None, alpha: float) -> ReferenceLaws:
    """The laws for finite candidates `edges`, shape (m-1,), of a kind of score (None: only the list is known)."""
    k = len(edges)
    kind = None if law is None else law.kind
    rows, weights = suggested_laws(edges, law)
    at = np.arange(1, k + 1) / k
    if kind in ("residual", "signed"):
        assert law is not None
        unit, far = _bell_unit(law), 10.0 ** _near(law)
        start, stop = (int(place) for place in np.searchsorted(edges, (unit / far, unit * far)))
        crowded = _bell(edges, law, -1.6 * _near(law))
    else:
        narrow = 0.4 if kind in ("mass", "penalised") else 1.0  # sums of probabilities crowd near 1
        rows += [np.clip((at - begin) / (narrow * share), 0, 1) for share, begin in _WINDOWS]
        weights += [_WINDOW_WEIGHT] * len(_WINDOWS)
        start, stop = int(0.3 * k), int(0.8 * k)
        crowded = np.clip(np.arange(1, k + 1) / max(start, 1), 0, 1)
    for beyond, weight in _DESERTS:
        top = 1 - beyond * alpha
        rows.append(top * crowded + (1 - top) * np.clip((np.arange(k) - stop) / max(k - 1 - stop, 1), 0, 1))
        weights.append(weight)
    rows.append(np.ones(k))  # all scores at the first candidate
    weights.append(_ATOM_WEIGHT_OF_RANKS if kind == "rank" else _ATOM_WEIGHT)
    below = np.array(rows)
    prices = np.log(alpha / np.maximum(1 - below, alpha * math.exp(-PRICE_OF_ALL)))
    # To cross a desert costs one unit more; in the last law every candidate but the first does.
    prices[-3:-1] += np.clip((np.arange(k) - start) / max(stop - start, 1), 0, 1)
    prices[-1, :1] = 0.0
    share = np.array(weights)
    return ReferenceLaws(
        np.column_stack([below, np.ones(len(rows))]),
        np.column_stack([prices, np.full(len(rows), PRICE_OF_ALL)]),
        share / share.sum(),
    )


def suggested_laws(edges: NDArray[np.float64], law: Spread | None) -> tuple[list[NDArray[np.float64]], list[float]]:
    """The laws that the kind of score suggests, the typical one first, and their weights."""
    if law is not None and law.hedged:
        right, weights = suggested_laws(edges, replace(law, hedged=False))
        wrong, others = suggested_laws(edges, law.without_guess)
        return right + wrong, weights + [_WRONG_GUESS * weight for weight in others]
    if law is not None and law.kind in ("residual", "signed"):
        decades = _UNIT_WRONG if law.around or law.unit is not None else _NO_UNIT
        return [_bell(edges, law, _near(law) * wrong) for wrong in decades], list(_BELL_WEIGHTS)
    kind = None if law is None else law.kind
    if kind == "probability":
        even = np.clip(edges, 0, 1)
    elif kind == "margin":
        even = (1 + edges) / 2
    else:
        even = np.arange(1, len(edges) + 1) / len(edges)
    return [even], [_EVEN_WEIGHT * (0.16 if kind in ("mass", "penalised") else 1.0)]


def _bell_unit(law: Spread) -> float:
    """The standard deviation of a bell of residuals; a guess of the threshold is nearly two of them."""
    return abs(law.around) / 1.64 if law.around else law.unit or 1.0


def _near(law: Spread) -> float:
    """How many times narrower the list is than around a unit."""
    return _OF_A_GUESS if law.around else 1.0


def _bell(edges: NDArray[np.float64], law: Spread, wrong: float) -> NDArray[np.float64]:
    """P(score <= e_j) for residuals of a bell whose unit is wrong by some decades."""
    from scipy.special import erf

    with np.errstate(over="ignore"):
        scaled: NDArray[np.float64] = erf(edges / _bell_unit(law) / 10.0**wrong / math.sqrt(2))
    return scaled if law.kind == "residual" else (1 + scaled) / 2
