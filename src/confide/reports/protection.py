"""Privacy statement, silos and metadata of a release, for readers who audit its privacy.

The sections state what is protected, in which unit, from whom, and what is not. For federated calibrations they show
the answers and the thresholds of the silos. Metadata that a release does not state are listed as missing.
"""

import math
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from confide.core import ABOUT, Release, Threshold, about_facts, remarks
from confide.errors import InputError
from confide.federated import (
    CODES,
    FederatedRelease,
    FederatedThreshold,
    distant_replies,
    read_answer,
)
from confide.mechanisms import PrivacyStatement, PublishedHistogram, loss_facts
from confide.reports import charts
from confide.reports.page import number, percent
from confide.support import Chart, decimal_text

PRIORS = (0.01, 0.1, 0.5)


def protection(privacy: PrivacyStatement) -> dict[str, Any]:
    r"""Explain the privacy statement of a release.

    The result contains: the statement in one line and as a number with its unit; what stays secret; the largest factor
    on the odds of a statement about one person (None without privacy); how far beliefs can move; the loss by unit.

    Examples
    --------
    >>> protection(PrivacyStatement("replace_one", 1.0, 1, None, 1.0, None))["beliefs"][2]
    ('50\xa0%', '26.9\xa0%', '73.1\xa0%')
    """
    epsilon, one = privacy.epsilon, privacy.records_per_person == 1
    whose, say, they = ("one person’s record", "it says", "it") if one else ("one person’s records", "they say", "they")
    if privacy.neighbors == "add_remove":
        secret = f"whether {whose} took part at all, what {say}, and the exact number of records"
    else:
        secret = f"what {whose} {say.split()[1]}; that {they} took part, and how many records there are, is public"
    whom = "Everyone who sees the result"
    private = math.isfinite(epsilon)
    factor = f"{math.exp(epsilon):.3g}" if epsilon < 7 else f"{math.exp(epsilon):,.0f}" if epsilon <= 20 else None
    return {
        "statement": str(privacy),
        "short": _short(privacy),
        "secret": secret,
        "whom": whom,
        "factor": (factor or f"e^{decimal_text(epsilon)}") if private else None,
        "weak": privacy.weak,
        "weak_loss": decimal_text(epsilon),
        "beliefs": tuple(_belief(prior, epsilon) for prior in PRIORS) if private else (),
        "units": loss_facts(privacy, privacy.records_per_person, 10 * privacy.records_per_person),
        "concentrated": privacy.concentrated_only,
    }


def warnings_of(release: Release) -> tuple[str, ...]:
    """Sentences about unusual thresholds.

    Examples
    --------
    >>> import confide
    >>> warnings_of(confide.calibrate([0.5] * 2000, 0.1, 1.0, score="lac"))
    ()
    """
    return tuple(f"{note[0].upper()}{note[1:]}." for note in remarks(release))


def limits(release: Release) -> tuple[tuple[str, str], ...]:
    """Limits of the release: a heading and a sentence each."""
    uneven = (
        "The promise holds for each group on average. Within a group, some records can be covered less, such as those "
        "that are also in a certain group of another column."
        if release.overlap is not None
        else "The promise holds for each group on average. Within a group, some records can be covered less."
        if release.disjoint
        else "The promise is an average over all people. A subgroup can be covered less, another more."
    )
    noise = (
        "The stated noise",
        "The law of the noise is what the maker of the counts states. Promise and ε rest on it.",
    )
    several = ("Several silos", "If a person has records in several silos, the losses add up.")
    return (
        *((several,) if isinstance(release, FederatedRelease) else ()),
        *((noise,) if isinstance(release.first.mechanism, PublishedHistogram) else ()),
        ("The model", "The records that trained the model are not protected by this release."),
        (
            "Further releases",
            "Every calibration on the same records costs its ε again, and the losses add up. A ledger records them "
            "(confide ledger).",
        ),
        (
            "People who run it",
            "The people who run the calibration see the records. The records are protected against everyone who "
            "sees the result.",
        ),
        (
            "Scores tuned on these records",
            "Each score must be a function of one record and of public information. Anything fitted on the calibration "
            "records breaks the claim.",
        ),
        ("Timing", "The run time of the sampler depends on the data. Outsiders must not be able to measure it."),
        (
            "A changed population",
            "The promise is about new records like the calibration records. After a change of patients, devices or "
            "model, calibrate again.",
        ),
        ("Equal coverage of all groups", uneven),
        (
            "Evaluations",
            "Numbers measured on labelled records, in this page or elsewhere, are not covered by ε. A private "
            "evaluation has its own ε. The losses add up for people who are in both.",
        ),
    )


def _short(privacy: PrivacyStatement) -> tuple[str, str]:
    if not privacy.is_private:
        return "none", "not private"
    unit = (
        "one record" if privacy.records_per_person == 1 else f"up to {privacy.records_per_person} records of a person"
    )
    verb = "adding or removing" if privacy.neighbors == "add_remove" else "replacing"
    if privacy.concentrated_only and privacy.rho is not None:
        return f"ρ = {decimal_text(privacy.rho)}, no ε", f"zero-concentrated privacy alone, for {verb} {unit}"
    return f"ε = {decimal_text(privacy.epsilon)}", f"differential privacy for {verb} {unit}"


def _belief(prior: float, epsilon: float) -> tuple[str, str, str]:
    """Bayes' rule with likelihood ratios exp(-epsilon) and exp(epsilon)."""
    odds = math.log(prior / (1 - prior))
    reach = min(epsilon, 500.0)
    least, most = 1 / (1 + math.exp(reach - odds)), 1 / (1 + math.exp(-reach - odds))
    return percent(prior), percent(round(least, 3)), percent(round(most, 3))


def check_command(file_name: str) -> str:
    """Command that recomputes every claim of the file.

    Examples
    --------
    >>> check_command("my release.json")
    "confide show 'my release.json'"
    """
    guarded = f"./{file_name}" if file_name.startswith("-") else file_name
    return f"confide show {shlex.quote(guarded)}"


MOST_DRAWN = 50

_BY_ITSELF = "Each answer is private by itself, against everyone, so the page may show it."
_IN_SUM = "Only the sum of the counted answers was reconstructed; no single answer can be read."


def silos(release: Release, answers: Sequence[str]) -> dict[str, Any] | None:
    """Section about the silos: a summary, rows, and their answers; None for one calibration without silos.

    Raises
    ------
    InputError
        If answers belong to another federation, do not give the released threshold, or are to several thresholds.
    """
    if not isinstance(release, FederatedRelease):
        if answers:
            raise InputError("answers", "must be left out: the calibration is not federated")
        return None
    if answers and release.by is not None:
        raise InputError("answers", "must be left out: the calibration has several thresholds")
    plan = release.plan
    refused, asks = dict(release.refused), {id(ask): ask for ask in plan.single_plans}.values()
    known = {silo.name for silo in plan.silos}
    replies = _replies(release, answers)
    rows = []
    for i, silo in enumerate(plan.silos):
        state = "answered" if silo.name in release.answered else refused.get(silo.name, "did not answer")
        targets = dict.fromkeys(ask.protocol.target_rank(i) for ask in asks)
        rows.append(
            (
                silo.name,
                "secret" if silo.size is None else f"{silo.size:,}",
                "; ".join("in the sum" if target is None else number(float(target)) for target in targets),
                number(plan.loss(i)),
                state if state in ("answered", "did not answer") else f"left out: {CODES[state]}",
                number(replies[silo.name]) if silo.name in replies else "",
            )
        )
    unknown = [code for name, code in release.refused if name not in known]
    rows += [("unknown sender", "", "", "", f"left out: {CODES[code]}", "") for code in unknown]
    far = distant_replies(plan, replies)
    sent = _BY_ITSELF if plan.channel.single_replies else _IN_SUM
    return {
        "summary": f"{len(release.answered)} of {len(plan.silos)} silos answered. {sent}",
        "rows": rows,
        "replies": sorted(replies.items(), key=lambda pair: pair[1]),
        "chart": _replies_chart(release.first, replies),
        "unlike": None if far is None else f"{far[0].upper()}{far[1:]}.",
    }


def _replies_chart(part: Threshold, replies: Mapping[str, float]) -> Chart | None:
    """Chart of the lowest finite answers and the released threshold."""
    finite = sorted(((name, value) for name, value in replies.items() if math.isfinite(value)), key=lambda one: one[1])
    threshold = None if math.isinf(part.threshold) else part.threshold
    return charts.replies(finite[:MOST_DRAWN], threshold, "The silos’ answers; the numbers are in the table above.")


def _replies(release: FederatedRelease, answers: Sequence[str]) -> dict[str, float]:
    part = release.first
    assert isinstance(part, FederatedThreshold)
    plan, found = part.plan, dict[str, float]()
    for text in answers:
        answer = read_answer(plan, text)
        if isinstance(answer.reply, int):
            found[plan.silos[answer.silo].name] = float(plan.candidates.values[answer.reply])
    if not found:
        return {}
    if set(found) == set(release.answered):
        ordered = sorted(found.values())
        threshold = ordered[part.k - 1] if part.k <= len(ordered) else math.inf
        if threshold != release.threshold:
            raise InputError("answers", "must be those of this threshold; these give another threshold")
    elif not set(found) <= set(release.answered):
        raise InputError("answers", "must come from silos with counted answers; some silos were left out")
    return found


EXAMPLES = {
    "model": "NAME",
    "version": "NUMBER",
    "data": "NAME",
    "purpose": "TEXT",
    "responsible": "NAME",
    "contact": "ADDRESS",
    "date": "2026-11-22",
}
"""Metadata that every release should state, with example values; other metadata are shown if a release states them."""


def metadata(release: Release) -> dict[str, Any]:
    """Metadata of a release, with None for missing ones, and the command-line options that would state them.

    Examples
    --------
    >>> import confide, numpy as np
    >>> found = metadata(confide.calibrate(np.linspace(0, 1, 2000), 0.1, 1.0, about={"model": "resnet"}))
    >>> found["rows"][:2], found["missing"][:2]
    ((('model', 'resnet'), ('version of the model', None)), ['version of the model', 'calibration data'])
    """
    rows = about_facts(release, EXAMPLES)
    left = [key for key in EXAMPLES if key not in release.about]
    return {
        "rows": rows,
        "missing": [ABOUT[key] for key in left],
        "options": " ".join(f"--about {shlex.quote(f'{key}={EXAMPLES[key]}')}" for key in left),
    }
