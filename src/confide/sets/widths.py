"""Intervals that are far wider than the predictions are spread: they tell nothing, though the promise holds.

A calibration cannot know how large targets are. Where it is applied, the new predictions tell: no privacy is involved.
"""

import math
import warnings

import numpy as np
from numpy.typing import NDArray

from confide.errors import CoverageWarning
from confide.support import outside

_FEWEST, _FIRST, _WIDE = 10, 1000, 20.0
"""Fewer predictions are not taken to show how they are spread; a model that explains a thousandth of the variance has
intervals that are twenty times as wide as its predictions are spread."""


def warn_of_widths(records: int, width: float, least: float, most: float) -> None:
    """Say that intervals tell nothing, if they do: `width` is that of the narrowest, the rest is of the predictions.

    Equal predictions, and infinite intervals, of which the release tells already, are passed over.

    Examples
    --------
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_of_widths(1000, 3e10, 0.0, 300.0)
    ...     warn_of_widths(1000, 200.0, 0.0, 300.0)
    >>> print(*(one.message for one in caught))
    the intervals are at least 1e+08 times as wide as the predictions are spread, from the least to the largest: ...
    """
    spread = most - least
    if records < _FEWEST or not math.isfinite(width) or not 0 < spread < math.inf or width <= _WIDE * spread:
        return
    times = width / spread
    often = f"{times:.0f}" if times < 1e5 else f"{times:.0e}"
    warnings.warn(
        f"the intervals are at least {often} times as wide as the predictions are spread, from the least to the "
        "largest: they tell next to nothing. Either too few records calibrated, or the model's predictions hardly "
        "differ",
        CoverageWarning,
        stacklevel=outside(),
    )


def warn_of_intervals(predictions: NDArray[np.float64], lower: NDArray[np.float64], upper: NDArray[np.float64]) -> None:
    """The same of arrays: predictions of shape (n,), or (n, 2) with quantiles, and the ends of their intervals.

    Where the first records have an interval that is not so wide beside their predictions, all of them have: with more
    records the narrowest interval is no wider, and predictions are spread no less.
    """
    for records in (slice(_FIRST), slice(None)) if len(predictions) > _FIRST else (slice(None),):
        centres = predictions[records] if predictions.ndim == 1 else predictions[records].mean(axis=1)
        if not len(centres):
            return
        with np.errstate(invalid="ignore", over="ignore"):
            width = float((upper[records] - lower[records]).min())
        least, most = float(centres.min()), float(centres.max())
        if width <= _WIDE * (most - least):
            return
    warn_of_widths(len(centres), width, least, most)
