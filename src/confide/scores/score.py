"""Nonconformity scores as values, the registry in which names find them, and the scores of this library.

Each score is stated once: its computation, inversion, candidates, words and ONNX form.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import lru_cache, partial
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from confide.candidates import Candidates, Spread
from confide.errors import InputError, InputTypeError
from confide.scores.ranked import RankRule, all_class_scores, margins
from confide.support import one_of, require

LARGEST = 1.7976931348623157e308
"""The largest float: an end of this size means that a score has no bound, but is finite."""

DETERMINISTIC = "_deterministic"
"""The ending of the name of a randomised score whose random numbers are 1."""

_NAME = re.compile(r"[a-z][a-z0-9_]*")

_FUNCTIONS = {"classification": ("classes",), "regression": ("own", "interval")}
"""The functions that a score of each task must state."""


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
        return registered_score, (self.name,)


@dataclass(frozen=True, eq=False, repr=False)
class LibraryScore(Score):
    """A score of this library, with what makes its computation faster.

    For a score that depends on the order of the probabilities, `rule` is a function from its parameters to its
    `RankRule`, from which the scores of all classes follow. `bound` is a function from the number of classes and the
    parameters to the largest value, up to rounding. A score `of_one_entry` is one minus the probability of the class;
    one that is `tempered` has other sets at another temperature.
    """

    _: KW_ONLY
    rule: Callable[..., RankRule] | None = None
    of_one_entry: bool = False
    bound: Callable[..., float] | None = None
    tempered: bool = True

    def __post_init__(self) -> None:
        if self.rule is not None:
            object.__setattr__(self, "classes", partial(_classes_by_rule, self.rule))
        super().__post_init__()


def _classes_by_rule(
    rule: Callable[..., RankRule], p: NDArray[np.float64], *, u: NDArray[np.float64] | None = None, **parameters: float
) -> NDArray[np.float64]:
    return all_class_scores(p, np.ones(len(p)) if u is None else u, rule(**parameters))


_REGISTERED: dict[str, Score] = {}
SCORES: Mapping[str, Score] = MappingProxyType(_REGISTERED)
"""The registered scores by name; those of the library first."""


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


@lru_cache(maxsize=1)
def _load_entry_points() -> None:
    from importlib.metadata import entry_points

    for entry in entry_points(group="confide.scores"):
        register_score(entry.load())


# The scores of this library.

_Numbers = NDArray[np.float64]
_Ends = tuple[_Numbers, _Numbers]


def _largest_penalised(classes: int | None, penalty: float, k_reg: float = 1.0) -> float:
    return math.inf if classes is None else 1.0 + penalty * max(classes - k_reg, 0.0)


def _margin_graph(graph: Any, p: str) -> Any:
    top = graph.node("TopK", p, graph.constant([2], np.int64), outputs=2, axis=1)
    first, second = graph.columns(top, 0, 1), graph.columns(top, 1, 2)
    return graph.node("Sub", graph.node("Where", graph.node("Equal", p, first), second, first), p)


def _margin_sentence(threshold: float) -> str:
    if threshold >= 0:
        return "A label is in the set if no other label is more than {threshold} more probable."
    return "A label is in the set if it is more probable than every other by at least {opposite}."


def _scaled_ends(predictions: _Numbers, thresholds: _Numbers, scale: _Numbers) -> _Ends:
    reach = np.nextafter(thresholds * scale, np.inf)
    return predictions - reach, predictions + reach


LIBRARY: tuple[Score, ...] = (
    LibraryScore(
        "lac",
        "classification",
        low=0.0,
        high=1.0,
        spread=Spread("probability"),
        sentence="A label is in the set if the model gives it a probability of at least {complement}.",
        classes=lambda p: 1.0 - p,
        onnx=lambda graph, p: graph.node("Sub", graph.constant(1.0), p),
        of_one_entry=True,
    ),
    LibraryScore(
        "aps",
        "classification",
        low=0.0,
        spread=Spread("mass"),
        sentence="Labels join the set from the most probable downwards, as long as their probabilities{share} add up "
        "to at most {threshold}.",
        bound=lambda classes: 1.0,
        randomised=True,
        rule=partial(RankRule, "aps"),
    ),
    LibraryScore(
        "raps",
        "classification",
        low=0.0,
        spread=Spread("penalised"),
        sentence="Labels join the set from the most probable downwards, as long as their probabilities{share}, with a "
        "penalty for long sets, add up to at most {threshold}.",
        bound=_largest_penalised,
        randomised=True,
        rule=partial(RankRule, "aps"),
        parameters=("penalty", "k_reg"),
    ),
    LibraryScore(
        "saps",
        "classification",
        low=0.0,
        spread=Spread("penalised"),
        sentence="Labels join the set from the most probable downwards, as long as the top probability and a penalty "
        "per further label{share} add up to at most {threshold}.",
        bound=_largest_penalised,
        randomised=True,
        rule=partial(RankRule, "saps"),
        parameters=("penalty",),
    ),
    LibraryScore(
        "margin",
        "classification",
        low=-1.0,
        high=1.0,
        spread=Spread("margin"),
        sentence=_margin_sentence,
        classes=margins,
        onnx=_margin_graph,
    ),
    LibraryScore(
        "top_k",
        "classification",
        low=1.0,
        spread=Spread("rank"),
        sentence="The {threshold} most probable labels are in the set.",
        bound=lambda classes: math.inf if classes is None else float(classes),
        tempered=False,
        rule=partial(RankRule, "top_k"),
    ),
    LibraryScore(
        "absolute_residual",
        "regression",
        low=0.0,
        spread=Spread("residual"),
        sentence="The interval reaches from {threshold} below the prediction to {threshold} above it.",
        own=lambda f, y: np.abs(y - f),
        interval=lambda f, t: (f - t, f + t),
        onnx=lambda graph, f, t: (graph.node("Sub", f, t), graph.node("Add", f, t)),
    ),
    LibraryScore(
        "normalised_residual",
        "regression",
        low=0.0,
        spread=Spread("residual"),
        sentence="The interval reaches {threshold} times the record's difficulty below and above the prediction.",
        own=lambda f, y, difficulty: np.abs(y - f) / difficulty,
        interval=lambda f, t, difficulty: _scaled_ends(f, t, difficulty),
        difficulty=True,
    ),
    LibraryScore(
        "gamma",
        "regression",
        low=0.0,
        spread=Spread("residual"),
        sentence="The interval reaches {threshold} times the prediction below and above the prediction.",
        own=lambda f, y: np.abs(y - f) / f,
        interval=lambda f, t: _scaled_ends(f, t, f),
        positive=True,
    ),
    LibraryScore(
        "cqr",
        "regression",
        spread=Spread("signed"),
        sentence="The interval is the model's quantile range, widened by {threshold} on both sides.",
        quantiles=True,
        own=lambda f, y: np.maximum(f[:, 0] - y, y - f[:, 1]),
        interval=lambda f, t: (f[:, 0] - t, f[:, 1] + t),
        onnx=lambda graph, low, high, t: (graph.node("Sub", low, t), graph.node("Add", high, t)),
    ),
    LibraryScore(
        "cqr_low",
        "regression",
        spread=Spread("signed"),
        sentence="The interval begins {threshold} below the model's lower quantile.",
        quantiles=True,
        own=lambda f, y: f[:, 0] - y,
        interval=lambda f, t: (f[:, 0] - t, np.full(len(f), np.inf)),
        onnx=lambda graph, low, high, t: (graph.node("Sub", low, t), None),
    ),
    LibraryScore(
        "cqr_high",
        "regression",
        spread=Spread("signed"),
        sentence="The interval ends {threshold} above the model's upper quantile.",
        quantiles=True,
        own=lambda f, y: y - f[:, 1],
        interval=lambda f, t: (np.full(len(f), -np.inf), f[:, 1] + t),
        onnx=lambda graph, low, high, t: (None, graph.node("Add", high, t)),
    ),
)
for library_score in LIBRARY:
    register_score(library_score)
