"""The coverage promise in plain sentences."""

import math

from confide.guarantee import Guarantee, coverage_text, silos_text
from confide.releases import (
    Calibration,
    Release,
    RiskCalibration,
)
from confide.reports.numbers import percent


def promise(guarantee: Guarantee, where: str = "in the set") -> str:
    r"""What is promised to somebody who uses the sets.

    Examples
    --------
    >>> promise(Guarantee("marginal", 0.9, None, None, 1))
    'On average, the truth is in the set for at least 90\xa0% of new records.'
    """
    share = coverage_percent(guarantee.coverage)
    if guarantee.kind == "none" or guarantee.coverage == 0:
        return "No coverage is promised."
    alike = ", if the silos are alike" if guarantee.silos == "alike" else ""
    if guarantee.population is not None:
        alike = f", {guarantee.population.replace('for new records', 'that is, of those', 1)}"
    if guarantee.delta is None:
        return f"On average, the truth is {where} for at least {share} of new records{alike}."
    sure = percent(1 - guarantee.delta)
    return f"With a probability of {sure}, the truth is {where} for at least {share} of all new records to come{alike}."


def promise_of_part(release: Release, name: str, part: Calibration) -> str:
    """The same of one threshold of a release; a side of an interval promises that side."""
    sides = {"lower side": "not below the interval", "upper side": "not above the interval"}
    where = sides[name] if release.by == "side" else f"in the {noun(release)}"
    return promise(part.guarantee, where)


def explanation(guarantee: Guarantee) -> str:
    """What the average is over, and what is assumed; of a whole release, that of its first part."""
    assumed = "Nothing is assumed about the model or the scores, only that new records come from where the calibration "
    if guarantee.kind == "none" or guarantee.coverage == 0:
        return "The mechanism that made this threshold has no certificate. Measure coverage before you rely on it."
    if guarantee.population is not None:
        return (
            "The average is over the records that happened to calibrate, the noise that protects them, and the new "
            "record. Nothing is assumed about the model or the scores, but that new records differ from the "
            "calibration records’ population by the stated weights alone: where these are wrong, fewer may be covered."
        )
    if guarantee.delta is None:
        return (
            "The average is over the records that happened to calibrate, the noise that protects them, and the new "
            f"record. A single calibration can cover somewhat less. {assumed}records came from.{_silos(guarantee)}"
        )
    return (
        f"The remaining {percent(guarantee.delta)} is the risk of an unlucky draw of calibration records or noise. "
        f"{assumed}records came from, independently.{_silos(guarantee)}"
    )


def any_shares(release: Release) -> str:
    """That thresholds of groups, or classes, hold under any shift of their shares; empty for other releases."""
    if not release.disjoint or not all(part.coverage for part in release.parts.values()):
        return ""
    parts = "classes" if release.by == "class" else "groups"
    return f" It holds whatever the shares of the {parts} are among new records."


def _silos(guarantee: Guarantee) -> str:
    """What a promise about a federation assumes of its silos."""
    if guarantee.silos is None:
        return ""
    if guarantee.silos == "alike":
        return " All silos must be alike: where one differs, its new records may be covered far less."
    return f" The promise is {silos_text(guarantee.silos)}: one of them may be covered far less than all together."


def headline(release: Release) -> str:
    """The promise of the whole release."""
    if isinstance(release, RiskCalibration):  # whose limit has words of its own
        return (
            f"On average, {release.limit}."
            if release.limit.startswith("at most")
            else f"On average, the loss “{release.loss}” is at most {release.risk:.6g}."
        )
    if release.by == "level":
        return f"Nested sets for several levels: the truth is in them for at least {_shares(release)} of new records."
    if release.by == "side":
        return f"On average, the truth is in the interval for at least {_shares(release)} of new records."
    one = promise(release.first.guarantee, f"in the {noun(release)}")
    return f"For each {release.by}: {one[0].lower()}{one[1:]}" if release.disjoint else one


def noun(release: Release) -> str:
    """What the model answers with: a set, or an interval."""
    return "interval" if release.task == "regression" else "set"


def short(release: Release) -> tuple[str, str]:
    """The promise as a figure and what it is of."""
    if isinstance(release, RiskCalibration):
        return f"{release.risk:.6g} at most", f"of the loss “{release.loss}”, on average"
    guarantee = release.first.guarantee
    if guarantee.kind == "none" or guarantee.coverage == 0:
        return short_guarantee(guarantee)
    each = f" of each {release.by}" if release.disjoint else ""
    return f"{_shares(release)} at least", f"of new records{each}, {_sense(guarantee)}"


def _shares(release: Release) -> str:
    """What is promised, in per cent; of several levels, of each."""
    if release.by == "level":
        return ", ".join(coverage_percent(part.coverage) for part in release.parts.values())
    return coverage_percent(release.promised if release.by == "side" else release.first.coverage)


def short_guarantee(guarantee: Guarantee) -> tuple[str, str]:
    r"""The same for one guarantee.

    Examples
    --------
    >>> short_guarantee(Guarantee("training_conditional", 0.9, 0.05, 1000, None))
    ('90\xa0% at least', 'of new records, with a probability of 95\xa0%')
    """
    if guarantee.kind == "none" or guarantee.coverage == 0:
        return "none", "no coverage is promised"
    return f"{coverage_percent(guarantee.coverage)} at least", f"of new records, {_sense(guarantee)}"


def _sense(guarantee: Guarantee) -> str:
    return "on average" if guarantee.delta is None else f"with a probability of {percent(1 - guarantee.delta)}"


def threshold_text(calibration: Calibration) -> str:
    """The threshold with all the digits that files have."""
    return "+∞" if math.isinf(calibration.threshold) else f"{calibration.threshold:.12g}".replace("-", "−")


def coverage_percent(coverage: float) -> str:
    """A guaranteed coverage in per cent, rounded as everywhere."""
    return percent(float(coverage_text(coverage)))
