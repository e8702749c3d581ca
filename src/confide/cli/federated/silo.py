"""Commands of a silo: `confide federated keygen`, `public`, `policy`, `answer` and `own`."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from confide.cli.federated import Agreed, Answer, Keygen, Own, Public, WritePolicy
from confide.cli.federated.coordinator import score_of
from confide.cli.federated.files import (
    policy_rows,
    public_files,
    read_named,
    read_policy,
    read_silo,
    reliance_text,
    silo_rows,
)
from confide.cli.options import ANSWER, PEOPLE
from confide.cli.output import capture_warnings, check_output, print_text
from confide.cli.request import arguments_of, take_columns
from confide.cli.values import Source
from confide.core import BOTH_SIDES, class_list, load_release, names_among
from confide.errors import InputError, OtherDataWarning
from confide.federated import (
    DEFAULT_METHODS,
    FederatedPlan,
    FederatedRelease,
    Policy,
    SiloKeys,
    SiloLedger,
    identity_rows,
    own_share,
    read_plan,
)
from confide.federated import answer as answer_plan
from confide.ledger import file_of
from confide.mechanisms import weak_privacy_text
from confide.support import Classes, FileKind, OutputExistsError, aligned, read_text, require, write_text
from confide.tables import (
    ClassColumns,
    Columns,
    ColumnSpec,
    LossColumns,
)

# Keys


def keygen(options: Keygen) -> None:
    """Write keys and a public file."""
    # Check both files before anything is generated.
    keys = options.keys
    if keys.exists():
        remedy = "Choose another name, or issue a new public file with these keys: confide federated public"
        raise OutputExistsError("keys", f"{str(keys)!r} already exists, and keys are never replaced", remedy=remedy)
    check_output(options.public, FileKind.SILO, keys, force=False)
    require("keys", keys.parent.is_dir(), f"{str(keys)!r} cannot be written: its folder does not exist")

    # Generate, and save the keys first.
    generated = replace(SiloKeys.generate(options.name), ledger=_identity_of(options.ledger))
    generated.save(keys)
    silo = generated.public(options.size)
    write_text(options.public, silo.to_json(), overwrite=False)
    print_text(f"keys: {keys} (private)\npublic: {options.public}\n{aligned(silo_rows(silo))}")


def public(options: Public) -> None:
    """Write a public file, and name the ledger in the keys."""
    options.output.check(FileKind.SILO, options.keys, file_of(options.ledger))
    private_keys = SiloKeys.load(options.keys)
    identity = _identity_of(options.ledger)
    if identity not in (None, private_keys.ledger):
        private_keys = private_keys.name_ledger(options.keys, identity)
    silo = private_keys.public(options.size)
    options.output.save(silo.to_json(), "public")
    print_text(aligned(silo_rows(silo)))


def _identity_of(ledger: str | None) -> str | None:
    return None if ledger is None else SiloLedger(ledger).identity


# The policy of a silo


def _policy_of(agreed: Agreed, coordinator: Path, budget: float, per_plan: float | None = None) -> Policy:
    return Policy(
        coordinator=read_silo(coordinator).identity,
        budget=budget,
        per_plan=budget if per_plan is None else per_plan,
        methods=tuple(dict.fromkeys((*DEFAULT_METHODS, *agreed.methods))),
        peers={silo.name: silo.identity for silo in read_named(agreed.peers)},
        least_colluding=1 if agreed.least_colluding is None else agreed.least_colluding,
    )


def _policy_for(options: Answer) -> Policy:
    if options.policy is not None:
        arguments = {"coordinator": options.coordinator, "budget": options.budget, **vars(options.agreed)}
        if contained := [name for name, value in arguments.items() if value not in (None, ())]:
            raise InputError(contained[0], "must be left out with --policy: the policy contains it")
        return read_policy(options.policy)
    if options.coordinator is None or options.budget is None:
        raise click.UsageError("--coordinator and --budget are needed, or --policy that contains both")
    return _policy_of(options.agreed, options.coordinator, options.budget)


def policy(options: WritePolicy) -> None:
    """Write a policy."""
    options.output.check(FileKind.POLICY, options.coordinator, *public_files(options.agreed.peers))
    written = _policy_of(options.agreed, options.coordinator, options.budget, options.per_plan)
    options.output.save(written.to_json(), "policy")
    print_text(aligned(policy_rows(written)))


# The answer


@dataclass(frozen=True)
class SiloTable:
    """A silo's table, its columns, and how it is read."""

    source: Source
    columns: ColumnSpec | None
    by: str | None
    reading: Mapping[str, Any]

    @classmethod
    def of(cls, file: str, table: str | None, arguments: dict[str, Any]) -> "SiloTable":
        """From the arguments; a plan states its privacy loss for one record of a person."""
        columns = take_columns(arguments)
        if isinstance(columns, LossColumns):
            remedy = "Use truth and losses with `confide calibrate`"
            raise InputError("truth", "a federation calibrates one score of each record", remedy=remedy)
        people = arguments.get(PEOPLE)
        must = "must be 1 in a federation: its plan states the privacy loss of one record"
        require("people.most", people is None or people.most == 1, must)
        reading = {name: value for name, value in arguments.items() if name not in ("decimal", "by")}
        source = Source(file, table, arguments.get("decimal", "."))
        return cls(source, columns, by=arguments.get("by"), reading=reading)

    def check_plan(self, plan: FederatedPlan) -> None:
        """Check that the columns give the score of the plan, and the groups or classes that it has thresholds for."""
        if self.columns is not None:
            _check_score(score_of(self.columns), BOTH_SIDES if plan.by == "side" else plan.first.score)
        must = "must be left out: the plan has no groups"
        if plan.by == "group":
            must = "must be given, the column of each record's group: the plan has groups"
        require("by", (plan.by == "group") == (self.by is not None), must)
        has_classes = isinstance(self.columns, ClassColumns) and self.columns.label is not None
        must = "must be given, with --probabilities: the plan has a threshold for each class"
        require("label", plan.by != "class" or has_classes, must)

    def counted(self, plan: FederatedPlan) -> Any:
        """Histogram of the scores, counted in the table's own system; one for each group, class or side of the plan."""
        # All scores and groups are counted at once.
        columns = self.source.require_columns(self.columns)
        groups = plan.names if plan.by == "group" else None
        read = Columns(columns, by=self.by, groups=groups, by_class=plan.by == "class", **self.reading)
        with self.source.open("reading") as (opened, progress):
            if plan.by is None and isinstance(columns, ClassColumns) and plan.request.classes is not None:
                _check_classes(plan.request.classes, columns, opened)
            first, *others = read.source(opened, progress=progress).histograms(plan.candidates)

        # By the names of the plan.
        if plan.by is None:
            return first[None]
        if plan.by == "side":
            by_side = zip(columns.kinds, [first, *others], strict=True)
            return {kind.name: histograms[None] for kind, histograms in by_side}
        if plan.by == "group":
            return dict(zip(plan.names, first.values(), strict=True))
        if set(first) != set(plan.names):
            must = f"is for the classes {class_list(plan.names)}"
            raise InputError("plan", must, got=class_list(tuple(first)))
        return first


def _check_score(score: str | None, planned: str | None) -> None:
    if score == planned:
        return
    if planned is None:
        raise InputError("the plan", "names no score", remedy=f"These columns give {score!r}: leave --score out")
    given = "a column whose score is not named" if score is None else repr(score)
    remedy = f"These columns give {given}; use --score {planned} to name it"
    raise InputError("the plan", f"is for the score {planned!r}", remedy=remedy)


def _check_classes(classes: Classes, columns: ClassColumns, table: Any) -> None:
    _, names = columns.columns(table)
    try:
        names_among(classes, names, len(names))
    except InputError as error:
        raise InputError("plan", f"is for other classes: {error}") from None


def answer(options: Answer) -> None:
    """Answer a plan, and print what it costs."""
    # The files.
    arguments = arguments_of("federated answer", ANSWER, options)
    records_table = SiloTable.of(options.file, options.table, arguments)
    policy = _policy_for(options)
    rules = (options.policy, options.coordinator, *public_files(options.agreed.peers))
    inputs = (options.plan, options.keys, file_of(options.ledger), *rules)
    options.output.check(FileKind.ANSWER, *records_table.source.files, *inputs)

    # Check the plan, count, and answer it; the answer charges this silo's ledger.
    text = read_text(options.plan)
    signed_plan = read_plan(text)
    records_table.check_plan(signed_plan)
    counts = records_table.counted(signed_plan)
    private_keys = SiloKeys.load(options.keys)
    records = SiloLedger(options.ledger, options.dataset)
    earlier = records.answered(signed_plan)
    with capture_warnings(OtherDataWarning) as caught:
        message = answer_plan(text, counts, private_keys, policy, records, now=datetime.now(UTC))
    caught.warn()
    if earlier is not None:
        print_text(f"earlier answer of {earlier} returned; nothing was charged")
    options.output.save(message, "answer")

    _print_terms(signed_plan, private_keys.name, records, policy)


def _print_terms(plan: FederatedPlan, name: str, records: SiloLedger, policy: Policy) -> None:
    """What the plan reveals, to whom, and what the silo of this name has spent."""
    single_replies = plan.channel.single_replies
    if not single_replies and plan.silos[plan.position(name)].ledger is None:
        print_text(
            "this silo's public file names no ledger: a copy of these keys with another ledger could answer this plan "
            "again, and the two answers together would reveal records; confide federated public --ledger adds it"
        )
    if rows := identity_rows(plan, silos=not single_replies):
        print_text(aligned(rows))
    print_text(reliance_text(plan), _spent(records, policy.budget))


def _spent(records: SiloLedger, budget: float) -> str:
    spent = records.spent
    if math.isinf(spent):
        return f"spent so far: +inf, because a release was not private; the budget was {budget:g}"
    weak = weak_privacy_text(spent)
    return f"spent so far: {spent:.6g} of {budget:g}{f', {weak}' if weak else ''}"


# Commands without a privacy cost


def own(options: Own) -> None:
    """Write a silo's own calibration."""
    options.output.check(FileKind.RELEASE, options.answer, options.release)
    released = load_release(options.release)
    if not isinstance(released, FederatedRelease):
        raise InputError("release", f"{str(options.release)!r} must be a release of `federated aggregate`")
    share = own_share(released, read_text(options.answer), options.of)
    options.output.save(share.to_json(), f"{share}\nsaved")
