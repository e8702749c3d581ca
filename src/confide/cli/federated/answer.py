"""`confide federated answer`: what a silo says of its records."""

import warnings
from datetime import UTC, datetime

from confide.cli import options as o
from confide.cli.columns import Columns
from confide.cli.federated.arguments import Keys, PlanFile, SiloRecords, counted, what_of
from confide.cli.federated.rules import Rules
from confide.cli.federated.words import colluders, identity_rows, openers
from confide.cli.output import say, warn
from confide.cli.parameters import command
from confide.errors import InputError, OtherDataWarning
from confide.federated import FederatedPlan, SiloKeys
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
    output.check(Kind.ANSWER, *source.files, plan, keys, records.ledger, *rules.files)
    text = read_text(plan)
    read, _ = FederatedPlan.read(text)
    if what is not None and what.kind.name != read.score:
        raise InputError(f"the plan is for the score {read.score!r}; these columns give {what.kind.name!r}")
    counts = counted(source, what, columns, people, read.candidates, read.classes)
    earlier = records.open().answered(read)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", OtherDataWarning)
        message = answer_plan(text, counts, SiloKeys.load(keys), policy, records.open(), now=datetime.now(UTC))
    for one in caught:
        warn(str(one.message))
    if earlier is not None:
        say(f"earlier answer of {earlier} returned; nothing was charged")
    output.write(message, "answer")
    if rows := identity_rows(read, silos=read.protocol.relies_on_silos):
        say(aligned(rows))
    if (collude := colluders(read)) is not None:
        say(f"privacy relies on the other silos: {collude}")
    if opened := openers(read):
        say(f"the sum is opened by {opened}: `confide federated open`, with this ledger")
    say(records.spent(policy.budget))
