"""`confide audit`: check the privacy and coverage claims on this machine."""

from pathlib import Path
from typing import Annotated

import click
import typer

from confide.cli import options as o
from confide.cli.exit_codes import CLAIM_FAILED, DONE
from confide.cli.output import check_output, say
from confide.mechanisms import NEIGHBORS
from confide.support import write_text


def audit(
    mechanism: Annotated[
        str | None,
        o.option(
            None,
            "MODULE:CALLABLE",
            "Audit this mechanism instead of the library's own: a function of an array of scores in [0, 1] that "
            "returns a threshold (docs/audit.md). [bold]Its code is run.[/bold]",
        ),
    ] = None,
    epsilon: Annotated[float | None, o.option(None, "NUMBER", "The privacy loss that it claims per record.")] = None,
    alpha: Annotated[str | None, o.option(None, "LEVEL", "The share of truths that it claims to miss at most.")] = None,
    neighbors: Annotated[
        str | None,
        typer.Option(
            click_type=click.Choice(NEIGHBORS), help="The relation of its privacy claim (default: replace_one)."
        ),
    ] = None,
    records: Annotated[
        int, o.option(None, "N", "Size of the small data sets that it is attacked on.", min=2, max=1000)
    ] = 8,
    long: Annotated[bool, typer.Option("--long", help="Run everything 5 to 10 times as often.")] = False,
    level: Annotated[
        float, o.option(None, "P", "Probability, at most, that honest mechanisms fail the audit by chance.")
    ] = 1e-4,
    out: Annotated[Path | None, o.option(None, "FILE", "Also write the findings as JSON.")] = None,
    force: o.Force = False,
    as_json: o.AsJson = False,
) -> int:
    """Check the privacy and coverage claims on this machine, against the installed versions.

    Enumerates small cases exactly, tests the sampler against its exact law, attacks the worst neighbours, and checks
    coverage on nasty distributions. Nothing is read but the programs. Exit code 5 if a claim fails.

    Example: confide audit --mechanism mine:threshold --epsilon 1 --alpha 0.1
    """
    from confide.audit import BRIEF, LONG, QUICK, audit, audit_library, foreign_subject, load

    check_output(out, force=force)
    tell = None if as_json else lambda name: click.echo(f"auditing {name}", err=True)
    if mechanism is None:
        report = audit_library(LONG if long else BRIEF, level=level, tell=tell)
    else:
        subject = foreign_subject(
            load(mechanism),
            mechanism,
            epsilon=epsilon,
            alpha=alpha,
            neighbors=neighbors,  # type: ignore[arg-type]
            records=records,
        )
        report = audit([subject], LONG if long else QUICK, level=level, tell=tell)
    if out is not None:
        write_text(out, report.to_json(), overwrite=force)
    say(report.to_json().rstrip() if as_json else str(report))
    return DONE if report.passed else CLAIM_FAILED
