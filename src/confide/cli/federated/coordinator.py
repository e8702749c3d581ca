"""Commands of the coordinator: `confide federated plan` and `aggregate`."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from confide.cli.federated import Aggregate, Plan
from confide.cli.federated.files import public_files, reliance_text, silos_of_plan
from confide.cli.options import FEDERATED_PLAN, PLAN_NAMES
from confide.cli.output import capture_warnings, print_text, print_warning
from confide.cli.plan import read_sample
from confide.cli.request import read_request, take_columns
from confide.cli.values import Source
from confide.core import BOTH_SIDES, By
from confide.errors import CoverageWarning
from confide.federated import Comparison, FederatedPlan, Refusal, Silo, SiloKeys, read_time, replies
from confide.federated import aggregate as aggregate_answers
from confide.federated import compare as compare_methods
from confide.federated import plan as make_plan
from confide.support import FileKind, check_unknown_arguments, kind_of, read_text, require
from confide.tables import ClassColumns, ColumnSpec, class_keys

# The plan

# Arguments of a request about each silo's own table, of which a plan states nothing
_OF_SILOS = ("by", "partition", "fingerprint", "skip_incomplete", "decimal")

# Arguments of a request that a plan states in its own form, or that are compared with it
_INTERPRETED = ("alpha", "epsilon", "score", "by_class", "groups", "classes", "neighbors")


def _plan_arguments(arguments: Mapping[str, Any], columns: ColumnSpec | None) -> dict[str, Any]:
    """The arguments of `confide.federated.plan` except the silos, from those of a request without its columns."""
    # What distinguishes the thresholds: levels, classes, groups or sides.
    alpha = arguments["alpha"]
    groups = arguments.get("groups")
    by_class = arguments.get("by_class", False)
    score = arguments.get("score") if columns is None else score_of(columns)
    sides = score == BOTH_SIDES
    requested: dict[By, bool] = {"class": by_class, "group": groups is not None, "side": sides}
    is_one = [isinstance(alpha, tuple), *requested.values()].count(True) <= 1
    must = "several levels, groups or classes, and two sides must not be combined"
    require("by", is_one, must, got="two of them")
    by = next((key for key, is_requested in requested.items() if is_requested), None)

    # The names of groups or classes.
    classes = columns.classes if isinstance(columns, ClassColumns) else arguments.get("classes")
    require("classes", not by_class or classes is not None, "must be given with by_class: the names of all classes")
    names = class_keys(tuple(classes or ())) if by_class else groups or ()

    # The rest, as the Python API takes it.
    options = {name: value for name, value in arguments.items() if name not in (*_OF_SILOS, *_INTERPRETED)}
    if classes is not None and not by_class:
        options["classes"] = classes
    if "closes" in options:
        options["closes"] = read_time(options["closes"])
    check_unknown_arguments("federated plan", options, PLAN_NAMES)
    request = {"alpha": alpha, "epsilon": arguments.get("epsilon"), "score": None if sides else score}
    return {**request, "by": by, "names": names, **options}


def score_of(columns: ColumnSpec) -> str | None:
    """The score of columns, or the name of both sides, which two scores have."""
    return columns.kind.name if len(columns.kinds) == 1 else BOTH_SIDES


def plan(options: Plan) -> None:
    """Make and sign a plan, or compare the methods."""
    # The options, the request and the silos.
    arguments = read_request(options, FEDERATED_PLAN)
    if options.missing:
        arguments["missing"] = "arbitrary"
    pilot = None if options.pilot is None else Source(options.pilot, options.table, arguments.get("decimal", "."))
    _check_options(options, pilot)
    columns = take_columns(arguments)
    plan_arguments = _plan_arguments(arguments, columns)
    coordinator = SiloKeys.load(options.keys)
    invited, excluded = silos_of_plan(options.silos, coordinator.public_keys())

    # Plan, or compare and take the recommended plan.
    with capture_warnings() as caught:
        if options.compare:
            comparison = _compare(invited, plan_arguments, pilot, columns, skip=arguments.get("skip_incomplete", False))
        else:
            chosen = make_plan(invited, **plan_arguments)
    caught.warn()
    if options.compare:
        print_text(comparison)
        if options.output.out is None:
            return
        chosen = comparison.plan

    # Sign it, and print what it promises.
    _check_neighbors(chosen, arguments.get("neighbors"))
    options.output.write(chosen.sign(coordinator))
    print_warning(*chosen.remarks)
    print_text(f"plan: {options.output.out}", *_lines(chosen, excluded, is_selected=options.method is None))


def _compare(
    invited: Sequence[Silo], plan: Mapping[str, Any], pilot: Source | None, columns: ColumnSpec | None, *, skip: bool
) -> Comparison:
    """Compare the methods for the arguments of a plan, and for a pilot sample if there is one."""
    sample = None if pilot is None else read_sample(pilot, columns, skip=skip)[0]
    arguments = {name: value for name, value in plan.items() if name != "method"}
    return compare_methods(invited, pilot=sample, **arguments)


def _check_options(options: Plan, pilot: Source | None) -> None:
    """Check that there is a plan, a comparison, or both, and that the plan replaces no input."""
    samples = () if pilot is None else pilot.files
    options.output.check(FileKind.PLAN, *public_files(options.silos), options.keys, *samples)
    if options.output.out is None and not options.compare:
        raise click.UsageError("--out is missing; it is optional only with --compare")
    if not options.compare and pilot is not None:
        raise click.UsageError("--pilot needs --compare")


def _check_neighbors(plan: FederatedPlan, requested: object) -> None:
    neighbors = plan.privacy().neighbors
    must = f"must be {neighbors} or left out: it follows from the sizes of silos and the method"
    require("neighbors", requested in (None, neighbors), must, got=str(requested))


def _lines(plan: FederatedPlan, excluded: Sequence[Path], *, is_selected: bool) -> Iterator[str | None]:
    """The files that were left out, how the method was chosen, and what the plan costs and promises."""
    for path in excluded:
        yield f"not invited: {path}, the coordinator's own; add --silo with this file to invite it"
    if is_selected:
        yield f"method: {plan.method}, which suits these silos (--compare shows why)"
    yield f"privacy: {plan.privacy()}"
    yield f"candidate thresholds: {plan.candidates.description}"
    yield reliance_text(plan)
    yield f"promised {plan.first.assumed}:"
    for line in plan.promise_lines:
        yield f"  {line}"


# The release


def aggregate(options: Aggregate) -> None:
    """Compute the release, and print the range of the replies."""
    # The plan, the answers and the keys; a file of another known kind is no answer.
    options.output.check(FileKind.RELEASE, *options.answers, options.plan, options.keys)
    text = read_text(options.plan)
    for path in options.answers:
        if not options.drop_refused and (actual := kind_of(path)) not in (FileKind.ANSWER, FileKind.OTHER):
            raise Refusal("malformed", f"file {str(path)!r} is {actual}, not {FileKind.ANSWER}; leave it out")
    messages = [read_text(path) for path in options.answers]
    signing = None if options.keys is None else SiloKeys.load(options.keys)

    # The release, and the range of the replies: the only indication of silos that are not IID.
    with capture_warnings(CoverageWarning) as caught:
        released = aggregate_answers(text, messages, keys=signing, drop_refused=options.drop_refused)
    options.output.save(released.to_json(), f"{released}\nsaved")
    print_text(_spread(replies(text, messages, drop_refused=options.drop_refused)))
    caught.warn()


def _spread(replies: Mapping[str, float]) -> str | None:
    """The lowest and the highest reply; None for fewer than two."""
    if len(replies) < 2:
        return None
    (lowest, low), *_, (highest, high) = replies.items()
    return f"replies: from {low:.6g} ({lowest}) to {high:.6g} ({highest}); IID silos have similar replies"
