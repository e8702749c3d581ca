"""Coverage by class or group: one row for each, the least covered first."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from confide.arrays import Groups
from confide.errors import InputError, InputTypeError
from confide.evaluation import CoverageTable, Part, class_coverage, group_coverage
from confide.guarantee import coverage_text
from confide.sets import PredictionSets
from confide.support import (
    AS_PROMISED,
    BELOW,
    INK,
    PROMISE,
    Level,
    axes_of,
    labelled,
    legend,
    positive_integer,
    promise_line,
    require,
)

# Most rows of a picture, and most letters in a line of a name
_MOST_ROWS = 100
_MOST_LETTERS = 60

# Inches: a letter and a line of a name, the space between names, a row at least, and the picture without its names
_LETTER_WIDTH = 0.085
_LINE_HEIGHT = 0.17
_NAME_GAP = 0.06
_ROW_HEIGHT = 0.24
_PLAIN_WIDTH = 4.6
_PLAIN_HEIGHT = 1.9
_LEAST_WIDTH = 6.0

# A picture with more rows may be taller than a screen, whose top is visible first
_TALL = 30


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

    A dashed line shows `level`. Classes whose coverage is below the line by more than chance explains, for all classes
    at once, are red triangles. The picture is **not private**, because it is computed from labels without noise.

    Parameters
    ----------
    sets
        Prediction sets, or a table from `class_coverage`, `group_coverage` or `size_coverage`.
    labels
        True labels of the records of the sets, shape (n,).
    groups
        Group of each record, shape (n,), for coverage by group instead of by class.
    level
        Level of the dashed line. The default is the promise of the sets, or of the parts of the table; without one
        there is no line.
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
    # The parts, with the promise of each and whether it is below, the least covered first.
    table = _table(sets, labels, groups, confidence)
    parts = _compared(table, sets.promised if level is None and isinstance(sets, PredictionSets) else level)
    ranked = sorted((part for part in parts if part.n > 0 and part.value is not None), key=attrgetter("value"))
    require("sets", ranked, "must contain a record with a label", "none")

    # A page of them.
    pages = -(-len(ranked) // _MOST_ROWS)
    require("page", positive_integer("page", page) <= pages, f"must be at most {pages}, the last one", str(page))
    first = (page - 1) * _MOST_ROWS
    shown = ranked[first : first + _MOST_ROWS]

    # The picture.
    names = ["\n".join(textwrap.wrap(part.name, _MOST_LETTERS)) or part.name for part in shown]
    axes = _axes_of_rows(ax, names)
    below = sum(part.below for part in parts)
    _draw_parts(axes, shown, f"below it beyond chance ({below} of {len(ranked)})")
    if _draw_promises(axes, shown):
        legend(axes, ax, above=len(shown) > _TALL)
    _name_rows(axes, names)

    # The title.
    span = f", {first + 1} to {first + len(shown)} from the least covered of {len(ranked):,}" if pages > 1 else ""
    confidence_text = "noise included" if table.confidence is None else f"{100 * table.confidence:g} %"
    return labelled(axes, "coverage", "", f"Coverage by {table.division}{span}\nintervals: {confidence_text}")


def _table(
    sets: PredictionSets | CoverageTable, labels: ArrayLike | None, groups: Groups | None, confidence: Level
) -> CoverageTable:
    if isinstance(sets, CoverageTable):
        for name, values in (("labels", labels), ("groups", groups)):
            require(name, values is None, "must be left out with a table, which contains the counts")
        return sets
    if not isinstance(sets, PredictionSets):
        raise InputTypeError("sets", "must be PredictionSets or a CoverageTable", type(sets).__name__)
    if labels is None:
        raise InputError("labels", "must be the true label of each record", "prediction sets without labels")
    if groups is None:
        return class_coverage(sets, labels, confidence)
    return group_coverage(sets, labels, groups, confidence)


def _compared(table: CoverageTable, level: float | None) -> Sequence[Part]:
    """The parts, compared with a level, or with the promise of each without one."""
    if level is None:
        return table.parts
    below = table.surely_below(level).tolist()
    return [replace(part, promised=level, below=is_below) for part, is_below in zip(table, below, strict=True)]


def _axes_of_rows(ax: Any, names: Sequence[str]) -> Any:
    """Axes for a row for each name, as large as the names need."""
    lines = [name.split("\n") for name in names]
    letters = max(len(line) for name in lines for line in name)
    row = max(_ROW_HEIGHT, _LINE_HEIGHT * max(map(len, lines)) + _NAME_GAP)
    width = max(_LEAST_WIDTH, _PLAIN_WIDTH + _LETTER_WIDTH * letters)
    return axes_of(ax, width=width, height=_PLAIN_HEIGHT + row * len(names))


def _draw_parts(axes: Any, parts: Sequence[Part], below: str) -> None:
    """Draw share and interval of each part; `below` is the legend of those that are covered less."""
    for falls_short, style in ((False, AS_PROMISED), (True, BELOW)):
        rows = {place: part for place, part in enumerate(parts) if part.below == falls_short}
        places = list(rows)
        lows = [part.low for part in rows.values()]
        axes.hlines(places, lows, [part.high for part in rows.values()], color=style["color"], linewidth=1.6)
        label = below if rows and falls_short else None
        axes.plot([part.value for part in rows.values()], places, **style, label=label)


def _draw_promises(axes: Any, parts: Sequence[Part]) -> bool:
    """Draw one promise, or one for each part; returns whether there is any."""
    promises = [math.nan if part.promised is None else part.promised for part in parts]
    levels = np.unique(np.array(promises)[np.isfinite(promises)])
    if len(levels) == 1:
        promise_line(axes, levels[0], f"promised on average: {coverage_text(levels[0])}", upright=True)
    elif len(levels):
        axes.plot(promises, range(len(parts)), "|", markersize=14, color=PROMISE, label="promised to each")
    return len(levels) > 0


def _name_rows(axes: Any, names: Sequence[str]) -> None:
    axes.set_yticks(range(len(names)), names, parse_math=False)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlim(right=1.01)
    axes.grid(axis="y", color=INK, alpha=0.08)
    axes.tick_params(labeltop=len(names) > _TALL)
