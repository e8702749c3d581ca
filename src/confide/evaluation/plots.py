"""Plots in one call, with matplotlib (the extra `plots`). Coverage plots use labels: not private."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from confide.arrays import as_vector
from confide.errors import InputError
from confide.evaluation.metrics import class_coverage
from confide.sets import PredictionSets
from confide.support import Level, needs_extra

_INK, _FILL, _BAD = "#1b3a57", "#7fa6c9", "#b5412c"
_MOST_BARS = 30


def plot_sizes(sets: PredictionSets, *, ax: Any = None) -> Any:
    """Bars: the share of records whose set has each size. Returns the matplotlib axes.

    Examples
    --------
    >>> axes = plot_sizes(PredictionSets(np.array([[True, False], [True, True]])))  # doctest: +SKIP
    """
    axes, sizes = _axes(ax), sets.sizes
    largest = int(sizes.max(initial=1))
    width = max(1, -(-(largest + 1) // (2 * _MOST_BARS)))
    starts = np.arange(0, largest + 1, width)
    share = np.bincount(sizes // width, minlength=len(starts)) / max(len(sizes), 1)
    axes.bar(starts + (width - 1) / 2, share, width=0.9 * width, color=_FILL, edgecolor=_INK, linewidth=0.6)
    axes.axvline(sizes.mean(), color=_INK, linestyle="--", linewidth=1.2, label=f"mean {sizes.mean():.2f}")
    axes.legend(frameon=False)
    axes.xaxis.get_major_locator().set_params(integer=True)
    title = f"Prediction-set sizes, {len(sizes):,} records"
    return _labelled(axes, "set size (number of classes)", "share of records", title)


def plot_coverage(
    sets: PredictionSets, labels: ArrayLike, *, level: float | None = None, confidence: Level = 0.95, ax: Any = None
) -> Any:
    """Points with exact intervals: coverage of each class; the worst 30 classes if there are more. Returns the axes.

    `level` draws the promised coverage as a line; classes whose whole interval lies below it are red.

    Examples
    --------
    >>> axes = plot_coverage(PredictionSets(np.array([[True, False]])), [0])  # doctest: +SKIP
    """
    table = class_coverage(sets, labels, confidence)
    chosen = np.flatnonzero(table.n > 0)
    shown = chosen
    if len(chosen) > _MOST_BARS:
        shown = np.sort(chosen[np.argsort(table.coverage[chosen], kind="stable")[:_MOST_BARS]])
    axes, place = _axes(ax), np.arange(len(shown))
    value, low, high = table.coverage[shown], table.low[shown], table.high[shown]
    colors = [_INK if level is None or top >= level else _BAD for top in high]
    for x, v, a, b, color in zip(place, value, low, high, colors, strict=True):
        axes.plot([x, x], [a, b], color=color, linewidth=1.6)
        axes.plot([x], [v], marker="o", markersize=4.5, color=color)
    if level is not None:
        axes.axhline(level, color=_INK, linestyle="--", linewidth=1, label=f"promised on average: {level:g}")
        axes.legend(loc="best", framealpha=0.85, edgecolor="none")
    axes.set_xticks(place, [str(table.names[i]) for i in shown], rotation=90 if len(shown) > 10 else 0)
    axes.set_ylim(top=1.01)
    some = "" if len(shown) == len(chosen) else f", the {len(shown)} least covered of {len(chosen)}"
    return _labelled(axes, "class", "coverage", f"Coverage by class{some}, {100 * table.confidence:g} % intervals")


def plot_intervals(
    feature: ArrayLike, lower: ArrayLike, upper: ArrayLike, targets: ArrayLike | None = None, *, ax: Any = None
) -> Any:
    """Prediction intervals along a feature, as a band of vertical lines, with targets as dots. Returns the axes.

    Parameters
    ----------
    feature, lower, upper
        Shape (n,) each.
    targets
        Shape (n,): drawn dark inside their interval and red outside.

    Examples
    --------
    >>> axes = plot_intervals([1, 2], [0, 1], [1, 2])  # doctest: +SKIP
    """
    x, low, high = (as_vector(n, v) for n, v in (("feature", feature), ("lower", lower), ("upper", upper)))
    if not len(x) == len(low) == len(high):
        raise InputError(f"feature, lower and upper must have one length; found {len(x)}, {len(low)} and {len(high)}")
    axes, order = _axes(ax), np.argsort(x, kind="stable")
    finite = np.isfinite(low) & np.isfinite(high)
    kept = order[finite[order]]
    axes.vlines(x[kept], low[kept], high[kept], color=_FILL, linewidth=1.2, alpha=0.45, label="interval")
    title = f"Prediction intervals, {len(x):,} records"
    if not finite.all():
        title += f" ({int((~finite).sum()):,} infinite ones left out)"
    if targets is not None:
        y = as_vector("targets", targets)
        inside = (low <= y) & (y <= high)
        axes.plot(x[inside], y[inside], ".", markersize=3, color=_INK, label="target inside")
        axes.plot(x[~inside], y[~inside], ".", markersize=4, color=_BAD, label="target outside")
        title += f", {inside.mean():.1%} inside"
    axes.legend(frameon=False)
    return _labelled(axes, "feature", "target", title)


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    with needs_extra("a plot", "plots"):
        import matplotlib.pyplot as plt
    return plt.subplots(figsize=(7, 4), layout="constrained")[1]


def _labelled(axes: Any, x: str, y: str, title: str) -> Any:
    axes.set(xlabel=x, ylabel=y, title=title)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return axes
