"""Draw sets, plans, releases and watches with matplotlib, one picture per call; `intervals.plot` draws intervals.

Coverage, sizes and intervals are drawn from records without noise and are not private. The other pictures show public
or released numbers only. Functions return axes; showing and saving them is up to you.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import Groups
from confide.core import Plan, Release, make_plan
from confide.errors import InputError, InputTypeError
from confide.evaluation import CoverageTable, class_coverage, group_coverage
from confide.guarantee import coverage_text
from confide.noisy_counts import coverage_interval, coverage_share
from confide.sets import PredictionSets
from confide.support import (
    BAD,
    FILL,
    INK,
    MOST_RECORDS,
    PROMISE,
    Level,
    axes_of,
    labelled,
    legend,
    named_ticks,
    one_of,
    positive_integer,
    privacy_loss,
    promise_line,
    require,
)
from confide.watching import Watch

# Of points: whether they are below what is promised, with color, marker and size
_STYLES = ((False, INK, "o", 4.5), (True, BAD, "v", 7))

__all__ = ["plot_coverage", "plot_price", "plot_sizes", "plot_thresholds", "plot_watch"]

# Coverage by class or group: one row for each, the least covered first.

_MOST_ROWS = 100

_MOST_LETTERS = 60
"""Number of letters in a line of a name."""

# Inches: a letter and a line of a name, the space between names, a row at least, and the picture without its names
_LETTER_WIDTH = 0.085
_LINE_HEIGHT = 0.17
_NAME_GAP = 0.06
_ROW_HEIGHT = 0.24
_PLAIN_WIDTH = 4.6
_PLAIN_HEIGHT = 1.9
_LEAST_WIDTH = 6.0

_TALL = 30
"""A picture with more rows may be taller than a screen."""


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
    # The rows of a page, and which of them are below their promise.
    division, table = _table(sets, labels, groups, confidence)
    level = sets.promised if level is None and isinstance(sets, PredictionSets) else level
    counted = np.flatnonzero((table.n > 0) & np.isfinite(table.coverage))
    require("sets", len(counted), "must contain a record with a label", "none")
    ranked = counted[np.argsort(table.coverage[counted], kind="stable")]
    shown, span = _page(ranked, page)
    below = np.array([row.below for row in table]) if level is None else table.surely_below(level)
    promises = np.array([row.promised if level is None else level for row in table], np.float64)  # None becomes NaN

    # Intervals and shares.
    names = [_lines(str(table.names[i])) for i in shown]
    axes = _axes_of_rows(ax, names)
    for is_below, color, marker, size in _STYLES:
        places = np.flatnonzero(below[shown] == is_below)
        rows = shown[places]
        axes.hlines(places, table.low[rows], table.high[rows], color=color, linewidth=1.6)
        label = f"below it beyond chance ({int(below.sum())} of {len(counted)})" if is_below and places.size else None
        axes.plot(table.coverage[rows], places, marker, markersize=size, color=color, label=label)

    # One promise, or one for each row; the top of a tall picture is visible first.
    levels = np.unique(promises[shown][np.isfinite(promises[shown])])
    if len(levels) == 1:
        promise_line(axes, levels[0], f"promised on average: {coverage_text(levels[0])}", upright=True)
    elif len(levels):
        axes.plot(promises[shown], range(len(shown)), "|", markersize=14, color=PROMISE, label="promised to each")
    if len(levels):
        legend(axes, ax, above=len(shown) > _TALL)

    # Names, and words.
    axes.set_yticks(range(len(shown)), names, parse_math=False)
    axes.set_ylim(len(shown) - 0.5, -0.5)
    axes.set_xlim(right=1.01)
    axes.grid(axis="y", color=INK, alpha=0.08)
    axes.tick_params(labeltop=len(shown) > _TALL)
    confidence_text = "noise included" if table.confidence is None else f"{100 * table.confidence:g} %"
    return labelled(axes, "coverage", "", f"Coverage by {division}{span}\nintervals: {confidence_text}")


def _table(
    sets: PredictionSets | CoverageTable, labels: ArrayLike | None, groups: Groups | None, confidence: Level
) -> tuple[str, CoverageTable]:
    """The property that divides the records, and the coverage of the parts."""
    if isinstance(sets, CoverageTable):
        for name, values in (("labels", labels), ("groups", groups)):
            require(name, values is None, "must be left out with a table, which contains the counts")
        return sets.division, sets
    if not isinstance(sets, PredictionSets):
        raise InputTypeError("sets", "must be PredictionSets or a CoverageTable", type(sets).__name__)
    if labels is None:
        raise InputError("labels", "must be the true label of each record", "prediction sets without labels")
    if groups is None:
        return "class", class_coverage(sets, labels, confidence)
    return "group", group_coverage(sets, labels, groups, confidence)


def _page(ranked: np.ndarray, page: int) -> tuple[np.ndarray, str]:
    """The rows of a page, and in words which of all rows they are."""
    pages = -(-len(ranked) // _MOST_ROWS)
    require("page", positive_integer("page", page) <= pages, f"must be at most {pages}, the last one", str(page))
    first = (page - 1) * _MOST_ROWS
    shown = ranked[first : first + _MOST_ROWS]
    span = f", {first + 1} to {first + len(shown)} from the least covered of {len(ranked):,}"
    return shown, span if pages > 1 else ""


def _lines(name: str) -> str:
    return "\n".join(textwrap.wrap(name, _MOST_LETTERS)) or name


def _axes_of_rows(ax: Any, names: Sequence[str]) -> Any:
    """Axes for a row for each name, as large as the names need."""
    lines = [name.split("\n") for name in names]
    letters = max(len(line) for name in lines for line in name)
    row = max(_ROW_HEIGHT, _LINE_HEIGHT * max(map(len, lines)) + _NAME_GAP)
    width = max(_LEAST_WIDTH, _PLAIN_WIDTH + _LETTER_WIDTH * letters)
    return axes_of(ax, width=width, height=_PLAIN_HEIGHT + row * len(names))


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
    require("sets", len(sizes), "must contain a record", "none")

    # Many sizes share a bar.
    axes = axes_of(ax)
    largest = int(sizes.max(initial=1))
    width = max(1, -(-(largest + 1) // _MOST_BARS))
    starts = np.arange(0, largest + 1, width)
    share = np.bincount(sizes // width, minlength=len(starts)) / len(sizes)

    # The bars, and the mean.
    axes.bar(starts + (width - 1) / 2, share, width=0.9 * width, color=FILL, edgecolor=INK, linewidth=0.6)
    axes.axvline(sizes.mean(), color=INK, linestyle="--", linewidth=1.2, label=f"mean {sizes.mean():.2f}")
    axes.legend(frameon=False)
    axes.xaxis.get_major_locator().set_params(integer=True)
    title = f"Prediction-set sizes, {len(sizes):,} records"
    return labelled(axes, "set size (number of classes)", "share of records", title)


# Cost of privacy over the number of records and epsilon, before any record is used.

Price: TypeAlias = Literal["coverage", "excess", "size"]
"""Unit of the cost: expected coverage, additional covered records, or classes in a set."""

_FACTORS_OF_EPSILON = (0.2, 1.0, 5.0)
_RECORDS = (100, 300, 1000, 10_000, 100_000)
"""Every point is a plan; more of them hardly change the lines."""

_MARKS = "osD^vP*Xph"
"""Markers of lines, in their order."""


def plot_price(
    plan: Plan,
    *,
    of: Price = "coverage",
    epsilons: Sequence[float] | None = None,
    records: Sequence[int] | None = None,
    ax: Any = None,
) -> Any:
    """Plot the cost of privacy over the number of records, one line for each epsilon. Returns the axes.

    Every point is a plan like the given one, which is marked by a ring. The grey line is without privacy. The picture
    contains only public numbers, including set sizes of a public pilot sample.

    Parameters
    ----------
    plan
        Result of `confide.plan`, at one level.
    of
        `"coverage"`: expected coverage on typical scores. `"excess"`: records covered beyond the requested number.
        `"size"`: mean set size on the plan's pilot sample.
    epsilons
        Privacy losses to try; by default from a fifth to five times that of the plan.
    records
        Numbers of records to try; by default from 100 to 100,000.
    ax
        Matplotlib axes to draw on; by default those of a new figure.

    Raises
    ------
    InputError, InputTypeError
        If `of` is `"size"` and the plan has no pilot sample with class scores, or a number is out of range.

    Examples
    --------
    >>> axes = plot_price(confide.plan(alpha=0.1, epsilon=1.0, n=2000))  # doctest: +SKIP
    """
    # The points: numbers of records and privacy losses.
    if not isinstance(plan, Plan):
        raise InputTypeError("plan", "must be a Plan from confide.plan", type(plan).__name__)
    price = one_of("of", of, get_args(Price))
    terms = plan.terms
    level = float(plan.terms.level)
    if price == "size" and (plan.pilot is None or plan.pilot.class_scores is None):
        raise InputError("plan", "must have a pilot sample with scores of all classes if of='size'")
    losses = [terms.epsilon * factor for factor in _FACTORS_OF_EPSILON] if epsilons is None else epsilons
    rounded_losses = sorted({float(f"{privacy_loss('epsilons', loss):.6g}") for loss in losses})
    numbers = {plan.n, *_RECORDS} if records is None else records
    counts = sorted({positive_integer("records", n, most=MOST_RECORDS) for n in numbers})

    # Their lines, the plan itself, and its level.
    axes = axes_of(ax)
    _draw_prices(axes, plan, price, rounded_losses, counts)
    cost, _ = _price(plan, price)
    axes.plot([plan.n], [cost], "o", markersize=11, fillstyle="none", color=PROMISE,
              label=f"this plan: ε = {terms.epsilon:g}, n = {plan.n:,}")  # fmt: skip
    if price == "coverage":
        promise_line(axes, level, f"requested: {level:.6g}")

    # Axes, and words.
    _scale_logarithmically(axes, sizes=price == "size")
    axes.grid(color=INK, alpha=0.08)
    legend(axes, ax, columns=3)
    units = {"coverage": "expected coverage", "excess": f"additional {plan.unit_of_cost}", "size": "classes in a set"}
    scores = "a public pilot sample" if price == "size" else plan.typical_scores
    return labelled(
        axes, "calibration records", units[price], f"The cost of privacy, α = {float(terms.alpha):.6g}, on {scores}"
    )


def _draw_prices(axes: Any, plan: Plan, price: Price, losses: Sequence[float], counts: Sequence[int]) -> None:
    """Draw one line for each privacy loss; the line without privacy is the same for all of them."""
    for place, epsilon in enumerate(losses):
        plans = [replace(make_plan(plan.terms.with_loss(epsilon), n), pilot=plan.pilot) for n in counts]
        private, plain = zip(*(_price(point, price) for point in plans), strict=True)
        if not place:
            axes.plot(counts, plain, color="#777777", linewidth=1.2, label="without privacy")
        alpha = 0.4 + 0.6 * place / max(1, len(losses) - 1)
        axes.plot(counts, private, marker=_MARKS[place % len(_MARKS)], markersize=4, linewidth=1.4, color=INK,
                  alpha=alpha, label=f"ε = {epsilon:g}")  # fmt: skip


def _scale_logarithmically(axes: Any, *, sizes: bool) -> None:
    """Logarithms of records, and also of set sizes, with plain numbers as labels."""
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.xaxis.set_minor_formatter("")
    if sizes:
        axes.set_yscale("log", subs=(2, 5))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("{x:g}")


def _price(plan: Plan, of: Price) -> tuple[float, float]:
    """What a plan costs, and what the same costs without privacy."""
    if of == "size":
        sizes = plan.on_pilot
        assert sizes is not None
        return sizes.size, sizes.plain_size  # type: ignore[return-value]  # both are known with scores of all classes
    rank = plan.nonprivate_rank
    n = plan.effective_n
    level = float(plan.terms.level)
    plain = rank / (n + 1) if rank <= n else 1.0
    return (plan.expected_coverage, plain) if of == "coverage" else (plan.expected_excess, (plain - level) * (n + 1))


# Thresholds over several releases. Only released numbers are drawn.

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
    names = list(releases[0].by_name)
    if any(list(release.by_name) != names for release in releases):
        raise InputError("releases", "must all have the same parts")
    dates = [release.about.get("date") for release in releases]
    release_names = [date or f"number {place}" for place, date in enumerate(dates, start=1)]
    values = {name: [release.by_name[name].threshold for release in releases] for name in names[:_MOST_LINES]}

    # One line for each part.
    axes = axes_of(ax)
    x = range(len(releases))
    for place, (name, course) in enumerate(values.items()):
        finite = [value if math.isfinite(value) else math.nan for value in course]
        axes.plot(x, finite, marker=_MARKS[place], markersize=5, linewidth=1.4, color=f"C{place}" if name else INK,
                  label=name or "threshold")  # fmt: skip

    # Thresholds of +inf at the upper edge.
    endless = [i for i in x if any(math.isinf(course[i]) for course in values.values())]
    if endless:
        axes.plot(endless, [0.97] * len(endless), "^", markersize=8, color=BAD, linestyle="none", label="+∞",
                  transform=axes.get_xaxis_transform())  # fmt: skip

    # Names, and words.
    named_ticks(axes, release_names)
    axes.set_xlim(-0.5, len(releases) - 0.5)
    axes.grid(axis="y", color=INK, alpha=0.12)
    if len(names) > 1 or endless:
        legend(axes, ax)
    parts = "" if len(names) <= _MOST_LINES else f", {_MOST_LINES} of {len(names)} parts"
    count = "1 release" if len(releases) == 1 else f"{len(releases)} releases"
    score = f" of the score {first.score!r}" if first.score else ""
    return labelled(axes, "release", f"threshold{score}", f"Thresholds of {count}{parts}")


# Coverage of a watch, look by look. Only noisy counts, which are public, are drawn.


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

    # The confidence sequence of all looks so far.
    points = watch.points
    x = np.arange(len(points))
    axes = axes_of(ax)
    band = [(point.low or 0.0, 1.0 if point.high is None else point.high) for point in points]
    bottom, top = np.array(band).T
    axes.fill_between(x, bottom, top, where=bottom <= top, step="mid", color=FILL, alpha=0.3, linewidth=0,
                      label="all looks so far, if coverage has not changed")  # fmt: skip

    # Looks before and since the alarm.
    share, low, high = _looks(watch)
    alarmed = np.array([point.alarmed for point in points])
    for since_alarm, color, marker, size in _STYLES:
        drawn = np.flatnonzero((alarmed == since_alarm) & np.isfinite(share))
        axes.vlines(x[drawn], low[drawn], high[drawn], color=color, linewidth=1.2)
        label = "since the alarm" if since_alarm else "this look"
        axes.plot(x[drawn], share[drawn], marker, markersize=size, color=color, label=label if drawn.size else None)

    # The tested levels, names, and words.
    tested = watch.settings.least
    for level in sorted(set(tested)):
        promise_line(axes, level, f"tested: at least {level:.6g}")
    named_ticks(axes, [point.look.name for point in points])
    axes.set_ylim(max(0.0, float(np.nanmin(np.append(low, min(tested)))) - 0.02), 1.01)
    legend(axes, ax)
    alarm = f"alarm at “{watch.alarm.look.name}”" if watch.alarm else "no alarm"
    return labelled(axes, "look", "coverage", f"Coverage of {len(points):,} looks, {alarm}")


def _looks(watch: Watch) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """The share of each look, all parts together, with the ends of its interval for noise and sampling."""
    settings = watch.settings
    counts = np.array([look.counts for look in watch.looks], np.int64).reshape(len(watch.looks), -1, 2).sum(axis=1)
    covered, missed = counts.T
    guess = min(max(round(min(settings.promised.values()), 2), 0.01), 0.99)
    low, high = coverage_interval(covered, missed, settings.noise_epsilon, guess=guess, noises=len(settings.promised))
    return coverage_share(covered, missed), low, high
