"""`confide audit`: check the privacy and coverage claims on this machine."""

import json
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import click
import typer

from confide.cli import options as o
from confide.cli.exit_codes import CLAIM_FAILED, DONE
from confide.cli.output import check_output, emit, say
from confide.cli.progress import progress_bar
from confide.errors import InputError
from confide.mechanisms import NEIGHBORS, Neighbors
from confide.support import Kind, write_text


def audit(
    mechanism: Annotated[
        str | None,
        o.option(
            None,
            "MODULE:CALLABLE",
            "Audit this mechanism instead of the library's own: a function of an array of scores in [0, 1] that "
            "returns a threshold (docs/audit.md). Its code is run.",
        ),
    ] = None,
    epsilon: Annotated[float | None, o.option(None, "NUMBER", "The privacy loss that it claims per record.")] = None,
    alpha: Annotated[str | None, o.option(None, "LEVEL", "The share of truths that it claims to miss at most.")] = None,
    neighbors: Annotated[
        Neighbors | None,
        typer.Option(
            click_type=click.Choice(NEIGHBORS), help="The relation of its privacy claim (default: replace_one)."
        ),
    ] = None,
    records: Annotated[
        int, o.option(None, "N", "Size of the small data sets that it is attacked on.", min=2, max=1000)
    ] = 8,
    least_records: Annotated[
        int | None,
        o.option(None, "N", "The least number of records for which its coverage is claimed (default: 50).", min=1),
    ] = None,
    seconds: Annotated[
        float | None, o.option(None, "S", "Run the mechanism as often as fits into this time (default: 120).", min=0)
    ] = None,
    long: Annotated[bool, typer.Option("--long", help="Run everything ten times as often.")] = False,
    level: Annotated[
        float, o.option(None, "P", "Probability, at most, that honest mechanisms fail the audit by chance.")
    ] = 1e-4,
    out: Annotated[Path | None, o.option(None, "FILE", "Also write the findings as JSON.")] = None,
    force: o.Force = False,
    as_json: o.AsJson = False,
) -> int:
    """Check the privacy and coverage claims on this machine, against the installed versions.

    Enumerates small cases exactly, tests the sampler against its exact law, attacks the worst neighbours of many sizes,
    tests whether every call has fresh noise, and checks coverage on nasty distributions. Nothing is read but the
    programs. Takes about two minutes of one processor (--long: twenty). Exit code 5 if a claim fails.

    Example: confide audit --mechanism mine:threshold --epsilon 1 --alpha 0.1
    """
    from confide.audit import BRIEF, LONG, SECONDS, audit, audit_library, foreign_subject, load

    check_output(out, Kind.AUDIT, force=force)
    if mechanism is None and seconds is not None:
        raise InputError("--seconds belongs to --mechanism; the library's own are run a fixed number of times")
    tell = None if as_json or sys.stderr.isatty() else lambda name: click.echo(f"auditing {name}", err=True)
    with ExitStack() as stack:

        def watch(runs: int) -> Callable[[int], object]:
            return stack.enter_context(progress_bar("auditing", lambda: runs))

        if mechanism is None:
            report = audit_library(LONG if long else BRIEF, level=level, tell=tell, watch=watch)
        else:
            subject = foreign_subject(
                load(mechanism),
                mechanism,
                epsilon=epsilon,
                alpha=alpha,
                neighbors=neighbors,
                records=records,
                least_records=least_records,
            )
            limit = (SECONDS if seconds is None else seconds) * (10 if long else 1)
            report = audit([subject], seconds=limit, level=level, tell=tell, watch=watch)
    if out is not None:
        write_text(out, report.to_json(), overwrite=force)
    if as_json:
        emit(json.loads(report.to_json()))
    else:
        say(str(report))
    return DONE if report.passed else CLAIM_FAILED
