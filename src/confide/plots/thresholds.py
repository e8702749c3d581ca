"""Thresholds over several releases; only released numbers are drawn."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from confide.core import Release
from confide.errors import InputTypeError
from confide.support import BAD, INK, MARKERS, axes_of, labelled, legend, named_ticks, require

# Most lines of a picture
_MOST_LINES = 10


def plot_thresholds(releases: Sequence[Release], *, ax: Any = None) -> Any:
    """Plot thresholds over time, one line for each threshold of a release, oldest release first. Returns the axes.

    Thresholds of +inf are red triangles at the upper edge. Only released numbers are drawn, which are public.

    Parameters
    ----------
    releases
        Releases in order, each with the same parts. At most the first ten parts are drawn.
    ax
        Matplotlib axes to draw on; by default those of a new figure.

    Raises
    ------
    InputError, InputTypeError
        If there is nothing to draw, or the releases have different parts.

    Examples
    --------
    >>> axes = plot_thresholds([january, confide.recalibrate(january, scores)])  # doctest: +SKIP
    """
    # The thresholds of each part.
    if not releases or not all(isinstance(release, Release) for release in releases):
        raise InputTypeError("releases", "must be a sequence of releases with thresholds")
    first = releases[0]
    names = list(first.by_name)
    are_alike = all(list(release.by_name) == names for release in releases)
    require("releases", are_alike, "must all have the same parts")
    courses = {name: [release.by_name[name].threshold for release in releases] for name in names[:_MOST_LINES]}

    # One line for each part; thresholds of +inf are at the upper edge.
    axes = axes_of(ax)
    _draw_courses(axes, courses)
    endless = [i for i in range(len(releases)) if any(math.isinf(course[i]) for course in courses.values())]
    if endless:
        axes.plot(endless, [0.97] * len(endless), "^", markersize=8, color=BAD, linestyle="none", label="+∞",
                  transform=axes.get_xaxis_transform())  # fmt: skip

    # Names, and words.
    dates = [release.about.get("date") for release in releases]
    named_ticks(axes, [date or f"number {number}" for number, date in enumerate(dates, start=1)])
    axes.set_xlim(-0.5, len(releases) - 0.5)
    axes.grid(axis="y", color=INK, alpha=0.12)
    if len(names) > 1 or endless:
        legend(axes, ax)
    parts = "" if len(names) <= _MOST_LINES else f", {_MOST_LINES} of {len(names)} parts"
    count = "1 release" if len(releases) == 1 else f"{len(releases)} releases"
    score = f" of the score {first.score!r}" if first.score else ""
    return labelled(axes, "release", f"threshold{score}", f"Thresholds of {count}{parts}")


def _draw_courses(axes: Any, courses: Mapping[str, Sequence[float]]) -> None:
    for place, (name, course) in enumerate(courses.items()):
        finite = [value if math.isfinite(value) else math.nan for value in course]
        color = f"C{place}" if name else INK
        axes.plot(range(len(course)), finite, marker=MARKERS[place], markersize=5, linewidth=1.4, color=color,
                  label=name or "threshold")  # fmt: skip
