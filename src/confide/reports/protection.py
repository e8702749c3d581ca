"""What is protected, in which unit and from whom, and what is not, for readers who answer for privacy."""

import math
from decimal import ROUND_CEILING, Decimal
from typing import Any

from confide.federated import FederatedCalibration
from confide.mechanisms import LabelPrivacy, Neighbors, PrivacyStatement, label_rows
from confide.releases import NoisyLabelCalibration, Release
from confide.reports.numbers import percent
from confide.support import decimal_text

PRIORS = (0.01, 0.1, 0.5)


_ABOUT_LABELS = "which label a record has; its features, and that it took part, are not protected"


def protection(privacy: PrivacyStatement) -> dict[str, Any]:
    r"""The privacy statement of a release, unfolded.

    In one line, and as a figure with its unit; what nobody can tell; by how much a release changes the odds of a
    statement about one person, at most (None without privacy), and how far it moves beliefs; the loss by unit.

    Examples
    --------
    >>> protection(PrivacyStatement("replace_one", 1.0, 1, None, 1.0, None))["beliefs"][2]
    ('50\xa0%', '26.9\xa0%', '73.1\xa0%')
    """
    epsilon, one = privacy.epsilon, privacy.records_per_person == 1
    whose, say, they = ("one person’s record", "it says", "it") if one else ("one person’s records", "they say", "they")
    if privacy.neighbors == "add_remove":
        secret = f"whether {whose} took part at all, what {say}, and how many records there are"
    else:
        secret = f"what {whose} {say.split()[1]}; that {they} took part, and how many records there are, is public"
    whom = "Everybody who sees the result"
    if isinstance(privacy, LabelPrivacy):
        secret, whom = _ABOUT_LABELS, "Everybody who sees the randomised labels, also whoever calibrates on them"
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


def limits(release: Release) -> tuple[tuple[str, str], ...]:
    """What the release does not do: a heading and a sentence each."""
    uneven = (
        "The promise holds for each group on average; within a group, some records can be covered less."
        if release.disjoint
        else "The promise is an average over everybody. A subgroup can be covered less, another more."
    )
    if isinstance(release, NoisyLabelCalibration):
        return (*_of_labels(), ("Every group alike", uneven))
    several = ("Several silos", "A person with records in several silos has the sum of their losses.")
    return (
        *((several,) if isinstance(release, FederatedCalibration) else ()),
        ("The model", "The records that trained the model are not protected by this release."),
        (
            "Further releases",
            "Every calibration on the same records costs its ε again, and the losses add up. A ledger keeps count "
            "(confide ledger).",
        ),
        (
            "Those who run it",
            "Whoever runs the calibration sees the records. The protection is against everybody who sees the result.",
        ),
        (
            "Scores tuned on these records",
            "Each score must be a function of one record and of public information. Anything fitted on the calibration "
            "records breaks the claim.",
        ),
        ("Timing", "How long the sampler takes depends on the data. Strangers must not be able to time it."),
        (
            "A changed population",
            "Coverage is promised for new records like those that calibrated. After a change of patients, devices or "
            "model, calibrate again.",
        ),
        ("Every group alike", uneven),
        (
            "Evaluations",
            "Numbers measured on labelled records, in this page or elsewhere, are not covered by ε. A private "
            "evaluation has an ε of its own, which adds up with this one for whoever is in both.",
        ),
    )


def _of_labels() -> tuple[tuple[str, str], ...]:
    """The same where labels were randomised before anybody saw them."""
    return (
        ("Features", "Features and model outputs are not protected: whoever calibrated has seen them as they are."),
        ("The model", "The records that trained the model are not protected by this release."),
        (
            "Labels given again",
            "Every further randomisation of the same labels costs its ε again. Further calibrations on the noisy "
            "labels cost nothing.",
        ),
        ("Several labels of a person", "A person with several labels has the sum of their losses."),
        (
            "Wrong labels",
            "Only the stated noise is corrected for. Labels that were wrong before are covered as if they were right, "
            "and a stated ε that is larger than the one in use promises too much.",
        ),
        (
            "A changed population",
            "Coverage is promised for new records like those that calibrated. After a change of patients, devices or "
            "model, calibrate again.",
        ),
    )


def _short(privacy: PrivacyStatement) -> tuple[str, str]:
    if isinstance(privacy, LabelPrivacy):
        return f"ε = {decimal_text(privacy.epsilon)}", "local differential privacy of each label, not of features"
    if math.isinf(privacy.epsilon) and not privacy.concentrated_only:
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
    """A loss with four significant digits, never smaller than it is but for noise in its tenth digit.

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
        told = [(name.removeprefix("loss, replacing "), text) for name, text in label_rows(privacy, 10)]
        return tuple((f"{name} replaced" if "label" in name else name, text) for name, text in told)
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
