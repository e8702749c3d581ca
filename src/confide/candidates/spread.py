"""Candidates as quantiles of a public heavy-tailed law: dense where thresholds are likely, and far-reaching.

The law is a Cauchy law in a coordinate for each kind of score: the logit of a probability, the logarithm of a residual.
Because of its heavy tails a wrong guess costs resolution only. A plan chooses the number of quantiles from public
numbers (docs/theory.md, section 5): few for few records, more where n epsilon is large. A list of twice the size has
all of its candidates and others between them, so that counts over the longest list determine those over each.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Real
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError, InputTypeError
from confide.support import MOST_CANDIDATES, one_of, positive_integer, positive_number

SpreadKind = Literal["probability", "margin", "mass", "penalised", "rank", "residual", "signed", "any"]

SPREADS: tuple[SpreadKind, ...] = ("probability", "margin", "mass", "penalised", "rank", "residual", "signed", "any")
"""Scores in [0, 1]; differences of probabilities; sums of them; such sums with penalties; whole numbers; sizes of
residuals; residuals with a sign; scores without a name."""

_Edges = NDArray[np.float64]

_LOGITS = 13.8
"""The logit of 1 - 1e-6."""
_MOST_LOGITS = 27.6
"""The logit of 1 - 1e-12, the last candidate below a largest score of 1: those of over-confident models crowd there."""
_BEYOND = 8
"""Beyond it lies an eighth as many candidates."""


@dataclass(frozen=True)
class Spread:
    """How candidates are spread. A plan chooses their number.

    Parameters
    ----------
    kind
        The kind of score, one of `SPREADS`; by default that of the score that is calibrated.
    unit
        For `residual` and `signed`: a public number in the units of the scores, such as a typical size of the target
        or of an error. It helps within a factor of 100 of the scores. Without one the law is three times as wide, and
        centred at 1.
    around
        A public guess of the threshold, made without the records: the law is centred there and narrow.

    Raises
    ------
    InputError, InputTypeError
        If a number is not finite, or not of the kind.

    Examples
    --------
    >>> Spread("probability").edges(6).round(3)
    array([0.   , 0.047, 0.5  , 0.953, 1.   , 1.   , 1.   ])
    >>> Spread("residual", unit=25.0).edges(6).round(1)
    array([  0. ,   2.5,  25. , 248.1])
    """

    kind: SpreadKind | None = None
    unit: float | None = None
    around: float | None = None

    def __post_init__(self) -> None:
        if self.kind is not None:
            one_of("kind", self.kind, SPREADS)
        if self.unit is not None:
            if self.kind not in (None, "residual", "signed"):
                raise InputError("unit", f"must be left out for scores of kind {self.kind!r}, which have a fixed scale")
            object.__setattr__(self, "unit", positive_number("unit", self.unit))
        if self.around is not None:
            if self.kind == "any":
                raise InputError("around", "must be left out for unnamed scores", remedy="Name the score")
            object.__setattr__(self, "around", _guess(self.kind, self.around))

    def edges(self, size: int) -> _Edges:
        """The finite candidates, increasing, before they are rounded; float64 of shape about (size,).

        Those of 8, 16, 32, ... are nested: each list is a part of the next one.
        """
        if self.kind is None:
            raise InputError("kind", "must be given, because the score is not named")
        size = positive_integer("size", size, most=MOST_CANDIDATES - 3)
        edges = _EDGES[self.kind](max(size, 2), self)
        return np.unique(edges[np.isfinite(edges)])


def _guess(kind: SpreadKind | None, around: Any) -> float:
    """Check a guess of the threshold; raise `InputError` if a score of the kind cannot have this value."""
    if isinstance(around, bool) or not isinstance(around, Real):
        raise InputTypeError("around", "must be a number", got=type(around).__name__)
    value = float(around)
    least = -1.0 if kind == "margin" else -math.inf if kind in (None, "signed") else 0.0
    if not (math.isfinite(value) and value >= least and (value <= 1 or kind not in ("probability", "margin"))):
        raise InputError("around", "must be a finite threshold that a score of its kind can have")
    return value


def cauchy(size: int, width: float, low: float, high: float, centre: float = 0.0) -> _Edges:
    """`size` quantiles, equally spaced in probability, of the Cauchy law between `low` and `high`; shape (size,).

    Examples
    --------
    >>> cauchy(5, 1.0, -3.0, 3.0).round(3)
    array([-3.   , -0.721,  0.   ,  0.721,  3.   ])
    """
    first, last = math.atan((low - centre) / width), math.atan((high - centre) / width)
    quantiles: _Edges = centre + width * np.tan(np.linspace(first, last, size))
    return quantiles


def _logits(size: int, around: float | None) -> _Edges:
    """About `size` logits of a probability, around 1/2 or around a guess; and an eighth more, up to 1 - 1e-12."""
    if around is None:
        middle = cauchy(size + 1, 4.0, -_LOGITS, _LOGITS)
    else:
        middle = cauchy(size + 1, 2.0, -_LOGITS, _LOGITS, min(max(_logit(around), -_LOGITS), _LOGITS))
    return np.append(middle, np.linspace(_LOGITS, _MOST_LOGITS, max(size // _BEYOND, 1) + 1)[1:])


def _logit(p: float) -> float:
    return math.inf if p >= 1 else -math.inf if p <= 0 else math.log(p / (1 - p))


def _probability(size: int, law: Spread) -> _Edges:
    return np.append(1 / (1 + np.exp(-_logits(size, law.around))), 1.0)


def _margin(size: int, law: Spread) -> _Edges:
    around = None if law.around is None else (1 + law.around) / 2
    return np.append(np.tanh(_logits(size, around) / 2), 1.0)


def _mass(size: int, law: Spread) -> _Edges:
    # Rounding errors of sums of probabilities of 64, 32 and 16 bits.
    return np.concatenate([_below_one(size, law.around), [1.0, 1 + 1e-9, 1 + 1e-5, 1.01]])


def _penalised(size: int, law: Spread) -> _Edges:
    """Five eighths for sums of probabilities, and the others for penalties above 1."""
    most = 5 * size // 8
    above = law.around - 1 if law.around is not None and law.around > 1 else None
    centre, width = (-1.5, 1.0) if above is None else (math.log10(above), 0.3)
    beyond = 1 + 10.0 ** cauchy(size - most + 1, width, -9.0, 3.0, centre)
    return np.concatenate([_below_one(most, None if above else law.around), [1.0], beyond])


def _below_one(size: int, around: float | None) -> _Edges:
    """Sums of probabilities: differences to 1 are resolved down to 1e-14, where saturated models crowd."""
    centre, width = (5.0, 8.0) if around is None else (min(max(_logit(around), -_LOGITS), 32.0), 2.0)
    return 1 - 1 / (1 + np.exp(cauchy(size + 1, width, -_LOGITS, 32.0, centre)))


def _rank(size: int, law: Spread) -> _Edges:
    centre, width = (0.5, 1.0) if law.around is None else (math.log10(max(law.around, 1.0)), 0.3)
    return np.round(10.0 ** cauchy(size + 1, width, 0.0, 6.0, centre))


def _residual(size: int, law: Spread) -> _Edges:
    return np.append(0.0, _decades(size, law, -300.0))


def _signed(size: int, law: Spread) -> _Edges:
    half = _decades(max(size // 2, 1), law, -1 - 4 * _width(law))
    return np.concatenate([-half[::-1], [0.0], half])


def _any(size: int, law: Spread) -> _Edges:
    """Both sides of 0, as for probabilities and for residuals without a unit."""
    inside = 1 / (1 + np.exp(-cauchy(max(size // 4, 1) + 1, 4.0, -_LOGITS, _LOGITS)))
    positive = np.concatenate([inside, [1.0], _decades(max(size // 4, 1), law, -1 - 4 * _width(law))])
    return np.concatenate([-positive, [0.0], positive])


def _width(law: Spread) -> float:
    return 0.3 if law.around else 3.0 if law.unit is None else 1.0


def _decades(size: int, law: Spread, low: float) -> _Edges:
    """Positive numbers, log-spaced, up to where steps exceed one decade."""
    decades = cauchy(size + 1, _width(law), low, 300.0)
    near = np.abs(decades[:-1][np.diff(decades) <= 1]).max(initial=3.0)
    with np.errstate(over="ignore", under="ignore"):
        values: _Edges = (abs(law.around or 0) or law.unit or 1.0) * 10.0 ** decades[np.abs(decades) <= near]
    return values[values > 0]


_EDGES: Mapping[SpreadKind, Callable[[int, Spread], _Edges]] = MappingProxyType(
    {
        "probability": _probability,
        "margin": _margin,
        "mass": _mass,
        "penalised": _penalised,
        "rank": _rank,
        "residual": _residual,
        "signed": _signed,
        "any": _any,
    }
)


# The range of plausible sizes of a threshold, by the recipe of its candidates.
#
# Candidates reach far, so that a wrong guess of the scale costs resolution only. With few records a far candidate can
# be drawn by chance, and is then not an estimate. Thresholds outside the range get a warning.

_Range: TypeAlias = tuple[float, float]

_UNITS = 20.0
"""A unit or guess helps within this factor. Beyond it the draw was chance, or the unit is wrong."""
_NO_UNIT = 1e6
"""Residuals without a unit, and scores without a name."""


def plausible_thresholds(recipe: Mapping[str, Any]) -> tuple[float, float]:
    """The smallest and the largest plausible size of a threshold; (0, inf) for user-defined values.

    Examples
    --------
    >>> plausible_thresholds({"kind": "spread", "of": "residual", "size": 480, "unit": 25.0})
    (0.0, 500.0)
    >>> plausible_thresholds({"kind": "spread", "of": "probability", "size": 480})
    (0.0, inf)
    """
    made = PLAUSIBLE.get(str(recipe.get("kind")))
    return (0.0, math.inf) if made is None else made(recipe)


def _bounded(recipe: Mapping[str, Any]) -> _Range:
    return 0.0, math.inf


def _spread(recipe: Mapping[str, Any]) -> _Range:
    return SPREAD_PLAUSIBLE[recipe["of"]](recipe)


def _in_units(recipe: Mapping[str, Any]) -> _Range:
    scale = abs(recipe.get("around") or 0.0) or recipe.get("unit")
    return 0.0, _NO_UNIT if scale is None else _UNITS * float(scale)


def _penalties(recipe: Mapping[str, Any]) -> _Range:
    return 0.0, 101.0


def _ranks(recipe: Mapping[str, Any]) -> _Range:
    return 0.0, 1e5


PLAUSIBLE: Mapping[str, Callable[[Mapping[str, Any]], _Range]] = MappingProxyType(
    {
        "spread": _spread,
        "unit": _bounded,
        "published": _bounded,
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
