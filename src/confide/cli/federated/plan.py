"""`confide federated plan`: what everybody will run, and what it promises."""

from pathlib import Path
from typing import Annotated

import click
import typer

from confide.cli import options as o
from confide.cli.about import About, stated_words
from confide.cli.columns import Score, parsed
from confide.cli.federated.arguments import Keys, invited, public_files
from confide.cli.federated.several import GroupNames, planned
from confide.cli.federated.words import colluders, openers, promise_lines
from confide.cli.output import say
from confide.cli.parameters import command
from confide.federated import METHODS, SeveralPlans, SiloKeys, read_time
from confide.support import Kind


@command
def plan(
    *,
    silo: Annotated[
        list[Path],
        typer.Option("--silo", "--silos", metavar="PATH", help="Public file of a silo, or a folder; repeat it."),
    ],
    keys: Keys,
    output: o.Output,
    alpha: o.Alphas,
    epsilon: o.Epsilon = None,
    method: Annotated[str, typer.Option(click_type=click.Choice(METHODS), help="How to calibrate.")] = "private-qq",
    score: Score = None,
    candidates: o.CandidatesSpec = None,
    unit: o.Unit = None,
    delta: o.Delta = None,
    dropouts: Annotated[int, typer.Option(help="Silos that may be missing.", min=0)] = 0,
    liars: Annotated[int, typer.Option(help="Silos that may send anything.", min=0)] = 0,
    arbitrary: Annotated[
        bool, typer.Option("--arbitrary", help="Whether a silo answers may depend on its scores.")
    ] = False,
    colluding: Annotated[
        int | None, typer.Option(help="secure-sum: silos that may collude with the coordinator.", min=0)
    ] = None,
    n_min: o.NMinOfSilos = None,
    n_typical: o.NTypical = None,
    closes: Annotated[
        str | None, typer.Option(metavar="TIME", help="UTC time after which answers are late, as 2030-01-31T12:00:00Z.")
    ] = None,
    classes: Annotated[
        str | None,
        typer.Option(metavar="A,B,C", help="Class names that every silo's probabilities have; others are refused."),
    ] = None,
    groups: GroupNames,
    about: About = None,
) -> None:
    r"""Plan a federated calibration before any data is seen.

    Says which coverage is guaranteed for every number of answers. Several levels,
    as --alpha 0.2,0.1, or --groups or --by-class are answered by one file of
    each silo, for one charge.

    Example:

      confide federated plan --silo north.json --silo south.json \
        --keys coordinator.key --alpha 0.1 --epsilon 1 --out plan.json
    """
    output.check(Kind.PLAN, *public_files(silo), keys)
    coordinator = SiloKeys.load(keys)
    silos, own = invited(silo, coordinator.face())
    made = planned(
        silos,
        alpha,
        epsilon,
        groups,
        method=method,
        score=score,
        candidates=parsed(candidates),
        unit=unit,
        delta=delta,
        dropouts=dropouts,
        liars=liars,
        missing="arbitrary" if arbitrary else "independent",
        colluding=colluding,
        n_min=n_min,
        n_typical=n_typical,
        closes=None if closes is None else read_time(closes),
        classes=None if classes is None else o.split(classes),
        about=stated_words(about),
    )
    output.write(made.sign(coordinator), "plan")
    first = made.first if isinstance(made, SeveralPlans) else made
    for path in own:
        say(f"not invited: {path}, the coordinator's own; --silo with this file would invite it")
    say(f"privacy: {made.privacy() if epsilon is not None else 'none'}")
    say(f"candidate thresholds: {first.candidates.description}")
    if (collude := colluders(made)) is not None:
        say(f"privacy relies on the other silos: {collude}")
    if opened := openers(made):
        say(f"the sum is opened by {opened}")
    if first.assumed:
        say(f"promised {first.assumed}:")
    for line in promise_lines(made):
        say(f"  {line}")
