"""Shamir's secret sharing of vectors modulo P = 2**61 - 1: shares of a sum are sums of shares.

A value is the constant term of a random polynomial of degree below t; the share of opener i is the polynomial at i.
Any t shares give the value back, fewer are independent of it. Every coefficient is uniform, from the operating system's
secure source; products stay within 64 bits, so that no integer is ever rounded.
"""

import math
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Elements: TypeAlias = NDArray[np.uint64]
"""Integers below P, in whichever shape."""

BITS = 61
P = 2**BITS - 1
MOST_POINTS = 2**13
"""Points beyond would overflow `times`."""

_SPLIT = 32


class Opened(NamedTuple):
    """An opened vector, int64 in (-P/2, P/2), and the one opener whose share did not fit the others, or None."""

    values: NDArray[np.int64]
    wrong: int | None


class NotOnePolynomialError(ValueError):
    """Shares contradict each other, and not one alone."""


def reduce(a: Elements) -> Elements:
    """Modulo P, for a below 2**64 - 8.

    Examples
    --------
    >>> reduce(np.array([P - 1, P, P + 5], dtype=np.uint64)).tolist() == [P - 1, 0, 5]
    True
    """
    a = (a & np.uint64(P)) + (a >> np.uint64(BITS))
    return np.where(a >= np.uint64(P), a - np.uint64(P), a)


def add(a: Elements, b: Elements) -> Elements:
    """The sum modulo P."""
    return reduce(a + b)


def times(a: Elements, x: Elements) -> Elements:
    """The product modulo P, where x is at most 2**13.

    Examples
    --------
    >>> times(np.array([P - 1], dtype=np.uint64), np.array([5], dtype=np.uint64)).tolist() == [(P - 1) * 5 % P]
    True
    """
    rest = BITS - _SPLIT
    high = (a >> np.uint64(_SPLIT)) * x  # times 2**32: its upper part comes round as 2**61 = 1
    low = (a & np.uint64(2**_SPLIT - 1)) * x
    return reduce(((high & np.uint64(2**rest - 1)) << np.uint64(_SPLIT)) + (high >> np.uint64(rest)) + low)


def deal(values: NDArray[np.int64], openers: int, threshold: int) -> Elements:
    """Shares of values, int64 of shape (size,), for the points 1..openers: shape (openers, size). Cannot be seeded.

    Examples
    --------
    >>> shares = deal(np.array([7, -2]), openers=4, threshold=3)
    >>> combine({1: shares[0], 3: shares[2], 4: shares[3]}, threshold=3).values
    array([ 7, -2])
    """
    if not 2 <= threshold <= openers <= MOST_POINTS:
        raise ValueError(f"threshold must be from 2 to the number of openers, these at most {MOST_POINTS}")
    points = np.arange(1, openers + 1, dtype=np.uint64)[:, None]
    shares = np.zeros((openers, len(values)), dtype=np.uint64)
    for row in [*_uniform(threshold - 1, len(values)), (values % P).astype(np.uint64)]:
        shares = reduce(times(shares, points) + row)
    return shares


def combine(shares: Mapping[int, Elements], threshold: int) -> Opened:
    """The values from the shares by point: `threshold` of them open, every further one is a check.

    With two more than `threshold`, one share that does not fit is left out and named.

    Raises
    ------
    NotOnePolynomialError
        If they lie on no polynomial of that degree, and no single one can be told to be wrong.
    """
    points = sorted(shares)
    if len(points) < threshold:
        raise ValueError("shares must number at least threshold")
    wrong = None
    if (where := _misfit(shares, points, threshold)) is not None:
        there = {point: shares[point][where : where + 1] for point in points}
        left = {point: [other for other in points if other != point] for point in points}
        enough = len(points) >= threshold + 2
        suspects = [point for point in points if enough and _misfit(there, left[point], threshold) is None]
        if len(suspects) != 1 or _misfit(shares, left[suspects[0]], threshold) is not None:
            raise NotOnePolynomialError("shares do not lie on one polynomial")
        wrong = suspects[0]
        points = left[wrong]
    total = _at(shares, points[:threshold], 0)
    return Opened(np.where(total > P // 2, total - P, total).astype(np.int64), wrong)


def _misfit(shares: Mapping[int, Elements], points: Sequence[int], threshold: int) -> int | None:
    """The first place at which the shares at these points contradict each other, or None."""
    for point in points[threshold:]:
        differs = _at(shares, points[:threshold], point) != shares[point].astype(object)
        if differs.any():
            return int(np.argmax(differs))
    return None


def _at(shares: Mapping[int, Elements], points: Sequence[int], x: int) -> NDArray[Any]:
    """The polynomial through the shares at these points, at x: Lagrange's formula in exact integers."""
    total: NDArray[Any] = np.zeros(len(shares[points[0]]), dtype=object)
    for p in points:
        others = [q for q in points if q != p]
        weight = math.prod(x - q for q in others) * pow(math.prod(p - q for q in others), -1, P) % P
        total = (total + weight * shares[p].astype(object)) % P
    return total


def _uniform(rows: int, size: int) -> Elements:
    """Independent uniform integers below P."""
    while True:
        drawn: Elements = np.frombuffer(secrets.token_bytes(8 * rows * size), dtype="<u8") & np.uint64(P)
        if not (drawn == np.uint64(P)).any():  # P itself, one in 2**61, would be zero once more: all are drawn again
            return drawn.reshape(rows, size)
