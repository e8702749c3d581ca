"""The program with its commands, and logging on stderr by `--verbose` or CONFIDE_LOG."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from confide.cli.exit_codes import IN_WORDS
from confide.cli.help import Group, Imported

LOG = "CONFIDE_LOG"
_LEVELS = ("info", "debug")


def log_level(times: int) -> str | None:
    """The log level: `info` for one `--verbose`, `debug` for two; else that of the environment variable, or None.

    Examples
    --------
    >>> log_level(2)
    'debug'
    """
    if times:
        return _LEVELS[min(times, len(_LEVELS)) - 1]
    named = os.environ.get(LOG, "").strip().lower()
    if named and named not in _LEVELS:
        raise click.UsageError(f"the environment variable {LOG} must be {' or '.join(_LEVELS)}; got another text")
    return named or None


@contextmanager
def log_to_stderr(level: str) -> Iterator[None]:
    """Within the block, print the library's events of this level and above on stderr."""
    import logging
    import time

    from confide.support import escape_line, escape_text

    class Lines(logging.Formatter):
        """One line for each event, with its time in UTC and without control characters."""

        def format(self, record: logging.LogRecord) -> str:
            """`2026-11-22T10:00:00Z INFO confide.ledger charged dataset=a`."""
            return escape_text(escape_line(super().format(record)))

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


# The program


_HELP = """Prediction sets with a coverage guarantee and a differential-privacy guarantee.

A typical order: plan, calibrate on records with true labels, predict for new records. Use evaluate, watch, show, verify
and report after a release."""

_EXIT_CODES = "Exit codes:\n" + "\n".join(f"{code:>5}  {meaning}" for code, meaning in IN_WORDS.items())


def _version(context: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        from importlib.metadata import version

        click.echo(f"confide {version('confide')}")
        context.exit()


@click.pass_context
def _confide(context: click.Context, verbose: int) -> None:
    if level := log_level(verbose):
        context.with_resource(log_to_stderr(level))


_VERBOSE = f"Before a command: log on stderr, nothing private; -vv logs more. Or set {LOG}=info."

_COMMANDS = {
    "plan": ("plan:plan", "Compute guarantee and cost of a calibration, without private data."),
    "calibrate": ("calibrate:calibrate", "Calibrate privately on records with true labels."),
    "request": ("request_file:request", "Write a file with all arguments of a request, to edit and to review."),
    "recalibrate": ("recalibrate:recalibrate", "Renew a release on new records with true labels."),
    "predict": ("predict:predict", "Predict sets of classes, or intervals, for new records."),
    "evaluate": ("evaluate:evaluate", "Measure coverage and set size on records with true labels."),
    "watch": ("watch:watch", "Monitor coverage privately, batch by batch; exit code 6 is an alarm."),
    "show": ("show:show", "Print the promise and the privacy cost of a release."),
    "verify": ("show:verify", "Check a release: its claims, its signature, and your conditions."),
    "sign": ("show:sign_release", "Sign a release of one machine, for `confide verify --signer`."),
    "report": ("pages:report", "Write an HTML page about a release: promise, privacy, cost, provenance."),
    "card": ("pages:card", "Write a model card of a release, with metadata for the Hugging Face Hub."),
    "sql": ("calibrate:sql", "Print the query that counts in a warehouse, where no Python runs."),
    "demo": ("machine:demo", "Run an example on real data, with explanations."),
    "budget": ("plan:budget", "Plan a year's releases within one total per person."),
    "ledger": (
        "ledger:ledger",
        "Account for privacy budgets (list, show, limit, export), and begin ledgers (init).",
    ),
    "federated": ("federated:federated", "Calibrate across silos that never pool their data, by small signed files."),
}
"""The place of each command, and its first sentence."""

app = Group(
    "confide",
    commands=Imported(_COMMANDS),
    params=[
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_version,
            help="Print the version.",
        ),
        click.Option(["--verbose", "-v"], count=True, help=_VERBOSE),
    ],
    callback=_confide,
    help=_HELP,
    epilog=_EXIT_CODES,
    context_settings={"help_option_names": ["-h", "--help"]},
)
"""The program."""
