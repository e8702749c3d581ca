"""Thresholds, sets and intervals in ONNX operators: the arithmetic of `confide.scores` and `predict_interval`.

LAC compares each probability with the smallest included one, in the type of the output. The other scores are computed
in float64, where sums of rounded probabilities are exact in any order. Equal probabilities have one rank, the last of
them. With one threshold a set is everything that is likelier than the likeliest excluded class, as in
`confide.scores.ranked`. With random shares, and thresholds per class, every class needs its score: the borders of
groups of equal probabilities are found among the sorted ones by sorting marks.

At a temperature, logarithms and exponentials are the runtime's own. They may differ from numpy's in the last digit, and
so may a set, if a score is nearly equal to the threshold.

Intervals are rounded outwards. The reach of an interval is a constant, the float above the threshold, unless it is
multiplied by a divisor of the record. Then `predict_interval` uses the float above their product. ONNX has no such
operation; for x >= 0 the float above it is

    x + (f x + e)  with  f = 2^-53 (1 + 2^-52),  e = 2^-1074,

every operation rounded to nearest (Rump, Zimmermann, Boldo and Melquiond, "Computing predecessor and successor in
rounding to nearest", BIT 2009, Theorem 2.2): the same bits, except between 2^-1022 and 2^-1020, where the sum may be
the float after it, so that intervals are never narrower.

A graph cannot raise an error. A record with NaN or a number outside [0, 1] gets every class, and one with an unusable
prediction or divisor the whole line. The coverage guarantee then still holds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto

from confide.errors import InputError
from confide.onnx.graph import AppendedGraph, Tensor
from confide.releases import Release, refuse_overlapping
from confide.scores import ScoreKind, magic, smallest_probability, unimplemented
from confide.support import canonical_name

GROUPS, UNIFORMS, DIFFICULTY = "groups", "u", "difficulty"
"""Inputs that are added to a graph if a release needs them."""

_LARGEST = np.finfo(np.float64).max
_FACTOR, _LEAST = 2.0**-53 * (1 + 2.0**-52), 2.0**-1074


@dataclass(frozen=True)
class Limits:
    """Thresholds, float64: shape () for one, (K,) with `per_class`, or (G + 1,) with the names of G groups.

    The last entry for groups is +inf, for groups that were not calibrated.
    """

    values: NDArray[np.float64]
    per_class: bool = False
    groups: tuple[str | int, ...] | None = None

    @classmethod
    def of(cls, release: Release, classes: tuple[object, ...] | int | None = None) -> Limits:
        """The limits of a release, per class in the order of the columns: their names, or their number."""
        if release.by != "group":
            return cls(np.array(release.limits(classes=classes)), per_class=release.by == "class")
        refuse_overlapping(release)
        names = tuple(release.parts)
        return cls(np.append(release.limits(len(names), groups=names), np.inf), groups=names)

    def tensor(
        self, tail: AppendedGraph, made: Callable[[float], float | np.floating], dtype: str, *, column: bool
    ) -> str:
        """A tensor of `made` of each threshold; it broadcasts with (n, K) as a `column`, else with (n,)."""
        values = np.array([made(float(value)) for value in self.values.ravel()], dtype=dtype)
        if self.groups is None:
            return tail.constant(values if self.per_class else values[0], dtype)
        gathered = tail.node("Gather", tail.constant(values, dtype), _place(tail, self.groups))
        return tail.column(gathered) if column else gathered


def _place(tail: AppendedGraph, names: tuple[str | int, ...]) -> str:
    """The position of each record's group among the names, int64, shape (n,); their number for an unknown group."""
    if any(tensor.name == GROUPS for tensor in tail.inputs):
        return next(str(node.output[0]) for node in tail.nodes if node.op_type == "LabelEncoder")
    keys: dict[str, object]
    if all(isinstance(name, int) for name in names):
        kind, keys = TensorProto.INT64, {"keys_int64s": [int(name) for name in names]}
    else:
        kind, keys = TensorProto.STRING, {"keys_strings": [canonical_name(name) for name in names]}
    attributes = {**keys, "values_int64s": list(range(len(names))), "default_int64": len(names)}
    return tail.node("LabelEncoder", tail.input(GROUPS, kind), domain="ai.onnx.ml", **attributes)


def append_sets(tail: AppendedGraph, p: Tensor, k: int, kind: ScoreKind, limits: Limits) -> None:
    """Append {y : score <= limit} as the output `sets`, bool, shape (n, k), from probabilities of k classes."""
    unusable = _unusable(tail, p)
    if kind.temperature is not None:
        p, kind = _tempered(tail, p, unusable, kind.temperature), kind.at_one
    if kind.family == "lac":
        included = _by_probability(tail, p, limits)
    else:
        included = _by_score(tail, p, unusable, k, kind, limits)
    tail.output("sets", tail.node("Or", included, unusable), TensorProto.BOOL, k)


def _tempered(tail: AppendedGraph, p: Tensor, unusable: str, temperature: float) -> Tensor:
    """p^(1/T), rescaled to rows that sum to one, in float64; rows of zeros stay zero."""
    wide = tail.node("Where", unusable, tail.constant(0.0), tail.double(p.name))
    powers = tail.node("Softmax", tail.node("Div", tail.node("Log", wide), tail.constant(temperature)), axis=1)
    finite = tail.node("Where", tail.node("IsNaN", powers), tail.constant(0.0), powers)
    return Tensor(finite, TensorProto.DOUBLE, p.shape)


def _by_probability(tail: AppendedGraph, p: Tensor, limits: Limits) -> str:
    wide = "float64" if p.dtype.itemsize == 8 else "float32"

    def lowest(threshold: float) -> float:
        if not 0 <= threshold < 1:
            return 0.0 if threshold >= 1 else 2.0
        return float(smallest_probability(threshold, p.dtype))

    name = tail.node("Cast", p.name, to=TensorProto.FLOAT) if p.dtype.itemsize == 2 else p.name
    return tail.node("GreaterOrEqual", name, limits.tensor(tail, lowest, wide, column=True))


def _by_score(tail: AppendedGraph, p: Tensor, unusable: str, k: int, kind: ScoreKind, limits: Limits) -> str:
    wide = tail.node("Where", unusable, tail.constant(0.0), tail.double(p.name))  # NaN cannot be sorted
    limit = limits.tensor(tail, float, "float64", column=True)
    if kind.family == "margin":
        return tail.node("LessOrEqual", _margins(tail, wide, k), limit)
    if kind.family not in ("aps", "raps", "saps", "top_k"):
        raise unimplemented(kind)
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


def _margins(tail: AppendedGraph, wide: str, k: int) -> str:
    if k < 2:
        raise InputError("output", "must have at least two columns for the margin score", got="1")
    top, _ = tail.all("TopK", wide, tail.constant([2], np.int64), outputs=2, axis=1)
    first, second = tail.columns(top, 0, 1), tail.columns(top, 1, 2)
    alone = tail.node("And", tail.node("Equal", wide, first), tail.node("Less", second, first))
    return tail.node("Sub", tail.node("Where", alone, second, first), wide)


def _at_places(tail: AppendedGraph, top: str, k: int, kind: ScoreKind) -> str:
    """The score of a class that is the last of its group, at every position of the order; it increases."""
    rank, penalty = np.arange(1, k + 1), kind.parameters.get("penalty", 0.0)
    if kind.family == "top_k":
        return tail.node("Add", tail.node("Sub", top, top), tail.constant([rank]))
    if kind.family == "saps":
        beyond = np.where(rank == 1, 0.0, ((rank - 2.0) + 1.0) * penalty)
        return tail.node("Add", tail.columns(top, 0, 1), tail.constant([beyond]))
    mass = tail.node("CumSum", _round_probabilities(tail, top, k), tail.constant(1, np.int64))
    if not penalty:
        return mass
    return tail.node("Add", mass, tail.constant([np.maximum(rank - kind.parameters["k_reg"], 0.0) * penalty]))


def _groups(tail: AppendedGraph, top: str, k: int) -> tuple[str, str]:
    """For every sorted probability, the positions of the first and the last equal one, int64, (n, k)."""
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


def _randomised(tail: AppendedGraph, top: str, first: str, last: str, k: int, kind: ScoreKind) -> str:
    """The score at every position of the order, with the random share of its group, as in `scores.ranked`."""
    u, rank, penalty = _uniforms(tail), np.arange(1, k + 1), kind.parameters.get("penalty", 0.0)
    if kind.family == "saps":
        largest = tail.columns(top, 0, 1)
        steps = tail.node("Add", tail.node("Gather", tail.constant(rank - 2.0), last), u)
        others = tail.node("Add", largest, tail.node("Mul", steps, tail.constant(penalty)))
        likeliest = tail.node("Equal", last, tail.constant(0, np.int64))
        return tail.node("Where", likeliest, tail.node("Mul", u, largest), others)
    q = _round_probabilities(tail, top, k)
    mass = tail.node("GatherElements", tail.node("CumSum", q, tail.constant(1, np.int64)), last, axis=1)
    equal = tail.double(tail.node("Add", tail.node("Sub", last, first), tail.constant(1, np.int64)))
    group = tail.node("Mul", equal, q)
    shared = tail.node("Add", tail.node("Sub", mass, group), tail.node("Mul", u, group))
    if not penalty:
        return shared
    beyond = np.maximum(rank - kind.parameters["k_reg"], 0.0) * penalty
    return tail.node("Add", shared, tail.node("Gather", tail.constant(beyond), last))


def _round_probabilities(tail: AppendedGraph, top: str, k: int) -> str:
    """Probabilities rounded so that their sums are exact."""
    rounding = tail.constant(magic(k))
    return tail.node("Sub", tail.node("Add", top, rounding), rounding)


def _uniforms(tail: AppendedGraph) -> str:
    """An input: one number in [0, 1] per record, as a column."""
    return tail.column(tail.input(UNIFORMS, TensorProto.DOUBLE))


def _unusable(tail: AppendedGraph, p: Tensor) -> str:
    """The records with an entry that is not a probability, bool, shape (n, 1)."""
    ends = [tail.constant(end, p.dtype) for end in (0, 1)]
    inside = tail.node("And", tail.node("GreaterOrEqual", p.name, ends[0]), tail.node("LessOrEqual", p.name, ends[1]))
    outside = tail.node("Cast", tail.node("Not", inside), to=TensorProto.INT64)
    count = tail.node("ReduceSum", outside, tail.constant([1], np.int64), keepdims=1)
    return tail.node("Greater", count, tail.constant(0, np.int64))


def append_intervals(
    tail: AppendedGraph, centers: tuple[str, str], scale: str | None, below: Limits | None, above: Limits | None
) -> None:
    """Append the outputs `lower` and `upper`, float64, shape (n,).

    `centers` are the predictions from which the ends are measured, float64, shape (n,), `scale` their divisors; a side
    without a limit is infinite.
    """
    usable = _is_finite(tail, tail.node("Abs", centers[0]))
    if centers[1] != centers[0]:
        usable = tail.node("And", usable, _is_finite(tail, tail.node("Abs", centers[1])))
    if scale is not None:
        positive = tail.node("Greater", scale, tail.constant(0.0))
        usable = tail.node("And", usable, tail.node("And", positive, _is_finite(tail, scale)))
    low = None if below is None else _reach(tail, below, scale)
    high = low if above is below else None if above is None else _reach(tail, above, scale)
    sides = (("lower", "Sub", centers[0], low, -np.inf), ("upper", "Add", centers[1], high, np.inf))
    for name, op, center, reach, no_end in sides:
        end = tail.constant(no_end) if reach is None else tail.node(op, center, reach)
        tail.output(name, tail.node("Where", usable, end, tail.constant(no_end)), TensorProto.DOUBLE)


def _is_finite(tail: AppendedGraph, tensor: str) -> str:
    """Whether numbers are finite; false for NaN."""
    return tail.node("LessOrEqual", tensor, tail.constant(_LARGEST))


def _reach(tail: AppendedGraph, limits: Limits, scale: str | None) -> str:
    with np.errstate(over="ignore"):
        reach = limits.tensor(tail, lambda threshold: np.nextafter(threshold, np.inf), "float64", column=False)
    if scale is None:
        return reach
    product = tail.node("Mul", reach, scale)
    least = tail.node("Min", scale, tail.constant(_LEAST))  # onnxruntime would optimise the constant's addition away
    step = tail.node("Add", tail.node("Mul", product, tail.constant(_FACTOR)), least)
    return tail.node("Add", product, step)
