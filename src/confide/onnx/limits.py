"""Thresholds as tensors: one for all records, one per class, or one per group, told by an input of the graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto

from confide.onnx.graph import Tail
from confide.releases import Release
from confide.support import canonical

GROUPS = "groups"


@dataclass(frozen=True)
class Limits:
    """Thresholds, float64: shape () for one, (K,) with `per_class`, or (G + 1,) with the names of G groups.

    The last of the groups' is +inf, for groups that nobody calibrated.
    """

    values: NDArray[np.float64]
    per_class: bool = False
    groups: tuple[str | int, ...] | None = None

    @classmethod
    def of(cls, release: Release, classes: tuple[object, ...] | int | None = None) -> Limits:
        """Those of a release, per class in the order of the columns: their names, or how many they are."""
        if release.by != "group":
            return cls(np.array(release.limits(classes=classes)), per_class=release.by == "class")
        names = tuple(release.parts)
        return cls(np.append(release.limits(len(names), groups=names), np.inf), groups=names)

    def tensor(self, tail: Tail, made: Callable[[float], float | np.floating], dtype: str, *, column: bool) -> str:
        """What is `made` of each threshold, so that it broadcasts with (n, K) as a `column`, else with (n,)."""
        values = np.array([made(float(value)) for value in self.values.ravel()], dtype=dtype)
        if self.groups is None:
            return tail.constant(values if self.per_class else values[0], dtype)
        found = tail.node("Gather", tail.constant(values, dtype), _place(tail, self.groups))
        return tail.column(found) if column else found


def _place(tail: Tail, names: tuple[str | int, ...]) -> str:
    """The place of each record's group among the names, int64, shape (n,); their number for an unknown group."""
    if any(one.name == GROUPS for one in tail.inputs):
        return next(str(node.output[0]) for node in tail.nodes if node.op_type == "LabelEncoder")
    keys: dict[str, object]
    if all(isinstance(name, int) for name in names):
        kind, keys = TensorProto.INT64, {"keys_int64s": [int(name) for name in names]}
    else:
        kind, keys = TensorProto.STRING, {"keys_strings": [canonical(name) for name in names]}
    own = {**keys, "values_int64s": list(range(len(names))), "default_int64": len(names)}
    return tail.node("LabelEncoder", tail.input(GROUPS, kind), domain="ai.onnx.ml", **own)
