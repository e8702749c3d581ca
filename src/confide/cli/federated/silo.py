"""Commands of a silo: `confide federated keygen`, `public`, `policy`, `answer` and `own`."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from confide.cli.command import command
from confide.cli.federated.coordinator import (
    plan_lines,
    policy_rows,
    public_files,
    read_named,
    read_policy,
    read_silo,
    silo_rows,
)
from confide.cli.output import capture_warnings, check_output, print_text
from confide.cli.request import COLUMN_NAMES, PEOPLE, READING, ScoredColumns, read_arguments, take_columns
from confide.cli.values import Output, Source
from confide.core import class_list, load_release, names_among
from confide.errors import InputError, OtherDataWarning
from confide.federated import (
    DEFAULT_METHODS,
    RECORDS,
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


@command("federated keygen")
def keygen(*, name: str, keys: Path, public: Path, size: int | None = None, ledger: str | None = None) -> None:
    r"""Create the keys of a silo, and the public file to send to the others.

    Compare the fingerprints by another channel, for example by phone: all
    trust in the files rests on the right public files. `confide show FILE`
    prints the same digits of a file that you received. With --ledger, which
    every silo of a secure sum should use, a copy of the keys cannot answer a
    plan a second time.

    Example:

      confide federated keygen north --keys north.key \
        --public north.json --size 300 --ledger north.db
    """
    if keys.exists():
        raise OutputExistsError(
            "keys",
            f"{str(keys)!r} already exists, and keys are never replaced",
            remedy="Choose another name, or issue a new public file with these keys: confide federated public",
        )
    check_output(public, FileKind.SILO, keys, force=False)
    if not keys.parent.is_dir():
        raise InputError("keys", f"{str(keys)!r} cannot be written: its folder does not exist")
    made = replace(SiloKeys.generate(name), ledger=_identity_of(ledger))
    made.save(keys)
    silo = made.public(size)
    write_text(public, silo.to_json(), overwrite=False)
    print_text(f"keys: {keys} (private)\npublic: {public}\n{aligned(silo_rows(silo))}")


@command("federated public")
def public(*, keys: Path, size: int | None = None, ledger: str | None = None, output: Output) -> None:
    r"""Issue a new public file, with the same keys and another size or ledger.

    The fingerprint stays the same, and needs no new comparison: the size is
    signed by the key that the fingerprint covers. A ledger named before stays
    named; --ledger is also written into the key file.

    Example:

      confide federated public --keys north.key --size 301 \
        --ledger north.db --out north.json --force
    """
    output.check(FileKind.SILO, keys, None if ledger is None else file_of(ledger))
    own, named = SiloKeys.load(keys), _identity_of(ledger)
    if named not in (None, own.ledger):
        own = own.name_ledger(keys, named)
    silo = own.public(size)
    output.save(silo.to_json(), "public")
    print_text(aligned(silo_rows(silo)))


def _identity_of(ledger: str | None) -> str | None:
    """The identity of a ledger in a public file."""
    return None if ledger is None else SiloLedger(ledger).identity


# The policy of a silo


@dataclass(frozen=True, kw_only=True)
class PolicyOptions:
    """The options of a policy, except coordinator and budget."""

    peers: tuple[Path, ...] = ()
    methods: tuple[str, ...] = ()
    least_colluding: int | None = None

    def policy(self, coordinator: Path, budget: float, per_plan: float | None = None) -> Policy:
        """The policy; `allow` adds to the default methods."""
        return Policy(
            coordinator=read_silo(coordinator).identity,
            budget=budget,
            per_plan=budget if per_plan is None else per_plan,
            methods=tuple(dict.fromkeys((*DEFAULT_METHODS, *self.methods))),
            peers={silo.name: silo.identity for silo in read_named(self.peers)},
            least_colluding=1 if self.least_colluding is None else self.least_colluding,
        )


@dataclass(frozen=True, kw_only=True)
class PolicySource:
    """The options of a silo that answers: a policy file, or its contents."""

    policy: Path | None = None
    coordinator: Path | None = None
    budget: float | None = None
    agreed: PolicyOptions

    @property
    def files(self) -> list[Path]:
        """The input files."""
        named = [one for one in (self.policy, self.coordinator) if one is not None]
        return [*named, *public_files(self.agreed.peers)]

    def read(self) -> Policy:
        """The policy."""
        if self.policy is not None:
            stated = {"coordinator": self.coordinator, "budget": self.budget, **vars(self.agreed)}
            if other := [name for name, value in stated.items() if value not in (None, ())]:
                raise InputError(other[0], "must be left out with --policy: the policy contains it")
            return read_policy(self.policy)
        if self.coordinator is None or self.budget is None:
            raise click.UsageError("--coordinator and --budget are needed, or --policy that contains both")
        return self.agreed.policy(self.coordinator, self.budget)


@command("federated policy")
def policy(
    *, coordinator: Path, budget: float, per_plan: float | None = None, agreed: PolicyOptions, output: Output
) -> None:
    r"""Write the policy of this silo: coordinator, budget, methods, other silos.

    The policy contains the identities of the coordinator and of the other
    silos. Compare the printed fingerprints by another channel first. Use the
    file with `answer --policy`, and in Python with Policy.load.

    Example:

      confide federated policy --coordinator coordinator.json --peers public/ \
        --budget 4 --per-plan 2 --least-colluding 2 --out policy.json
    """
    output.check(FileKind.POLICY, coordinator, *public_files(agreed.peers))
    made = agreed.policy(coordinator, budget, per_plan)
    output.save(made.to_json(), "policy")
    print_text(aligned(policy_rows(made)))


# Statements about the records of a silo


@dataclass(frozen=True)
class SiloRecords:
    """The ledger of a silo's records."""

    ledger: str
    dataset: str = RECORDS

    @property
    def file(self) -> Path | None:
        """The ledger, if it is a file."""
        return file_of(self.ledger)

    def open(self) -> SiloLedger:
        """Open the ledger for these records."""
        return SiloLedger(self.ledger, self.dataset)

    def spent(self, budget: float) -> str:
        """The budget spent on these records so far, and the budget allowed, in words."""
        spent = self.open().spent
        if math.isinf(spent):
            return f"spent so far: +inf, because a release was not private; the budget was {budget:g}"
        weak = weak_privacy_text(spent)
        return f"spent so far: {spent:.6g} of {budget:g}{f', {weak}' if weak else ''}"


ANSWER_NAMES = frozenset([*COLUMN_NAMES, *READING, PEOPLE, "by"])


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
        what, wanted = self.what, SIDES if plan.by == "side" else plan.score
        score = None if what is None else SIDES if _has_sides(what) else what.kind.name
        if what is not None and score != wanted:
            if wanted is None:
                remedy = f"These columns give {score!r}: leave --score out"
                raise InputError("the plan", "names no score", remedy=remedy)
            named = "a column whose score is not named" if score is None else repr(score)
            remedy = f"These columns give {named}; use --score {wanted} to name it"
            raise InputError("the plan", f"is for the score {wanted!r}", remedy=remedy)
        if (plan.by == "group") != (self.by is not None):
            must = "given, the column of each record's group" if plan.by == "group" else "left out"
            raise InputError("by", f"must be {must}: the plan has {'' if plan.by == 'group' else 'no '}groups")
        if plan.by == "class" and not (isinstance(what, ClassColumns) and what.label is not None):
            raise InputError("label", "must be given, with --probabilities: the plan has a threshold for each class")

    def counted(self, plan: FederatedPlan) -> Any:
        """Histogram of the scores, counted in the table's own system, of a plan's classes only.

        There is a histogram for each group or class of the plan, and for each side of an interval.
        """
        what, candidates, classes = self.source.what(self.what), plan.candidates, plan.request.classes
        with self.source.open("reading") as (opened, progress):
            how: dict[str, Any] = {**self.how, "progress": progress}
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
            if isinstance(what, ClassColumns) and classes is not None:
                own = what.columns(opened)[1]
                try:
                    names_among(classes, own, len(own))
                except InputError as error:
                    raise InputError("plan", f"is for other classes: {error}") from None
            return score_histogram(opened, what, candidates, **how)


def _has_sides(what: ColumnSpec) -> bool:
    return isinstance(what, TargetColumns) and len(what.kinds) > 1


@command("federated answer", names=ANSWER_NAMES)
def answer(
    *,
    file: str,
    table: str | None = None,
    columns: ScoredColumns,
    by: str | None = None,
    settings: tuple[str, ...] = (),
    plan: Path,
    keys: Path,
    rules: PolicySource,
    records: SiloRecords,
    output: Output,
) -> None:
    r"""Answer a plan from this silo's records: one small signed file.

    The privacy loss is charged in this silo's own budget ledger before the
    records are used. A plan beyond the ledger's limit or the budget raises an
    error. If you repeat the command, it writes the same answer again, at no
    cost. Before, `confide show plan.json` prints the plan's request and the
    fingerprints.

    Example:

      confide federated answer records.csv --score-column s --plan plan.json \
        --keys north.key --coordinator coordinator.json \
        --ledger north.db --budget 4 --out north-answer.json
    """
    stated = read_arguments("federated answer", ANSWER_NAMES, {**vars(columns), "by": by}, settings)
    own_table, policy = SiloTable.of(file, table, stated), rules.read()
    output.check(FileKind.ANSWER, *own_table.source.files, plan, keys, records.file, *rules.files)
    text = read_text(plan)
    read = read_plan(text)
    own_table.check_plan(read)
    counts = own_table.counted(read)
    own_keys = SiloKeys.load(keys)
    earlier = records.open().answered(read)
    with capture_warnings(OtherDataWarning) as caught:
        message = answer_plan(text, counts, own_keys, policy, records.open(), now=datetime.now(UTC))
    caught.warn()
    if earlier is not None:
        print_text(f"earlier answer of {earlier} returned; nothing was charged")
    output.save(message, "answer")
    own = read.silos[read.position(own_keys.name)]
    if not read.channel.single_replies and own.ledger is None:
        print_text(
            "this silo's public file names no ledger: a copy of these keys with another ledger could answer this plan "
            "again, and the two answers together would reveal records; confide federated public --ledger adds it"
        )
    if rows := identity_rows(read, silos=not read.channel.single_replies):
        print_text(aligned(rows))
    for line in plan_lines(read):
        print_text(line)
    print_text(records.spent(policy.budget))


# Commands without a privacy cost


@command("federated own")
def own(*, answer: Path, release: Path, of: str | None = None, output: Output) -> None:
    r"""Compute a silo's own calibration from the common round, at no cost.

    Its threshold is the larger of the common threshold and the silo's answer.
    It covers new records of this silo as stated, whatever the other silos are
    like. No records are read and nothing is charged, because both files were
    released already. It is not possible for sums, which reveal nothing about
    one silo; see `calibrate`. With several thresholds, --of selects one.

    Example:

      confide federated own north-answer.json \
        --calibration released.json --out north-own.json
    """
    output.check(FileKind.RELEASE, answer, release)
    released = load_release(release)
    if not isinstance(released, FederatedRelease):
        raise InputError("release", f"{str(release)!r} must be a release of `federated aggregate`")
    made = own_share(released, read_text(answer), of)
    output.save(made.to_json(), f"{made}\nsaved")
