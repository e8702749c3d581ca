"""Nodes that are appended to a model's graph: with distinct names, and those of sets and intervals.

The arithmetic is that of `predict_set` and `predict_interval`, but a graph cannot raise an error. A record with NaN or
a number outside [0, 1] gets every class, and one with an unusable prediction the whole line. The coverage guarantee
then still holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from confide.core import Release, refuse_overlapping
from confide.errors import InputError
from confide.scores import ScoreKind, smallest_probability
from confide.support import canonical_name, require

OWN = "confide/"
"""Prefix of the names of appended nodes and constants."""

_OLDEST = 13
"""The version of the operators that are appended."""

_OLDEST_ML = 2
"""The version of `ai.onnx.ml` in which LabelEncoder maps any names; it is used only for thresholds per group."""

_FLOATS = (TensorProto.FLOAT16, TensorProto.FLOAT, TensorProto.DOUBLE)


@dataclass(frozen=True)
class Tensor:
    """A tensor of a graph: its name, element type and dimensions, each a number, a name, or None if unknown."""

    name: str
    kind: int
    shape: tuple[int | str | None, ...]

    @classmethod
    def of(cls, model: onnx.ModelProto, name: str | None) -> Tensor:
        """The output with this name, or another tensor of the graph; by default the only output."""
        # Find it by name; the types of inner tensors are inferred.
        graph = model.graph
        if name is None:
            if len(graph.output) != 1:
                outputs = ", ".join(repr(tensor.name) for tensor in graph.output)
                raise InputError("output", f"must name one of the {len(graph.output)} outputs of the model: {outputs}")
            name = graph.output[0].name
        tensors = {tensor.name: tensor for tensor in [*graph.input, *graph.value_info, *graph.output]}
        if name not in tensors:
            inferred = onnx.shape_inference.infer_shapes(model).graph.value_info
            tensors |= {tensor.name: tensor for tensor in inferred}
        require("output", name in tensors, "must name an output of the model", got=f"no tensor {name!r}")

        # It must hold floating-point numbers of a known shape.
        kind = tensors[name].type
        if not kind.HasField("tensor_type"):
            remedy = "Export the model without it, as with skl2onnx's options={'zipmap': False}"
            raise InputError("output", f"{name!r} must be a tensor", got="a sequence or a map", remedy=remedy)
        if kind.tensor_type.elem_type not in _FLOATS:
            element_type = TensorProto.DataType.Name(kind.tensor_type.elem_type)
            must = f"{name!r} must hold float16, float32 or float64"
            raise InputError("output", must, got=element_type, remedy="Name another")
        must = f"{name!r} must have a known shape"
        require("output", kind.tensor_type.HasField("shape"), must, got="none", remedy="Export the model with shapes")
        return cls(name, kind.tensor_type.elem_type, tuple(map(_dimension, kind.tensor_type.shape.dim)))

    @property
    def text(self) -> str:
        """Its shape, for errors."""
        return "(" + ", ".join("?" if size is None else str(size) for size in self.shape) + ")"


def _dimension(dim: Any) -> int | str | None:
    return int(dim.dim_value) if dim.HasField("dim_value") else str(dim.dim_param) or None


@dataclass
class AppendedGraph:
    """The appended part of a graph: nodes, constants, inputs and outputs."""

    rows: int | str | None
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)
    inputs: list[onnx.ValueInfoProto] = field(default_factory=list)
    outputs: list[onnx.ValueInfoProto] = field(default_factory=list)

    def constant(self, value: Any, dtype: Any = np.float64) -> str:
        """Append a constant tensor; returns its name."""
        name = f"{OWN}constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.array(value, dtype=dtype), name))
        return name

    def node(self, op: str, *inputs: str, outputs: int = 1, domain: str = "", **attributes: Any) -> str:
        """Append a node; returns the name of its first output."""
        name = f"{OWN}{op}_{len(self.nodes)}"
        names = [name, *(f"{name}_{i}" for i in range(1, outputs))]
        self.nodes.append(helper.make_node(op, list(inputs), names, name=name, domain=domain, **attributes))
        return name

    def double(self, tensor: str) -> str:
        """The same numbers in float64."""
        return self.node("Cast", tensor, to=TensorProto.DOUBLE)

    def vector(self, tensor: str, dimensions: int) -> str:
        """Numbers of shape (n,) or (n, 1) in float64, shape (n,)."""
        flat = tensor if dimensions == 1 else self.node("Squeeze", tensor, self.constant([1], np.int64))
        return self.double(flat)

    def columns(self, tensor: str, start: int, stop: int) -> str:
        """Columns from `start` to `stop`, without `stop`."""
        ends = [self.constant([value], np.int64) for value in (start, stop, 1)]
        return self.node("Slice", tensor, *ends)

    def input(self, name: str, kind: int) -> str:
        """Add an input to the graph, one entry per record."""
        self.inputs.append(helper.make_tensor_value_info(name, kind, [self.rows]))
        return name

    def output(self, name: str, tensor: str, kind: int, columns: int | None = None) -> None:
        """Add a tensor as an output with this name, of shape (n,) or (n, columns)."""
        self.nodes.append(helper.make_node("Identity", [tensor], [name], name=f"{OWN}output_{name}"))
        shape = [self.rows] if columns is None else [self.rows, columns]
        self.outputs.append(helper.make_tensor_value_info(name, kind, shape))

    def append_to(self, model: onnx.ModelProto) -> None:
        """Append everything to the graph of a model, in place."""
        if self.inputs:
            _use_label_encoder(model)
        model.graph.node.extend(self.nodes)
        model.graph.initializer.extend(self.constants)
        model.graph.input.extend(self.inputs)
        model.graph.output.extend(self.outputs)


def with_operators(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model, converted to the opset of the appended operators if it uses an older one."""
    versions = _versions(model)
    opset = versions.get("", 1)
    _declare(model, versions)  # skl2onnx 1.20 repeats an entry for target_opset=12, and only one would be converted
    if opset >= _OLDEST:
        return model
    try:
        return onnx.version_converter.convert_version(model, _OLDEST)
    except (RuntimeError, onnx.shape_inference.InferenceError):
        must = f"must use opset {_OLDEST} or newer, or operators that onnx can convert"
        raise InputError("model", must, got=str(opset), remedy="Export it again, for a newer opset") from None


def _use_label_encoder(model: onnx.ModelProto) -> None:
    """Declare a version of `ai.onnx.ml` for thresholds per group; it changed no operator except LabelEncoder."""
    versions = _versions(model)
    version = versions.get("ai.onnx.ml", 0)
    if version >= _OLDEST_ML:
        return
    if any(node.op_type == "LabelEncoder" for node in model.graph.node):
        must = f"must use ai.onnx.ml {_OLDEST_ML} or newer for thresholds per group"
        raise InputError("model", must, got=str(version), remedy="Export it again, for a newer one")
    _declare(model, versions | {"ai.onnx.ml": _OLDEST_ML})


def _versions(model: onnx.ModelProto) -> dict[str, int]:
    """The version of each domain; ONNX's own operators have the domain ""."""
    return {"" if entry.domain == "ai.onnx" else entry.domain: entry.version for entry in model.opset_import}


def _declare(model: onnx.ModelProto, versions: dict[str, int]) -> None:
    del model.opset_import[:]
    model.opset_import.extend(helper.make_opsetid(*entry) for entry in versions.items())


def names_of(graph: onnx.GraphProto) -> set[str]:
    """Every name of a tensor in a graph."""
    nodes = {name for node in graph.node for name in (*node.input, *node.output)}
    return nodes | {tensor.name for tensor in (*graph.input, *graph.output, *graph.initializer)}


_UNCHANGING = ("Cast", "Dropout", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze")
"""Nodes that do not change numbers."""


def operator_of(graph: onnx.GraphProto, name: str) -> str | None:
    """The operator that computes a tensor, before nodes that do not change numbers; None for an input."""
    nodes = {output: node for node in graph.node for output in node.output}
    while (node := nodes.get(name)) is not None and node.op_type in _UNCHANGING:
        (name, *_) = node.input
    return None if node is None else str(node.op_type)


# Thresholds, sets and intervals.


GROUPS = "groups"
"""The input that is added to a graph for thresholds per group."""

_ROUNDING = 1e-5
"""A probability that is a float32 sum, such as over a forest's trees, may exceed 1 by so much; it counts as 1."""


def append_sets(
    tail: AppendedGraph, tensor: Tensor, k: int, kind: ScoreKind, release: Release, classes: tuple[object, ...] | int
) -> None:
    """Append {y : score <= threshold} as the output `sets`, bool, shape (n, k), from probabilities of k classes."""
    double = tensor.kind == TensorProto.DOUBLE
    dtype: Any = np.float64 if double else np.float32
    p = tensor.name if double else tail.node("Cast", tensor.name, to=TensorProto.FLOAT)

    # Records with an entry that is not a probability, bool, shape (n, 1): every class is in their sets.
    smallest = tail.constant(0, dtype)
    largest = tail.constant(1 + _ROUNDING, dtype)
    inside = tail.node("And", tail.node("GreaterOrEqual", p, smallest), tail.node("LessOrEqual", p, largest))
    outside = tail.node("Cast", tail.node("Not", inside), to=TensorProto.INT64)
    count = tail.node("ReduceSum", outside, tail.constant([1], np.int64), keepdims=1)
    unusable = tail.node("Greater", count, tail.constant(0, np.int64))

    # LAC compares each probability with the smallest included one, without float64, which some runtimes lack.
    if kind.of_one_entry:
        lowest = _thresholds(tail, release, lambda t: float(smallest_probability(t, np.dtype(dtype))), classes, dtype)
        included = tail.node("GreaterOrEqual", p, lowest)
    else:
        # Other scores are computed in float64; NaN cannot be sorted.
        zero = tail.constant(0.0)
        p = tail.node("Min", tail.node("Where", unusable, zero, tail.double(p)), tail.constant(1.0))

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
        finite = tail.node("LessOrEqual", tail.node("Abs", prediction), tail.constant(np.finfo(np.float64).max))
        usable = tail.node("And", usable, finite)

    # The reach of an interval is a constant, the float above the threshold, so that ends are rounded outwards.
    intervals = [kind.onnx(tail, *predictions, _thresholds(tail, release, _reach)) for kind, release in ends]
    lower, _ = intervals[0]
    _, upper = intervals[-1]
    for name, end, infinity in (("lower", lower, -np.inf), ("upper", upper, np.inf)):
        infinite = tail.constant(infinity)
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
    integers = all(isinstance(name, int) for name in names)
    keys: list[Any] = [int(name) if integers else canonical_name(name) for name in names]

    # Each record's threshold by its group; the last one is for groups that were not calibrated: nothing is excluded.
    thresholds = np.append(release.limits(len(names), groups=names), np.inf)
    values = tail.constant(np.vectorize(convert)(thresholds), dtype)
    attributes: dict[str, Any] = {"values_int64s": list(range(len(names))), "default_int64": len(names)}
    attributes["keys_int64s" if integers else "keys_strings"] = keys
    groups = tail.input(GROUPS, TensorProto.INT64 if integers else TensorProto.STRING)
    place = tail.node("LabelEncoder", groups, domain="ai.onnx.ml", **attributes)
    gathered = tail.node("Gather", values, place)
    return gathered if classes is None else tail.node("Unsqueeze", gathered, tail.constant([1], np.int64))
