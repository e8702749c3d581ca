"""Intervals along the prediction, or along any feature, and the targets outside them."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from confide.arrays import as_vector
from confide.errors import InputError
from confide.sets import PredictionIntervals, draw_intervals


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
        The coverage that was promised, for the title; by default what `PredictionIntervals` know of it.
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
        level = ends.promised if level is None else level
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
    return draw_intervals(x, low, high, y, level=level, name=name, ax=ax)
