"""How large sets are."""

from typing import Any

import numpy as np

from confide.errors import InputError, InputTypeError
from confide.sets import PredictionSets
from confide.support import FILL, INK, axes_of, labelled

_MOST_BARS = 60


def plot_sizes(sets: PredictionSets, *, ax: Any = None) -> Any:
    """Bars: the share of records whose set has each size. Returns the axes.

    This is **not private** where the records of the sets are not public: their sizes are counted without noise.

    Parameters
    ----------
    sets
        Prediction sets of at least one record.
    ax
        Matplotlib axes to draw on; by default those of a new figure.

    Raises
    ------
    InputError, InputTypeError
        If there are no sets, or it is something else.

    Examples
    --------
    >>> axes = plot_sizes(PredictionSets(np.array([[True, False], [True, True]])))  # doctest: +SKIP
    """
    if not isinstance(sets, PredictionSets):
        raise InputTypeError(f"sets must be PredictionSets; found {type(sets).__name__}")
    sizes = sets.sizes
    if not len(sizes):
        raise InputError("sets must hold a record; found none")
    axes, largest = axes_of(ax), int(sizes.max(initial=1))
    width = max(1, -(-(largest + 1) // _MOST_BARS))
    starts = np.arange(0, largest + 1, width)
    share = np.bincount(sizes // width, minlength=len(starts)) / len(sizes)
    axes.bar(starts + (width - 1) / 2, share, width=0.9 * width, color=FILL, edgecolor=INK, linewidth=0.6)
    axes.axvline(sizes.mean(), color=INK, linestyle="--", linewidth=1.2, label=f"mean {sizes.mean():.2f}")
    axes.legend(frameon=False)
    axes.xaxis.get_major_locator().set_params(integer=True)
    title = f"Prediction-set sizes, {len(sizes):,} records"
    return labelled(axes, "set size (number of classes)", "share of records", title)
