"""The command line: `confide calibrate`, `predict`, `evaluate`, `plan`, `show` and `demo`."""

from confide.cli.run import main

__all__ = ["main"]
