"""Intervals along the prediction, or along any feature, and the targets outside them, on matplotlib axes."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.guarantee import coverage_text
from confide.support import BAD, FILL, INK, axes_of, labelled, legend

_FEW = 300
"""Of so many records every line and dot is drawn at full strength; of more, thinner and paler."""


def draw_intervals(
    x: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    y: NDArray[np.float64] | None,
    *,
    level: float | None = None,
    name: str = "prediction",
    ax: Any = None,
) -> Any:
    """Lines from low to high at x, dots for targets y inside and crosses for those outside; all of shape (n,)."""
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


def _left_out(low: NDArray[np.float64], high: NDArray[np.float64]) -> str:
    """What has no line: intervals without end, and empty ones."""
    endless = int((np.isinf(low) | np.isinf(high)).sum())
    empty = int((low > high).sum())
    told = [f"{count:,} {what}" for count, what in ((endless, "infinite"), (empty, "empty")) if count]
    return f" ({' and '.join(told)} ones not drawn)" if told else ""
