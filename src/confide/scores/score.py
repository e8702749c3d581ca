"""Nonconformity scores as values, and the registry in which names find them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from confide.candidates import Candidates, Spread
from confide.errors import InputError, InputTypeError
from confide.support import one_of, require

# The largest float: an end of this size means that a score has no bound, but is finite.
LARGEST = 1.7976931348623157e308

# The ending of the name of a randomised score whose random numbers are 1.
DETERMINISTIC = "_deterministic"

_NAME = re.compile(r"[a-z][a-z0-9_]*")

# The functions that a score of each task must state.
_FUNCTIONS = {"classification": ("classes",), "regression": ("own", "interval")}


@dataclass(frozen=True, eq=False)
class Score:
    """A nonconformity score: how it is computed, inverted, described, and which candidates suit it.

    A release states only the name of its score. Register the score in every process that predicts, with
    `register_score` or, for installed packages, an entry point of the group `confide.scores`.

    The functions are called with blocks of valid records, and with every parameter and with `u` and `difficulty`, if
    the score has them, by keyword. They must compute each record separately.

    Parameters
    ----------
    name
        Lower-case letters, digits and underscores.
    task
        `"classification"` or `"regression"`.
    low, high
        The range of its finite values; by default the score has no bound. A score outside raises an error.
    spread
        The candidates of its thresholds: a `Spread` of a kind that covers the range, or a list.
    sentence
        One sentence about a set or an interval, in which `{threshold}` is replaced by the threshold, and
        `{complement}` and `{opposite}` by 1 - threshold and -threshold, and `{share}` by words about the random share.
        Or a function of the threshold that returns it.
    classes
        For classification: probabilities, float64 of shape (n, K) -> the scores of all classes, shape (n, K).
    own
        For regression: predictions, float64 of shape (n,), or (n, 2) with `quantiles`, and targets -> scores, shape
        (n,).
    interval
        For regression: predictions and thresholds, shape (n,) -> the lower and the upper end of
        {y : score(x, y) <= threshold}, shape (n,) each. The thresholds are those of the release, each rounded up to the
        next float, so that an end such as `predictions + thresholds` lies beyond every target of the interval.
    onnx
        The scores, or the interval, in operators of ONNX; None if the score has no such form. For classification: a
        graph and the name of its probabilities, float64 of shape (n, K) -> the name of the scores of all classes. For
        regression: a graph, the names of its predictions or of both quantiles, and of the thresholds -> the names of
        the lower and the upper end, None for one that is infinite. The graph has `node(operator, *inputs,
        **attributes)` and `constant(value)`.
    plausible
        The largest size of a threshold that does not cause a warning; by default that of the spread.
    parameters
        The names of its parameters, non-negative public numbers, which are part of a score's name.
    randomised
        Whether the functions take `u`, random numbers in [0, 1], shape (n,).
    quantiles
        Whether a prediction is a pair of lower and upper quantiles.
    difficulty
        Whether the functions take `difficulty`, positive numbers, shape (n,).
    positive
        Whether predictions must be positive.

    Raises
    ------
    InputError, InputTypeError
        If a function that its task needs is missing, or a value is not valid.

    Examples
    --------
    >>> Score(
    ...     "squared_residual", "regression", low=0.0, spread=Spread("residual"),
    ...     sentence="The interval reaches the square root of {threshold} to both sides of the prediction.",
    ...     own=lambda f, y: (y - f) ** 2,
    ...     interval=lambda f, t: (f - np.sqrt(t) * (1 + 1e-15), f + np.sqrt(t) * (1 + 1e-15)),
    ... )
    Score('squared_residual')
    """  # fmt: skip

    name: str
    task: Literal["classification", "regression"]
    _: KW_ONLY
    low: float = -LARGEST
    high: float = LARGEST
    spread: Spread | Candidates
    sentence: str | Callable[[float], str]
    classes: Callable[..., NDArray[np.float64]] | None = None
    own: Callable[..., NDArray[np.float64]] | None = None
    interval: Callable[..., tuple[NDArray[np.float64], NDArray[np.float64]]] | None = None
    onnx: Callable[..., Any] | None = None
    plausible: float | None = None
    parameters: tuple[str, ...] = ()
    randomised: bool = False
    quantiles: bool = False
    difficulty: bool = False
    positive: bool = False

    def __post_init__(self) -> None:
        # Its name, and the functions that its task needs.
        one_of("task", self.task, tuple(_FUNCTIONS))
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name) or self.name.endswith(DETERMINISTIC):
            must = f"must be lower-case letters, digits and underscores, and not end in {DETERMINISTIC}"
            raise InputError("name", must, got=repr(self.name))
        for field in _FUNCTIONS[self.task]:
            require(field, callable(getattr(self, field)), f"must be a function for a score of {self.task}")

        # Its range, and the candidates that suit it.
        if not (-math.inf < self.low < self.high):
            raise InputError("low", "must be finite and below high", got=f"{self.low!r}, {self.high!r}")
        spread = self.spread
        if not isinstance(spread, Candidates) and not (isinstance(spread, Spread) and spread.kind is not None):
            raise InputTypeError("spread", "must be a Spread with a kind, or Candidates", got=repr(spread))

    def __repr__(self) -> str:
        return f"Score({self.name!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        if _REGISTERED.get(self.name) is not self:
            must = "must be registered before it is copied or sent to another process"
            raise InputError("score", must, got=repr(self.name), remedy="Call register_score")
        return required_score, (self.name,)


# The registered scores by name; those of the library first.
_REGISTERED: dict[str, Score] = {}
SCORES: Mapping[str, Score] = MappingProxyType(_REGISTERED)


def register_score(score: Score) -> Score:
    """Register a score, so that its name stands for it in every call of this process; return it.

    Raises
    ------
    InputError, InputTypeError
        If `score` is not a `Score`, or another score has this name: a release made with the other score would change
        its meaning.

    Examples
    --------
    >>> register_score(SCORES["lac"])
    Score('lac')
    """
    if not isinstance(score, Score):
        raise InputTypeError("score", "must be a confide.Score", got=type(score).__name__)
    if _REGISTERED.setdefault(score.name, score) is not score:
        raise InputError("score", "must have a name that no other registered score has", got=repr(score.name))
    return score


def registered_score(name: str) -> Score | None:
    """The registered score of this name, also one of an installed package."""
    # All entry points are loaded at once, so that no name in a file chooses what is imported.
    if name not in _REGISTERED:
        _load_entry_points()
    return _REGISTERED.get(name)


def required_score(name: str) -> Score:
    """The registered score of this name; an error if there is none, as where a pickle is read."""
    score = registered_score(name)
    if score is None:
        raise InputError(
            "score", "must be registered in this process, too", got=repr(name), remedy="Call register_score"
        )
    return score


@lru_cache(maxsize=1)
def _load_entry_points() -> None:
    from importlib.metadata import entry_points

    for entry in entry_points(group="confide.scores"):
        register_score(entry.load())
