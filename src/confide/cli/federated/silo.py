"""Commands of a silo: `confide federated keygen`, `public`, `policy`, `answer` and `own`."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from confide.cli.federated.commands import Agreed, Answer, Keygen, Own, Public, WritePolicy
from confide.cli.federated.coordinator import (
    plan_lines,
    policy_rows,
    public_files,
    read_named,
    read_policy,
    read_silo,
    silo_rows,
)
from confide.cli.names import ANSWER, PEOPLE
from confide.cli.output import capture_warnings, check_output, print_text
from confide.cli.request import arguments_of, take_columns
from confide.cli.values import Source
from confide.core import class_list, load_release, names_among
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
from confide.support import FileKind, OutputExistsError, aligned, read_text, write_text
from confide.tables import (
    SIDES,
    ClassColumns,
    ColumnSpec,
    LossColumns,
    TargetColumns,
    class_histograms,
    group_histograms,
    score_histogram,
)

# Keys


def keygen(asked: Keygen) -> None:
    """Write keys and a public file."""
    # Check both files before anything is generated.
    keys, public = asked.keys, asked.public
    if keys.exists():
        raise OutputExistsError(
            "keys",
            f"{str(keys)!r} already exists, and keys are never replaced",
            remedy="Choose another name, or issue a new public file with these keys: confide federated public",
        )
    check_output(public, FileKind.SILO, keys, force=False)
    if not keys.parent.is_dir():
        raise InputError("keys", f"{str(keys)!r} cannot be written: its folder does not exist")

    # Generate, and save the keys first.
    generated = replace(SiloKeys.generate(asked.name), ledger=_identity_of(asked.ledger))
    generated.save(keys)
    silo = generated.public(asked.size)
    write_text(public, silo.to_json(), overwrite=False)
    print_text(f"keys: {keys} (private)\npublic: {public}\n{aligned(silo_rows(silo))}")


def public(asked: Public) -> None:
    """Write a public file, and name the ledger in the keys."""
    keys, ledger = asked.keys, asked.ledger
    asked.output.check(FileKind.SILO, keys, None if ledger is None else file_of(ledger))
    private_keys, named = SiloKeys.load(keys), _identity_of(ledger)
    if named not in (None, private_keys.ledger):
        private_keys = private_keys.name_ledger(keys, named)
    silo = private_keys.public(asked.size)
    asked.output.save(silo.to_json(), "public")
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


def _policy_for(asked: Answer) -> Policy:
    if asked.policy is not None:
        stated = {"coordinator": asked.coordinator, "budget": asked.budget, **vars(asked.agreed)}
        if other := [name for name, value in stated.items() if value not in (None, ())]:
            raise InputError(other[0], "must be left out with --policy: the policy contains it")
        return read_policy(asked.policy)
    if asked.coordinator is None or asked.budget is None:
        raise click.UsageError("--coordinator and --budget are needed, or --policy that contains both")
    return _policy_of(asked.agreed, asked.coordinator, asked.budget)


def policy(asked: WritePolicy) -> None:
    """Write a policy."""
    asked.output.check(FileKind.POLICY, asked.coordinator, *public_files(asked.agreed.peers))
    written = _policy_of(asked.agreed, asked.coordinator, asked.budget, asked.per_plan)
    asked.output.save(written.to_json(), "policy")
    print_text(aligned(policy_rows(written)))


# Statements about the records of a silo


def _spent(records: SiloLedger, budget: float) -> str:
    spent = records.spent
    if math.isinf(spent):
        return f"spent so far: +inf, because a release was not private; the budget was {budget:g}"
    weak = weak_privacy_text(spent)
    return f"spent so far: {spent:.6g} of {budget:g}{f', {weak}' if weak else ''}"


@dataclass(frozen=True)
class SiloTable:
    """A silo's table, its columns, and how it is read."""

    source: Source
    what: ColumnSpec | None
    by: str | None
    how: Mapping[str, Any]

    @classmethod
    def of(cls, file: str, table: str | None, stated: dict[str, Any]) -> "SiloTable":
        """From the arguments; a plan states its privacy loss for one record of a person."""
        what, people = take_columns(stated), stated.get(PEOPLE)
        if isinstance(what, LossColumns):
            remedy = "Use truth and losses with `confide calibrate`"
            raise InputError("truth", "a federation calibrates one score of each record", remedy=remedy)
        if people is not None and people.most > 1:
            raise InputError("people.most", "must be 1 in a federation: its plan states the privacy loss of one record")
        return cls(Source(file, table, stated.pop("decimal", ".")), what, stated.pop("by", None), stated)

    def check_plan(self, plan: FederatedPlan) -> None:
        """Check that the columns give the score of the plan, and the groups or classes that it has thresholds for."""
        # The score.
        what, wanted = self.what, SIDES if plan.by == "side" else plan.score
        score = None if what is None else SIDES if _has_sides(what) else what.kind.name
        if what is not None and score != wanted:
            if wanted is None:
                remedy = f"These columns give {score!r}: leave --score out"
                raise InputError("the plan", "names no score", remedy=remedy)
            named = "a column whose score is not named" if score is None else repr(score)
            remedy = f"These columns give {named}; use --score {wanted} to name it"
            raise InputError("the plan", f"is for the score {wanted!r}", remedy=remedy)

        # The groups or classes.
        if (plan.by == "group") != (self.by is not None):
            must = "given, the column of each record's group" if plan.by == "group" else "left out"
            raise InputError("by", f"must be {must}: the plan has {'' if plan.by == 'group' else 'no '}groups")
        if plan.by == "class" and not (isinstance(what, ClassColumns) and what.label is not None):
            raise InputError("label", "must be given, with --probabilities: the plan has a threshold for each class")

    def counted(self, plan: FederatedPlan) -> Any:
        """Histogram of the scores, counted in the table's own system; one for each group, class or side of the plan."""
        what, candidates, classes = self.source.what(self.what), plan.candidates, plan.request.classes
        with self.source.open("reading") as (opened, progress):
            how: dict[str, Any] = {**self.how, "progress": progress}

            # Several thresholds: sides, groups or classes.
            if isinstance(what, TargetColumns) and _has_sides(what):
                return {
                    kind.name: score_histogram(opened, replace(what, score=kind.name), candidates, **how)
                    for kind in what.kinds
                }
            if plan.by == "group":
                return group_histograms(opened, what, str(self.by), plan.names, candidates, **how)
            if plan.by == "class":
                histograms = class_histograms(opened, what, candidates, **how)
                if set(histograms) != set(plan.names):
                    other = class_list(tuple(histograms))
                    raise InputError("plan", f"is for the classes {class_list(plan.names)}", got=other)
                return histograms

            # One threshold, of the plan's classes only.
            if isinstance(what, ClassColumns) and classes is not None:
                columns = what.columns(opened)[1]
                try:
                    names_among(classes, columns, len(columns))
                except InputError as error:
                    raise InputError("plan", f"is for other classes: {error}") from None
            return score_histogram(opened, what, candidates, **how)


def _has_sides(what: ColumnSpec) -> bool:
    return isinstance(what, TargetColumns) and len(what.kinds) > 1


def answer(asked: Answer) -> None:
    """Answer a plan, and print what it costs."""
    # The files.
    stated = arguments_of("federated answer", ANSWER, asked)
    records_table, policy = SiloTable.of(asked.file, asked.table, stated), _policy_for(asked)
    rules = [rule for rule in (asked.policy, asked.coordinator) if rule is not None]
    inputs = (asked.plan, asked.keys, file_of(asked.ledger), *rules, *public_files(asked.agreed.peers))
    asked.output.check(FileKind.ANSWER, *records_table.source.files, *inputs)

    # Check the plan, count, and answer it; the answer charges this silo's ledger.
    text = read_text(asked.plan)
    signed_plan = read_plan(text)
    records_table.check_plan(signed_plan)
    counts = records_table.counted(signed_plan)
    private_keys, records = SiloKeys.load(asked.keys), SiloLedger(asked.ledger, asked.dataset)
    earlier = records.answered(signed_plan)
    with capture_warnings(OtherDataWarning) as caught:
        message = answer_plan(text, counts, private_keys, policy, records, now=datetime.now(UTC))
    caught.warn()
    if earlier is not None:
        print_text(f"earlier answer of {earlier} returned; nothing was charged")
    asked.output.save(message, "answer")

    # What the plan reveals, to whom, and what was spent.
    silo = signed_plan.silos[signed_plan.position(private_keys.name)]
    if not signed_plan.channel.single_replies and silo.ledger is None:
        print_text(
            "this silo's public file names no ledger: a copy of these keys with another ledger could answer this plan "
            "again, and the two answers together would reveal records; confide federated public --ledger adds it"
        )
    if rows := identity_rows(signed_plan, silos=not signed_plan.channel.single_replies):
        print_text(aligned(rows))
    for line in plan_lines(signed_plan):
        print_text(line)
    print_text(_spent(records, policy.budget))


# Commands without a privacy cost


def own(asked: Own) -> None:
    """Write a silo's own calibration."""
    asked.output.check(FileKind.RELEASE, asked.answer, asked.release)
    released = load_release(asked.release)
    if not isinstance(released, FederatedRelease):
        raise InputError("release", f"{str(asked.release)!r} must be a release of `federated aggregate`")
    share = own_share(released, read_text(asked.answer), asked.of)
    asked.output.save(share.to_json(), f"{share}\nsaved")
