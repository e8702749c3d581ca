"""Sets of classes, in the words of ONNX: the arithmetic of `confide.scores`, so that the sets are the same.

LAC compares each probability with the smallest one that is included, in the type of the output. The other scores are
computed for every class in float64, where sums of rounded probabilities are exact in any order. Equal probabilities
get one rank, the last of them: the borders of such groups are found among the sorted probabilities by sorting marks.

A graph cannot refuse a record. One with NaN or a number outside [0, 1] gets every class, which keeps the promise.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto

from confide.errors import InputError
from confide.onnx.graph import Tail, Tensor
from confide.onnx.limits import Limits
from confide.scores import ScoreKind, magic, smallest_probability

UNIFORMS = "u"


def append_sets(tail: Tail, p: Tensor, k: int, kind: ScoreKind, limits: Limits) -> None:
    """Append {y : score <= limit} as the output `sets`, bool, shape (n, k), from probabilities of k classes."""
    unusable = _unusable(tail, p)
    if kind.family == "lac":
        included = _by_probability(tail, p, limits)
    else:
        included = _by_score(tail, p, unusable, k, kind, limits)
    tail.output("sets", tail.node("Or", included, unusable), TensorProto.BOOL, k)


def _by_probability(tail: Tail, p: Tensor, limits: Limits) -> str:
    wide = "float64" if p.dtype.itemsize == 8 else "float32"

    def lowest(threshold: float) -> float:
        if not 0 <= threshold < 1:
            return 0.0 if threshold >= 1 else 2.0
        return float(smallest_probability(threshold, p.dtype))

    name = tail.node("Cast", p.name, to=TensorProto.FLOAT) if p.dtype.itemsize == 2 else p.name
    return tail.node("GreaterOrEqual", name, limits.tensor(tail, lowest, wide, column=True))


def _by_score(tail: Tail, p: Tensor, unusable: str, k: int, kind: ScoreKind, limits: Limits) -> str:
    wide = tail.node("Where", unusable, tail.constant(0.0), tail.double(p.name))  # NaN has no place in an order
    scores = _margins(tail, wide, k) if kind.family == "margin" else _ranked(tail, wide, k, kind)
    return tail.node("LessOrEqual", scores, limits.tensor(tail, float, "float64", column=True))


def _margins(tail: Tail, wide: str, k: int) -> str:
    if k < 2:
        raise InputError("output must have at least two columns for the margin score; found 1")
    top, _ = tail.all("TopK", wide, tail.constant([2], np.int64), outputs=2, axis=1)
    first, second = tail.columns(top, 0, 1), tail.columns(top, 1, 2)
    alone = tail.node("And", tail.node("Equal", wide, first), tail.node("Less", second, first))
    return tail.node("Sub", tail.node("Where", alone, second, first), wide)


def _ranked(tail: Tail, wide: str, k: int, kind: ScoreKind) -> str:
    """The scores of all classes, as `confide.scores.ranked.all_class_scores` computes them."""
    top, order = tail.all("TopK", wide, tail.constant([k], np.int64), outputs=2, axis=1)
    first, last = _groups(tail, top, k)
    rank = np.arange(1, k + 1)
    penalty = kind.parameters.get("penalty", 0.0)
    if kind.family == "top_k":
        ranked = tail.node("Gather", tail.constant(rank), last)
    elif kind.family == "saps":
        ranked = _saps(tail, tail.columns(top, 0, 1), last, rank, penalty, kind.randomised)
    else:
        ranked = _mass(tail, top, first, last, k, kind.randomised)
        if penalty:
            beyond = np.maximum(rank - kind.parameters["k_reg"], 0.0) * penalty
            ranked = tail.node("Add", ranked, tail.node("Gather", tail.constant(beyond), last))
    return tail.node("ScatterElements", top, order, ranked, axis=1)


def _groups(tail: Tail, top: str, k: int) -> tuple[str, str]:
    """For every sorted probability, the places of the first and the last that are equal to it, int64, (n, k)."""
    edge = tail.columns(top, 0, 1)
    edge = tail.node("Equal", edge, edge)
    changes = tail.node("Not", tail.node("Equal", tail.columns(top, 1, k), tail.columns(top, 0, k - 1)))
    begins = tail.node("Concat", edge, changes, axis=1)
    ends = tail.node("Concat", changes, edge, axis=1)
    counted = tail.node("CumSum", tail.node("Cast", begins, to=TensorProto.INT64), tail.constant(1, np.int64))
    number = tail.node("Sub", counted, tail.constant(1, np.int64))

    def borders(marked: str) -> str:
        places = tail.node("Where", marked, tail.constant([range(k)], np.int64), tail.constant(k, np.int64))
        ordered, _ = tail.all("TopK", places, tail.constant([k], np.int64), outputs=2, axis=1, largest=0)
        return tail.node("GatherElements", ordered, number, axis=1)

    return borders(begins), borders(ends)


def _mass(tail: Tail, top: str, first: str, last: str, k: int, randomised: bool) -> str:
    rounding = tail.constant(magic(k))
    q = tail.node("Sub", tail.node("Add", top, rounding), rounding)
    mass = tail.node("GatherElements", tail.node("CumSum", q, tail.constant(1, np.int64)), last, axis=1)
    if not randomised:
        return mass
    equal = tail.double(tail.node("Add", tail.node("Sub", last, first), tail.constant(1, np.int64)))
    group = tail.node("Mul", equal, q)
    return tail.node("Add", tail.node("Sub", mass, group), tail.node("Mul", _uniforms(tail), group))


def _saps(tail: Tail, largest: str, last: str, rank: NDArray[np.int64], penalty: float, randomised: bool) -> str:
    if not randomised:
        beyond = np.where(rank == 1, 0.0, ((rank - 2.0) + 1.0) * penalty)
        return tail.node("Add", largest, tail.node("Gather", tail.constant(beyond), last))
    u = _uniforms(tail)
    steps = tail.node("Add", tail.node("Gather", tail.constant(rank - 2.0), last), u)
    others = tail.node("Add", largest, tail.node("Mul", steps, tail.constant(penalty)))
    likeliest = tail.node("Equal", last, tail.constant(0, np.int64))
    return tail.node("Where", likeliest, tail.node("Mul", u, largest), others)


def _uniforms(tail: Tail) -> str:
    """An input: one number in [0, 1] per record, as a column."""
    return tail.column(tail.input(UNIFORMS, TensorProto.DOUBLE))


def _unusable(tail: Tail, p: Tensor) -> str:
    """Which records have an entry that is no probability, bool, shape (n, 1)."""
    ends = [tail.constant(end, p.dtype) for end in (0, 1)]
    inside = tail.node("And", tail.node("GreaterOrEqual", p.name, ends[0]), tail.node("LessOrEqual", p.name, ends[1]))
    outside = tail.node("Cast", tail.node("Not", inside), to=TensorProto.INT64)
    count = tail.node("ReduceSum", outside, tail.constant([1], np.int64), keepdims=1)
    return tail.node("Greater", count, tail.constant(0, np.int64))
