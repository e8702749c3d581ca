"""Integrals over [0, 1] by Gauss-Legendre nodes: of nondecreasing curves, and of curves with kinks."""

from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputTypeError

Curve: TypeAlias = Callable[[NDArray[np.float64]], NDArray[np.float64]]

# Tolerances of integrals: of smooth curves, and of the largest of several curves, which has kinks
SMOOTH = 1e-14
KINKED = 1e-10


def integral(curve: Curve, tolerance: float = SMOOTH) -> float:
    """The integral over [0, 1] of a nondecreasing curve, to about ten times `tolerance`.

    Examples
    --------
    >>> round(integral(lambda t: t**40), 15) == round(1 / 41, 15)
    True
    """
    # Where the curve is flat, at its first and last value, it needs no nodes
    low, high, bottom, top = _steep(curve)
    return low * bottom + (1 - high) * top + _halved(curve, np.linspace(low, high, 3), tolerance)


# Change of a curve below which it counts as flat
_FLAT = 1e-16


def _steep(curve: Curve) -> tuple[float, float, float, float]:
    """The interval outside of which a nondecreasing curve is flat, and the curve's values at 0 and at 1."""
    grid = np.linspace(0.0, 1.0, 33)
    values = curve(grid)
    bottom, top = float(values[0]), float(values[-1])
    while True:
        # From the last point with the value at 0 to the first point with the value at 1
        at_bottom = int(np.sum(values <= bottom + _FLAT))
        at_top = int(np.sum(values >= top - _FLAT))
        low = float(grid[max(at_bottom - 1, 0)])
        high = float(grid[min(len(grid) - at_top, len(grid) - 1)])
        # A grid over this interval is much finer, unless the interval is more than half of the present grid
        if high - low > (grid[-1] - grid[0]) / 2 or high <= low:
            return low, max(high, low), bottom, top
        grid = np.linspace(low, high, 25)
        values = curve(grid)


def expectation(curve: Curve, tolerance: float = SMOOTH) -> float:
    """The integral over [0, 1] of any curve that is smooth except for a few kinks, by halving of panels.

    Raises
    ------
    InputTypeError
        If the curve is not a function of an array of numbers from 0 to 1.

    Examples
    --------
    >>> round(expectation(lambda t: np.abs(t - 0.3)), 13)
    0.29
    """
    if not callable(curve):
        raise InputTypeError(
            "curve",
            "must be a function of an array of numbers from 0 to 1",
            got=type(curve).__name__,
            remedy="`print(plan)` shows the coverage of a plan",
        )
    return _halved(curve, np.linspace(0.0, 1.0, 17), tolerance)


_MOST_HALVINGS = 40


def _halved(curve: Curve, edges: NDArray[np.float64], tolerance: float) -> float:
    """The integral by panels of 32 Gauss-Legendre nodes, exact for polynomials of degree up to 63."""
    x, w = gauss_legendre(32)

    def panels(left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
        nodes = left[:, None] + (right - left)[:, None] * x[None, :]
        values = curve(nodes.ravel()).reshape(len(left), -1)
        return (right - left) * (values @ w)

    total = 0.0
    left, right = edges[:-1], edges[1:]
    whole = panels(left, right)
    for _ in range(_MOST_HALVINGS):
        # A panel is done if its halves have the same sum
        middle = (left + right) / 2
        first, second = panels(left, middle), panels(middle, right)
        rough = np.abs(first + second - whole) > tolerance
        total += float((first + second)[~rough].sum())
        if not rough.any():
            return total
        # The halves of all others are the next panels
        left = np.concatenate([left[rough], middle[rough]])
        right = np.concatenate([middle[rough], right[rough]])
        whole = np.concatenate([first[rough], second[rough]])
    return total + float(whole.sum())


@lru_cache(maxsize=4)
def gauss_legendre(size: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Gauss-Legendre nodes and weights on [0, 1]."""
    x, w = np.polynomial.legendre.leggauss(size)
    return (x + 1) / 2, w / 2


@lru_cache(maxsize=16)
def nodes_around(level: float, each: int = 4) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Nodes and weights for integrals over [0, 1] of curves that increase near the level."""
    # Panels whose widths double with their distance from the level
    away = 2.0 ** np.arange(12) * 2e-4
    edges = np.unique(np.clip(np.concatenate([[0.0], level - away, [level], level + away, [1.0]]), 0, 1))
    x, w = gauss_legendre(each)
    widths = np.diff(edges)[:, None]
    return (edges[:-1, None] + widths * x).ravel(), (widths * w).ravel()
