"""Coverage of a watch, look by look; only noisy counts, which are public, are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from confide.errors import InputTypeError
from confide.noisy_counts import coverage_share
from confide.support import AS_PROMISED, BELOW, FILL, axes_of, labelled, legend, named_ticks, promise_line, require
from confide.watching import CoverageOfLooks, Point, Watch


def plot_watch(watch: Watch, *, ax: Any = None) -> Any:
    """Plot coverage look by look, with the confidence sequence of all looks so far and the alarm. Returns the axes.

    Points are the shares of each look with an interval for noise and sampling. From the alarm on they are red
    triangles. The dashed line is the tested level, the promise minus the tolerance. Only noisy counts are drawn, which
    are public.

    Parameters
    ----------
    watch
        A watch of coverage with at least one look.
    ax
        Matplotlib axes to draw on; by default those of a new figure.

    Raises
    ------
    InputError, InputTypeError
        If the argument is not a watch of coverage, or has no look.

    Examples
    --------
    >>> axes = plot_watch(confide.watch(...))  # doctest: +SKIP
    """
    if not isinstance(watch, Watch):
        raise InputTypeError("watch", "must be a Watch", type(watch).__name__)
    require("watch", not watch.monitors_sizes and watch.looks, "must be a watch of coverage with at least one look")

    # The confidence sequence of all looks so far, and each look.
    points = watch.points
    coverage = CoverageOfLooks.of(watch.settings, watch.looks)
    axes = axes_of(ax)
    _draw_sequence(axes, points)
    _draw_looks(axes, points, coverage)

    # The tested levels, names, and words.
    tested = watch.settings.least
    for level in sorted(set(tested)):
        promise_line(axes, level, f"tested: at least {level:.6g}")
    named_ticks(axes, [point.look.name for point in points])
    axes.set_ylim(max(0.0, float(np.nanmin(np.append(coverage.low, min(tested)))) - 0.02), 1.01)
    legend(axes, ax)
    alarm = f"alarm at “{watch.alarm.look.name}”" if watch.alarm else "no alarm"
    return labelled(axes, "look", "coverage", f"Coverage of {len(points):,} looks, {alarm}")


def _draw_sequence(axes: Any, points: Sequence[Point]) -> None:
    bottom = np.array([point.low or 0.0 for point in points])
    top = np.array([1.0 if point.high is None else point.high for point in points])
    axes.fill_between(range(len(points)), bottom, top, where=bottom <= top, step="mid", color=FILL, alpha=0.3,
                      linewidth=0, label="all looks so far, if coverage has not changed")  # fmt: skip


def _draw_looks(axes: Any, points: Sequence[Point], coverage: CoverageOfLooks) -> None:
    """Draw looks before the alarm, and since."""
    alarmed = np.array([point.alarmed for point in points])
    shares = coverage_share(coverage.covered, coverage.missed)
    for since_alarm, style in ((False, AS_PROMISED), (True, BELOW)):
        drawn = np.flatnonzero((alarmed == since_alarm) & np.isfinite(shares))
        axes.vlines(drawn, coverage.low[drawn], coverage.high[drawn], color=style["color"], linewidth=1.2)
        label = "since the alarm" if since_alarm else "this look"
        axes.plot(drawn, shares[drawn], **style, label=label if drawn.size else None)
