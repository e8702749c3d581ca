"""Pictures from records without noise: coverage, sizes and intervals. They are not private."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from confide.arrays import Groups, as_vector
from confide.errors import InputError, InputTypeError
from confide.evaluation import CoverageTable, class_coverage, group_coverage
from confide.guarantee import coverage_text
from confide.sets import PredictionIntervals, PredictionSets, draw_intervals
from confide.support import BAD, FILL, INK, Level, axes_of, labelled, legend, positive_integer, promise_line

# Coverage by class or group: one row for each, the least covered first.

MOST_ROWS = 100
_LETTERS, _LINE, _ROW = 60, 0.17, 0.24
"""Maximum letters in a line of a name; height in inches of a line, and minimum height of a row."""


def plot_coverage(
    sets: PredictionSets | CoverageTable,
    labels: ArrayLike | None = None,
    *,
    groups: Groups | None = None,
    level: float | None = None,
    confidence: Level = 0.95,
    page: int = 1,
    ax: Any = None,
) -> Any:
    """Plot coverage of each class or group with exact intervals, the least covered at the top. Returns the axes.

    A dashed line shows `level`. Classes that are below it beyond chance, all classes at once, are red triangles. The
    picture is **not private**, because it is computed from labels without noise.

    Parameters
    ----------
    sets
        Prediction sets, or a table from `class_coverage`, `group_coverage` or `size_coverage`.
    labels
        True labels of the records of the sets, shape (n,).
    groups
        Group of each record, shape (n,), for coverage by group instead of by class.
    level
        Level of the dashed line. The default is the promised average coverage of the sets; without one there is no
        line.
    confidence
        Confidence of each interval, in (0, 1).
    page
        Page to draw, from 1 on; a picture has at most 100 rows.
    ax
        Matplotlib axes to draw on; by default those of a new figure, whose size depends on the names.

    Raises
    ------
    InputError, InputTypeError
        If labels or groups do not fit the sets, if there are no records, or no such page.

    Examples
    --------
    >>> axes = plot_coverage(PredictionSets(np.array([[True, False]])), [0])  # doctest: +SKIP
    """
    what, table = _table(sets, labels, groups, confidence)
    level = sets.promised if level is None and isinstance(sets, PredictionSets) else level
    chosen = np.flatnonzero(table.n > 0)
    if not len(chosen):
        raise InputError("sets", "must contain a record with a label", "none")
    ranked = chosen[np.argsort(table.coverage[chosen], kind="stable")]
    shown = _page(ranked, page)
    below = np.zeros(len(table.n), np.bool_) if level is None else table.surely_below(level)
    lines = [_lines(str(table.names[i])) for i in shown]
    row = max(_ROW, _LINE * max(1 + name.count("\n") for name in lines) + 0.06)
    letters = max(max(map(len, name.split("\n"))) for name in lines)
    axes = axes_of(ax, width=4.6 + 0.085 * letters, height=1.9 + row * len(shown))
    for surely, color, marker in ((False, INK, "o"), (True, BAD, "v")):
        place = np.flatnonzero(below[shown] == surely)
        own = shown[place]
        axes.hlines(place, table.low[own], table.high[own], color=color, linewidth=1.6)
        label = f"below it beyond chance ({int(below.sum())} of {len(chosen)})" if surely and place.size else None
        axes.plot(table.coverage[own], place, marker, markersize=7 if surely else 4.5, color=color, label=label)
    if level is not None:
        promise_line(axes, level, f"promised on average: {coverage_text(level)}", upright=True)
        legend(axes, ax, above=len(shown) > 30)  # the top of a tall picture is visible first
    axes.set_yticks(range(len(shown)), lines, parse_math=False)
    axes.set_ylim(len(shown) - 0.5, -0.5)
    axes.set_xlim(right=1.01)
    axes.grid(axis="y", color=INK, alpha=0.08)
    axes.tick_params(labeltop=len(shown) > 30)
    some = "" if len(shown) == len(ranked) else f", {_span(page, len(shown))} of {len(ranked):,}"
    return labelled(axes, "coverage", "", f"Coverage by {what}{some}\n{100 * table.confidence:g} % intervals")


def _table(
    sets: PredictionSets | CoverageTable, labels: ArrayLike | None, groups: Groups | None, confidence: Level
) -> tuple[str, CoverageTable]:
    """Name of a row, and the table."""
    if isinstance(sets, CoverageTable):
        if labels is not None or groups is not None:
            raise InputError(
                "labels" if labels is not None else "groups", "must be left out with a table, which contains the counts"
            )
        return "part", sets
    if not isinstance(sets, PredictionSets):
        raise InputTypeError("sets", "must be PredictionSets or a CoverageTable", type(sets).__name__)
    if labels is None:
        raise InputError("labels", "must be the true label of each record", "prediction sets without labels")
    if groups is None:
        return "class", class_coverage(sets, labels, confidence)
    return "group", group_coverage(sets, labels, groups, confidence)


def _page(ranked: np.ndarray, page: int) -> np.ndarray:
    pages = -(-len(ranked) // MOST_ROWS)
    if positive_integer("page", page) > pages:
        raise InputError("page", f"must be at most {pages}, the last one", str(page))
    return ranked[(page - 1) * MOST_ROWS : page * MOST_ROWS]


def _span(page: int, rows: int) -> str:
    first = (page - 1) * MOST_ROWS + 1
    return f"{first} to {first + rows - 1} from the least covered"


def _lines(name: str) -> str:
    """Break a name into lines that fit next to a picture."""
    return "\n".join(textwrap.wrap(name, _LETTERS)) or name


# Sizes of sets.

_MOST_BARS = 60


def plot_sizes(sets: PredictionSets, *, ax: Any = None) -> Any:
    """Plot the share of records with each set size as bars. Returns the axes.

    The picture is **not private** unless the records of the sets are public: sizes are counted without noise.

    Parameters
    ----------
    sets
        Prediction sets of at least one record.
    ax
        Matplotlib axes to draw on; by default those of a new figure.

    Raises
    ------
    InputError, InputTypeError
        If there are no sets, or `sets` has another type.

    Examples
    --------
    >>> axes = plot_sizes(PredictionSets(np.array([[True, False], [True, True]])))  # doctest: +SKIP
    """
    if not isinstance(sets, PredictionSets):
        raise InputTypeError("sets", "must be PredictionSets", type(sets).__name__)
    sizes = sets.sizes
    if not len(sizes):
        raise InputError("sets", "must contain a record", "none")
    axes, largest = axes_of(ax), int(sizes.max(initial=1))
    width = max(1, -(-(largest + 1) // _MOST_BARS))
    starts = np.arange(0, largest + 1, width)
    share = np.bincount(sizes // width, minlength=len(starts)) / len(sizes)
    axes.bar(starts + (width - 1) / 2, share, width=0.9 * width, color=FILL, edgecolor=INK, linewidth=0.6)
    axes.axvline(sizes.mean(), color=INK, linestyle="--", linewidth=1.2, label=f"mean {sizes.mean():.2f}")
    axes.legend(frameon=False)
    axes.xaxis.get_major_locator().set_params(integer=True)
    title = f"Prediction-set sizes, {len(sizes):,} records"
    return labelled(axes, "set size (number of classes)", "share of records", title)


# Intervals along the prediction or another feature, and the targets outside them.


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
    """Plot prediction intervals along the prediction or a feature, with targets as dots. Returns the axes.

    Targets outside their interval are red crosses on top, so that they are visible among thousands. The picture is
    **not private**: it shows every record.

    Parameters
    ----------
    feature
        Horizontal position of each record, shape (n,); usually its prediction.
    lower, upper
        Ends of the intervals, shape (n,) each; or `PredictionIntervals` as `lower` without `upper`.
    targets
        True values, shape (n,).
    level
        Promised coverage for the title; by default that of the `PredictionIntervals`.
    name
        Label of the feature.
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
            raise InputError("upper", "must be left out if lower is PredictionIntervals", remedy="name targets=")
        ends = lower
        lower, upper = ends.lower, ends.upper
        level = ends.promised if level is None else level
    if upper is None:
        raise InputError("upper", "must be given unless lower is PredictionIntervals")
    x, low, high = (as_vector(n, v) for n, v in (("feature", feature), ("lower", lower), ("upper", upper)))
    y = None if targets is None else as_vector("targets", targets)
    if len({len(v) for v in (x, low, high, x if y is None else y)}) > 1:
        also = "" if y is None else f", targets {len(y)}"
        found = f"{len(x)}, {len(low)} and {len(high)}{also}"
        raise InputError("feature", "must have the length of lower, upper and targets", found)
    return draw_intervals(x, low, high, y, level=level, name=name, ax=ax)
