"""`confide federated answer`: what a silo says of its records."""

from datetime import UTC, datetime
from typing import Annotated, Any

import click

from confide.cli import options as o
from confide.cli.columns import Columns
from confide.cli.federated.arguments import (
    Keys,
    PlanFile,
    SiloRecords,
    check_score,
    counted,
    counted_by_group,
    what_of,
)
from confide.cli.federated.rules import Rules
from confide.cli.output import heard, say, warn
from confide.cli.parameters import command
from confide.errors import OtherDataWarning
from confide.federated import FederatedPlan, SeveralPlans, SiloKeys, colluders, identity_rows, openers, read_plan
from confide.federated import answer as answer_plan
from confide.support import Kind, aligned, read_text


@command
def answer(
    source: o.Source,
    *,
    plan: PlanFile,
    keys: Keys,
    rules: Rules,
    records: SiloRecords,
    output: o.Output,
    columns: Columns,
    by: Annotated[
        str | None,
        o.grouping("COLUMN", "For a plan with a threshold for each group: the column of each record's group."),
    ] = None,
    people: o.PeopleOptions,
) -> None:
    r"""Answer a plan from this silo's records: one small signed file.

    The loss is charged in this silo's own budget ledger before the records are
    used; what the ledger's limit or the budget does not allow is refused. Asked
    again, the same answer is written again and costs nothing. `confide show
    plan.json` says beforehand what the plan asks, and prints the fingerprints.

    Example:

      confide federated answer records.csv --score-column s --plan plan.json \
        --keys north.key --coordinator coordinator.json \
        --ledger north.db --budget 4 --out north-answer.json
    """
    what, policy = what_of(columns, people), rules.agreed()
    output.check(Kind.ANSWER, *source.files, plan, keys, records.file, *rules.files)
    text = read_text(plan)
    read, _ = read_plan(text)
    of_scores = read.first if isinstance(read, SeveralPlans) else read
    check_score("the plan", of_scores.score, what)
    _check_by(read, by, columns)
    counts: Any
    if isinstance(read, SeveralPlans) and read.by != "level":
        counts = counted_by_group(source, what, columns, people, of_scores.candidates, tuple(read.parts), by)
    else:
        counts = counted(source, what, columns, people, of_scores.candidates, of_scores.classes)
    own_keys = SiloKeys.load(keys)
    earlier = records.open().answered(read)
    with heard(OtherDataWarning) as caught:
        message = answer_plan(text, counts, own_keys, policy, records.open(), now=datetime.now(UTC))
    for one in caught:
        warn(str(one.message))
    if earlier is not None:
        say(f"earlier answer of {earlier} returned; nothing was charged")
    output.write(message, "answer")
    own = read.silos[read.position(own_keys.name)]
    if read.protocol.relies_on_silos and own.ledger is None:
        say(
            "this silo's public file names no ledger: a copy of these keys with another ledger could answer this plan "
            "again, and the two answers together would tell of the records; confide federated public --ledger names it"
        )
    if rows := identity_rows(read, silos=read.protocol.relies_on_silos):
        say(aligned(rows))
    if (collude := colluders(read)) is not None:
        say(f"{read.protocol.relies_for} the other silos: {collude}")
    for name, words in read.words:
        say(f"{name}: {words}")
    if opened := openers(read):
        say(f"the sum is opened by {opened}: `confide federated open`, with this ledger")
    say(records.spent(policy.budget))


def _check_by(plan: FederatedPlan | SeveralPlans, by: str | None, columns: Columns) -> None:
    """Refuse --by, or its absence, where the plan asks for something else."""
    each = plan.by if isinstance(plan, SeveralPlans) else None
    if each == "group" and by is None:
        raise click.UsageError("--by is missing, the column of each record's group: the plan has a threshold for each")
    if each != "group" and by is not None:
        raise click.UsageError("--by must be left out: the plan has no thresholds for groups")
    if each == "class" and columns.label is None:
        raise click.UsageError("the plan has a threshold for each class: name --probabilities and --label")
