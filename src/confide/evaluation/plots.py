"""Plots in one call, with matplotlib (the extra `plots`). Coverage plots use labels: not private."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from confide.arrays import as_vector
from confide.errors import InputError
from confide.evaluation.metrics import class_coverage, exact_interval
from confide.guarantee import coverage_text
from confide.sets import PredictionSets
from confide.support import Level, needs_extra

_INK, _FILL, _BAD = "#1b3a57", "#7fa6c9", "#b5412c"
_MOST_BARS = 30
_MOST_LETTERS = 40


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
    """Points with exact intervals: the coverage of each class, or of the worst 30 if there are more. Returns the axes.

    A line shows `level`, by default what the calibration of the sets promises on average. Classes that are surely below
    it, looked at all together, are red triangles.

    Examples
    --------
    >>> axes = plot_coverage(PredictionSets(np.array([[True, False]])), [0])  # doctest: +SKIP
    """
    table = class_coverage(sets, labels, confidence)
    level = sets.promised if level is None else level
    chosen = np.flatnonzero(table.n > 0)
    shown = chosen[np.argsort(table.coverage[chosen], kind="stable")]
    if len(chosen) <= _MOST_BARS:
        shown = np.sort(shown)
    shown = shown[:_MOST_BARS]
    _, tops = exact_interval(table.hits[chosen], table.n[chosen], 1 - (1 - table.confidence) / max(len(chosen), 1))
    short = np.zeros(len(table.n), dtype=np.bool_)
    short[chosen] = False if level is None else tops < level
    axes = _axes(ax, height=1.6 + 0.28 * len(shown))
    for below, color, marker in ((False, _INK, "o"), (True, _BAD, "v")):
        place = np.flatnonzero(short[shown] == below)
        own = shown[place]
        label = "surely below it" if below and place.size else None
        axes.hlines(place, table.low[own], table.high[own], color=color, linewidth=1.6)
        axes.plot(table.coverage[own], place, marker, markersize=6 if below else 4.5, color=color, label=label)
    if level is not None:
        axes.axvline(
            level, color=_INK, linestyle="--", linewidth=1, label=f"promised on average: {coverage_text(level)}"
        )
        axes.legend(
            loc="upper center", bbox_to_anchor=(0.5, -0.18 * 4 / axes.figure.get_figheight()), ncols=2, frameon=False
        )
    axes.set_yticks(range(len(shown)), [_short(str(table.names[i])) for i in shown])
    axes.set_ylim(len(shown) - 0.5, -0.5)
    axes.set_xlim(right=1.01)
    some = "" if len(shown) == len(chosen) else f", the {len(shown)} least covered of {len(chosen)}"
    return _labelled(axes, "coverage", "class", f"Coverage by class{some}, {100 * table.confidence:g} % intervals")


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


def _short(name: str) -> str:
    return name if len(name) <= _MOST_LETTERS else f"{name[: _MOST_LETTERS - 1]}…"


def _axes(ax: Any, height: float = 4.0) -> Any:
    if ax is not None:
        return ax
    with needs_extra("a plot", "plots"):
        import matplotlib.pyplot as plt
    return plt.subplots(figsize=(7, height), layout="constrained")[1]


def _labelled(axes: Any, x: str, y: str, title: str) -> Any:
    axes.set(xlabel=x, ylabel=y, title=title)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return axes
