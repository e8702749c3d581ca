"""Sizes of prediction sets."""

from __future__ import annotations

from typing import Any

import numpy as np

from confide.errors import InputTypeError
from confide.sets import PredictionSets
from confide.support import FILL, INK, axes_of, labelled, require

# Most bars of a picture
_MOST_BARS = 60


def plot_sizes(sets: PredictionSets, *, ax: Any = None) -> Any:
    """Plot the share of records with each set size as bars. Returns the axes.

    The picture is **not private** unless the records of the sets are public: sizes are counted without noise.

    Parameters
    ----------
    sets
        Prediction sets of at least one record.
    ax
        Matplotlib axes to draw on; by default those of a new figure.

    Raises
    ------
    InputError, InputTypeError
        If there are no sets, or `sets` has another type.

    Examples
    --------
    >>> axes = plot_sizes(PredictionSets(np.array([[True, False], [True, True]])))  # doctest: +SKIP
    """
    if not isinstance(sets, PredictionSets):
        raise InputTypeError("sets", "must be PredictionSets", type(sets).__name__)
    sizes = sets.sizes
    require("sets", len(sizes), "must contain a record", "none")

    # Many sizes share a bar.
    axes = axes_of(ax)
    largest = int(sizes.max(initial=1))
    width = max(1, -(-(largest + 1) // _MOST_BARS))
    starts = np.arange(0, largest + 1, width)
    share = np.bincount(sizes // width, minlength=len(starts)) / len(sizes)

    # The bars, and the mean.
    axes.bar(starts + (width - 1) / 2, share, width=0.9 * width, color=FILL, edgecolor=INK, linewidth=0.6)
    axes.axvline(sizes.mean(), color=INK, linestyle="--", linewidth=1.2, label=f"mean {sizes.mean():.2f}")
    axes.legend(frameon=False)
    axes.xaxis.get_major_locator().set_params(integer=True)
    title = f"Prediction-set sizes, {len(sizes):,} records"
    return labelled(axes, "set size (number of classes)", "share of records", title)
