"""Between which sizes a threshold is nothing to speak of, by the recipe of its candidates.

Candidates reach far, so that a wrong guess of the scale costs resolution and not the answer. With few records one of
the far ones is drawn by chance, and is no estimate of anything. Beyond these sizes a reader should be told.
"""

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

from confide.candidates.spread import SpreadKind

_Range: TypeAlias = tuple[float, float]

_UNITS = 100.0
"""A unit, or a guess, helps within a factor of so much: beyond it the draw was chance, or the unit is wrong."""
_NO_UNIT = 1e6
"""Residuals in an unstated unit, and scores of which nothing is known."""


def plausible_sizes(recipe: Mapping[str, Any]) -> tuple[float, float]:
    """The least and the largest size of a threshold that needs no word; (0, inf) for values of one's own.

    Examples
    --------
    >>> plausible_sizes({"kind": "spread", "of": "residual", "size": 480, "unit": 25.0})
    (0.0, 2500.0)
    >>> plausible_sizes({"kind": "spread", "of": "probability", "size": 480})
    (0.0, inf)
    """
    made = PLAUSIBLE.get(str(recipe.get("kind")))
    return (0.0, math.inf) if made is None else made(recipe)


def _bounded(recipe: Mapping[str, Any]) -> _Range:
    """The score has a largest value, which candidates reach and do not exceed."""
    return 0.0, math.inf


def _spread(recipe: Mapping[str, Any]) -> _Range:
    return SPREAD_PLAUSIBLE[recipe["of"]](recipe)


def _in_units(recipe: Mapping[str, Any]) -> _Range:
    scale = abs(recipe.get("around") or 0.0) or recipe.get("unit")
    return 0.0, _NO_UNIT if scale is None else _UNITS * float(scale)


def _penalties(recipe: Mapping[str, Any]) -> _Range:
    """Penalties on top of 1 reach 1000: within the last decade of them."""
    return 0.0, 101.0


def _ranks(recipe: Mapping[str, Any]) -> _Range:
    """Ranks reach a million: within the last decade of them."""
    return 0.0, 1e5


def _anything(recipe: Mapping[str, Any]) -> _Range:
    return 1e-5, 1e4


def _geometric(recipe: Mapping[str, Any]) -> _Range:
    half, unit = recipe["decades"] / 2, float(recipe["unit"])
    outer = min(2.0, half / 3)
    return unit * 10.0 ** (outer / 2 - half), unit * 10.0 ** (half - outer)


def _sinh(recipe: Mapping[str, Any]) -> _Range:
    above, unit = recipe["decades"], float(recipe["unit"])
    return 1.5 * unit * float(recipe["step"]), unit * 10.0 ** (above - min(2.0, above / 3))


PLAUSIBLE: Mapping[str, Callable[[Mapping[str, Any]], _Range]] = MappingProxyType(
    {
        "spread": _spread,
        "unit": _bounded,
        "published": _bounded,
        "mass": _penalties,
        "signed_unit": _bounded,
        "ranks": _ranks,
        "geometric": _geometric,
        "sinh": _sinh,
        "anything": _anything,
    }
)
"""By the kind of a recipe, one for each of `BUILDERS`."""

SPREAD_PLAUSIBLE: Mapping[SpreadKind, Callable[[Mapping[str, Any]], _Range]] = MappingProxyType(
    {
        "probability": _bounded,
        "margin": _bounded,
        "mass": _bounded,
        "penalised": _penalties,
        "rank": _ranks,
        "residual": _in_units,
        "signed": _in_units,
        "any": _in_units,
    }
)
"""By the kind of a spread, one for each of `SPREADS`."""
