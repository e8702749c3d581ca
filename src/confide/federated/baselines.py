"""Two baselines of the federated methods: the mean of the silos' quantiles, and all scores in one place.

Humbert, Le Bars, Bellet and Arlot, "One-shot federated conformal prediction", ICML 2023, compare with both.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from confide.arrays import as_vector
from confide.support import Level, exact_level


def conformal_quantile(scores: ArrayLike, alpha: Level) -> float:
    """The ceil((n+1)(1-alpha))-th smallest score, +inf if there are too few.

    Examples
    --------
    >>> conformal_quantile([0.3, 0.1, 0.2], 0.5)
    0.2
    """
    array = as_vector("scores", scores)
    rank = math.ceil((1 - exact_level("alpha", alpha)) * (len(array) + 1))
    return float(np.sort(array)[rank - 1]) if rank <= len(array) else math.inf


def average_threshold(silos: Sequence[ArrayLike], alpha: Level) -> float:
    """FedCP-Avg: the mean of the silos' conformal quantiles. No guarantee.

    Examples
    --------
    >>> round(average_threshold([[1.0, 2.0, 3.0], [5.0, 6.0, 7.0]], 0.5), 6)
    4.0
    """
    return float(np.mean([conformal_quantile(scores, alpha) for scores in silos]))


def centralised_threshold(silos: Sequence[ArrayLike], alpha: Level) -> float:
    """Split conformal prediction on the pooled scores: what could be done if data could be pooled.

    Examples
    --------
    >>> centralised_threshold([[1.0, 2.0, 3.0], [5.0, 6.0, 7.0]], 0.5)
    5.0
    """
    return conformal_quantile(np.concatenate([as_vector("scores", scores) for scores in silos]), alpha)
