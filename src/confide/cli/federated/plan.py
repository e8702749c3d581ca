"""`confide federated plan`: what everybody will run, and what it promises."""

from pathlib import Path
from typing import Annotated, Any
from warnings import WarningMessage

import click
import typer

from confide.cli import options as o
from confide.cli.about import About, stated_words
from confide.cli.columns import Columns, parsed
from confide.cli.federated.arguments import Keys, invited, public_files
from confide.cli.federated.comparison import comparison_lines
from confide.cli.federated.several import GroupNames, planned
from confide.cli.output import check_output, heard, say, warn
from confide.cli.parameters import command
from confide.errors import InputError, SimilarNameWarning
from confide.federated import COMPARABLE, METHODS, FederatedPlan, SeveralPlans, SiloKeys, colluders, openers, read_time
from confide.federated import compare as compare_methods
from confide.planning import Pilot
from confide.support import Kind, write_text
from confide.tables import files_of, read_pilot


@command
def plan(
    *,
    silo: Annotated[
        list[Path],
        typer.Option("--silo", "--silos", metavar="PATH", help="Public file of a silo, or a folder; repeat it."),
    ],
    keys: Keys,
    alpha: o.Alphas,
    epsilon: o.Epsilon = None,
    out: Annotated[Path | None, o.output("FILE", "Where to write the plan; with --compare it can be left out.")] = None,
    force: o.Force = False,
    method: Annotated[
        str | None,
        typer.Option(click_type=click.Choice(METHODS), help="How to calibrate (default: as --compare recommends)."),
    ] = None,
    compare: Annotated[
        bool,
        typer.Option("--compare", help="Print what the methods would give for these silos, and which one to take."),
    ] = False,
    also: Annotated[
        list[str] | None,
        typer.Option(
            click_type=click.Choice(COMPARABLE), help="With --compare: this published method, too; repeat it."
        ),
    ] = None,
    pilot: Annotated[
        str | None,
        o.columns(
            "TABLE",
            "With --compare: PUBLIC records with known truth, to say how large sets and intervals will be; named by "
            "the options of columns. Never private ones: what is printed tells of them.",
        ),
    ] = None,
    reading: o.ReadingOptions,
    columns: Columns,
    candidates: o.CandidatesSpec = None,
    unit: o.Unit = None,
    delta: o.Delta = None,
    dropouts: Annotated[int, typer.Option(help="Silos that may be missing.", min=0)] = 0,
    liars: Annotated[int, typer.Option(help="Silos that may send anything.", min=0)] = 0,
    arbitrary: Annotated[
        bool, typer.Option("--arbitrary", help="Whether a silo answers may depend on its scores.")
    ] = False,
    colluding: Annotated[
        int | None, typer.Option(help="Of sums: silos that may collude with the coordinator.", min=0)
    ] = None,
    dp_delta: Annotated[
        float | None,
        typer.Option(help="fedcp2-qq-sum: let the opened sum cost (epsilon, this), where summing saves loss."),
    ] = None,
    n_min: o.NMinOfSilos = None,
    n_typical: o.NTypical = None,
    closes: Annotated[
        str | None, typer.Option(metavar="TIME", help="UTC time after which answers are late, as 2030-01-31T12:00:00Z.")
    ] = None,
    groups: GroupNames,
    about: About = None,
) -> None:
    r"""Plan a federated calibration before any data is seen.

    Says which coverage is guaranteed for every number of answers. Without
    --method it takes the one that suits the silos' sizes, as --compare says.
    --classes names the classes that every silo must have. Several levels, as
    --alpha 0.2,0.1, or --groups or --by-class are answered by one file of each
    silo, for one charge.

    Example:

      confide federated plan --silo north.json --silo south.json \
        --keys coordinator.key --alpha 0.1 --epsilon 1 --out plan.json
    """
    check_output(out, Kind.PLAN, *public_files(silo), keys, *(() if pilot is None else files_of(pilot)), force=force)
    _check_asked(out, compare=compare, method=method, also=also, pilot=pilot, reading=reading, columns=columns)
    if compare and groups.given:
        raise click.UsageError("--compare is for one threshold; leave --groups and --by-class out")
    coordinator = SiloKeys.load(keys)
    silos, own = invited(silo, coordinator.face())
    options: dict[str, Any] = {
        "score": columns.score,
        "candidates": parsed(candidates),
        "unit": unit,
        "delta": delta,
        "dropouts": dropouts,
        "liars": liars,
        "missing": "arbitrary" if arbitrary else "independent",
        "colluding": colluding,
        "dp_delta": dp_delta,
        "n_typical": n_typical,
        "closes": None if closes is None else read_time(closes),
        "classes": None if columns.classes is None else o.split(columns.classes),
        "about": stated_words(about),
    }
    made: FederatedPlan | SeveralPlans | None
    if compare:
        sample, least = _sample(pilot, reading, columns), 1 if n_min is None else n_min
        with heard(SimilarNameWarning) as caught:
            found = compare_methods(
                silos, o.one_level(alpha), epsilon or 0.0, pilot=sample, also=also or (), n_min=least, **options
            )
        _warn_once(caught)
        for line in comparison_lines(found, silos):
            say(line)
        if out is None:
            return
        made = next((one.plan for one in found if one.recommended and one.plan is not None), None)
        if made is None:
            raise InputError("no method has a plan for these silos; " + "; ".join(str(one.refused) for one in found))
    else:
        with heard(SimilarNameWarning) as caught:
            made = planned(silos, alpha, epsilon, groups, n_min=n_min, method=method, **options)
        _warn_once(caught)
    assert out is not None
    first = made.first if isinstance(made, SeveralPlans) else made
    write_text(out, made.sign(coordinator), overwrite=force)
    for note in made.remarks:
        warn(note)
    say(f"plan: {out}")
    for path in own:
        say(f"not invited: {path}, the coordinator's own; --silo with this file would invite it")
    if method is None:
        say(f"method: {first.method}, which suits these silos (--compare says why)")
    say(f"privacy: {made.privacy() if epsilon is not None else 'none'}")
    say(f"candidate thresholds: {first.candidates.description}")
    if (collude := colluders(made)) is not None:
        say(f"{made.protocol.relies_for} the other silos: {collude}")
    for name, words in made.words:
        say(f"{name}: {words}")
    if opened := openers(made):
        say(f"the sum is opened by {opened}")
    if first.assumed:
        say(f"promised {first.assumed}:")
    for line in made.promise_lines:
        say(f"  {line}")


def _warn_once(caught: list[WarningMessage]) -> None:
    """Every method that was tried has warned of the same names."""
    for text in dict.fromkeys(str(one.message) for one in caught):
        warn(text)


def _check_asked(
    out: Path | None,
    *,
    compare: bool,
    method: str | None,
    also: list[str] | None,
    pilot: str | None,
    reading: o.ReadingOptions,
    columns: Columns,
) -> None:
    """Refuse options that do not go together, before anything is read."""
    if out is None and not compare:
        raise click.UsageError("--out is missing; only --compare goes without")
    if compare and method is not None:
        raise click.UsageError("--compare compares the methods; leave --method out, or --compare")
    if also and not compare:
        raise click.UsageError("--also belongs to --compare")
    if pilot is not None and not compare:
        raise click.UsageError("--pilot belongs to --compare")
    if pilot is None and (columns != Columns(score=columns.score, classes=columns.classes) or reading != _PLAIN):
        raise click.UsageError("columns, and how they are read, are those of --pilot, which is missing")


_PLAIN = o.ReadingOptions()


def _sample(pilot: str | None, reading: o.ReadingOptions, columns: Columns) -> Pilot | None:
    if pilot is None:
        return None
    what = columns.what()
    if what is None:
        raise click.UsageError(f"--pilot needs {columns.ways}")
    with reading.opened(pilot, "reading") as (opened, progress):
        return read_pilot(opened, what, skip_incomplete=reading.skip_incomplete, progress=progress)
