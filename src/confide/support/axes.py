"""Common parts of all plots: new axes, their labels, and colours that also differ in lightness."""

from collections.abc import Sequence
from typing import Any

from confide.support.installed import needs_extra

# Colours of lines and texts, of areas, of what falls short, and of what is guaranteed
INK = "#1b3a57"
FILL = "#7fa6c9"
BAD = "#b5412c"
PROMISE = "#6b4a00"

# Markers of lines, in their order
MARKERS = "osD^vP*Xph"

# Names along an axis, and their characters, up to which they are legible without a slope
MOST_TICKS = 12
MOST_CHARACTERS = 60

# How points are drawn that are as promised, and those that fall short: arguments of `axes.plot`
AS_PROMISED: dict[str, Any] = {"color": INK, "marker": "o", "markersize": 4.5, "linestyle": "none"}
BELOW: dict[str, Any] = {"color": BAD, "marker": "v", "markersize": 7, "linestyle": "none"}


def axes_of(ax: Any, width: float = 7.0, height: float = 4.0) -> Any:
    """The given axes, or those of a new figure, with sizes in inches."""
    if ax is not None:
        return ax
    with needs_extra("a plot", "plots"):
        import matplotlib.pyplot as plt
    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def labelled(axes: Any, x: str, y: str, title: str) -> Any:
    """Label axes, and remove lines that frame nothing."""
    axes.set(xlabel=x, ylabel=y)
    axes.set_title(title, parse_math=False)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return axes


def named_ticks(axes: Any, names: Sequence[str]) -> None:
    """Label positions 0, 1, ... along the x axis with names, as many as are legible."""
    step = -(-len(names) // MOST_TICKS)
    axes.set_xticks(range(0, len(names), step), names[::step], parse_math=False)
    if max(map(len, names)) * len(names[::step]) > MOST_CHARACTERS:
        axes.tick_params(axis="x", rotation=30)
        for label in axes.get_xticklabels():
            label.set(ha="right", rotation_mode="anchor")


def promise_line(axes: Any, level: float, words: str, *, upright: bool = False) -> None:
    """Draw a dashed line at a level."""
    line = axes.axvline if upright else axes.axhline
    line(level, color=PROMISE, linestyle="--", linewidth=1.2, label=words, zorder=1)


def legend(axes: Any, ax: Any, *, columns: int = 2, above: bool = False) -> Any:
    """Add a legend: outside the axes of a new figure, where it hides nothing, or inside given axes."""
    if ax is not None:
        return axes.legend(frameon=False)
    where = "outside upper center" if above else "outside lower center"
    return axes.figure.legend(loc=where, ncols=columns, frameon=False)
