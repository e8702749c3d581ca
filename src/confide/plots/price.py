"""Cost of privacy over the number of records and epsilon, before any record is used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from confide.core import Plan, make_plan
from confide.errors import InputError, InputTypeError
from confide.support import (
    INK,
    MARKERS,
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
"""Unit of the cost: expected coverage, additional covered records, or classes in a set."""

_FACTORS_OF_EPSILON = (0.2, 1.0, 5.0)

# Every point is a plan; more of them hardly change the lines.
_RECORDS = (100, 300, 1000, 10_000, 100_000)


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
    # A plan for each number of records and privacy loss.
    if not isinstance(plan, Plan):
        raise InputTypeError("plan", "must be a Plan from confide.plan", type(plan).__name__)
    price = one_of("of", of, get_args(Price))
    if price == "size" and (plan.pilot is None or plan.pilot.class_scores is None):
        raise InputError("plan", "must have a pilot sample with scores of all classes if of='size'")
    losses = _rounded_losses(plan, epsilons)
    numbers = {plan.n, *_RECORDS} if records is None else records
    counts = sorted({positive_integer("records", n, most=MOST_RECORDS) for n in numbers})

    # Their lines, the plan itself, and its level.
    axes = axes_of(ax)
    _draw_prices(axes, plan, price, losses, counts)
    axes.plot([plan.n], [_cost(plan, price).private], "o", markersize=11, fillstyle="none", color=PROMISE,
              label=f"this plan: ε = {plan.terms.epsilon:g}, n = {plan.n:,}")  # fmt: skip
    if price == "coverage":
        level = float(plan.terms.level)
        promise_line(axes, level, f"requested: {level:.6g}")

    # Axes, and words.
    _scale_logarithmically(axes, sizes=price == "size")
    axes.grid(color=INK, alpha=0.08)
    legend(axes, ax, columns=3)
    units = {"coverage": "expected coverage", "excess": f"additional {plan.unit_of_cost}", "size": "classes in a set"}
    scores = "a public pilot sample" if price == "size" else plan.typical_scores
    title = f"The cost of privacy, α = {float(plan.terms.alpha):.6g}, on {scores}"
    return labelled(axes, "calibration records", units[price], title)


def _rounded_losses(plan: Plan, epsilons: Sequence[float] | None) -> list[float]:
    if epsilons is None:
        epsilons = [plan.terms.epsilon * factor for factor in _FACTORS_OF_EPSILON]
    return sorted({float(f"{privacy_loss('epsilons', loss):.6g}") for loss in epsilons})


def _draw_prices(axes: Any, plan: Plan, price: Price, losses: Sequence[float], counts: Sequence[int]) -> None:
    """Draw one line for each privacy loss; the line without privacy is the same for all of them."""
    for place, epsilon in enumerate(losses):
        plans = [replace(make_plan(plan.terms.with_loss(epsilon), n), pilot=plan.pilot) for n in counts]
        costs = [_cost(point, price) for point in plans]
        if not place:
            axes.plot(counts, [cost.plain for cost in costs], color="#777777", linewidth=1.2, label="without privacy")
        private = [cost.private for cost in costs]
        alpha = 0.4 + 0.6 * place / max(1, len(losses) - 1)
        axes.plot(counts, private, marker=MARKERS[place % len(MARKERS)], markersize=4, linewidth=1.4, color=INK,
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


class _Cost(NamedTuple):
    """What a plan costs, and what the same costs without privacy."""

    private: float | None
    plain: float | None


def _cost(plan: Plan, of: Price) -> _Cost:
    if of == "size":
        assert plan.on_pilot is not None
        return _Cost(plan.on_pilot.size, plan.on_pilot.plain_size)
    rank = plan.nonprivate_rank
    n = plan.effective_n
    coverage = rank / (n + 1) if rank <= n else 1.0
    if of == "coverage":
        return _Cost(plan.expected_coverage, coverage)
    return _Cost(plan.expected_excess, (coverage - float(plan.terms.level)) * (n + 1))
