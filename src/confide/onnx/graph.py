"""Properties of a graph's tensors, and nodes with constants that are appended to it with distinct names."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from confide.errors import InputError, InputTypeError

OWN = "confide/"
"""Prefix of the names of appended nodes and constants."""

OLDEST, OLDEST_ML = 13, 2
"""The versions of the operators that are appended; of `ai.onnx.ml` only for thresholds per group."""

FLOATS = (TensorProto.FLOAT16, TensorProto.FLOAT, TensorProto.DOUBLE)


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
            inferred = onnx.shape_inference.infer_shapes(model).graph
            tensors |= {tensor.name: tensor for tensor in inferred.value_info}
        if name not in tensors:
            raise InputError("output", "must name an output of the model", got=f"no tensor {name!r}")

        # It must hold floating-point numbers of a known shape.
        kind = tensors[name].type
        if not kind.HasField("tensor_type"):
            remedy = "Export the model without it, as with skl2onnx's options={'zipmap': False}"
            raise InputError("output", f"{name!r} must be a tensor", got="a sequence or a map", remedy=remedy)
        if kind.tensor_type.elem_type not in FLOATS:
            element_type = TensorProto.DataType.Name(kind.tensor_type.elem_type)
            must = f"{name!r} must hold float16, float32 or float64"
            raise InputError("output", must, got=element_type, remedy="Name another")
        if not kind.tensor_type.HasField("shape"):
            must = f"{name!r} must have a known shape"
            raise InputError("output", must, got="none", remedy="Export the model with shapes")
        return cls(name, kind.tensor_type.elem_type, tuple(map(_dimension, kind.tensor_type.shape.dim)))

    @property
    def text(self) -> str:
        """Its shape, for errors."""
        return "(" + ", ".join("?" if size is None else str(size) for size in self.shape) + ")"


def _dimension(dim: Any) -> int | str | None:
    if dim.HasField("dim_value"):
        return int(dim.dim_value)
    return str(dim.dim_param) if dim.dim_param else None


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


def with_operators(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model, converted to the opset of the appended operators if it uses an older one."""
    versions = _versions(model)
    opset = versions.get("", 1)
    _declare(model, versions)  # skl2onnx 1.20 repeats an entry for target_opset=12, and only one would be converted
    if opset >= OLDEST:
        return model
    try:
        return onnx.version_converter.convert_version(model, OLDEST)
    except (RuntimeError, onnx.shape_inference.InferenceError):
        must = f"must use opset {OLDEST} or newer, or operators that onnx can convert"
        raise InputError("model", must, got=str(opset), remedy="Export it again, for a newer opset") from None


def use_label_encoder(model: onnx.ModelProto) -> None:
    """Declare the version of `ai.onnx.ml` in which LabelEncoder maps any names; it changed no other operator."""
    versions = _versions(model)
    version = versions.get("ai.onnx.ml", 0)
    if version >= OLDEST_ML:
        return
    if any(node.op_type == "LabelEncoder" for node in model.graph.node):
        must = f"must use ai.onnx.ml {OLDEST_ML} or newer for thresholds per group"
        raise InputError("model", must, got=str(version), remedy="Export it again, for a newer one")
    _declare(model, versions | {"ai.onnx.ml": OLDEST_ML})


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


_PASSING = ("Cast", "Dropout", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze")
"""Nodes that do not change numbers."""


def maker_of(graph: onnx.GraphProto, name: str) -> str | None:
    """The operator that computes a tensor, before nodes that do not change numbers; None for an input."""
    makers = {output: node for node in graph.node for output in node.output}
    while (node := makers.get(name)) is not None and node.op_type in _PASSING:
        name = node.input[0]
    return None if node is None else str(node.op_type)


def refuse_unless_model(model: Any) -> None:
    """Raise an error for values that are not a model."""
    if not isinstance(model, onnx.ModelProto):
        raise InputTypeError("model", "must be an onnx.ModelProto or the path of one", got=type(model).__name__)
