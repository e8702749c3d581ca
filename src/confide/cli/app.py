"""The program with its commands, and logging on stderr by `--verbose` or CONFIDE_LOG."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module

import click

from confide.cli.command import COMMANDS
from confide.cli.exit_codes import IN_WORDS
from confide.cli.help import Declared, Group

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

    # A line without control characters, on stderr alone.
    handler, logger = logging.StreamHandler(sys.stderr), logging.getLogger("confide")
    lines = Lines("%(asctime)s %(levelname)s %(name)s %(message)s", "%Y-%m-%dT%H:%M:%SZ")
    lines.converter = time.gmtime
    handler.setFormatter(lines)

    # Only within the block.
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

_GROUPS = {
    "budget": "Plan a year's releases within one total per person.",
    "ledger": "Account for privacy budgets (list, show, limit, export), and begin ledgers (init).",
    "federated": "Calibrate across silos that never pool their data, by small signed files.\n\n"
    "All parties: keygen, and public for another size. The coordinator: plan, then aggregate. Every silo: answer, and "
    "optionally policy and own. `confide show` prints every file before you use it. Only the private keys and the "
    "ledger are secret.",
}
"""The help of each group of commands."""


def _below(group: str) -> dict[str, Declared]:
    """The commands of a group, in the order of their declaration; importing a module declares its own."""
    import_module("confide.cli.federated" if group == "federated" else "confide.cli.commands")
    words = {path: path.rpartition(" ") for path in COMMANDS}
    return {name: COMMANDS[path] for path, (above, _, name) in words.items() if above == group}


def _group(name: str) -> Group:
    return Group(name, _below(name), help=_GROUPS[name])


_groups = {name: Declared(text.partition("\n")[0], partial(_group, name)) for name, text in _GROUPS.items()}

app = Group(
    "confide",
    commands=_below("") | _groups,
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
