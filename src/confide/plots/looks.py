"""The course of a watch, look by look. Only noisy counts, which are public, are drawn."""

from typing import Any

import numpy as np

from confide.errors import InputError, InputTypeError
from confide.noisy_counts import coverage_interval, coverage_share
from confide.support import BAD, FILL, INK, axes_of, labelled, legend, named_ticks, promise_line
from confide.watching import Watch


def plot_watch(watch: Watch, *, ax: Any = None) -> Any:
    """Coverage over time, look by look, with the band of all looks so far; the alarm is marked. Returns the axes.

    Points are the shares of each look with an interval for noise and sampling; from the alarm on they are red
    triangles. The dashed line is what is tested, the promise less the tolerance. Only noisy counts are drawn, which
    anybody may see.

    Parameters
    ----------
    watch
        A watch of coverage with at least one look.
    ax
        Matplotlib axes to draw on; by default those of a new figure.

    Raises
    ------
    InputError, InputTypeError
        If this is no watch of coverage, or no look was taken.

    Examples
    --------
    >>> axes = plot_watch(confide.watch(...))  # doctest: +SKIP
    """
    if not isinstance(watch, Watch):
        raise InputTypeError(f"watch must be a Watch; found {type(watch).__name__}")
    if watch.of_sizes or not watch.looks:
        raise InputError("watch must be one of coverage with at least one look")
    points, made = watch.points, watch.settings
    counts = np.array([point.look.counts for point in points], np.int64).reshape(len(points), -1, 2).sum(axis=1)
    share = coverage_share(counts[:, 0], counts[:, 1])
    guess = min(max(round(min(made.promised.values()), 2), 0.01), 0.99)
    low, high = coverage_interval(
        counts[:, 0], counts[:, 1], made.noise_epsilon, guess=guess, noises=len(made.promised)
    )
    alarmed = np.array([point.alarmed for point in points])
    x, axes = np.arange(len(points)), axes_of(ax)
    band = [(point.low or 0.0, 1.0 if point.high is None else point.high) for point in points]
    bottom, top = np.array(band).T
    axes.fill_between(x, bottom, top, where=bottom <= top, step="mid", color=FILL, alpha=0.3, linewidth=0,
                      label="all looks so far, if coverage has not changed")  # fmt: skip
    for late, color, marker in ((False, INK, "o"), (True, BAD, "v")):
        own = np.flatnonzero((alarmed == late) & np.isfinite(share))
        axes.vlines(x[own], low[own], high[own], color=color, linewidth=1.2)
        label = "since the alarm" if late else "this look"
        axes.plot(x[own], share[own], marker, markersize=7 if late else 4.5, color=color,
                  label=label if own.size else None)  # fmt: skip
    for level in sorted(set(made.least)):
        promise_line(axes, level, f"tested: at least {level:.6g}")
    named_ticks(axes, [point.look.name for point in points])
    axes.set_ylim(max(0.0, float(np.nanmin(np.append(low, min(made.least)))) - 0.02), 1.01)
    legend(axes, ax)
    said = f"alarm at “{watch.alarm.look.name}”" if watch.alarm else "no alarm"
    return labelled(axes, "look", "coverage", f"Coverage of {len(points):,} looks, {said}")
