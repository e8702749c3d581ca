"""The commands and their help; and what happens, on stderr, by `--verbose` or for jobs by CONFIDE_LOG."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from confide.cli.calibrate import calibrate, recalibrate
from confide.cli.command import Group
from confide.cli.completion import install_completion, show_completion
from confide.cli.evaluate import evaluate
from confide.cli.exit_codes import IN_WORDS
from confide.cli.federated import federated
from confide.cli.ledger import ledger
from confide.cli.machine import audit, demo, doctor
from confide.cli.output import say
from confide.cli.plan import budget_plan, plan
from confide.cli.predict import predict, randomise_labels
from confide.cli.show import report, show, verify
from confide.cli.sql import sql
from confide.cli.watch import watch
from confide.support import harmless, one_line

LOG = "CONFIDE_LOG"
_LEVELS = ("info", "debug")


def wanted_level(times: int) -> str | None:
    """The level that is asked for: once verbose is `info`, twice `debug`; else what the environment says, or nothing.

    Examples
    --------
    >>> wanted_level(2)
    'debug'
    """
    if times:
        return _LEVELS[min(times, len(_LEVELS)) - 1]
    named = os.environ.get(LOG, "").strip().lower()
    if named and named not in _LEVELS:
        raise click.UsageError(f"the environment variable {LOG} must be {' or '.join(_LEVELS)}; found another text")
    return named or None


@contextmanager
def told_on_stderr(level: str) -> Iterator[None]:
    """Within the block the library's events of this level and above are lines on stderr."""
    import logging

    class Lines(logging.Formatter):
        """A line for each event that cannot steer a terminal, with its time in UTC."""

        def format(self, record: logging.LogRecord) -> str:
            """`2026-11-22T10:00:00Z INFO confide.ledger charged dataset=a`."""
            return harmless(one_line(super().format(record)))

    import time

    handler, logger = logging.StreamHandler(sys.stderr), logging.getLogger("confide")
    lines = Lines("%(asctime)s %(levelname)s %(name)s %(message)s", "%Y-%m-%dT%H:%M:%SZ")
    lines.converter = time.gmtime
    handler.setFormatter(lines)
    before, passes = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(level.upper())
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
        logger.propagate = passes


_HELP = """Prediction sets with a coverage guarantee and a differential-privacy guarantee.

The usual way: plan, calibrate on records with known truth, predict for new ones; evaluate, watch, show, verify and
report look back, and doctor says what is installed and known."""

_EXIT_CODES = "Exit codes:\n" + "\n".join(f"{code:>5}  {meaning}" for code, meaning in IN_WORDS.items())


def _version(context: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        from importlib.metadata import version

        say(f"confide {version('confide')}")
        context.exit()


@click.pass_context
def _confide(context: click.Context, verbose: int) -> None:
    if level := wanted_level(verbose):
        context.with_resource(told_on_stderr(level))


_VERBOSE = f"Before a command: say on stderr what happens, nothing private; -vv says more. Or set {LOG}=info."

budget = Group("budget", commands=[budget_plan], help="Plan a year's releases within one total per person.")

app = Group(
    "confide",
    commands=[
        plan, calibrate, recalibrate, predict, evaluate, watch, show, verify, report, sql, randomise_labels, audit,
        doctor, demo, budget, ledger, federated,
    ],
    params=[
        click.Option(["--version"], is_flag=True, is_eager=True, expose_value=False, callback=_version,
                     help="Print the version."),
        click.Option(["--verbose", "-v"], count=True, help=_VERBOSE),
        install_completion,
        show_completion,
    ],
    callback=_confide,
    help=_HELP,
    epilog=_EXIT_CODES,
    context_settings={"help_option_names": ["-h", "--help"]},
)  # fmt: skip
"""The program."""
