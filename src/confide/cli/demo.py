"""`confide demo`: the whole way on real data."""

from pathlib import Path
from typing import Annotated

import typer

from confide.cli.output import say

Folder = Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Where to leave the files.")]
Replace = Annotated[bool, typer.Option("--force", help="Replace the files of an earlier demo.")]


def demo(out: Folder = Path("demo-output"), force: Replace = False) -> None:
    """See it work on real data, with an explanation.

    Takes some seconds: trains a model on handwritten digits, calibrates it
    privately, predicts sets for unseen images, and leaves the calibration, the
    sets and the probabilities as files to go on with.

    Example:

      confide demo --out demo-output
    """
    from confide.demo import run

    say(run(out, force=force))
