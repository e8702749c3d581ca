"""The part of a page that belongs to federated calibrations: who answered what, and how the threshold does by silo."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from confide.errors import InputError
from confide.federated import CODES, FederatedCalibration, SiloReport, read_answer, unlike_replies
from confide.releases import Calibration, Release
from confide.reports.numbers import number, percent

MOST_DRAWN = 50

_BY_ITSELF = "Each answer is private by itself, against everybody, so it can be shown."
_NOT_PRIVATE = "The answers of this method are order statistics of the silos’ records: they are not private."
_IN_SUM = "Only the sum of the answers that count was opened; no single answer can be read."


def silos(release: Release, answers: Sequence[str], reports: Sequence[SiloReport]) -> dict[str, Any] | None:
    """What a page says about the silos: in a sentence, as rows, and their replies and reports; None without silos.

    Raises
    ------
    InputError
        If answers or reports belong to another federation, or do not give the released threshold.
    """
    if not isinstance(release, FederatedCalibration):
        if answers or reports:
            raise InputError(
                "answers and silo reports must be left out: the calibration is not federated, or has several thresholds"
            )
        return None
    plan, refused = release.plan, dict(release.refused)
    known = {silo.name for silo in plan.silos}
    counts = Counter(report.silo for report in reports)
    wrong = [name for name, times in counts.items() if name not in known or times > 1]
    if wrong:
        raise InputError(f"silo reports must come once each from silos of the plan; found {len(wrong)} that do not")
    replies = _replies(release, answers)
    rows = []
    for i, silo in enumerate(plan.silos):
        state = "answered" if silo.name in release.answered else refused.get(silo.name, "did not answer")
        target = plan.protocol.target_rank(i)
        rows.append(
            (
                silo.name,
                "secret" if silo.size is None else f"{silo.size:,}",
                "in the sum" if target is None else number(float(target)),
                "not private" if math.isinf(plan.loss(i)) else number(plan.loss(i)),
                state if state in ("answered", "did not answer") else f"left out: {CODES[state]}",
                number(replies[silo.name]) if silo.name in replies else "",
            )
        )
    unknown = [code for name, code in release.refused if name not in known]
    rows += [("unknown sender", "", "", "", f"left out: {CODES[code]}", "") for code in unknown]
    far = unlike_replies(plan, replies)
    sent = _IN_SUM if plan.protocol.relies_on_silos else _BY_ITSELF if plan.protocol.private else _NOT_PRIVATE
    return {
        "summary": f"{len(release.answered)} of {len(plan.silos)} silos answered. {sent}",
        "rows": rows,
        "replies": sorted(replies.items(), key=lambda pair: pair[1]),
        "unlike": None if far is None else f"{far[0].upper()}{far[1:]}.",
        "reports": reports,
    }


def silo_charts(
    calibration: Calibration, replies: Sequence[tuple[str, float]], reports: Sequence[SiloReport]
) -> dict[str, Any]:
    """What the charts of the silos draw."""
    drawn = [{"name": n, "value": v} for n, v in replies if math.isfinite(v)][:MOST_DRAWN]
    return {
        "threshold": None if math.isinf(calibration.threshold) else calibration.threshold,
        "promised": calibration.coverage,
        "replies": drawn,
        "logarithmic": _decades([one["value"] for one in drawn]) > 2,
        "reports": [
            {"name": r.silo, "value": r.estimate.value, "low": r.estimate.low, "high": r.estimate.high}
            for r in reports[:MOST_DRAWN]
        ],
    }


def _decades(values: Sequence[Any]) -> float:
    """How many powers of ten positive values span; 0 where one is not positive."""
    return math.log10(max(values) / min(values)) if values and min(values) > 0 else 0.0


def report_row(report: SiloReport) -> tuple[str, ...]:
    """One silo's estimate as a row of a table."""
    e = report.estimate
    interval = f"{percent(round(e.low, 4))} to {percent(round(e.high, 4))}"
    return report.silo, f"{e.n:,}", percent(round(e.value, 4)), interval, number(report.epsilon)


def _replies(release: FederatedCalibration, answers: Sequence[str]) -> dict[str, float]:
    plan = release.plan
    found: dict[str, float] = {}
    for text in answers:
        answer = read_answer(plan, text)
        if isinstance(answer.reply, int):
            found[plan.silos[answer.silo].name] = float(plan.candidates.values[answer.reply])
    if not found:
        return {}
    if plan.method != "fedcp-avg" and set(found) == set(release.answered):
        ordered = sorted(found.values())
        threshold = ordered[release.k - 1] if release.k <= len(ordered) else math.inf
        if threshold != release.threshold:
            raise InputError("answers must be those that the threshold was made from; these give another threshold")
    elif not set(found) <= set(release.answered):
        raise InputError("answers must come from silos whose answers count; some were left out of the calibration")
    return found
