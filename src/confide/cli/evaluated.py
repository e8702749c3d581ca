"""An evaluation in words, as `confide evaluate` prints it."""

from collections.abc import Mapping, Sequence
from typing import Any

from confide.cli.output import number
from confide.evaluation import (
    CoverageEstimate,
    Evaluation,
    LevelEvaluation,
    Subgroup,
    WorstPart,
    surely_below,
    worst_parts,
)
from confide.guarantee import coverage_text
from confide.releases import Calibration, GroupCalibration, LevelCalibration, Release, RiskCalibration, parts_of
from confide.support import aligned

_SHOWN = {
    "mean_size": "classes per set, on average",
    "singletons": "sets with one class",
    "empty": "sets without any",
    "mean_width": "width of intervals, on average",
}
_SHARES = ("singletons", "empty")
_MOST_SUBGROUPS, _MOST_NAMED = 30, 10


def evaluated(found: Evaluation | LevelEvaluation, release: Release) -> str:
    """Coverage beside the promise, sizes, and a table of what has thresholds of its own; level by level."""
    if isinstance(found, Evaluation):
        return _one(found, _promise(found, release), release)
    assert isinstance(release, LevelCalibration)
    return "\n".join(
        f"alpha {float(alpha):g}\n{_one(one, str(release.parts[alpha].guarantee), release.parts[alpha])}"
        for alpha, one in found.levels.items()
    )


def worst_fields(found: Evaluation | LevelEvaluation, release: Release) -> list[Mapping[str, Any]]:
    """The same parts as JSON values; of several levels with their alpha. A bound on a loss has none."""
    if isinstance(found, LevelEvaluation):
        return [
            {"alpha": str(alpha), **one.fields()} for alpha, each in found.levels.items() for one in worst_parts(each)
        ]
    return [] if isinstance(release, RiskCalibration) else [one.fields() for one in worst_parts(found)]


def _promise(found: Evaluation, release: Release) -> str:
    if isinstance(release, Calibration):
        return str(release.guarantee)
    if isinstance(release, RiskCalibration):
        return f"expected loss at most {release.risk:.6g}"
    first = next(iter(parts_of(release).values())).guarantee
    return f"for each {release.by}: {first}" if isinstance(release, GroupCalibration) else _at_least(found.promised)


def _at_least(level: float) -> str:
    return f"coverage at least {coverage_text(level)}"


def _one(found: Evaluation, promise: str, release: Release) -> str:
    c = found.coverage
    rows = [("coverage", str(c))]
    if isinstance(release, RiskCalibration):
        rows = [(f"loss {release.loss!r}", _loss(c, release))]
    rows.append(("promise", promise))
    sizes = ((name, getattr(found, name)) for name in _SHOWN)
    rows += [(_SHOWN[name], f"{100 * v:.1f} %" if name in _SHARES else number(v)) for name, v in sizes if v is not None]
    own: Sequence[Subgroup] = found.classes if found.by == "class" else found.groups
    rows += [(f"{found.by} {part.name}" if found.by != "side" else part.name, _own(part)) for part in own]
    if isinstance(release, RiskCalibration):
        return aligned([*rows, *_subgroup_losses(found, release)])
    rows += [(f"group {part.name}", _own(part)) for part in _least_covered(found.subgroups)]
    worst = worst_parts(found)
    for one in worst:
        rows += _worst(one) if one.kind != "end" else []
    return "\n".join([aligned(rows), *(one.sentence for one in worst if one.below)])


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
    below = f", surely below {coverage_text(promised)}" if part in one.below else ""
    return f"{part.coverage}{below}"


def _subgroup_losses(found: Evaluation, release: RiskCalibration) -> list[tuple[str, str]]:
    """What each group loses, for a bound on a loss."""
    above = surely_below(found.subgroups, found.promised)
    return [
        (f"group {part.name}", _loss(part.coverage, release) + (", surely above it" if part in above else ""))
        for part in _least_covered(found.subgroups)
    ]


def _loss(c: CoverageEstimate, release: RiskCalibration) -> str:
    loss, low, high = (release.bound * (1 - share) for share in (c.value, c.high, c.low))
    return f"{loss:.3f} ({100 * c.confidence:g} % interval {low:.3f} to {high:.3f}, n={c.n})"


def _own(part: Subgroup) -> str:
    size = "" if part.mean_size is None else f", {number(part.mean_size)} classes per set"
    width = "" if part.mean_width is None else f", width {number(part.mean_width)}"
    promised = "" if part.promised is None else f"; {_at_least(part.promised)} is promised"
    return f"{part.coverage}{size}{width}{promised}"
