"""The draws of releases by OpenDP's samplers, and the exact law of the exponential mechanism.

All draws come from one value: `Draws`, by default OpenDP's samplers, which cannot be seeded. No argument, file or
environment variable replaces it. Tests do, by a private function, for the thread that calls it: a `threading.local`,
because a release in another thread must never see it, and new threads can inherit a `ContextVar`.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.arrays import fresh_uniforms
from confide.support import require_extra

# OpenDP's features are global, so one thread must not switch them off while another builds. `opendp.prelude` is not
# imported: it imports scikit-learn and polars if they are installed, which takes over a second.
_FEATURES = threading.Lock()


def check_sampler() -> None:
    """Raise an error if OpenDP is not installed, before a budget is charged. Applying releases does not need OpenDP."""
    require_extra("drawing a release", None, "opendp")


def with_contrib(build: Callable[[], Any]) -> Any:
    """Build with OpenDP's `contrib` feature on, then restore the previous state."""
    from opendp.mod import GLOBAL_FEATURES, disable_features, enable_features

    with _FEATURES:
        had = "contrib" in GLOBAL_FEATURES
        enable_features("contrib")
        try:
            return build()
        finally:
            if not had:
                disable_features("contrib")


@lru_cache(maxsize=128)
def noisy_max(scale: float) -> Any:
    """OpenDP's measurement: the index of the largest utility, int64 of shape (m,), after noise of this scale."""
    check_sampler()
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_noisy_max
    from opendp.measures import zero_concentrated_divergence
    from opendp.metrics import linf_distance

    metric = linf_distance(T="i64")
    domain = vector_domain(atom_domain(T="i64"))
    return with_contrib(lambda: make_noisy_max(domain, metric, zero_concentrated_divergence(), scale=scale))


@lru_cache(maxsize=64)
def laplace(scale: float) -> Any:
    """OpenDP's measurement: counts, int64 of shape (m,), plus discrete Laplace noise of this scale."""
    check_sampler()
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_laplace
    from opendp.metrics import l1_distance

    domain = vector_domain(atom_domain(T="i64"))
    metric = l1_distance(T="i64")
    return with_contrib(lambda: make_laplace(domain, metric, scale=scale))


@dataclass(frozen=True)
class Draws:
    """How a release draws. The functions of this module with the same names state the laws."""

    select: Callable[[NDArray[np.int64], float], int]
    noisy_counts: Callable[[NDArray[np.int64], float], NDArray[np.int64]]
    noisy_number: Callable[[int, float], int]
    uniforms: Callable[[int], NDArray[np.float64]]


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


# The exponential mechanism (McSherry and Talwar 2007). The law of the index j depends only on (u_j - max u)/scale. So
# the privacy loss is the *range distance* of neighbouring utility vectors, max_ij |(u_i - u'_i) - (u_j - u'_j)|,
# divided by the scale: Lemma P2 of docs/theory.md. OpenDP's sampler is assumed to draw an index with the stated law.
# Its privacy map is not used. That map starts from the largest change of one utility, and certifies twice that, divided
# by the scale, for utilities that move in both directions, as these do.


def selection_law(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """The exact law over candidates with weights exp((u_j - max u)/scale): w_j / sum w. Shape (m,), float64."""
    law: NDArray[np.float64] = weights / weights.sum()
    return law
