"""Commands of the coordinator, `confide federated plan` and `aggregate`; and the files of a federation."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from confide.cli.federated import Aggregate, Plan
from confide.cli.options import FEDERATED_PLAN, PLAN_NAMES
from confide.cli.output import capture_warnings, print_text, print_warning
from confide.cli.plan import read_sample
from confide.cli.request import read_request, take_columns
from confide.cli.values import Source
from confide.core import By
from confide.errors import CoverageWarning, InputError
from confide.federated import (
    FederatedPlan,
    Policy,
    Refusal,
    Silo,
    SiloKeys,
    collusion_text,
    fingerprint,
    read_time,
    replies,
)
from confide.federated import aggregate as aggregate_answers
from confide.federated import compare as compare_methods
from confide.federated import plan as make_plan
from confide.support import FileKind, check_unknown_arguments, kind_of, read_text
from confide.tables import SIDES, ClassColumns, ColumnSpec, TargetColumns, class_keys

# The files of a federation


def read_silo(path: Path) -> Silo:
    """Read a public file of a silo or of the coordinator."""
    try:
        return Silo.from_json(read_text(path))
    except Refusal as refusal:
        raise InputError("path", f"{str(path)!r} cannot be used: {refusal}") from None


def public_files(paths: Sequence[Path]) -> list[Path]:
    """The given files, and the public files of silos in the given folders, each of which has one or more."""
    files = []
    for path in paths:
        if not path.is_dir():
            files.append(path)
            continue
        inside = sorted(file for file in path.iterdir() if kind_of(file) is FileKind.SILO)
        if not inside:
            must = f"{str(path)!r} has no public file of a silo"
            raise InputError("path", must, remedy="`confide federated keygen` writes one")
        files += inside
    return files


def read_named(paths: Sequence[Path]) -> list[Silo]:
    """Read the public files in files and folders, one silo for each name; copies of a file are one silo."""
    silos: dict[str, tuple[Path, Silo]] = {}
    for path in public_files(paths):
        silo = read_silo(path)
        first_path, first = silos.setdefault(silo.name, (path, silo))
        if first != silo:
            raise InputError(
                "name",
                f"{silo.name!r} is in two public files that differ, {str(first_path)!r} and {str(path)!r}",
                remedy="Keep the one with the right fingerprint and size, and move the other away",
            )
    return [silo for _, silo in silos.values()]


def silos_of_plan(paths: Sequence[Path], coordinator: Silo) -> tuple[list[Silo], list[Path]]:
    """The silos of a plan, and the files excluded: the coordinator's own public file in a folder."""
    invited: list[Path] = []
    excluded: list[Path] = []
    for path in dict.fromkeys(public_files(paths)):
        silo = read_silo(path)
        is_coordinator = silo.name == coordinator.name or silo.signing == coordinator.signing
        (excluded if is_coordinator and path not in paths else invited).append(path)
    return read_named(invited), excluded


def read_policy(path: Path) -> Policy:
    """Read a policy file."""
    try:
        return Policy.from_json(read_text(path))
    except Refusal as refusal:
        raise InputError("path", f"{str(path)!r} cannot be used: {refusal}") from None


# Their descriptions


def plan_lines(plan: FederatedPlan) -> list[str]:
    """A line about the silos that a plan relies on, if it relies on any."""
    collude = collusion_text(plan.channel, len(plan.silos))
    return [] if collude is None else [f"{plan.protocol.reliance_label} the other silos: {collude}"]


def silo_rows(silo: Silo) -> list[tuple[str, str]]:
    """Name, fingerprint, size, ledger and time of a public file."""
    size = "secret" if silo.size is None else f"{silo.size}, public"
    ledger = [] if silo.ledger is None else [("ledger", fingerprint(silo.ledger, groups=4))]
    issued = [] if silo.issued is None else [("issued", f"{silo.issued}, signed by its own key")]
    return [("name", silo.name), ("fingerprint", fingerprint(silo.identity)), ("records", size), *ledger, *issued]


def policy_rows(policy: Policy) -> list[tuple[str, str]]:
    """The rows of a policy."""
    peers = [(f"peer {name}", fingerprint(identity)) for name, identity in policy.peers.items()]
    return [
        ("coordinator", fingerprint(policy.coordinator)),
        ("budget", f"{policy.budget:g} in all, {policy.per_plan:g} for one answer"),
        ("methods", ", ".join(policy.methods)),
        ("colluding silos", f"plans of sums must withstand at least {policy.least_colluding}"),
        *peers,
    ]


# The plan

# Arguments of a request about each silo's own table, of which a plan states nothing
_OF_SILOS = ("by", "partition", "fingerprint", "skip_incomplete", "decimal")


def _plan_arguments(arguments: Mapping[str, Any], columns: ColumnSpec | None) -> dict[str, Any]:
    """The arguments of `confide.federated.plan` except the silos, from those of a request without its columns."""
    options = {name: value for name, value in arguments.items() if name not in _OF_SILOS}
    alpha, epsilon = options.pop("alpha"), options.pop("epsilon", None)
    score = options.pop("score", None) if columns is None else columns.kind.name

    # What distinguishes the thresholds: levels, classes, groups or sides.
    sides = score == SIDES or has_sides(columns)
    by_class, groups = options.pop("by_class", False), options.pop("groups", None)
    requested: dict[By, bool] = {"class": by_class, "group": groups is not None, "side": sides}
    if [isinstance(alpha, tuple), *requested.values()].count(True) > 1:
        must = "several levels, groups or classes, and two sides must not be combined"
        raise InputError("by", must, got="two of them")
    by = next((key for key, is_requested in requested.items() if is_requested), None)

    # The names of groups or classes.
    if isinstance(columns, ClassColumns) and columns.classes is not None:
        options["classes"] = columns.classes
    if by_class and "classes" not in options:
        raise InputError("classes", "must be given with by_class: the names of all classes")
    names = class_keys(tuple(options.pop("classes"))) if by_class else groups or ()

    # The rest, as the Python API takes it.
    if "closes" in options:
        options["closes"] = read_time(options["closes"])
    options["score"] = None if sides else score
    check_unknown_arguments("federated plan", options, PLAN_NAMES)
    return {"alpha": alpha, "epsilon": epsilon, "by": by, "names": names, **options}


def has_sides(columns: ColumnSpec | None) -> bool:
    """Whether columns of predictions give the scores of two sides."""
    return isinstance(columns, TargetColumns) and len(columns.kinds) > 1


def plan(options: Plan) -> None:
    """Make and sign a plan, or compare the methods."""
    # The options: a plan, a comparison, or both.
    arguments = read_request(options, FEDERATED_PLAN, missing="arbitrary" if options.missing else None)
    source = None if options.pilot is None else Source(options.pilot, options.table, arguments.get("decimal", "."))
    output, compare = options.output, options.compare
    inputs = () if source is None else source.files
    output.check(FileKind.PLAN, *public_files(options.silos), options.keys, *inputs)
    if output.out is None and not compare:
        raise click.UsageError("--out is missing; it is optional only with --compare")
    if not compare and source is not None:
        raise click.UsageError("--pilot needs --compare")

    # The request and the silos.
    columns, skip = take_columns(arguments), arguments.get("skip_incomplete", False)
    neighbors = arguments.pop("neighbors", None)
    plan_arguments = _plan_arguments(arguments, columns)
    coordinator = SiloKeys.load(options.keys)
    invited, excluded = silos_of_plan(options.silos, coordinator.public_keys())

    # Plan, or compare and take the recommended plan.
    with capture_warnings() as caught:
        if compare:
            sample = None if source is None else read_sample(source, columns, skip=skip)[0]
            plan_arguments.pop("method", None)
            comparison = compare_methods(invited, pilot=sample, **plan_arguments)
        else:
            chosen = make_plan(invited, **plan_arguments)
    caught.warn()
    if compare:
        print_text(str(comparison))
        if output.out is None:
            return
        chosen = comparison.plan
    if neighbors not in (None, chosen.privacy().neighbors):
        must = f"must be {chosen.privacy().neighbors} or left out: it follows from the sizes of silos and the method"
        raise InputError("neighbors", must, got=neighbors)

    # Sign it, and print what it promises.
    output.write(chosen.sign(coordinator))
    for remark in chosen.remarks:
        print_warning(remark)
    print_text(f"plan: {output.out}")
    for path in excluded:
        print_text(f"not invited: {path}, the coordinator's own; add --silo with this file to invite it")
    if options.method is None:
        print_text(f"method: {chosen.method}, which suits these silos (--compare shows why)")
    print_text(f"privacy: {chosen.privacy()}")
    print_text(f"candidate thresholds: {chosen.candidates.description}")
    for line in plan_lines(chosen):
        print_text(line)
    print_text(f"promised {chosen.assumed}:")
    for line in chosen.promise_lines:
        print_text(f"  {line}")


# The release


def aggregate(options: Aggregate) -> None:
    """Compute the release, and print the range of the replies."""
    # The plan, the answers and the keys; a file of another known kind is no answer.
    output, drop_refused = options.output, options.drop_refused
    output.check(FileKind.RELEASE, *options.answers, options.plan, options.keys)
    text = read_text(options.plan)
    for path in options.answers:
        if not drop_refused and (actual := kind_of(path)) not in (FileKind.ANSWER, FileKind.OTHER):
            raise Refusal("malformed", f"file {str(path)!r} is {actual}, not {FileKind.ANSWER}; leave it out")
    messages = [read_text(path) for path in options.answers]
    signing = None if options.keys is None else SiloKeys.load(options.keys)

    # The release, and the range of the replies: the only indication of silos that are not IID.
    with capture_warnings(CoverageWarning) as caught:
        released = aggregate_answers(text, messages, keys=signing, drop_refused=drop_refused)
    output.save(released.to_json(), f"{released}\nsaved")
    if line := _spread(replies(text, messages, drop_refused=drop_refused)):
        print_text(line)
    caught.warn()


def _spread(replies: Mapping[str, float]) -> str | None:
    """The lowest and the highest reply; None for fewer than two."""
    if len(replies) < 2:
        return None
    (lowest, low), *_, (highest, high) = replies.items()
    return f"replies: from {low:.6g} ({lowest}) to {high:.6g} ({highest}); IID silos have similar replies"
