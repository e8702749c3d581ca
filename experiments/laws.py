"""Exact output laws of the mechanisms, so that tables can average over the privacy noise, and draws from them.

Noisy histograms have no closed law here: their noise is simulated with a NumPy generator. For experiments only; a
release draws its noise from OpenDP.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.guarantee import chosen_by_last_rule
from confide.mechanisms import SplitConformal
from confide.mechanisms.noisy_histogram import NoisyHistogram
from confide.mechanisms.opendp_quantile import OpenDPQuantile
from confide.mechanisms.pps import PpsOfSecretSize, PrivatePredictionSets
from confide.mechanisms.pps_laplace import LaplaceHistogram
from confide.mechanisms.slopes import Slopes
from confide.selection import selection_law

NOISY = (NoisyHistogram, LaplaceHistogram)
_NEGLIGIBLE = 1e-16


def law(mechanism: Any, counts: NDArray[np.int64], rng: np.random.Generator, draws: int = 20) -> NDArray[np.float64]:
    """P(candidate j is selected), shape (m,); without a mechanism the last candidate, +inf, is."""
    m = len(counts)
    if mechanism is None:
        return _certain(m, m - 1)
    if isinstance(mechanism, SplitConformal):
        return _certain(m, mechanism.choose(counts))
    if not isinstance(mechanism, NOISY):
        utility = _utility(mechanism, counts)
        weights = np.exp(utility - utility.max())
        keep = weights > _NEGLIGIBLE
        p = np.zeros(m)
        p[keep] = selection_law(weights[keep])
        return p
    chosen = _noisy_choices(mechanism, counts, rng, draws)
    return np.bincount(chosen, minlength=m) / draws


def draw(mechanism: Any, counts: NDArray[np.int64], rng: np.random.Generator) -> int:
    """One candidate from the mechanism's law, without computing the law."""
    if mechanism is None:
        return len(counts) - 1
    if isinstance(mechanism, SplitConformal):
        return mechanism.choose(counts)
    if isinstance(mechanism, NOISY):
        return int(_noisy_choices(mechanism, counts, rng, 1)[0])
    utility = _utility(mechanism, counts)
    cumulative = np.cumsum(np.exp(utility - utility.max()))
    return int(min(np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right"), len(counts) - 1))


def _utility(mechanism: Any, counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Utilities over the noise scale."""
    if isinstance(mechanism, Slopes):
        return mechanism.utilities(counts) / mechanism.scale
    if isinstance(mechanism, PrivatePredictionSets | PpsOfSecretSize):
        return mechanism.utilities(counts) / mechanism.scale
    if isinstance(mechanism, OpenDPQuantile):
        below, level = np.cumsum(counts) - counts, float(mechanism.level)
        above = counts.sum() - np.cumsum(counts)
        return -np.abs((1 - level) * below - level * above) / mechanism.scale
    raise TypeError(f"no law is known for {type(mechanism).__name__}")


def _certain(m: int, index: int) -> NDArray[np.float64]:
    p = np.zeros(m)
    p[index] = 1.0
    return p


def _noisy_choices(
    mechanism: NoisyHistogram | LaplaceHistogram, counts: NDArray[np.int64], rng: np.random.Generator, draws: int
) -> NDArray[np.int64]:
    """The index by the mechanism's rule for each of `draws` noisy copies of the counts."""
    n, size = int(counts.sum()), (draws, len(counts))
    if isinstance(mechanism, NoisyHistogram):
        p = -math.expm1(-1 / mechanism.scale)
        return chosen_by_last_rule(counts + rng.geometric(p, size) - rng.geometric(p, size), mechanism.beyond)
    noisy = counts + rng.laplace(scale=mechanism.scale, size=size)
    beyond = noisy.sum(axis=1, keepdims=True) - np.cumsum(noisy, axis=1)
    reached = n - beyond >= float(mechanism.level) * n - 1e-9
    reached[:, -1] = True
    return np.argmax(reached, axis=1)
