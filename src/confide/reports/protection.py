"""Privacy statement, mechanism, silos and metadata of a release, for readers who audit its privacy or check it.

The sections state what is protected, in which unit, from whom, and what is not. They state the mechanism, parameters
and versions, and the files behind the release. For federated calibrations they show the answers and the thresholds of
the silos. Metadata that a release does not state are listed as missing.
"""

import math
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, Decimal
from typing import Any

from confide.candidates import spread_words
from confide.errors import InputError
from confide.federated import (
    CODES,
    FederatedCalibration,
    FederatedPlan,
    FederatedRelease,
    NoisyCounts,
    OwnShare,
    Shared,
    SiloReport,
    distant_replies,
    first_of,
    plan_of,
    read_answer,
)
from confide.guarantee import Guarantee
from confide.mechanisms import (
    LabelPrivacy,
    Neighbors,
    PrivacyStatement,
    Slopes,
    label_rows,
    mechanism_fields,
)
from confide.planning import Population, needed_text, rounding_text
from confide.releases import (
    ABOUT,
    Calibration,
    CountsCalibration,
    NoisyLabelCalibration,
    Release,
    about_of,
    class_list,
    parts_of,
    records_needed,
    remarks,
)
from confide.reports import charts
from confide.reports.page import number, percent
from confide.support import Chart, Described, decimal_text, demonstration_note

PRIORS = (0.01, 0.1, 0.5)


_ABOUT_LABELS = "which label a record has; its features and its participation are not protected"


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
    if isinstance(privacy, LabelPrivacy):
        secret, whom = _ABOUT_LABELS, "Everyone who sees the randomised labels, also the person who calibrates on them"
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
        "units": _units(privacy),
        "concentrated": privacy.concentrated_only,
    }


def warnings_of(release: Release, shown_with: Mapping[str, Described]) -> tuple[str, ...]:
    """Sentences about unusual thresholds, and about everything on the page that a demonstration sampler drew.

    Examples
    --------
    >>> import confide
    >>> warnings_of(confide.calibrate([0.5] * 2000, 0.1, 1.0, score="lac"), {})
    ()
    """
    others = (f"the {name} is {note}" for name, one in shown_with.items() if (note := demonstration_note(one)))
    return tuple(f"{note[0].upper()}{note[1:]}." for note in (*remarks(release), *others))


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
    if isinstance(release, NoisyLabelCalibration):
        return (*_of_labels(), ("Equal coverage of all groups", uneven))
    noise = (
        "The stated noise",
        "The law of the noise is what the maker of the counts states. Promise and ε rest on it.",
    )
    several = ("Several silos", "If a person has records in several silos, the losses add up.")
    return (
        *((several,) if isinstance(release, FederatedRelease) else ()),
        *((noise,) if isinstance(release, CountsCalibration) else ()),
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


def _of_labels() -> tuple[tuple[str, str], ...]:
    """Limits of a release from randomised labels."""
    return (
        (
            "Features",
            "Features and model outputs are not protected: the calibrating person has seen them unchanged.",
        ),
        ("The model", "The records that trained the model are not protected by this release."),
        (
            "Repeated randomisation",
            "Every further randomisation of the same labels costs its ε again. Further calibrations on the noisy "
            "labels have no cost.",
        ),
        ("Several labels of a person", "If a person has several labels, the losses add up."),
        (
            "Wrong labels",
            "Only the stated noise is corrected for. Labels that were wrong before are treated as right. If the stated "
            "ε is larger than the one in use, the promise is too high.",
        ),
        (
            "A changed population",
            "The promise is about new records like the calibration records. After a change of patients, devices or "
            "model, calibrate again.",
        ),
    )


def _short(privacy: PrivacyStatement) -> tuple[str, str]:
    if isinstance(privacy, LabelPrivacy):
        return f"ε = {decimal_text(privacy.epsilon)}", "local differential privacy of each label, not of features"
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


def rounded_up(loss: float) -> str:
    """Format a loss with four significant digits, rounded up except for noise in its tenth digit.

    Examples
    --------
    >>> rounded_up(10 / 9), rounded_up(100 / 9), rounded_up(1.0), rounded_up(1e-3)
    ('1.112', '11.12', '1', '0.001')
    """
    exact = Decimal(f"{loss:.10g}")
    digits = Decimal(1).scaleb(exact.adjusted() - 3)
    return decimal_text(float((exact / digits).to_integral_value(ROUND_CEILING) * digits))


def _infinite(privacy: PrivacyStatement) -> str:
    if privacy.concentrated_only:
        return "no ε"
    return "not protected" if math.isinf(privacy.epsilon) else "not limited: the number is public"


def _units(privacy: PrivacyStatement) -> tuple[tuple[str, str], ...]:
    if isinstance(privacy, LabelPrivacy):
        rows = [(name.removeprefix("loss, replacing "), text) for name, text in label_rows(privacy, 10)]
        return tuple((f"{name} replaced" if "label" in name else name, text) for name, text in rows)
    relations: tuple[tuple[str, Neighbors], ...] = (("added or removed", "add_remove"), ("replaced", "replace_one"))
    rows = []
    for k in sorted({1, privacy.records_per_person, 10 * privacy.records_per_person}):
        for verb, relation in relations:
            loss = privacy.loss(relation, k)
            text = _infinite(privacy) if math.isinf(loss) else rounded_up(loss)
            rows.append((f"{'one record' if k == 1 else f'{k} records'} {verb}", text))
    if privacy.rho is not None:
        rows.append(("one person, as zCDP (ρ)", decimal_text(privacy.rho, 6)))
    return tuple(rows)


Rows = tuple[tuple[str, str], ...]


def mechanism_rows(calibration: Calibration) -> Rows:
    """Mechanism and its parameters."""
    if isinstance(calibration, FederatedCalibration):
        return _federated(calibration)
    if isinstance(calibration, OwnShare):
        larger = f"the larger of the common threshold and the answer of {calibration.silo}"
        return (("Own share", larger), *_federated(calibration.common))
    mechanism = calibration.mechanism
    if mechanism is None:
        return (("Mechanism", "none: the result +∞ does not use the data"),)
    if isinstance(mechanism, Slopes):
        return slopes_rows(mechanism, calibration.candidates)
    stated = mechanism_fields(mechanism)
    return (("Mechanism", stated.pop("name")), *((name, str(value)) for name, value in stated.items()))


def slopes_rows(mechanism: Slopes, m: int) -> Rows:
    """The library's own mechanism and its parameters, for m candidates."""
    grows = "" if mechanism.rate == 0 else f"{mechanism.rate} (n + 1) + "
    weighs = mechanism.weight
    largest = (
        () if weighs is None else (("Largest weight", f"{weighs:,} steps; ranks and n are weights, divided by it"),)
    )
    return (
        ("Mechanism", "slopes on both sides of a target rank"),
        *largest,
        ("Target rank", f"{grows}{mechanism.offset}"),
        ("Slopes per rank, below and above it", f"{mechanism.slope_left:.6g} and {mechanism.slope_right:.6g}"),
        ("Rise of the prior weights", _rise(mechanism, m)),
        ("Prior bonus of +∞", _head_start(mechanism)),
        ("Drawn by", f"{mechanism.selector.replace('_', '-')}, noise scale {mechanism.scale:.17g} (OpenDP)"),
    )


def _rise(mechanism: Slopes, m: int) -> str:
    if not mechanism.rise:
        return "none: all candidates have equal prior odds"
    return (
        f"the first {float(mechanism.flat):,.6g} of {m:,} candidates have equal prior odds; from there on the prior "
        f"log-odds increase evenly, by {mechanism.total_rise:.4g} in all. So the many candidates below the target have "
        "a small total weight, and the promise costs few ranks"
    )


def _head_start(mechanism: Slopes) -> str:
    if not mechanism.head_start or not mechanism.fade:
        return f"{mechanism.head_start_ranks:.6g} ranks"
    return (
        f"{mechanism.head_start_ranks:.6g} ranks without records; it decreases by {mechanism.fade_ranks:.4g} with each "
        f"record{' of the largest weight' if mechanism.weight else ''}, because only few records need it"
    )


def common_rows(calibration: Calibration) -> Rows:
    """Facts that every calibration states."""
    guarantee, n = calibration.guarantee, calibration.guarantee.n
    return (
        ("Nonconformity score", "not named" if calibration.score is None else calibration.score),
        *((("Choice of the score", str(calibration.chosen)),) if calibration.chosen is not None else ()),
        *((("Classes", class_list(calibration.classes, 30)),) if calibration.classes is not None else ()),
        *_population(calibration.population),
        ("Miscoverage level α", str(calibration.alpha)),
        ("Candidate thresholds", f"{calibration.candidates:,} ({spread_words(calibration.recipe)})"),
        ("Records", f"{n:,}, public" if n is not None else f"secret; the promise holds from {guarantee.n_min:,} on"),
        *_needed(calibration),
        ("Certified coverage", f"{guarantee.coverage!r} ({guarantee.kind.replace('_', '-')}{_certificate(guarantee)})"),
        *((("Failure probability δ", f"{guarantee.delta:.6g}"),) if guarantee.delta is not None else ()),
        ("Certified by", _theorems(calibration)),
        ("Made with", ", ".join(f"{name} {version}" for name, version in calibration.versions.items())),
    )


def _needed(calibration: Calibration) -> Rows:
    needed = records_needed(calibration)
    return () if needed is None else (("Records needed", needed_text(needed).replace("+inf", "+∞")),)


def _population(population: Population | None) -> Rows:
    if population is None:
        return ()
    return ("Promised", str(population)), ("Weights", rounding_text(population))


def provenance_rows(release: Release) -> dict[str, Rows]:
    """Rows for each distinct part of a release; parts with the same rows share them."""
    found: dict[Rows, list[str]] = {}
    for name, part in parts_of(release).items():
        found.setdefault((*mechanism_rows(part), *common_rows(part)), []).append(name)
    return {_joined(names): made for made, names in found.items()}


def check_command(file_name: str) -> str:
    """Command that recomputes every claim of the file.

    Examples
    --------
    >>> check_command("my release.json")
    "confide show 'my release.json'"
    """
    guarded = f"./{file_name}" if file_name.startswith("-") else file_name
    return f"confide show {shlex.quote(guarded)}"


def _joined(names: list[str]) -> str:
    return ", ".join(names) if len(names) <= 6 else f"{', '.join(names[:6])} and {len(names) - 6} more"


def _certificate(guarantee: Guarantee) -> str:
    return "" if guarantee.certificate is None else f", {guarantee.certificate} certificate"


def _theorems(calibration: Calibration) -> str:
    if isinstance(calibration, FederatedCalibration):
        return f"docs/theory-federated.md, {calibration.plan.protocol.theorem}"
    if isinstance(calibration, OwnShare):
        return "docs/theory-federated.md, Theorem F14 with one silo"
    if calibration.guarantee.kind == "none":
        return "no theorem: this mechanism has no certificate"
    if calibration.mechanism is None:
        return "+∞ covers everything"
    if isinstance(calibration, NoisyLabelCalibration):
        return "docs/theory-labels.md, Theorem L4; privacy by Theorem L1"
    if isinstance(calibration, CountsCalibration):
        return "docs/theory-published-counts.md, Theorem E1"
    if not isinstance(calibration.mechanism, Slopes):
        return "docs/methods.md"
    if calibration.guarantee.delta is not None:
        return "docs/theory.md, Theorem C3" if calibration.n is None else "docs/theory.md, Theorem C1b"
    if calibration.population is not None:
        return "docs/theory-after-release.md, Theorem A6; privacy by docs/theory.md, Theorem P1, and group privacy"
    part = "b" if calibration.n is None else "a"
    if calibration.guarantee.certificate == "two-sided":
        return f"docs/theory-two-sided.md, Theorem T1{part}; privacy by docs/theory.md, Theorem P1"
    return f"docs/theory.md, Theorem C2{part}; privacy by Theorem P1"


def _new_records(plan: FederatedPlan) -> str:
    if plan.population == "common":
        return "the common distribution"
    of_0_1 = plan.population == "mixture" and isinstance(plan.protocol, NoisyCounts) and plan.protocol.weights is None
    return f"silo j with probability {'(n_j + 1)/(n + silos)' if of_0_1 else 'n_j/n'}; silos may differ"


def _federated(calibration: FederatedCalibration) -> Rows:
    plan = calibration.plan
    rows = [
        ("Method", plan.method),
        ("Plan", f"SHA-256 {plan.digest}"),
        ("Silos that do not answer", f"{plan.missing}; at most {plan.liars} may be Byzantine"),
        ("New records come from", _new_records(plan)),
    ]
    if isinstance(plan.protocol, NoisyCounts):
        rows.append(("Noise scale of the sum", number(plan.protocol.scale)))
    else:
        rows.append(("Threshold", f"the {calibration.k}. smallest of {len(calibration.answered)} answers"))
    rows += [(name.capitalize(), words) for name, words in plan.method_rows]
    if (colluding := plan.channel.colluders) is not None:
        rows.append(("Silos that may collude with the coordinator", str(colluding)))
    if isinstance(plan.channel, Shared) and calibration.opened is not None:
        helped, openers = len(calibration.opened.parts), len(plan.channel.openers)
        rows.append(
            ("The sum was reconstructed by", f"{helped} of {openers} share holders; {plan.channel.needed} must help")
        )
    return tuple(rows)


MOST_DRAWN = 50

_BY_ITSELF = "Each answer is private by itself, against everyone, so the page may show it."
_NOT_PRIVATE = "The answers of this method are order statistics of the silos’ records: they are not private."
_IN_SUM = "Only the sum of the counted answers was reconstructed; no single answer can be read."


def silos(release: Release, answers: Sequence[str], reports: Sequence[SiloReport]) -> dict[str, Any] | None:
    """Section about the silos: a summary, rows, and their answers and reports; None for one calibration without silos.

    Raises
    ------
    InputError
        If answers or reports belong to another federation or do not give the released threshold. Also if there are
        answers to several thresholds, or reports on several levels or sides.
    """
    if not isinstance(release, FederatedRelease):
        if answers or reports:
            raise InputError(_first(answers), "must be left out: the calibration is not federated")
        return None
    if answers and not isinstance(release, FederatedCalibration):
        raise InputError("answers", "must be left out: the calibration has several thresholds")
    if reports and release.by in ("level", "side"):
        raise InputError("silo_reports", f"must be left out: they do not state which {release.by} they are about")
    first, plan = first_of(release), plan_of(release)
    refused, asks = dict(first.refused), {id(ask): ask for ask in plan.single_plans}.values()
    known = {silo.name for silo in plan.silos}
    counts = Counter(report.silo for report in reports)
    wrong = [name for name, times in counts.items() if name not in known or times > 1]
    if wrong:
        raise InputError("silo_reports", "must come once each from silos of the plan", f"{len(wrong)} that do not")
    replies = _replies(first, answers)
    rows = []
    for i, silo in enumerate(plan.silos):
        state = "answered" if silo.name in first.answered else refused.get(silo.name, "did not answer")
        targets = dict.fromkeys(ask.protocol.target_rank(i) for ask in asks)
        rows.append(
            (
                silo.name,
                "secret" if silo.size is None else f"{silo.size:,}",
                "; ".join("in the sum" if target is None else number(float(target)) for target in targets),
                "not private" if math.isinf(plan.loss(i)) else number(plan.loss(i)),
                state if state in ("answered", "did not answer") else f"left out: {CODES[state]}",
                number(replies[silo.name]) if silo.name in replies else "",
            )
        )
    unknown = [code for name, code in first.refused if name not in known]
    rows += [("unknown sender", "", "", "", f"left out: {CODES[code]}", "") for code in unknown]
    far = distant_replies(plan, replies)
    sent = _IN_SUM if not plan.channel.single_replies else _BY_ITSELF if plan.protocol.private else _NOT_PRIVATE
    return {
        "summary": f"{len(first.answered)} of {len(plan.silos)} silos answered. {sent}",
        "rows": rows,
        "replies": sorted(replies.items(), key=lambda pair: pair[1]),
        "chart": _replies_chart(first, replies),
        "report_chart": _reports_chart(first, reports),
        "unlike": None if far is None else f"{far[0].upper()}{far[1:]}.",
        "reports": reports,
    }


def _first(answers: Sequence[str]) -> str:
    return "answers" if answers else "silo_reports"


def _replies_chart(calibration: Calibration, replies: Mapping[str, float]) -> Chart | None:
    """Chart of the lowest finite answers and the released threshold."""
    finite = sorted(((name, value) for name, value in replies.items() if math.isfinite(value)), key=lambda one: one[1])
    threshold = None if math.isinf(calibration.threshold) else calibration.threshold
    return charts.replies(finite[:MOST_DRAWN], threshold, "The silos’ answers; the numbers are in the table above.")


def _reports_chart(calibration: Calibration, reports: Sequence[SiloReport]) -> Chart | None:
    shares = [
        charts.Share(one.silo, one.estimate.value, one.estimate.low, one.estimate.high) for one in reports[:MOST_DRAWN]
    ]
    return charts.intervals(shares, calibration.coverage, f"Coverage by silo; {charts.BELOW}")


def report_row(report: SiloReport) -> tuple[str, ...]:
    """Estimate of one silo as a row of a table."""
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
    ([('Model', 'resnet'), ('Version of the model', None)], ['Version of the model', 'Calibration data'])
    """
    about = about_of(release)
    left = [key for key in EXAMPLES if key not in about]
    rows = [(name, about.get(key)) for key, name in ABOUT.items() if key in {*about, *EXAMPLES}]
    if (model := release.first.fingerprint) is not None:
        rows.append(("Fingerprint of the model", str(model)))
    return {
        "rows": rows,
        "missing": [ABOUT[key] for key in left],
        "options": " ".join(f"--about {shlex.quote(f'{key}={EXAMPLES[key]}')}" for key in left),
    }
