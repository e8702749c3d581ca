"""The command `confide demo`."""

from pathlib import Path

from confide.cli.command import command
from confide.cli.output import print_text


@command("demo")
def demo(*, out: Path = Path("demo-output"), force: bool = False) -> None:
    """Run an example on real data, with explanations.

    Takes some seconds: trains a model on handwritten digits, calibrates it
    privately, predicts sets for unseen images, and writes the calibration, the
    sets and the probabilities to files that you can continue with.

    Example:

      confide demo --out demo-output
    """
    from confide.demo import run

    print_text(run(out, force=force))
