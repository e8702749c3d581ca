"""The scores of this library, each stated once: computation, inversion, candidates, words and ONNX form."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.candidates import Spread
from confide.scores.ranked import RankRule, all_class_scores, margins
from confide.scores.score import Graph, LibraryScore, Score, register_score

_Numbers = NDArray[np.float64]
_Ends = tuple[_Numbers, _Numbers]


def _ranked(family: Any, *parameters: str) -> dict[str, Any]:
    """The rule of a score that follows the order of the probabilities, and the scores of all classes by this rule."""

    def rule(**values: float) -> RankRule:
        return RankRule(family, **values)

    def classes(p: _Numbers, *, u: _Numbers | None = None, **values: float) -> _Numbers:
        return all_class_scores(p, np.ones(len(p)) if u is None else u, rule(**values))

    return {"task": "classification", "rule": rule, "classes": classes, "parameters": parameters}


def _largest_penalised(classes: int | None, penalty: float, k_reg: float = 1.0) -> float:
    return math.inf if classes is None else 1.0 + penalty * max(classes - k_reg, 0.0)


def _margin_graph(graph: Graph, p: str) -> str:
    top = graph.node("TopK", p, graph.constant([2], np.int64), outputs=2, axis=1)
    first, second = graph.columns(top, 0, 1), graph.columns(top, 1, 2)
    return graph.node("Sub", graph.node("Where", graph.node("Equal", p, first), second, first), p)


def _margin_sentence(threshold: float) -> str:
    if threshold >= 0:
        return "A label is in the set if no other label is more than {threshold} more probable."
    return "A label is in the set if it is more probable than every other by at least {opposite}."


def _relative(predictions: _Numbers, thresholds: _Numbers, scale: _Numbers) -> _Ends:
    beyond = np.nextafter(thresholds * scale, np.inf)
    return predictions - beyond, predictions + beyond


def _quantiles(name: str, sentence: str, **functions: Any) -> LibraryScore:
    """A score of conformalized quantile regression."""
    return LibraryScore(
        name,
        "regression",
        spread=Spread("signed"),
        sentence=sentence,
        quantiles=True,
        **functions,
    )


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
        low=0.0,
        spread=Spread("mass"),
        sentence="Labels join the set from the most probable downwards, as long as their probabilities{share} add up "
        "to at most {threshold}.",
        bound=lambda classes: 1.0,
        randomised=True,
        **_ranked("aps"),
    ),
    LibraryScore(
        "raps",
        low=0.0,
        spread=Spread("penalised"),
        sentence="Labels join the set from the most probable downwards, as long as their probabilities{share}, with a "
        "penalty for long sets, add up to at most {threshold}.",
        bound=_largest_penalised,
        randomised=True,
        **_ranked("aps", "penalty", "k_reg"),
    ),
    LibraryScore(
        "saps",
        low=0.0,
        spread=Spread("penalised"),
        sentence="Labels join the set from the most probable downwards, as long as the top probability and a penalty "
        "per further label{share} add up to at most {threshold}.",
        bound=_largest_penalised,
        randomised=True,
        **_ranked("saps", "penalty"),
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
        low=1.0,
        spread=Spread("rank"),
        sentence="The {threshold} most probable labels are in the set.",
        bound=lambda classes: math.inf if classes is None else float(classes),
        tempered=False,
        **_ranked("top_k"),
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
        interval=lambda f, t, difficulty: _relative(f, t, difficulty),
        difficulty=True,
    ),
    LibraryScore(
        "gamma",
        "regression",
        low=0.0,
        spread=Spread("residual"),
        sentence="The interval reaches {threshold} times the prediction below and above the prediction.",
        own=lambda f, y: np.abs(y - f) / f,
        interval=lambda f, t: _relative(f, t, f),
        positive=True,
    ),
    _quantiles(
        "cqr",
        "The interval is the model's quantile range, widened by {threshold} on both sides.",
        own=lambda f, y: np.maximum(f[:, 0] - y, y - f[:, 1]),
        interval=lambda f, t: (f[:, 0] - t, f[:, 1] + t),
        onnx=lambda graph, low, high, t: (graph.node("Sub", low, t), graph.node("Add", high, t)),
    ),
    _quantiles(
        "cqr_low",
        "The interval begins {threshold} below the model's lower quantile.",
        own=lambda f, y: f[:, 0] - y,
        interval=lambda f, t: (f[:, 0] - t, np.full(len(f), np.inf)),
        onnx=lambda graph, low, high, t: (graph.node("Sub", low, t), None),
    ),
    _quantiles(
        "cqr_high",
        "The interval ends {threshold} above the model's upper quantile.",
        own=lambda f, y: y - f[:, 1],
        interval=lambda f, t: (np.full(len(f), -np.inf), f[:, 1] + t),
        onnx=lambda graph, low, high, t: (None, graph.node("Add", high, t)),
    ),
)
for score in LIBRARY:
    register_score(score)
