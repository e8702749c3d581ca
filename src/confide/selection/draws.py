"""The draws of releases, all from one value: `Draws`, by default OpenDP's samplers, which cannot be seeded.

No argument, file or environment variable replaces it. Tests do, by a private function, for the thread that calls it: a
`threading.local`, because a release in another thread must never see it, and new threads can inherit a `ContextVar`.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.arrays import fresh_uniforms
from confide.selection.selector import laplace, noisy_max


@dataclass(frozen=True)
class Draws:
    """How a release draws. The functions of this module with the same names state the laws."""

    select: Callable[[NDArray[np.int64], float], int]
    noisy_counts: Callable[[NDArray[np.int64], float], NDArray[np.int64]]
    noisy_number: Callable[[int, float], int]
    uniforms: Callable[[int], NDArray[np.float64]]


def select(utilities: NDArray[np.int64], scale: float) -> int:
    """Draw one index by the exponential mechanism: index j has a probability proportional to exp(u_j/scale).

    Utilities are int64 of shape (m,), larger is better; scale is in their units; the loss is (range distance)/scale.

    Examples
    --------
    >>> select(np.array([-1000, 0, -1000]), 1.0)
    1
    """
    return _thread.draws.select(np.ascontiguousarray(utilities, dtype=np.int64), scale)


def noisy_counts(counts: NDArray[np.int64], scale: float) -> NDArray[np.int64]:
    """Counts, int64 of shape (m,), plus independent noise, P(z) proportional to exp(-abs(z)/scale).

    The loss is (L1 distance of neighbouring counts)/scale.
    """
    return _thread.draws.noisy_counts(np.array(counts, dtype=np.int64), scale)


def noisy_number(n: int, scale: float) -> int:
    """A number of records plus noise of the law of `noisy_counts`; the loss of one record is 1/scale."""
    return _thread.draws.noisy_number(n, scale)


def uniforms(n: int) -> NDArray[np.float64]:
    """Numbers in [0, 1), float64 of shape (n,), which divide records by coins."""
    return _thread.draws.uniforms(n)


_SECURE = Draws(
    select=lambda utilities, scale: int(noisy_max(scale)(utilities)),
    noisy_counts=lambda counts, scale: np.asarray(laplace(scale)(counts), dtype=np.int64),
    noisy_number=lambda n, scale: int(laplace(scale)(np.array([n]))[0]),
    uniforms=fresh_uniforms,
)


class _Thread(threading.local):
    draws = _SECURE


_thread = _Thread()


@contextmanager
def _drawing_with(**functions: Any) -> Iterator[None]:
    """Replace some functions of `Draws` in this thread. For tests alone: what is released then is not private."""
    before = _thread.draws
    _thread.draws = replace(before, **functions)
    try:
        yield
    finally:
        _thread.draws = before
