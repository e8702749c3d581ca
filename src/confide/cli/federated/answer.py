"""`confide federated answer`: what a silo says of its records."""

import warnings
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import click
import typer

from confide.cli import options as o
from confide.cli.columns import Columns
from confide.cli.federated.arguments import Keys, PlanFile, SiloBudget, counted, read_silo, what_of
from confide.cli.output import say, warn
from confide.cli.parameters import command
from confide.errors import InputError, OtherDataWarning
from confide.federated import METHODS, FederatedPlan, Policy, SiloKeys
from confide.federated import answer as answer_plan
from confide.support import Kind, read_text


@command
def answer(
    source: o.Source,
    *,
    plan: PlanFile,
    keys: Keys,
    coordinator: Annotated[Path, typer.Option(metavar="FILE", help="The coordinator's public file, checked by you.")],
    budget: SiloBudget,
    output: o.Output,
    peer: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="secure-sum: public file of another silo.")
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option("--allow", click_type=click.Choice(METHODS), help="Allow other methods than the private ones."),
    ] = None,
    columns: Columns,
    people: o.PeopleOptions,
) -> None:
    r"""Answer a plan from this silo's records: one small signed file.

    The loss is charged in this silo's own budget ledger before the records are
    used; what the ledger's limit or the budget does not allow is refused. Asked
    again, the same answer is written again and costs nothing.

    Example:

      confide federated answer records.csv --score-column s --plan plan.json \
        --keys north.key --coordinator coordinator.json \
        --ledger north.db --budget 4 --out north-answer.json
    """
    what = what_of(columns, people)
    output.check(Kind.ANSWER, *source.files, plan, keys, coordinator, budget.ledger, *(peer or ()))
    text = read_text(plan)
    read, _ = FederatedPlan.read(text)
    if what is not None and what.kind.name != read.score:
        raise InputError(f"the plan is for the score {read.score!r}; these columns give {what.kind.name!r}")
    policy = Policy(
        coordinator=read_silo(coordinator).signing,
        budget=budget.budget,
        per_plan=budget.budget,
        methods=tuple(allow) if allow else ("private-qq", "secure-sum"),
        peers={other.name: other.identity for other in map(read_silo, peer or [])},
    )
    counts = counted(source, what, columns, people, read.candidates, read.classes)
    earlier = budget.open().answered(read)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", OtherDataWarning)
        message = answer_plan(text, counts, SiloKeys.load(keys), policy, budget.open(), now=datetime.now(UTC))
    for one in caught:
        warn(str(one.message))
    if earlier is not None:
        say(f"earlier answer of {earlier} returned; nothing was charged")
    output.write(message, "answer")
    say(budget.spent())
