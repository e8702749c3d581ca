"""Candidates as quantiles of a public heavy-tailed law: dense where thresholds are likely, and far-reaching.

The law is a Cauchy law in a coordinate for each kind of score: the logit of a probability, the logarithm of a residual.
Because of its heavy tails a wrong guess costs resolution only. All lists are contained in the finest one, so that
counts over a long list determine the counts over shorter ones.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError
from confide.support import MOST_CANDIDATES, as_number, one_of, positive_integer, positive_number, require

# Scores in [0, 1]; differences of probabilities; sums of them; such sums with penalties; whole numbers; sizes of
# residuals; residuals with a sign; scores without a name.
SpreadKind = Literal["probability", "margin", "mass", "penalised", "rank", "residual", "signed", "any"]

_Edges = NDArray[np.float64]

# The steps of the finest list. Lists whose number of steps divides it are parts of it, also after rounding.
FINEST = 15 * 2**11

# The sizes of longest lists: each contains the lists of all smaller sizes among which a design chooses.
LENGTHS = (FINEST // 4, FINEST // 2, FINEST)


def steps(number: int) -> _Edges:
    """0, 1/number, ..., 1: the same floating-point numbers for every number that divides `FINEST`."""
    if FINEST % number:
        return np.linspace(0, 1, number + 1)
    return np.linspace(0, 1, FINEST + 1)[:: FINEST // number]


def _share(size: int, parts: int) -> int:
    """About `size / parts` steps for a part of a list, so that nested lists have nested parts."""
    share = max(size // parts, 1)
    # The parts of a list within the finest one lie within the parts of the finest one, if their steps divide.
    if FINEST % size == 0:
        while FINEST // parts % share:
            share -= 1
    return share


class _Law(NamedTuple):
    """A Cauchy law between two ends, in the coordinate of a kind of score."""

    centre: float
    width: float
    low: float
    high: float

    def quantiles(self, number: int) -> _Edges:
        """Quantiles from `low` to `high`, equally spaced in probability; shape (number + 1,)."""
        first = math.atan((self.low - self.centre) / self.width)
        last = math.atan((self.high - self.centre) / self.width)
        return np.asarray(self.centre + self.width * np.tan(first + (last - first) * steps(number)))


@dataclass(frozen=True)
class Spread:
    """How candidates are spread. A plan chooses their number.

    Parameters
    ----------
    kind
        The kind of score, one of `SHAPES`; by default that of the score that is calibrated.
    unit
        For `residual` and `signed`: a public number in the units of the scores, such as a typical size of the target
        or of an error. It helps within a factor of 100 of the scores. Without one the law is three times as wide, and
        centred at 1.
    around
        A public guess of the threshold, made without the records: the law is centred there and narrow.
    most
        The size of the longest list, one of `LENGTHS`; by default it follows from the kind.

    Raises
    ------
    InputError, InputTypeError
        If a number is not finite, or not of the kind.

    Examples
    --------
    >>> Spread("probability").edges(6).round(3)
    array([0.   , 0.01 , 0.138, 0.5  , 0.862, 0.99 , 1.   , 1.   , 1.   ])
    >>> Spread("residual", unit=25.0).edges(5).round(1)
    array([  0. ,   1.1,  11.9,  52.7, 586.9])
    """

    kind: SpreadKind | None = None
    unit: float | None = None
    around: float | None = None
    most: int | None = None

    def __post_init__(self) -> None:
        if self.kind is not None:
            one_of("kind", self.kind, tuple(SHAPES))
        if self.unit is not None:
            if self.kind is not None and not self.shape.has_unit:
                raise InputError("unit", f"must be left out for scores of kind {self.kind!r}, which have a fixed scale")
            object.__setattr__(self, "unit", positive_number("unit", self.unit))
        if self.around is not None:
            if self.kind is not None and self.shape.guesses is None:
                raise InputError("around", "must be left out for scores of unknown spread", remedy="Name the score")
            object.__setattr__(self, "around", self._guess())
        if self.most is not None and positive_integer("most", self.most) not in LENGTHS:
            raise InputError("most", f"must be one of {', '.join(map(str, LENGTHS))}", got=str(self.most))

    def _guess(self) -> float:
        """The guess as a number, which a score of the kind must be able to have."""
        value = as_number("around", self.around)
        allowed = None if self.kind is None else self.shape.guesses
        least, most = allowed or (-math.inf, math.inf)
        must = f"must be a finite number from {least:g} to {most:g}, as a threshold for such scores is"
        require("around", math.isfinite(value) and least <= value <= most, must, got=f"{value:g}")
        return value

    @property
    def shape(self) -> "Shape":
        """What follows from its kind."""
        if self.kind is None:
            raise InputError("kind", "must be given, because the score is not named")
        return SHAPES[self.kind]

    @property
    def recipe(self) -> dict[str, Any]:
        """The rule that makes its lists, without their size, as plain JSON values."""
        numbers = {"unit": self.unit, "around": self.around, "most": self.most}
        stated = {name: number for name, number in numbers.items() if number is not None}
        return {"kind": "spread", "of": self.kind} | stated

    @property
    def scale(self) -> float | None:
        """The public size of the scores: that of the guess, unless it is 0, or else the unit."""
        return abs(self.around) if self.around else self.unit

    @property
    def plausible(self) -> float:
        """The largest plausible size of a threshold.

        Candidates reach far, so that a wrong guess of the scale costs resolution only. With few records a far candidate
        can be drawn by chance, and is then not an estimate.
        """
        if self.shape.has_unit and self.scale is not None:
            return _MOST_SCALES * self.scale
        return self.shape.plausible

    def edges(self, size: int) -> _Edges:
        """The finite candidates, increasing, before they are rounded; float64 of shape about (size,).

        A list whose size divides `FINEST` is contained in the list of that size.
        """
        shape = self.shape
        size = positive_integer("size", size, most=MOST_CANDIDATES - 3)
        edges = shape.edges(max(size, 2), self)
        return distinct(edges[np.isfinite(edges)])


def distinct(edges: _Edges) -> _Edges:
    """The different numbers among finite ones, increasing: `np.unique`, which would import numpy.ma, 30 ms."""
    edges = np.sort(edges)
    different: _Edges = edges[np.append(True, edges[1:] != edges[:-1])[: len(edges)]]
    return different


@dataclass(frozen=True, eq=False)
class TypicalScores:
    """How scores of a kind are distributed, for the efficiency of a design, never for its guarantee.

    Parameters
    ----------
    uniform
        Function from candidates to P(score <= candidate) if probabilities are uniform; None if it rises evenly over the
        list.
    are_concentrated
        Whether scores concentrate in a small part of the list.
    atom_weight
        The weight of the law with all scores at the first candidate.
    """

    uniform: Callable[[_Edges], _Edges] | None = None
    are_concentrated: bool = False
    atom_weight: float = 0.3


@dataclass(frozen=True)
class ListLength:
    """How many candidates of a kind are useful, without a unit or guess.

    `density` is the number with which the search of a design begins, divided by alpha n epsilon.
    `federated_factor` multiplies the number of candidates of a federation.
    """

    density: float = 5.0
    federated_factor: int = 1


@dataclass(frozen=True, eq=False)
class Shape:
    """What follows from a kind of spread.

    Parameters
    ----------
    words
        How the candidates are spread.
    edges
        Function from a number and a spread to about as many finite candidates.
    guesses
        The least and the largest guess of a threshold; None if no list can be centred.
    has_unit, is_log_spaced
        Whether scores are residuals, which have a unit; whether candidates have a size that is known up to a unit only.
    is_complete
        Whether default candidates reach every value that scores have.
    plausible
        The largest plausible size of a threshold, without a unit or guess.
    """

    words: str
    edges: Callable[[int, Spread], _Edges]
    guesses: tuple[float, float] | None = (0.0, math.inf)
    has_unit: bool = False
    is_log_spaced: bool = False
    is_complete: bool = False
    plausible: float = math.inf
    length: ListLength = ListLength()
    scores: TypicalScores = TypicalScores()


# Lists of each kind of scores: about as many candidates as steps. A law is wide without a guess and narrow around one.
# Its centre and width change the resolution only, never the guarantee.

# The logits of 1e-6 and of 1 - 1e-6 are minus and plus this.
_LOGITS = 13.8

# The logit of 1 - 1e-12, the last candidate below a largest score of 1: those of over-confident models crowd there.
_MOST_LOGITS = 27.6

# Above 1 - 1e-6 lies an eighth as many candidates.
_BEYOND = 8

# The laws without a guess: of logits of probabilities; of those of sums of probabilities, mostly near 1 and resolved up
# to 1 - 1e-14, whose logit is 32; of the decades of penalties, mostly a few hundredths; of those of ranks to a million.
_PROBABILITIES = _Law(centre=0.0, width=4.0, low=-_LOGITS, high=_LOGITS)
_SUMS = _Law(centre=5.0, width=8.0, low=-_LOGITS, high=32.0)
_PENALTIES = _Law(centre=-1.5, width=1.0, low=-9.0, high=3.0)
_RANKS = _Law(centre=0.5, width=1.0, low=0.0, high=6.0)

# Guesses of probabilities are moved by so much from 0 and 1, where logits are infinite; all laws end before.
_LEAST = 2.0**-53

# The widths of laws around a guess: of logits, and of decades.
_NARROW_LOGITS = 2.0
_NARROW_DECADES = 0.3

# The widths in decades of laws of residuals, around their unit or without one.
_DECADES_OF_UNIT = 1.0
_DECADES_WITHOUT_UNIT = 3.0

# Powers of ten of sizes: nearly all that floating-point numbers can have.
_MOST_DECADES = 300.0

# A list of residuals ends where the next candidate would be more than so many decades larger, but reaches so far.
_LARGEST_STEP = 1.0
_LEAST_REACH = 3.0

# The largest plausible threshold in units or guesses, which help within this factor.
_MOST_SCALES = 20.0


def _probability(size: int, spread: Spread) -> _Edges:
    return np.append(1 / (1 + np.exp(-_logits(size, spread.around))), 1.0)


def _margin(size: int, spread: Spread) -> _Edges:
    around = None if spread.around is None else (1 + spread.around) / 2
    return np.append(np.tanh(_logits(size, around) / 2), 1.0)


def _logits(size: int, around: float | None) -> _Edges:
    """About `size` logits of a probability, around 1/2 or around a guess; and an eighth more, up to 1 - 1e-12."""
    middle = _guessed(_PROBABILITIES, around).quantiles(size)
    return np.append(middle, _LOGITS + (_MOST_LOGITS - _LOGITS) * steps(_share(size, _BEYOND))[1:])


def _guessed(law: _Law, p: float | None) -> _Law:
    """A law of logits, around that of a guess of a probability if there is one."""
    if p is None:
        return law
    inside = min(max(p, _LEAST), 1 - _LEAST)
    centre = min(max(math.log(inside / (1 - inside)), law.low), law.high)
    return law._replace(centre=centre, width=_NARROW_LOGITS)


def _mass(size: int, spread: Spread) -> _Edges:
    # Rounding errors of sums of probabilities of 64, 32 and 16 bits.
    return np.concatenate([_below_one(size, spread.around), [1.0, 1 + 1e-9, 1 + 1e-5, 1.01]])


def _penalised(size: int, spread: Spread) -> _Edges:
    """One half for sums of probabilities, and the other for penalties above 1, from 1e-9 to 1000."""
    half = _share(size, 2)
    penalties = _PENALTIES
    around_below = spread.around
    if spread.around is not None and spread.around > 1:
        penalties = _PENALTIES._replace(centre=math.log10(spread.around - 1), width=_NARROW_DECADES)
        around_below = None
    return np.concatenate([_below_one(half, around_below), [1.0], 1 + 10.0 ** penalties.quantiles(half)])


def _below_one(size: int, around: float | None) -> _Edges:
    """Sums of probabilities: differences to 1 are resolved down to 1e-14, where saturated models crowd."""
    return 1 - 1 / (1 + np.exp(_guessed(_SUMS, around).quantiles(size)))


def _rank(size: int, spread: Spread) -> _Edges:
    ranks = _RANKS
    if spread.around is not None:
        ranks = _RANKS._replace(centre=math.log10(max(spread.around, 1.0)), width=_NARROW_DECADES)
    return np.round(10.0 ** ranks.quantiles(size))


def _residual(size: int, spread: Spread) -> _Edges:
    return np.append(0.0, _decades(size, spread, -_MOST_DECADES))


def _signed(size: int, spread: Spread) -> _Edges:
    half = _decades(_share(size, 2), spread, _lowest(spread))
    return np.concatenate([-half[::-1], [0.0], half])


def _any(size: int, spread: Spread) -> _Edges:
    """Both sides of 0, as for probabilities and for residuals without a unit."""
    quarter = _share(size, 4)
    inside = 1 / (1 + np.exp(-_PROBABILITIES.quantiles(quarter)))
    positive = np.concatenate([inside, [1.0], _decades(quarter, spread, _lowest(spread))])
    return np.concatenate([-positive, [0.0], positive])


def _decades(size: int, spread: Spread, low: float) -> _Edges:
    """Positive numbers, log-spaced around the scale; beyond the last of them the next candidate is +inf."""
    decades = _Law(0.0, _width(spread), low, _MOST_DECADES).quantiles(size)
    small_steps = np.diff(decades) <= _LARGEST_STEP
    reach = np.abs(decades[:-1][small_steps]).max(initial=_LEAST_REACH)
    with np.errstate(over="ignore", under="ignore"):
        values: _Edges = (spread.scale or 1.0) * 10.0 ** decades[np.abs(decades) <= reach]
    return values[values > 0]


def _width(spread: Spread) -> float:
    if spread.around:
        return _NARROW_DECADES
    return _DECADES_WITHOUT_UNIT if spread.unit is None else _DECADES_OF_UNIT


def _lowest(spread: Spread) -> float:
    """The decade at which numbers on both sides of 0 begin: a decade and four widths below the scale, nearly 0."""
    return -1 - 4 * _width(spread)


# Without a unit: the largest plausible size of residuals, and of scores without a name.
_NO_UNIT = 1e6
_of_residuals = partial(Shape, has_unit=True, is_log_spaced=True, plausible=_NO_UNIT, length=ListLength(20.0, 2))
_of_sums = partial(Shape, is_complete=True, length=ListLength(14.0, 2), scores=TypicalScores(are_concentrated=True))

# The kinds of spreads.
SHAPES: Mapping[SpreadKind, Shape] = MappingProxyType(
    {
        "probability": Shape(
            "spread for scores from 0 to 1, densest in the middle",
            _probability,
            guesses=(0.0, 1.0),
            scores=TypicalScores(uniform=lambda edges: np.clip(edges, 0, 1)),
        ),
        "margin": Shape(
            "spread for scores from -1 to 1, densest in the middle",
            _margin,
            guesses=(-1.0, 1.0),
            scores=TypicalScores(uniform=lambda edges: (1 + edges) / 2),
        ),
        "mass": _of_sums("spread for sums of probabilities, densest near 1", _mass, guesses=(0.0, 1.0)),
        "penalised": _of_sums(
            "spread for sums of probabilities with penalties, densest near 1", _penalised, plausible=101.0
        ),
        "rank": Shape(
            "spread for ranks, densest near 1",
            _rank,
            is_complete=True,
            plausible=1e5,
            scores=TypicalScores(atom_weight=1.5),
        ),
        "residual": _of_residuals("log-spaced, densest around", _residual),
        "signed": _of_residuals(
            "log-spaced on both sides of 0, densest around sizes of", _signed, guesses=(-math.inf, math.inf)
        ),
        "any": Shape(
            "log-spaced on both sides of 0, because the score is not named",
            _any,
            guesses=None,
            is_log_spaced=True,
            plausible=_NO_UNIT,
            length=ListLength(40.0, 4),
        ),
    }
)
