"""What privacy costs, over the number of records and epsilon, before any record is touched."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias

from confide.errors import InputError, InputTypeError
from confide.planning import Plan, make_plan
from confide.support import (
    FILL,
    INK,
    MOST_RECORDS,
    PROMISE,
    axes_of,
    labelled,
    legend,
    one_of,
    positive_integer,
    privacy_loss,
    promise_line,
)

Price: TypeAlias = Literal["coverage", "excess", "size"]
"""What a price is counted in: expected coverage, records covered beyond what was asked for, or classes in a set."""

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
    """What privacy costs: one line for each epsilon, over the number of records. Returns the axes.

    Every point is a plan like the given one, which is marked by a ring; grey is the price without privacy. Only public
    numbers are drawn; with a pilot sample, which is public, also its set sizes.

    Parameters
    ----------
    plan
        What `confide.plan` made, at a level of its own.
    of
        `"coverage"`: expected coverage on typical scores. `"excess"`: how many records more than asked for are covered.
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
        If `of` is `"size"` and the plan has no pilot sample with class scores, or a number cannot be tried.

    Examples
    --------
    >>> axes = plot_price(confide.plan(alpha=0.1, epsilon=1.0, n=2000))  # doctest: +SKIP
    """
    if not isinstance(plan, Plan):
        raise InputTypeError(f"plan must be a Plan, as confide.plan makes it; found {type(plan).__name__}")
    what, r = one_of("of", of, _PRICES), plan.request
    if what == "size" and (plan.pilot is None or plan.pilot.class_scores is None):
        raise InputError("of='size' needs a plan with a pilot sample that has the scores of all classes")
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
        promise_line(axes, level, f"asked for: {level:.6g}")
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    if what == "size":
        axes.set_yscale("log", subs=(2, 5))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("{x:g}")
    axes.grid(color=INK, alpha=0.08)
    legend(axes, ax, columns=3)
    y = {"coverage": "expected coverage", "excess": f"{plan.unit_of_cost} too many", "size": "classes in a set"}[what]
    found = "a public pilot sample" if what == "size" else plan.typical_scores
    return labelled(axes, "calibration records", y, f"The price of privacy, α = {float(r.alpha):.6g}, on {found}")


def _like(plan: Plan, epsilon: float, n: int) -> Plan:
    """A plan like another, with its own decisions."""
    public = plan.request.neighbors == "replace_one"
    asked = replace(plan.request, epsilon=epsilon, n=n if public else None, slopes=None, rise=None, shift=None)
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
    """The same without privacy; NaN, of which nothing is drawn, where too few records are there."""
    serves = plan.nonprivate_rank <= plan.counted
    if of == "size":
        found = plan.on_pilot
        assert found is not None
        return math.nan if found.plain_size is None else found.plain_size
    coverage = min(1.0, plan.nonprivate_rank / (plan.counted + 1)) if serves else 1.0
    return coverage if of == "coverage" else (coverage - float(plan.request.level)) * (plan.counted + 1)


def _between(first: str, last: str, share: float) -> str:
    """A colour between two, as #rrggbb."""
    ends = [[int(color[i : i + 2], 16) for i in (1, 3, 5)] for color in (first, last)]
    return "#" + "".join(f"{round(a + share * (b - a)):02x}" for a, b in zip(*ends, strict=True))
