"""`confide show`: a calibration in words, or a file of a federation."""

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated

import typer

from confide.cli import options as o
from confide.cli.course import course, renewed
from confide.cli.federated import Shown, shown
from confide.cli.output import emit, say, warn
from confide.errors import InputError
from confide.evaluation import PrivateEvaluation, load_evaluation
from confide.federated import FederatedCalibration
from confide.ledger import Schedule, decimal_form
from confide.mechanisms import (
    NEIGHBORS,
    LabelPrivacy,
    NoisyLabels,
    PrivacyStatement,
    Slopes,
    label_rows,
    mechanism_fields,
)
from confide.planning import rounding_text
from confide.releases import (
    ABOUT,
    Calibration,
    LabelStatement,
    Release,
    about_of,
    as_release,
    class_list,
    classes_of,
    load,
    most_needed,
    predecessors_of,
    remarks,
)
from confide.support import SHOWN_ELSEWHERE, Kind, aligned, decimal_text, kind_of, positive_integer, versions_text
from confide.warehouse import CountingPlan
from confide.watching import Watch


def show(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            help="A release, an evaluation, a watch, a schedule, a plan, a statement, a file of a federation.",
        ),
    ] = None,
    records: Annotated[int, o.option(None, "K", "Also state the loss when K records change at once.")] = 1,
    calibration: o.SameRelease = None,
    as_json: o.AsJson = False,
) -> None:
    """Print what a release promises and what privacy it cost.

    FILE is what `confide calibrate` or `confide federated aggregate` wrote, or
    a release of several thresholds. It is checked: every claim is computed
    again from the mechanisms that the file states. It may also be what
    `confide evaluate --out` wrote; a watch; a schedule of `confide budget
    plan`; a plan of `confide sql`; or a public file, a plan, a policy, an
    answer or a report of a silo: signatures are checked, and the fingerprints
    printed that people compare.

    Example:

      confide show cal.json --records 3
    """
    k = positive_integer("records", records)
    path = o.only_one(file, calibration)
    kind = kind_of(path)
    if kind in SHOWN_ELSEWHERE:
        raise InputError(f"file {str(path)!r} is {kind}; {SHOWN_ELSEWHERE[kind]}")
    own = _BY_KIND.get(kind)
    if (other := own(path) if own else shown(path)) is not None:
        if k != 1:
            raise InputError(f"records must be 1 for {kind}; it belongs to releases")
        emit(other.document) if as_json else say(other.text)
        return
    found = load(path)
    if isinstance(found, Watch):
        _show_watch(found, as_json=as_json)
        return
    if isinstance(found, PrivateEvaluation):
        _show_evaluation(found, k, as_json=as_json)
        return
    released = as_release(found)
    losses = {relation: released.privacy.loss(relation, k) for relation in ("add_remove", "replace_one")}
    if isinstance(released.privacy, LabelPrivacy):
        losses["replace_label"] = released.privacy.label_loss(k)
    if as_json:
        told = {"records": k, "losses": losses, "records_needed": most_needed(released.parts.values())}
        told["warnings"] = list(remarks(released))
        emit({"calibration": json.loads(released.to_json()), **told})
        return
    for note in remarks(released):
        warn(note)
    say(str(released))
    making = _making(released) if isinstance(released, Calibration) else ()
    if predecessors_of(released):
        say(renewed(released))
    say(aligned([*_words(released), *_losses(released.privacy, k), *making, *course(released)]))


def _counting(path: Path) -> Shown:
    plan = CountingPlan.load(path)
    return Shown(str(plan), {"counting_plan": json.loads(plan.to_json())})


def _schedule(path: Path) -> Shown:
    schedule = Schedule.load(path)
    rows = [(entry.words, f"epsilon {decimal_form(entry.epsilon)} each") for entry in schedule.entries]
    return Shown(f"{schedule}\n{aligned(rows)}", {"schedule": schedule.fields, "statement": schedule.statement})


def _labelling(path: Path) -> Shown:
    beside = LabelStatement.load(path)
    made = f"made with: {versions_text(beside.versions)}"
    return Shown(f"{beside}\n{made}", {"labelling": json.loads(beside.to_json())})


def _measured(path: Path) -> Shown:
    """An evaluation that is not private."""
    found = load_evaluation(path)
    text = f"{found}\nof the release with SHA-256 {found.calibration}"
    return Shown(text, {"evaluation": json.loads(found.to_json())})


_BY_KIND: Mapping[Kind, Callable[[Path], Shown]] = {
    Kind.COUNTING: _counting,
    Kind.SCHEDULE: _schedule,
    Kind.LABELLING: _labelling,
    Kind.EVALUATION: _measured,
}


def _show_watch(watch: Watch, *, as_json: bool) -> None:
    if as_json:
        emit({"watch": json.loads(watch.to_json()), "alarm": None if watch.alarm is None else watch.alarm.look.name})
        return
    made = dict.fromkeys(versions_text(look.versions) for look in watch.looks)
    say("\n".join([str(watch), *(f"made with: {text}" for text in made)]))


def _show_evaluation(found: PrivateEvaluation, k: int, *, as_json: bool) -> None:
    """What a private evaluation found, and its loss."""
    if as_json:
        losses = {relation: found.privacy.loss(relation, k) for relation in NEIGHBORS}
        emit({"evaluation": json.loads(found.to_json()), "records": k, "losses": losses, "warnings": []})
        return
    say(str(found))
    n = "secret" if found.question.n is None else str(found.question.n)
    said = [("evaluation records", n), ("of the calibration with SHA-256", found.calibration)]
    said.append(("made with", versions_text(found.versions)))
    say(aligned([*_losses(found.privacy, k), *said]))


def _words(released: Release) -> list[tuple[str, str]]:
    """The classes that a release is for, and what it says of itself."""
    classes, about = classes_of(released), about_of(released)
    rows = [] if classes is None else [("classes", class_list(classes))]
    if released.disjoint and all(part.coverage for part in released.parts.values()):
        some = "classes" if released.by == "class" else "groups"
        rows.append(("shares", f"the promise holds whatever the shares of the {some} are among new records"))
    rows += [(ABOUT[key].lower(), text) for key, text in about.items()]
    if isinstance(released, Calibration):
        return rows  # which says the rest of how it was made, too
    return [*rows, *(("made with", text) for text in dict.fromkeys(map(_versions, released.parts.values())))]


def _versions(released: Calibration) -> str:
    return versions_text(released.versions)


def _losses(privacy: PrivacyStatement, k: int) -> list[tuple[str, str]]:
    if isinstance(privacy, LabelPrivacy):
        return label_rows(privacy, k)
    rows = []
    for records in sorted({1, k}):
        what = "one record" if records == 1 else f"{records} records"
        for verb, relation in (("adding or removing", "add_remove"), ("replacing", "replace_one")):
            loss = privacy.loss(relation, records)  # type: ignore[arg-type]
            rows.append(
                (
                    f"loss, {verb} {what}",
                    _unlimited(privacy, relation) if math.isinf(loss) else decimal_text(loss, 6),
                )
            )
    return rows


def _unlimited(privacy: PrivacyStatement, relation: str) -> str:
    """Why a loss is infinite."""
    if relation == "add_remove":
        return "unlimited: the number is public"
    return "unlimited: zCDP alone, no epsilon" if privacy.concentrated_only else "unlimited: not private"


def _making(released: Calibration) -> list[tuple[str, str]]:
    recipe = ", ".join(f"{key} {value}" for key, value in released.recipe.items() if key not in ("kind", "size"))
    return [
        ("calibration records", "secret" if released.n is None else str(released.n)),
        *(() if released.population is None else (("weights", rounding_text(released.population)),)),
        ("mechanism", _mechanism(released)),
        ("candidate thresholds", f"{released.candidates} ({released.recipe['kind']}{', ' if recipe else ''}{recipe})"),
        ("made with", _versions(released)),
    ]


def _mechanism(released: Calibration) -> str:
    mechanism = released.mechanism
    if isinstance(released, FederatedCalibration):
        among = f"; number {released.k} of {len(released.answered)} answers in order" if released.k else ""
        return f"{released.plan.method}, in {len(released.answered)} silos{among}"
    if mechanism is None:
        return "none: +inf was answered without touching the data"
    if isinstance(mechanism, NoisyLabels):
        return (
            f"noisy-labels, {mechanism.classes} classes: counts of covered labels, corrected for noise, of at least "
            f"{mechanism.rank} at the threshold and every candidate above it"
        )
    if not isinstance(mechanism, Slopes):
        stated = mechanism_fields(mechanism)
        return ", ".join([stated.pop("name"), *(f"{key} {value}" for key, value in stated.items())])
    n = "n" if mechanism.weight is None else "weight/largest"
    grows = "" if mechanism.rate == 0 else f"{mechanism.rate} ({n}+1) + "
    return (
        f"slopes {mechanism.slope_left:.4g} below and {mechanism.slope_right:.4g} above rank "
        f"{grows}{float(mechanism.offset):g}, drawn by {mechanism.selector.replace('_', '-')}"
    )
