"""An evaluation in words, as `confide evaluate` prints it: beside the promise of its release."""

from collections.abc import Mapping
from typing import Any

from confide.cli.exit_codes import CLAIM_FAILED, DONE
from confide.errors import InputError
from confide.evaluation import Evaluation, LevelEvaluation, PrivateEvaluation, in_words, worst_parts
from confide.guarantee import coverage_text
from confide.releases import Release
from confide.sets import has_law, sentence_of


def evaluated(found: Evaluation | LevelEvaluation, release: Release) -> str:
    """Coverage beside the promise, sizes, and a table of what has thresholds of its own; level by level."""
    if isinstance(found, Evaluation):
        return in_words(found, _promise(found, release), release.bounded)
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
    return [] if release.bounded else [one.fields() for one in worst_parts(found)]


def shortfall_fields(found: Evaluation | LevelEvaluation | PrivateEvaluation) -> list[Mapping[str, Any]]:
    """Where coverage over all lies below the promise, as JSON values, by statement."""
    return [{"of": name, **one.fields()} for name, one in found.shortfalls.items()]


def shortfall_notes(found: Evaluation | LevelEvaluation | PrivateEvaluation) -> list[str]:
    """The same in words."""
    return [sentence_of(name, one) for name, one in found.shortfalls.items()]


def refuse_unjudged(release: Release) -> None:
    """Refuse to fail below a promise of which it is not known how far luck in calibrating may fall short."""
    if not has_law(release):
        raise InputError(
            "--fail-below-promise needs a release with a promise, and a law of how coverage varies from calibration to "
            "calibration; this one has none; leave the option out, and read the interval"
        )


def exit_code(found: Evaluation | LevelEvaluation | PrivateEvaluation, *, fail: bool) -> int:
    """That of a claim that does not hold, if it is asked for and a promise is broken."""
    return CLAIM_FAILED if fail and any(one.broken for one in found.shortfalls.values()) else DONE


def _promise(found: Evaluation, release: Release) -> str:
    if release.by == "side":  # of both ends together, which have promises of their own
        return f"coverage at least {coverage_text(found.promised)}"
    return "; ".join(f"for {name}: {text}" if name else text for name, text in release.promises.items())
