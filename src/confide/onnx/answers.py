"""Thresholds, sets and intervals in ONNX operators: the arithmetic of `predict_set` and `predict_interval`.

LAC compares each probability with the smallest included one, in the type of the output; the margin is computed in
float64. At a temperature, logarithms and exponentials are the runtime's own. They may differ from numpy's in the last
digit, and so may a set, if a score is nearly equal to the threshold. Intervals are rounded outwards: the reach of an
interval is a constant, the float above the threshold.

A graph cannot raise an error. A record with NaN or a number outside [0, 1] gets every class, and one with an unusable
prediction the whole line. The coverage guarantee then still holds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import TensorProto

from confide.core import Release, refuse_overlapping
from confide.onnx.graph import AppendedGraph, Tensor
from confide.scores import ScoreKind, smallest_probability
from confide.support import canonical_name

GROUPS = "groups"
"""The input that is added to a graph for thresholds per group."""

_LARGEST = np.finfo(np.float64).max


def _limits(
    tail: AppendedGraph,
    release: Release,
    convert: Callable[[float], float | np.floating],
    dtype: str = "float64",
    classes: tuple[object, ...] | int | None = None,
) -> str:
    """A tensor of `convert` of each threshold: one number, (K,) per class, or (n,) per group.

    Parameters
    ----------
    classes
        For sets: the names of the classes in the order of the columns, or their number. A tensor per group then has
        shape (n, 1), which broadcasts with (n, K).
    """

    def constant(thresholds: object) -> str:
        array = np.asarray(thresholds)
        values = [convert(float(threshold)) for threshold in array.ravel()]
        return tail.constant(np.array(values, dtype=dtype).reshape(array.shape), dtype)

    if release.by != "group":
        return constant(release.limits(classes=classes))
    refuse_overlapping(release)
    names = tuple(release.parts)
    # The last entry is for groups that were not calibrated: nothing is excluded.
    values = constant(np.append(release.limits(len(names), groups=names), np.inf))
    gathered = tail.node("Gather", values, _place(tail, names))
    return gathered if classes is None else tail.column(gathered)


def _place(tail: AppendedGraph, names: tuple[str | int, ...]) -> str:
    """The position of each record's group among the names, int64, shape (n,); their number for an unknown group."""
    keys: dict[str, Any]
    if all(isinstance(name, int) for name in names):
        kind, keys = TensorProto.INT64, {"keys_int64s": [int(name) for name in names]}
    else:
        kind, keys = TensorProto.STRING, {"keys_strings": [canonical_name(name) for name in names]}
    attributes = {**keys, "values_int64s": list(range(len(names))), "default_int64": len(names)}
    return tail.node("LabelEncoder", tail.input(GROUPS, kind), domain="ai.onnx.ml", **attributes)


def append_sets(
    tail: AppendedGraph, p: Tensor, k: int, kind: ScoreKind, release: Release, classes: tuple[object, ...] | int
) -> None:
    """Append {y : score <= threshold} as the output `sets`, bool, shape (n, k), from probabilities of k classes."""
    unusable = _unusable(tail, p)
    if kind.temperature is not None:
        p = _tempered(tail, p, unusable, kind.temperature)
    if kind.of_one_entry:
        included = _by_probability(tail, p, release, classes)
    else:
        kind.class_scores(np.full((1, k), 1 / k), np.ones(1))  # raises an error for too few classes
        wide = tail.node("Where", unusable, tail.constant(0.0), tail.double(p.name))  # NaN cannot be sorted
        scores = kind.onnx(tail, wide)
        included = tail.node("LessOrEqual", scores, _limits(tail, release, float, classes=classes))
    tail.output("sets", tail.node("Or", included, unusable), TensorProto.BOOL, k)


def _tempered(tail: AppendedGraph, p: Tensor, unusable: str, temperature: float) -> Tensor:
    """p^(1/T), rescaled to rows that sum to one, in float64; rows of zeros stay zero."""
    wide = tail.node("Where", unusable, tail.constant(0.0), tail.double(p.name))
    powers = tail.node("Softmax", tail.node("Div", tail.node("Log", wide), tail.constant(temperature)), axis=1)
    finite = tail.node("Where", tail.node("IsNaN", powers), tail.constant(0.0), powers)
    return Tensor(finite, TensorProto.DOUBLE, p.shape)


def _by_probability(tail: AppendedGraph, p: Tensor, release: Release, classes: tuple[object, ...] | int) -> str:
    wide = "float64" if p.dtype.itemsize == 8 else "float32"

    def lowest(threshold: float) -> float:
        if not 0 <= threshold < 1:
            return 0.0 if threshold >= 1 else 2.0
        return float(smallest_probability(threshold, p.dtype))

    name = tail.node("Cast", p.name, to=TensorProto.FLOAT) if p.dtype.itemsize == 2 else p.name
    return tail.node("GreaterOrEqual", name, _limits(tail, release, lowest, wide, classes))


def _unusable(tail: AppendedGraph, p: Tensor) -> str:
    """The records with an entry that is not a probability, bool, shape (n, 1)."""
    ends = [tail.constant(end, p.dtype) for end in (0, 1)]
    inside = tail.node("And", tail.node("GreaterOrEqual", p.name, ends[0]), tail.node("LessOrEqual", p.name, ends[1]))
    outside = tail.node("Cast", tail.node("Not", inside), to=TensorProto.INT64)
    count = tail.node("ReduceSum", outside, tail.constant([1], np.int64), keepdims=1)
    return tail.node("Greater", count, tail.constant(0, np.int64))


def append_intervals(
    tail: AppendedGraph,
    predictions: tuple[str, ...],
    below: tuple[ScoreKind, Release],
    above: tuple[ScoreKind, Release],
) -> None:
    """Append the outputs `lower` and `upper`, float64, shape (n,).

    `predictions` are one number per record, or both quantiles, float64, shape (n,); each end has a score and a release
    with its thresholds.
    """
    usable = _is_finite(tail, predictions[0])
    for prediction in predictions[1:]:
        usable = tail.node("And", usable, _is_finite(tail, prediction))
    low, high = below[0].onnx(tail, *predictions, _reach(tail, below[1]))
    if above is not below:
        _, high = above[0].onnx(tail, *predictions, _reach(tail, above[1]))
    for name, end, no_end in (("lower", low, -np.inf), ("upper", high, np.inf)):
        infinite = tail.constant(no_end)
        tail.output(name, tail.node("Where", usable, end or infinite, infinite), TensorProto.DOUBLE)


def _is_finite(tail: AppendedGraph, tensor: str) -> str:
    """Whether numbers are finite; false for NaN."""
    return tail.node("LessOrEqual", tail.node("Abs", tensor), tail.constant(_LARGEST))


def _reach(tail: AppendedGraph, release: Release) -> str:
    with np.errstate(over="ignore"):
        return _limits(tail, release, lambda threshold: np.nextafter(threshold, np.inf))
