"""Sets of classes, in the words of ONNX: the arithmetic of `confide.scores`, so that the sets are the same.

LAC compares each probability with the smallest one that is included, in the type of the output. The other scores are
computed in float64, where sums of rounded probabilities are exact in any order. Equal probabilities get one rank, the
last of them; with one threshold a set is all that is likelier than the likeliest class that is left out, as in
`confide.scores.ranked`. With random shares, and thresholds per class, every class needs its score: the borders of
groups of equal probabilities are found among the sorted ones by sorting marks.

At a temperature, logarithms and exponentials are the runtime's own: they may differ from numpy's in the last digit, and
a set with them, where a score is as good as the threshold.

A graph cannot refuse a record. One with NaN or a number outside [0, 1] gets every class, which keeps the promise.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from confide.errors import InputError
from confide.onnx.graph import Tail, Tensor
from confide.onnx.limits import Limits
from confide.scores import ScoreKind, magic, smallest_probability

UNIFORMS = "u"


def append_sets(tail: Tail, p: Tensor, k: int, kind: ScoreKind, limits: Limits) -> None:
    """Append {y : score <= limit} as the output `sets`, bool, shape (n, k), from probabilities of k classes."""
    unusable = _unusable(tail, p)
    if kind.temperature is not None:
        p, kind = _tempered(tail, p, unusable, kind.temperature), kind.at_one
    if kind.family == "lac":
        included = _by_probability(tail, p, limits)
    else:
        included = _by_score(tail, p, unusable, k, kind, limits)
    tail.output("sets", tail.node("Or", included, unusable), TensorProto.BOOL, k)


def _tempered(tail: Tail, p: Tensor, unusable: str, temperature: float) -> Tensor:
    """p^(1/T), rescaled to rows that sum to one, in float64; rows of zeros stay zero."""
    wide = tail.node("Where", unusable, tail.constant(0.0), tail.double(p.name))
    powers = tail.node("Softmax", tail.node("Div", tail.node("Log", wide), tail.constant(temperature)), axis=1)
    found = tail.node("Where", tail.node("IsNaN", powers), tail.constant(0.0), powers)
    return Tensor(found, TensorProto.DOUBLE, p.shape)


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
    limit = limits.tensor(tail, float, "float64", column=True)
    if kind.family == "margin":
        return tail.node("LessOrEqual", _margins(tail, wide, k), limit)
    top, order = tail.all("TopK", wide, tail.constant([k], np.int64), outputs=2, axis=1)
    if not kind.randomised and not limits.per_class:
        left_out = tail.node("Greater", _at_places(tail, top, k, kind), limit)
        excluded = tail.node("Where", left_out, top, tail.constant(-1.0))
        most, _ = tail.all("TopK", excluded, tail.constant([1], np.int64), outputs=2, axis=1)
        return tail.node("Greater", wide, most)
    first, last = _groups(tail, top, k)
    if kind.randomised:
        ranked = _randomised(tail, top, first, last, k, kind)
    else:
        ranked = tail.node("GatherElements", _at_places(tail, top, k, kind), last, axis=1)
    return tail.node("LessOrEqual", tail.node("ScatterElements", top, order, ranked, axis=1), limit)


def _margins(tail: Tail, wide: str, k: int) -> str:
    if k < 2:
        raise InputError("output must have at least two columns for the margin score; found 1")
    top, _ = tail.all("TopK", wide, tail.constant([2], np.int64), outputs=2, axis=1)
    first, second = tail.columns(top, 0, 1), tail.columns(top, 1, 2)
    alone = tail.node("And", tail.node("Equal", wide, first), tail.node("Less", second, first))
    return tail.node("Sub", tail.node("Where", alone, second, first), wide)


def _at_places(tail: Tail, top: str, k: int, kind: ScoreKind) -> str:
    """The score that a class has as the last of its group, at every place of the order: it grows with the place."""
    rank, penalty = np.arange(1, k + 1), kind.parameters.get("penalty", 0.0)
    if kind.family == "top_k":
        return tail.node("Add", tail.node("Sub", top, top), tail.constant([rank]))
    if kind.family == "saps":
        beyond = np.where(rank == 1, 0.0, ((rank - 2.0) + 1.0) * penalty)
        return tail.node("Add", tail.columns(top, 0, 1), tail.constant([beyond]))
    mass = tail.node("CumSum", _rounded(tail, top, k), tail.constant(1, np.int64))
    if not penalty:
        return mass
    return tail.node("Add", mass, tail.constant([np.maximum(rank - kind.parameters["k_reg"], 0.0) * penalty]))


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


def _randomised(tail: Tail, top: str, first: str, last: str, k: int, kind: ScoreKind) -> str:
    """The score at every place of the order, with the random share of its group, as `scores.ranked` computes it."""
    u, rank, penalty = _uniforms(tail), np.arange(1, k + 1), kind.parameters.get("penalty", 0.0)
    if kind.family == "saps":
        largest = tail.columns(top, 0, 1)
        steps = tail.node("Add", tail.node("Gather", tail.constant(rank - 2.0), last), u)
        others = tail.node("Add", largest, tail.node("Mul", steps, tail.constant(penalty)))
        likeliest = tail.node("Equal", last, tail.constant(0, np.int64))
        return tail.node("Where", likeliest, tail.node("Mul", u, largest), others)
    q = _rounded(tail, top, k)
    mass = tail.node("GatherElements", tail.node("CumSum", q, tail.constant(1, np.int64)), last, axis=1)
    equal = tail.double(tail.node("Add", tail.node("Sub", last, first), tail.constant(1, np.int64)))
    group = tail.node("Mul", equal, q)
    shared = tail.node("Add", tail.node("Sub", mass, group), tail.node("Mul", u, group))
    if not penalty:
        return shared
    beyond = np.maximum(rank - kind.parameters["k_reg"], 0.0) * penalty
    return tail.node("Add", shared, tail.node("Gather", tail.constant(beyond), last))


def _rounded(tail: Tail, top: str, k: int) -> str:
    """Probabilities rounded so that their sums are exact."""
    rounding = tail.constant(magic(k))
    return tail.node("Sub", tail.node("Add", top, rounding), rounding)


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
