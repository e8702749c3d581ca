"""The scores of this library. Each is stated once: computation, inversion, candidates, sentence and ONNX form."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.candidates import Spread
from confide.scores.ranked import RankRule, all_class_scores, margins
from confide.scores.score import Score, register_score

_Numbers = NDArray[np.float64]
_Ends = tuple[_Numbers, _Numbers]


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


def _largest_penalised(classes: int | None, penalty: float, k_reg: float = 1.0) -> float:
    return math.inf if classes is None else 1.0 + penalty * max(classes - k_reg, 0.0)


def _margin_graph(graph: Any, p: str) -> Any:
    top = graph.node("TopK", p, graph.constant([2], np.int64), outputs=2, axis=1)
    first = graph.columns(top, 0, 1)
    second = graph.columns(top, 1, 2)
    return graph.node("Sub", graph.node("Where", graph.node("Equal", p, first), second, first), p)


def _margin_sentence(threshold: float) -> str:
    if threshold >= 0:
        return "A label is in the set if no other label is more than {threshold} more probable."
    return "A label is in the set if it is more probable than every other by at least {opposite}."


def _scaled_ends(predictions: _Numbers, thresholds: _Numbers, scale: _Numbers) -> _Ends:
    reach = np.nextafter(thresholds * scale, np.inf)
    return predictions - reach, predictions + reach


_class_score = partial(LibraryScore, task="classification")
_residual = partial(LibraryScore, task="regression", low=0.0, spread=Spread("residual"))
_quantile_score = partial(LibraryScore, task="regression", spread=Spread("signed"), quantiles=True)

LIBRARY: tuple[Score, ...] = (
    _class_score(
        "lac",
        low=0.0,
        high=1.0,
        spread=Spread("probability"),
        sentence="A label is in the set if the model gives it a probability of at least {complement}.",
        classes=lambda p: 1.0 - p,
        onnx=lambda graph, p: graph.node("Sub", graph.constant(1.0), p),
        of_one_entry=True,
    ),
    _class_score(
        "aps",
        low=0.0,
        spread=Spread("mass"),
        sentence="Labels join the set from the most probable downwards, as long as their probabilities{share} add up "
        "to at most {threshold}.",
        bound=lambda classes: 1.0,
        randomised=True,
        rule=partial(RankRule, "aps"),
    ),
    _class_score(
        "raps",
        low=0.0,
        spread=Spread("penalised"),
        sentence="Labels join the set from the most probable downwards, as long as their probabilities{share}, with a "
        "penalty for long sets, add up to at most {threshold}.",
        bound=_largest_penalised,
        randomised=True,
        rule=partial(RankRule, "aps"),
        parameters=("penalty", "k_reg"),
    ),
    _class_score(
        "saps",
        low=0.0,
        spread=Spread("penalised"),
        sentence="Labels join the set from the most probable downwards, as long as the top probability and a penalty "
        "per further label{share} add up to at most {threshold}.",
        bound=_largest_penalised,
        randomised=True,
        rule=partial(RankRule, "saps"),
        parameters=("penalty",),
    ),
    _class_score(
        "margin",
        low=-1.0,
        high=1.0,
        spread=Spread("margin"),
        sentence=_margin_sentence,
        classes=margins,
        onnx=_margin_graph,
    ),
    _class_score(
        "top_k",
        low=1.0,
        spread=Spread("rank"),
        sentence="The {threshold} most probable labels are in the set.",
        bound=lambda classes: math.inf if classes is None else float(classes),
        tempered=False,
        rule=partial(RankRule, "top_k"),
    ),
    _residual(
        "absolute_residual",
        sentence="The interval reaches from {threshold} below the prediction to {threshold} above it.",
        own=lambda f, y: np.abs(y - f),
        interval=lambda f, t: (f - t, f + t),
        onnx=lambda graph, f, t: (graph.node("Sub", f, t), graph.node("Add", f, t)),
    ),
    _residual(
        "normalised_residual",
        sentence="The interval reaches {threshold} times the record's difficulty below and above the prediction.",
        own=lambda f, y, difficulty: np.abs(y - f) / difficulty,
        interval=lambda f, t, difficulty: _scaled_ends(f, t, difficulty),
        difficulty=True,
    ),
    _residual(
        "gamma",
        sentence="The interval reaches {threshold} times the prediction below and above the prediction.",
        own=lambda f, y: np.abs(y - f) / f,
        interval=lambda f, t: _scaled_ends(f, t, f),
        positive=True,
    ),
    _quantile_score(
        "cqr",
        sentence="The interval is the model's quantile range, widened by {threshold} on both sides.",
        own=lambda f, y: np.maximum(f[:, 0] - y, y - f[:, 1]),
        interval=lambda f, t: (f[:, 0] - t, f[:, 1] + t),
        onnx=lambda graph, low, high, t: (graph.node("Sub", low, t), graph.node("Add", high, t)),
    ),
    _quantile_score(
        "cqr_low",
        sentence="The interval begins {threshold} below the model's lower quantile.",
        own=lambda f, y: f[:, 0] - y,
        interval=lambda f, t: (f[:, 0] - t, np.full(len(f), np.inf)),
        onnx=lambda graph, low, high, t: (graph.node("Sub", low, t), None),
    ),
    _quantile_score(
        "cqr_high",
        sentence="The interval ends {threshold} above the model's upper quantile.",
        own=lambda f, y: y - f[:, 1],
        interval=lambda f, t: (np.full(len(f), -np.inf), f[:, 1] + t),
        onnx=lambda graph, low, high, t: (None, graph.node("Add", high, t)),
    ),
)
for library_score in LIBRARY:
    register_score(library_score)
