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
from confide.errors import InputError
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
    if kind.family == "lac":
        included = _by_probability(tail, p, release, classes)
    else:
        limit = _limits(tail, release, float, classes=classes)
        included = tail.node("LessOrEqual", _margins(tail, p, unusable, k), limit)
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


def _margins(tail: AppendedGraph, p: Tensor, unusable: str, k: int) -> str:
    if k < 2:
        raise InputError("output", "must have at least two columns for the margin score", got="1")
    wide = tail.node("Where", unusable, tail.constant(0.0), tail.double(p.name))  # NaN cannot be sorted
    top = tail.node("TopK", wide, tail.constant([2], np.int64), outputs=2, axis=1)
    first, second = tail.columns(top, 0, 1), tail.columns(top, 1, 2)
    alone = tail.node("And", tail.node("Equal", wide, first), tail.node("Less", second, first))
    return tail.node("Sub", tail.node("Where", alone, second, first), wide)


def _unusable(tail: AppendedGraph, p: Tensor) -> str:
    """The records with an entry that is not a probability, bool, shape (n, 1)."""
    ends = [tail.constant(end, p.dtype) for end in (0, 1)]
    inside = tail.node("And", tail.node("GreaterOrEqual", p.name, ends[0]), tail.node("LessOrEqual", p.name, ends[1]))
    outside = tail.node("Cast", tail.node("Not", inside), to=TensorProto.INT64)
    count = tail.node("ReduceSum", outside, tail.constant([1], np.int64), keepdims=1)
    return tail.node("Greater", count, tail.constant(0, np.int64))


def append_intervals(
    tail: AppendedGraph, centers: tuple[str, str], below: Release | None, above: Release | None
) -> None:
    """Append the outputs `lower` and `upper`, float64, shape (n,).

    `centers` are the predictions from which the ends are measured, float64, shape (n,), `below` and `above` the
    releases with the thresholds; a side without one is infinite.
    """
    usable = _is_finite(tail, centers[0])
    if centers[1] != centers[0]:
        usable = tail.node("And", usable, _is_finite(tail, centers[1]))
    low = None if below is None else _reach(tail, below)
    high = low if above is below else None if above is None else _reach(tail, above)
    sides = (("lower", "Sub", centers[0], low, -np.inf), ("upper", "Add", centers[1], high, np.inf))
    for name, op, center, reach, no_end in sides:
        end = tail.constant(no_end) if reach is None else tail.node(op, center, reach)
        tail.output(name, tail.node("Where", usable, end, tail.constant(no_end)), TensorProto.DOUBLE)


def _is_finite(tail: AppendedGraph, tensor: str) -> str:
    """Whether numbers are finite; false for NaN."""
    return tail.node("LessOrEqual", tail.node("Abs", tensor), tail.constant(_LARGEST))


def _reach(tail: AppendedGraph, release: Release) -> str:
    with np.errstate(over="ignore"):
        return _limits(tail, release, lambda threshold: np.nextafter(threshold, np.inf))
