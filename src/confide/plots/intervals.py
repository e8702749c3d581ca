"""Intervals along the prediction, or along any feature, and the targets outside them."""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from confide.arrays import as_vector
from confide.errors import InputError
from confide.guarantee import coverage_text
from confide.plots.axes import BAD, FILL, INK, axes_of, labelled, legend
from confide.sets import PredictionIntervals

_FEW = 300
"""Of so many records every line and dot is drawn at full strength; of more, thinner and paler."""


def plot_intervals(
    feature: ArrayLike,
    lower: ArrayLike | PredictionIntervals,
    upper: ArrayLike | None = None,
    targets: ArrayLike | None = None,
    *,
    level: float | None = None,
    name: str = "prediction",
    ax: Any = None,
) -> Any:
    """Prediction intervals along the prediction, or along a feature, with targets as dots. Returns the axes.

    Targets outside their interval are red crosses above everything else, so that they are seen among thousands. This is
    **not private**: every record is drawn as it is.

    Parameters
    ----------
    feature
        Where each record lies, shape (n,): usually its prediction.
    lower, upper
        Ends of the intervals, shape (n,) each; or `PredictionIntervals` as `lower` alone.
    targets
        True values, shape (n,).
    level
        The coverage that was promised, for the title.
    name
        What the feature is called.
    ax
        Matplotlib axes to draw on; by default those of a new figure.

    Raises
    ------
    InputError, InputTypeError
        If there are no records, or lengths differ.

    Examples
    --------
    >>> axes = plot_intervals([1, 2], [0, 1], [1, 2])  # doctest: +SKIP
    """
    if isinstance(lower, PredictionIntervals):
        if upper is not None:
            raise InputError("upper must be left out where lower is PredictionIntervals; name targets=")
        ends = lower
        lower, upper = ends.lower, ends.upper
    if upper is None:
        raise InputError("upper must be given, or PredictionIntervals as lower")
    x, low, high = (as_vector(n, v) for n, v in (("feature", feature), ("lower", lower), ("upper", upper)))
    y = None if targets is None else as_vector("targets", targets)
    if len({len(v) for v in (x, low, high, x if y is None else y)}) > 1:
        also = "" if y is None else f", targets {len(y)}"
        raise InputError(
            f"feature, lower and upper must have one length, and targets, too; found {len(x)}, {len(low)} and "
            f"{len(high)}{also}"
        )
    axes, finite = axes_of(ax), np.isfinite(low) & np.isfinite(high) & (low <= high)
    many = math.sqrt(min(1.0, _FEW / len(x)))
    whole = {"rasterized": len(x) > 2000}
    axes.vlines(
        x[finite], low[finite], high[finite], color=FILL, linewidth=0.5 + 0.9 * many, alpha=0.08 + 0.5 * many,
        label="interval", **whole,
    )  # fmt: skip
    title = f"Prediction intervals, {len(x):,} records{_left_out(low, high)}\n"
    if y is not None:
        inside = (low <= y) & (y <= high)
        axes.plot(x[inside], y[inside], ".", markersize=1.5 + 3 * many, color=INK, alpha=0.25 + 0.6 * many,
                  label=f"{inside.sum():,} targets inside", **whole)  # fmt: skip
        axes.plot(x[~inside], y[~inside], "x", markersize=3 + 2.5 * many, markeredgewidth=0.6 + 0.7 * many, color=BAD,
                  label=f"{(~inside).sum():,} targets outside", zorder=3, **whole)  # fmt: skip
        title += f"{inside.mean():.1%} inside"
    if level is not None:
        title += f"{', ' if y is not None else ''}promised on average: {coverage_text(level)}"
    for handle in legend(axes, ax, columns=3).legend_handles:
        handle.set(alpha=1, linewidth=3)
    return labelled(axes, name, "target", title.rstrip("\n"))


def _left_out(low: np.ndarray, high: np.ndarray) -> str:
    """What has no line: intervals without end, and empty ones."""
    endless = int((np.isinf(low) | np.isinf(high)).sum())
    empty = int((low > high).sum())
    told = [f"{count:,} {what}" for count, what in ((endless, "infinite"), (empty, "empty")) if count]
    return f" ({' and '.join(told)} ones not drawn)" if told else ""
