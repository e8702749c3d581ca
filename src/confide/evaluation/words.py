"""An evaluation in words, as it is printed."""

import math
from collections.abc import Collection, Sequence

from confide.evaluation.parts import Counted, Subgroup
from confide.evaluation.worst import WorstPart, surely_below, worst_parts
from confide.guarantee import coverage_text
from confide.sets import CoverageEstimate
from confide.support import aligned

_SHOWN = {
    "mean_size": "classes per set, on average",
    "singletons": "sets with one class",
    "empty": "sets without any",
    "mean_width": "width of intervals, on average",
}
_SHARES = ("singletons", "empty")
_MOST_SUBGROUPS, _MOST_NAMED = 30, 10


def in_words(found: Counted, promise: str, loss: tuple[str, float] | None = None) -> str:
    """Coverage beside the promise, sizes, and a table of what has thresholds of its own.

    Where a loss is bounded, its name and largest value say what coverage stands for.
    """
    c = found.coverage
    rows = [("coverage", str(c))] if loss is None else [(f"loss {loss[0]!r}", _loss(c, loss[1]))]
    rows.append(("promise", promise))
    sizes = ((name, getattr(found, name)) for name in _SHOWN)
    told = {name: f"{100 * v:.1f} %" if name in _SHARES else _number(v) for name, v in sizes if v is not None}
    rows += [(_SHOWN[name], text) for name, text in told.items()]
    own: Sequence[Subgroup] = found.classes if found.by == "class" else found.groups
    below = set(surely_below(own, found.promised))
    rows += [(f"{found.by} {part.name}" if found.by != "side" else part.name, _own(part, below)) for part in own]
    broken = [] if found.shortfall is None else [found.shortfall.sentence]
    if loss is not None:
        return "\n".join([*broken, aligned([*rows, *_subgroup_losses(found, loss[1])])])
    below = set(surely_below(found.subgroups, found.promised))
    rows += [(f"group {part.name}", _own(part, below, found.promised)) for part in _least_covered(found.subgroups)]
    worst = worst_parts(found)
    for one in worst:
        if one.part not in (*own, *found.subgroups):  # these have their rows
            rows += _worst(one)
    return "\n".join([*broken, aligned(rows), *(one.sentence for one in worst if one.below)])


def _least_covered(parts: Sequence[Subgroup]) -> Sequence[Subgroup]:
    """All of them, or of very many the least covered, the worst first."""
    if len(parts) <= _MOST_SUBGROUPS:
        return parts
    return sorted(parts, key=lambda part: part.coverage.value)[:_MOST_SUBGROUPS]


def _worst(one: WorstPart) -> list[tuple[str, str]]:
    """The least covered part, and those that are surely below, if they are others."""
    others = [part for part in one.below if part != one.part][:_MOST_NAMED]
    return [
        (f"worst {one.kind}", f"{one.part.name}: {_against(one.part, one)}"),
        *((f"{one.kind} {part.name}", _against(part, one)) for part in others),
    ]


def _against(part: Subgroup, one: WorstPart) -> str:
    promised = one.promised if part.promised is None else part.promised
    return f"{part.coverage}{_below(promised) if part in one.below else ''}"


def _below(promised: float) -> str:
    return f", below {coverage_text(promised)} beyond chance"


def _subgroup_losses(found: Counted, bound: float) -> list[tuple[str, str]]:
    """What each group loses, for a bound on a loss."""
    above = surely_below(found.subgroups, found.promised)
    return [
        (
            f"group {part.name}",
            _loss(part.coverage, bound) + (", above what is promised beyond chance" if part in above else ""),
        )
        for part in _least_covered(found.subgroups)
    ]


def _loss(c: CoverageEstimate, bound: float) -> str:
    loss, low, high = (bound * (1 - share) for share in (c.value, c.high, c.low))
    return f"{loss:.3f} ({100 * c.confidence:g} % interval {low:.3f} to {high:.3f}, n={c.n})"


def _own(part: Subgroup, below: Collection[Subgroup] = (), promised: float | None = None) -> str:
    """The row of a part, which may have a promise of its own; what all are promised otherwise."""
    size = "" if part.mean_size is None else f", {_number(part.mean_size)} classes per set"
    width = "" if part.mean_width is None else f", width {_number(part.mean_width)}"
    own = "" if part.promised is None else f"; coverage at least {coverage_text(part.promised)} is promised"
    level = part.promised if promised is None else promised
    short = _below(level) if part in below and level is not None else ""
    return f"{part.coverage}{size}{width}{own}{short}"


def _number(value: float) -> str:
    if math.isinf(value):
        return f"{value:+}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
