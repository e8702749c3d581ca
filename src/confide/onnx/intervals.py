"""Intervals, in the words of ONNX: the ends are those of `predict_interval`, which rounds them outwards.

The reach of an interval is a constant, the float above the threshold, unless a divisor of the record stretches it. Then
`predict_interval` takes the float above their product. ONNX has no such operation; for x >= 0 the float above it is

    x + (f x + e)  with  f = 2^-53 (1 + 2^-52),  e = 2^-1074,

every operation rounded to nearest (Rump, Zimmermann, Boldo and Melquiond, "Computing predecessor and successor in
rounding to nearest", BIT 2009, Theorem 2.2): the same bits, but between 2^-1022 and 2^-1020, where the sum may be the
float after it, so that intervals are never narrower.

A graph cannot refuse a record. One whose predictions or divisor cannot be used gets the whole line.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from confide.onnx.graph import Tail
from confide.onnx.limits import Limits

DIFFICULTY = "difficulty"
_LARGEST = np.finfo(np.float64).max
_FACTOR, _LEAST = 2.0**-53 * (1 + 2.0**-52), 2.0**-1074


def append_intervals(
    tail: Tail, centers: tuple[str, str], scale: str | None, below: Limits | None, above: Limits | None
) -> None:
    """Append the outputs `lower` and `upper`, float64, shape (n,).

    `centers` are the predictions that the ends are measured from, float64, shape (n,), `scale` their divisors; a side
    without a limit has no end.
    """
    usable = _within(tail, tail.node("Abs", centers[0]))
    if centers[1] != centers[0]:
        usable = tail.node("And", usable, _within(tail, tail.node("Abs", centers[1])))
    if scale is not None:
        positive = tail.node("Greater", scale, tail.constant(0.0))
        usable = tail.node("And", usable, tail.node("And", positive, _within(tail, scale)))
    low = None if below is None else _reach(tail, below, scale)
    high = low if above is below else None if above is None else _reach(tail, above, scale)
    sides = (("lower", "Sub", centers[0], low, -np.inf), ("upper", "Add", centers[1], high, np.inf))
    for name, op, center, reach, no_end in sides:
        end = tail.constant(no_end) if reach is None else tail.node(op, center, reach)
        tail.output(name, tail.node("Where", usable, end, tail.constant(no_end)), TensorProto.DOUBLE)


def _within(tail: Tail, tensor: str) -> str:
    """Whether numbers are finite; false for NaN."""
    return tail.node("LessOrEqual", tensor, tail.constant(_LARGEST))


def _reach(tail: Tail, limits: Limits, scale: str | None) -> str:
    with np.errstate(over="ignore"):
        reach = limits.tensor(tail, lambda threshold: np.nextafter(threshold, np.inf), "float64", column=False)
    if scale is None:
        return reach
    product = tail.node("Mul", reach, scale)
    least = tail.node("Min", scale, tail.constant(_LEAST))  # onnxruntime would leave out that constant's addition
    step = tail.node("Add", tail.node("Mul", product, tail.constant(_FACTOR)), least)
    return tail.node("Add", product, step)
