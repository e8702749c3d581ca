"""`confide doctor`: what is installed, what was made with what, and what is known against it."""

from pathlib import Path
from typing import Annotated

import typer

from confide.cli import options as o
from confide.cli.exit_codes import DONE, FOUND
from confide.cli.output import emit, say, warn

Paths = Annotated[
    list[Path] | None,
    typer.Argument(metavar="PATH", help="Files, and folders with all below: which advisories concern them?"),
]


def doctor(paths: Paths = None, as_json: o.AsJson = False) -> int:
    """Say what is installed, what files were made with, and what is known against it.

    Versions of confide, of OpenDP and of what it stands on; whether installed
    files are those that were installed; whether the sampler draws; which
    optional parts there are. Of every release, evaluation, watch, answer or
    ledger below the PATHs: with what it was made, whether it is damaged, and
    which advisories concern it. Nothing is sent, run or written. Exit code 7
    if there is something to look at.

    Example:

      confide doctor /archive/releases
    """
    from confide.checkup import doctor as examine

    found = examine(*(paths or ()))
    if as_json:
        emit(found.fields())
    else:
        say(str(found))
    for line in found.findings:
        warn(line)
    return FOUND if found.findings else DONE
