"""The command `confide demo`."""

from confide.cli.commands import Demo
from confide.cli.output import print_text


def demo(asked: Demo) -> None:
    """Run the example."""
    from confide.demo import run

    print_text(run(asked.out, force=asked.force))
