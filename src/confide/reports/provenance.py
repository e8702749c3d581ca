"""How a release was made, for readers who check it: mechanism, parameters, versions, and the files behind it."""

import shlex

from confide.candidates import spread_words
from confide.federated import DealtVectors, FederatedCalibration, FederatedPlan, OpenedSum, SecureSum
from confide.guarantee import Guarantee
from confide.mechanisms import Slopes, mechanism_fields
from confide.planning import Population, needed_text, rounding_text
from confide.releases import Calibration, NoisyLabelCalibration, Release, class_list, parts_of, records_needed
from confide.reports.numbers import number

Rows = tuple[tuple[str, str], ...]


def mechanism_rows(calibration: Calibration) -> Rows:
    """The mechanism and its parameters."""
    if isinstance(calibration, FederatedCalibration):
        return _federated(calibration)
    mechanism = calibration.mechanism
    if mechanism is None:
        return (("Mechanism", "none: +∞ was answered without touching the data"),)
    if isinstance(mechanism, Slopes):
        return slopes_rows(mechanism, calibration.candidates)
    stated = mechanism_fields(mechanism)
    return (("Mechanism", stated.pop("name")), *((name, str(value)) for name, value in stated.items()))


def slopes_rows(mechanism: Slopes, m: int) -> Rows:
    """The library's own mechanism and its parameters, over m candidates."""
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
        ("Rise of the candidates", _rise(mechanism, m)),
        ("Head start of +∞", _head_start(mechanism)),
        ("Drawn by", f"{mechanism.selector.replace('_', '-')}, noise scale {mechanism.scale:.17g} (OpenDP)"),
    )


def _rise(mechanism: Slopes, m: int) -> str:
    if not mechanism.rise:
        return "none: all have equal odds before the records are looked at"
    return (
        f"the first {float(mechanism.flat):,.6g} of {m:,} have equal odds before the records are looked at; from there "
        f"on log-odds rise evenly, by {mechanism.total_rise:.4g} in all, so that the many below the target together "
        "weigh little and the promise costs few ranks"
    )


def _head_start(mechanism: Slopes) -> str:
    if not mechanism.head_start or not mechanism.fade:
        return f"{mechanism.head_start_ranks:.6g} ranks"
    return (
        f"{mechanism.head_start_ranks:.6g} ranks without records; it fades by {mechanism.fade_ranks:.4g} with every "
        f"record{' of the largest weight' if mechanism.weight else ''}, for only few records need it"
    )


def common_rows(calibration: Calibration) -> Rows:
    """What every calibration states besides."""
    guarantee, n = calibration.guarantee, calibration.guarantee.n
    return (
        ("Conformity score", "unnamed" if calibration.score is None else calibration.score),
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
    return () if needed is None else (("Records needed", needed_text(needed)),)


def _population(population: Population | None) -> Rows:
    if population is None:
        return ()
    return ("Promised", str(population)), ("Weights", rounding_text(population))


def provenance_rows(release: Release) -> dict[str, Rows]:
    """Rows for each distinct part of a release; parts that are made alike share theirs."""
    found: dict[Rows, list[str]] = {}
    for name, part in parts_of(release).items():
        found.setdefault((*mechanism_rows(part), *common_rows(part)), []).append(name)
    return {_joined(names): made for made, names in found.items()}


def check_command(file_name: str) -> str:
    """The command that computes every claim of the file again.

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
        return f"docs/federated.md, {calibration.plan.protocol.theorem}"
    if calibration.guarantee.kind == "none":
        return "nothing: this mechanism has no certificate"
    if calibration.mechanism is None:
        return "+∞ covers everything"
    if isinstance(calibration, NoisyLabelCalibration):
        return "docs/theory-labels.md, Theorem 3; privacy by Theorem 1"
    if not isinstance(calibration.mechanism, Slopes):
        return "docs/methods.md"
    if calibration.guarantee.delta is not None:
        return "docs/theory.md, Theorem 4" if calibration.n is None else "docs/theory.md, Theorem 2b"
    if calibration.population is not None:
        return "docs/theory-after-release.md, Theorem 3; privacy by docs/theory.md, Theorem 1, and group privacy"
    part = "b" if calibration.n is None else "a"
    if calibration.guarantee.certificate == "two-sided":
        return f"docs/theory-two-sided.md, Theorem 6{part}; privacy by docs/theory.md, Theorem 1"
    return f"docs/theory.md, Theorem 3{part}; privacy by Theorem 1"


def _new_records(plan: FederatedPlan) -> str:
    if plan.population == "common":
        return "the common law"
    of_0_1 = isinstance(plan.protocol, SecureSum) and plan.protocol.weights is None
    return f"silo j with probability {'(n_j + 1)/(n + silos)' if of_0_1 else 'n_j/n'}; silos may differ"


def _federated(calibration: FederatedCalibration) -> Rows:
    plan = calibration.plan
    rows = [
        ("Method", plan.method),
        ("Plan", f"SHA-256 {plan.digest}"),
        ("Silos that do not answer", f"{plan.missing}; at most {plan.liars} may lie"),
        ("New records come from", _new_records(plan)),
    ]
    if isinstance(plan.protocol, SecureSum | OpenedSum):
        rows.append(("Noise scale of the sum", number(plan.protocol.scale)))
    else:
        rows.append(("Threshold", f"the {calibration.k}. smallest of {len(calibration.answered)} answers"))
    rows += [(name.capitalize(), words) for name, words in plan.words]
    if (colluding := plan.protocol.colluders) is not None:
        rows.append(("Silos that may collude with the coordinator", str(colluding)))
    if isinstance(plan.protocol, DealtVectors) and calibration.opened is not None:
        helped, openers = len(calibration.opened.parts), len(plan.protocol.openers)
        rows.append(("The sum was opened by", f"{helped} of {openers} openers; {plan.protocol.needed} must help"))
    return tuple(rows)
