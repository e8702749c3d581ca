"""An evaluation in words, as `confide evaluate` prints it: beside the promise of its release."""

from collections.abc import Mapping
from typing import Any

from confide.evaluation import Evaluation, LevelEvaluation, in_words, worst_parts
from confide.guarantee import coverage_text
from confide.releases import Calibration, GroupCalibration, LevelCalibration, Release, RiskCalibration, parts_of


def evaluated(found: Evaluation | LevelEvaluation, release: Release) -> str:
    """Coverage beside the promise, sizes, and a table of what has thresholds of its own; level by level."""
    if isinstance(found, Evaluation):
        loss = (release.loss, release.bound) if isinstance(release, RiskCalibration) else None
        return in_words(found, _promise(found, release), loss)
    assert isinstance(release, LevelCalibration)
    return "\n".join(
        f"alpha {float(alpha):g}\n{in_words(one, str(release.parts[alpha].guarantee))}"
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
    at_least = f"coverage at least {coverage_text(found.promised)}"
    return f"for each {release.by}: {first}" if isinstance(release, GroupCalibration) else at_least
