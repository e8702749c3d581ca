"""Thresholds, sets and intervals in ONNX operators: the arithmetic of `predict_set` and `predict_interval`.

A graph cannot raise an error. A record with NaN or a number outside [0, 1] gets every class, and one with an unusable
prediction the whole line. The coverage guarantee then still holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx import TensorProto

from confide.core import Release, refuse_overlapping
from confide.onnx.graph import AppendedGraph, Tensor
from confide.scores import ScoreKind, smallest_probability
from confide.support import canonical_name

GROUPS = "groups"
"""The input that is added to a graph for thresholds per group."""

_ROUNDED = 1e-5
"""What a float32 sum of a probability, such as that of a forest's trees, may exceed 1 by; it is 1 then."""

_LARGEST = np.finfo(np.float64).max


def append_sets(
    tail: AppendedGraph, tensor: Tensor, k: int, kind: ScoreKind, release: Release, classes: tuple[object, ...] | int
) -> None:
    """Append {y : score <= threshold} as the output `sets`, bool, shape (n, k), from probabilities of k classes."""
    double = tensor.kind == TensorProto.DOUBLE
    dtype: Any = np.float64 if double else np.float32
    p = tensor.name if double else tail.node("Cast", tensor.name, to=TensorProto.FLOAT)

    # Records with an entry that is not a probability, bool, shape (n, 1): every class is in their sets.
    zero, above_one = tail.constant(0, dtype), tail.constant(1 + _ROUNDED, dtype)
    inside = tail.node("And", tail.node("GreaterOrEqual", p, zero), tail.node("LessOrEqual", p, above_one))
    outside = tail.node("Cast", tail.node("Not", inside), to=TensorProto.INT64)
    count = tail.node("ReduceSum", outside, tail.constant([1], np.int64), keepdims=1)
    unusable = tail.node("Greater", count, tail.constant(0, np.int64))

    # LAC compares each probability with the smallest included one, without float64, which some runtimes lack.
    if kind.of_one_entry:
        lowest = _thresholds(tail, release, lambda t: float(smallest_probability(t, np.dtype(dtype))), classes, dtype)
        included = tail.node("GreaterOrEqual", p, lowest)
    else:
        # Other scores are computed in float64; NaN cannot be sorted.
        zero, largest = tail.constant(0.0), tail.constant(1.0)
        p = tail.node("Min", tail.node("Where", unusable, zero, tail.double(p)), largest)

        # p^(1/T), rescaled to rows that sum to one; rows of zeros stay zero. The logarithms and exponentials of the
        # runtime may differ from numpy's in the last digit, and so may a set whose score is nearly the threshold.
        if kind.temperature is not None:
            scaled = tail.node("Div", tail.node("Log", p), tail.constant(kind.temperature))
            powers = tail.node("Softmax", scaled, axis=1)
            p = tail.node("Where", tail.node("IsNaN", powers), zero, powers)
        kind.class_scores(np.full((1, k), 1 / k), np.ones(1))  # raises an error for too few classes
        included = tail.node("LessOrEqual", kind.onnx(tail, p), _thresholds(tail, release, float, classes))
    tail.output("sets", tail.node("Or", included, unusable), TensorProto.BOOL, k)


def append_intervals(
    tail: AppendedGraph, predictions: tuple[str, ...], ends: Sequence[tuple[ScoreKind, Release]]
) -> None:
    """Append the outputs `lower` and `upper`, float64, shape (n,).

    `predictions` are one number per record, or both quantiles, float64, shape (n,). `ends` are the score and the
    thresholds of both ends, or of the lower and of the upper one.
    """
    # Records whose predictions are finite.
    usable = tail.constant(True, np.bool_)
    for prediction in predictions:
        finite = tail.node("LessOrEqual", tail.node("Abs", prediction), tail.constant(_LARGEST))
        usable = tail.node("And", usable, finite)

    # The reach of an interval is a constant, the float above the threshold, so that ends are rounded outwards.
    pairs = [kind.onnx(tail, *predictions, _thresholds(tail, release, _reach)) for kind, release in ends]
    for name, end, no_end in (("lower", pairs[0][0], -np.inf), ("upper", pairs[-1][1], np.inf)):
        infinite = tail.constant(no_end)
        tail.output(name, tail.node("Where", usable, end or infinite, infinite), TensorProto.DOUBLE)


def _reach(threshold: float) -> float:
    with np.errstate(over="ignore"):
        return float(np.nextafter(threshold, np.inf))


def _thresholds(
    tail: AppendedGraph,
    release: Release,
    convert: Callable[[float], float],
    classes: tuple[object, ...] | int | None = None,
    dtype: Any = np.float64,
) -> str:
    """A tensor of `convert` of each threshold: one number, (K,) per class, or (n,) per group.

    For sets, `classes` are their names in the order of the columns, or their number; a tensor per group then has shape
    (n, 1), which broadcasts with (n, K).
    """
    # One, or one for each class: a constant.
    if release.by != "group":
        return tail.constant(np.vectorize(convert)(release.limits(classes=classes)), dtype)

    # The names of the groups, as integers or as strings.
    refuse_overlapping(release)
    names = tuple(release.parts)
    keys: dict[str, Any] = {"keys_strings": [canonical_name(name) for name in names]}
    kind = TensorProto.STRING
    if all(isinstance(name, int) for name in names):
        kind, keys = TensorProto.INT64, {"keys_int64s": [int(name) for name in names]}

    # The last threshold is for groups that were not calibrated: nothing is excluded.
    thresholds = np.append(release.limits(len(names), groups=names), np.inf)
    values = tail.constant(np.vectorize(convert)(thresholds), dtype)
    attributes = {**keys, "values_int64s": list(range(len(names))), "default_int64": len(names)}
    place = tail.node("LabelEncoder", tail.input(GROUPS, kind), domain="ai.onnx.ml", **attributes)
    gathered = tail.node("Gather", values, place)
    return gathered if classes is None else tail.node("Unsqueeze", gathered, tail.constant([1], np.int64))
