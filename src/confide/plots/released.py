"""Pictures of public and released numbers: the cost of privacy, chains of releases, and watches."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import numpy as np

from confide.errors import InputError, InputTypeError
from confide.noisy_counts import coverage_interval, coverage_share
from confide.planning import Plan, make_plan
from confide.releases import Release, predecessors_of
from confide.support import (
    BAD,
    FILL,
    INK,
    MOST_RECORDS,
    PROMISE,
    axes_of,
    labelled,
    legend,
    named_ticks,
    one_of,
    positive_integer,
    privacy_loss,
    promise_line,
)
from confide.watching import Watch

# Cost of privacy over the number of records and epsilon, before any record is used.

Price: TypeAlias = Literal["coverage", "excess", "size"]
"""Unit of the cost: expected coverage, additional covered records, or classes in a set."""

_PRICES = ("coverage", "excess", "size")
_STEPS, _RECORDS = (0.2, 0.5, 1.0, 2.0, 5.0), (100, 300, 1000, 3000, 10_000, 30_000, 100_000)
_MARKS = "osD^vP*Xph"


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
    if not isinstance(plan, Plan):
        raise InputTypeError("plan", "must be a Plan from confide.plan", type(plan).__name__)
    what, r = one_of("of", of, _PRICES), plan.request
    if what == "size" and (plan.pilot is None or plan.pilot.class_scores is None):
        raise InputError("plan", "must have a pilot sample with scores of all classes if of='size'")
    losses = [r.epsilon * step for step in _STEPS] if epsilons is None else list(epsilons)
    tried = sorted({float(f"{privacy_loss('epsilons', loss):.6g}") for loss in losses})
    counts = sorted({plan.n, *_RECORDS} if records is None else {positive_integer("records", n, most=MOST_RECORDS)
                                                               for n in records})  # fmt: skip
    axes = axes_of(ax)
    plain = [_plain(_like(plan, plan.request.epsilon, n), what) for n in counts]
    axes.plot(counts, plain, color="#777777", linewidth=1.2, label="without privacy")
    for place, epsilon in enumerate(tried):
        share = place / max(1, len(tried) - 1)
        drawn = [_price(_like(plan, epsilon, n), what) for n in counts]
        axes.plot(counts, drawn, marker=_MARKS[place % len(_MARKS)], markersize=4, linewidth=1.4,
                  color=_between(FILL, INK, share), label=f"ε = {epsilon:g}")  # fmt: skip
    axes.plot([plan.n], [_price(plan, what)], "o", markersize=11, fillstyle="none", color=PROMISE,
              label=f"this plan: ε = {r.epsilon:g}, n = {plan.n:,}")  # fmt: skip
    level = float(r.level)
    if what == "coverage":
        promise_line(axes, level, f"requested: {level:.6g}")
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    if what == "size":
        axes.set_yscale("log", subs=(2, 5))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("{x:g}")
    axes.grid(color=INK, alpha=0.08)
    legend(axes, ax, columns=3)
    y = {"coverage": "expected coverage", "excess": f"additional {plan.unit_of_cost}", "size": "classes in a set"}[what]
    found = "a public pilot sample" if what == "size" else plan.typical_scores
    return labelled(axes, "calibration records", y, f"The cost of privacy, α = {float(r.alpha):.6g}, on {found}")


def _like(plan: Plan, epsilon: float, n: int) -> Plan:
    """A plan at another epsilon and number of records, with its own slopes, rise and shift."""
    public = plan.request.neighbors == "replace_one"
    free = replace(plan.request, n=n if public else None, slopes=None, rise=None, shift=None)
    asked = free.with_loss(epsilon)
    return replace(make_plan(asked, n), pilot=plan.pilot)


def _price(plan: Plan, of: str) -> float:
    if of == "coverage":
        return plan.expected_coverage
    if of == "excess":
        return plan.expected_excess
    found = plan.on_pilot
    assert found is not None
    assert found.size is not None
    return found.size


def _plain(plan: Plan, of: str) -> float:
    """Value without privacy; NaN, which is not drawn, for too few records."""
    serves = plan.nonprivate_rank <= plan.effective_n
    if of == "size":
        found = plan.on_pilot
        assert found is not None
        return math.nan if found.plain_size is None else found.plain_size
    coverage = min(1.0, plan.nonprivate_rank / (plan.effective_n + 1)) if serves else 1.0
    return coverage if of == "coverage" else (coverage - float(plan.request.level)) * (plan.effective_n + 1)


def _between(first: str, last: str, share: float) -> str:
    """A colour between two, as #rrggbb."""
    ends = [[int(color[i : i + 2], 16) for i in (1, 3, 5)] for color in (first, last)]
    return "#" + "".join(f"{round(a + share * (b - a)):02x}" for a, b in zip(*ends, strict=True))


# Thresholds along a chain of releases. Only released numbers are drawn.

_MOST_LINES = 10


def plot_thresholds(releases: Release | Sequence[Release], *, ax: Any = None) -> Any:
    """Plot thresholds over time, one line for each threshold of a release, oldest release first. Returns the axes.

    Thresholds of +inf are red triangles at the upper edge. Only released numbers are drawn, which are public.

    Parameters
    ----------
    releases
        A release, which is drawn with its predecessors, or releases in order, each with the same parts. At most the
        first ten parts are drawn.
    ax
        Matplotlib axes to draw on; by default those of a new figure.

    Raises
    ------
    InputError, InputTypeError
        If there is nothing to draw, or the releases have different parts.

    Examples
    --------
    >>> axes = plot_thresholds(confide.recalibrate(january, scores))  # doctest: +SKIP
    """
    made = [releases] if isinstance(releases, Release) else list(releases)
    if not made or not all(isinstance(one, Release) for one in made):
        raise InputTypeError("releases", "must be a release with thresholds, or a sequence of them")
    first, names = made[0], list(made[0].by_name)
    if any(list(one.by_name) != names for one in made):
        raise InputError("releases", "must all have the same parts")
    line = predecessors_of(first)
    dates = [*(one.date for one in line), *(one.first.about.get("date") for one in made)]
    called = [date or f"number {place}" for place, date in enumerate(dates, start=1)]
    values = {}
    for name in names[:_MOST_LINES]:
        earlier = first.by_name[name].predecessors
        values[name] = [*(one.threshold for one in earlier), *(one.by_name[name].threshold for one in made)]
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
    if watch.monitors_sizes or not watch.looks:
        raise InputError("watch", "must be a watch of coverage with at least one look")
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
