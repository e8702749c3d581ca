"""`confide budget`: what a year's releases may spend each, from public numbers alone."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import click
import typer

from confide.cli import options as o
from confide.cli.help import Command, Group
from confide.cli.output import check_output, emit, say
from confide.cli.parameters import command
from confide.cli.progress import progress_bar
from confide.errors import InputError
from confide.ledger import IN_WORDS, RULES, Planned, Schedule, best_of, by_rules, decimal_form
from confide.mechanisms import NEIGHBORS
from confide.support import Kind, aligned

budget = typer.Typer(help="Plan a year's releases within one total per person.", cls=Group, rich_markup_mode=None)


@budget.callback()
def _budget() -> None:
    """So that `plan` keeps its name though it is the only one."""


_planned = partial(o.option, "What is planned")


def _of_one_person(kind: str) -> Any:
    return o.owners("K", f"In how many of the {kind} one person can be (default: in all).")


@dataclass(frozen=True)
class Year:
    """What is planned; the arguments of `budget_plan`."""

    epsilon: Annotated[float, o.privacy("NUMBER", "The total per person, over all that is planned.")]
    dp_delta: Annotated[
        float, o.privacy("DELTA", "The total is (epsilon, delta)-privacy; with 0 epsilons add up.", "--dp-delta")
    ] = 1e-6
    releases: Annotated[int, _planned("COUNT", "Thresholds that are calibrated.")] = 0
    evaluations: Annotated[int, _planned("COUNT", "Private evaluations.")] = 0
    looks: Annotated[int, _planned("COUNT", "Looks at the coverage of a batch of records.")] = 0
    share: Annotated[str, _planned("SHARE", "The releases' share of the total; the others divide the rest.")] = "0.5"
    releases_per_person: Annotated[int | None, _of_one_person("releases")] = None
    evaluations_per_person: Annotated[int | None, _of_one_person("evaluations")] = None
    looks_per_person: Annotated[int | None, _of_one_person("looks")] = None
    records_per_person: Annotated[int, o.owners("K", "The most records of one person within one release.")] = 1
    neighbors: Annotated[
        str,
        o.privacy("RELATION", "The relation that losses are stated for.", click_type=click.Choice(NEIGHBORS)),
    ] = "add_remove"


@budget.command(cls=Command)
@command
def plan(
    *,
    year: Year,
    rule: Annotated[
        str,
        o.privacy(
            "RULE",
            "basic, zcdp, pld (which fixes the schedule in advance), or best: whose releases cover least too much.",
            click_type=click.Choice((*RULES, "best")),
        ),
    ] = "best",
    n: Annotated[str, o.promise("N,N", "Numbers of records in one release to state its coverage for.")] = "1000",
    alpha: Annotated[str, o.promise("LEVEL", "Share of truths that a release may miss, likewise.")] = "0.1",
    out: Annotated[
        Path | None, o.output("FILE", "Write the schedule, for --schedule and `confide ledger follow`.")
    ] = None,
    force: o.Force = False,
    as_json: o.AsJson = False,
) -> None:
    r"""Divide one total per person among a year's releases, from public numbers.

    All rules of composition are compared: what each release may spend, how
    much its threshold will cover, and from how many records on the noise of a
    look counts less than chance. With --out the schedule is written:
    --schedule takes what a release may spend from it, and `confide ledger
    follow` has a ledger enforce it.

    Example:

      confide budget plan --releases 12 --looks 52 --looks-per-person 1 \
        --epsilon 3 --n 500,1000,5000 --out schedule.json
    """
    check_output(out, Kind.SCHEDULE, force=force)
    level, sizes = o.one_level(alpha), [_whole(one) for one in o.split(n)]
    with progress_bar("composing", lambda: None):
        schedules = by_rules(**vars(year))
        if rule not in ("best", *schedules):
            adding = "with --dp-delta 0 epsilons add up; give a delta above 0, or --rule basic"
            why = adding if year.dp_delta == 0 else "pip install 'confide[accounting]' first"
            raise InputError(f"--rule {rule} cannot be had: {why}")
        chosen = best_of(schedules, sizes, level) if rule == "best" else schedules[rule]  # type: ignore[index]
        rules = {name: [_worth(one, entry, sizes, level) for entry in one.entries] for name, one in schedules.items()}
    if out is not None:
        chosen.save(out, overwrite=force)
    if as_json:
        saved = None if out is None else str(out)
        emit({"schedule": chosen.fields, "statement": chosen.statement, "n": sizes, "rules": rules, "out": saved})
        return
    say(f"{chosen}")
    for name, one in schedules.items():
        rows = [_row(entry, worth, sizes) for entry, worth in zip(one.entries, rules[name], strict=True)]
        say(f"{IN_WORDS[name]}{', chosen' if one is chosen else ''}:\n{aligned(rows)}")
    if out is not None:
        say(f"saved: {out}")


def _whole(text: str) -> int:
    if not text.isdecimal() or len(text) > 18:
        raise click.UsageError(f"--n must be whole numbers between commas; found {text!r}")
    return int(text)


def _worth(schedule: Schedule, entry: Planned, sizes: list[int], alpha: str) -> dict[str, Any]:
    """What one of a kind spends, and what that is worth."""
    worth: dict[str, Any] = {"kind": entry.kind, "epsilon": entry.epsilon}
    if entry.kind == "calibration":
        coverage = [schedule.plan(size, alpha).expected_coverage for size in sizes]
        return {**worth, "selector": entry.selector, "expected_coverage": coverage}
    return {**worth, "records": schedule.records_of(entry.kind, alpha)}


def _row(entry: Planned, worth: dict[str, Any], sizes: list[int]) -> tuple[str, str]:
    each = f"epsilon {decimal_form(entry.epsilon)} each"
    if entry.kind == "calibration":
        coverage = ", ".join(f"{share:.3f}" for share in worth["expected_coverage"])
        drawn = str(entry.selector).replace("_", "-")
        return entry.words, f"{each}, {drawn}; expected coverage {coverage} with {', '.join(map(str, sizes))} records"
    return entry.words, f"{each}; from {worth['records']} records on its noise counts less than chance"
