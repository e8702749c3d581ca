"""The course of thresholds along a chain of releases. Only released numbers are drawn."""

import math
from collections.abc import Sequence
from typing import Any

from confide.errors import InputError, InputTypeError
from confide.releases import Release, predecessors_of
from confide.support import BAD, INK, axes_of, labelled, legend, named_ticks

_MOST_LINES, _MARKS = 10, "osD^vP*Xph"


def plot_thresholds(releases: Release | Sequence[Release], *, ax: Any = None) -> Any:
    """Thresholds over time: a line for each threshold of a release, oldest release first. Returns the axes.

    Thresholds of +inf are red triangles at the upper edge. Only released numbers are drawn, which anybody may see.

    Parameters
    ----------
    releases
        A release that renews others, whose line is drawn with it; or releases one after the other, each with the same
        parts. Of more than ten parts the first ten are drawn.
    ax
        Matplotlib axes to draw on; by default those of a new figure.

    Raises
    ------
    InputError, InputTypeError
        If there is nothing to draw, or releases have different parts.

    Examples
    --------
    >>> axes = plot_thresholds(confide.recalibrate(january, scores))  # doctest: +SKIP
    """
    made = [releases] if isinstance(releases, Release) else list(releases)
    if not made or not all(isinstance(one, Release) for one in made):
        raise InputTypeError("releases must be a release with thresholds, or a sequence of them")
    first, names = made[0], list(made[0].named)
    if any(list(one.named) != names for one in made):
        raise InputError("releases must have the same parts, one like the other")
    line = predecessors_of(first)
    dates = [*(one.date for one in line), *(one.first.about.get("date") for one in made)]
    called = [date or f"number {place}" for place, date in enumerate(dates, start=1)]
    values = {}
    for name in names[:_MOST_LINES]:
        earlier = first.named[name].predecessors
        values[name] = [*(one.threshold for one in earlier), *(one.named[name].threshold for one in made)]
    axes, x = axes_of(ax), range(len(called))
    for place, (name, course) in enumerate(values.items()):
        finite = [value if math.isfinite(value) else math.nan for value in course]
        axes.plot(x, finite, marker=_MARKS[place], markersize=5, linewidth=1.4, color=f"C{place}" if name else INK,
                  label=name or "threshold")  # fmt: skip
    endless = [i for i in x if any(math.isinf(course[i]) for course in values.values())]
    if endless:
        axes.plot(endless, [0.97] * len(endless), "^", markersize=8, color=BAD, linestyle="none", label="+∞",
                  transform=axes.get_xaxis_transform())  # fmt: skip
    named_ticks(axes, called)
    axes.set_xlim(-0.5, len(called) - 0.5)
    axes.grid(axis="y", color=INK, alpha=0.12)
    if len(names) > 1 or endless:
        legend(axes, ax)
    some = "" if len(names) <= _MOST_LINES else f", {_MOST_LINES} of {len(names)} parts"
    score = first.first.score
    title = f"Thresholds of {len(called)} release{'s' if len(called) > 1 else ''}{some}"
    return labelled(axes, "release", f"threshold{f' of the score {score!r}' if score else ''}", title)
