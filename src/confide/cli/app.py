"""The program: its commands, logging on stderr by `--verbose` or CONFIDE_LOG, and errors as exit codes."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import click

from confide.cli import commands, federated  # noqa: F401  # which declare the commands
from confide.cli.command import COMMANDS, Group
from confide.cli.exit_codes import (
    DONE,
    EXISTS,
    IN_WORDS,
    INTERNAL,
    PIPE_CLOSED,
    REFUSED,
    USAGE,
    check_interruption,
    received,
    say_interrupted,
)
from confide.cli.options import PEOPLE, PEOPLE_NAMES
from confide.errors import ConfideError

# Logging

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
        return _LEVELS[min(times, len(_LEVELS)) - 1]  # more than two are as two
    named = os.environ.get(LOG, "").strip().lower()
    if named and named not in _LEVELS:
        raise click.UsageError(f"the environment variable {LOG} must be {' or '.join(_LEVELS)}; got another text")
    return named or None


@contextmanager
def log_to_stderr(level: str) -> Iterator[None]:
    """Within the block, print the library's events of this level and above on stderr."""
    import logging
    import time

    from confide.support import escape_line, escape_text, handled

    class OneLine(logging.Formatter):
        """`2026-11-22T10:00:00Z INFO confide.ledger charged dataset=a`, without control characters."""

        def format(self, record: logging.LogRecord) -> str:
            return escape_text(escape_line(super().format(record)))

    # On stderr alone, and only within the block.
    handler = logging.StreamHandler(sys.stderr)
    formatter = OneLine("%(asctime)s %(levelname)s %(name)s %(message)s", "%Y-%m-%dT%H:%M:%SZ")
    formatter.converter = time.gmtime
    handler.setFormatter(formatter)
    logger = logging.getLogger("confide")
    passes = logger.propagate
    logger.propagate = False
    try:
        with handled(logger, handler, level.upper()):
            yield
    finally:
        logger.propagate = passes


# Commands

_GROUPS = {
    "budget": "Plan a year's releases within one total per person.",
    "ledger": "Account for privacy budgets (list, show, limit, export), and begin ledgers (init).",
    "federated": "Calibrate across silos that never pool their data, by small signed files.\n\n"
    "All parties: keygen, and public for another size. The coordinator: plan, then aggregate. Every silo: answer, and "
    "optionally policy and own. `confide show` prints every file before you use it. Only the private keys and the "
    "ledger are secret.",
}


# The program

_HELP = """Prediction sets with a coverage guarantee and a differential-privacy guarantee.

A typical order: plan, calibrate on records with true labels, predict for new records. Use evaluate, watch, show, verify
and report after a release."""
_VERBOSE = f"Before a command: log on stderr, nothing private; -vv logs more. Or set {LOG}=info."
_EXIT_CODES = "Exit codes:\n" + "\n".join(f"{code:>5}  {meaning}" for code, meaning in IN_WORDS.items())


@click.command(
    "confide",
    cls=Group,
    commands=[*COMMANDS[""], *(Group(name, COMMANDS[name], help=text) for name, text in _GROUPS.items())],
    help=_HELP,
    epilog=_EXIT_CODES,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(package_name="confide", message="confide %(version)s", help="Print the version.")
@click.option("--verbose", "-v", count=True, help=_VERBOSE)
@click.pass_context
def app(context: click.Context, verbose: int) -> None:
    """Log on stderr while a command runs, if that is wanted."""
    if level := log_level(verbose):
        context.with_resource(log_to_stderr(level))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    try:
        check_interruption()  # an import may have swallowed it
        code = app.main(args=arguments, prog_name="confide", standalone_mode=False)
        check_interruption()
        sys.stdout.flush()
        return code if isinstance(code, int) else DONE
    except BaseException as error:
        return say_interrupted() if received() else _answer(error)


# Errors


def _answer(error: BaseException) -> int:
    """Print at most one line about an error, and return its exit code."""
    from confide.support import OutputExistsError

    match error:
        case click.ClickException():
            return _say(_usage(error), USAGE)
        case KeyboardInterrupt() | click.Abort():
            return say_interrupted()
        case ConfideError():
            return _say(str(error), EXISTS if isinstance(error, OutputExistsError) else REFUSED)
        case SystemExit(code=0):  # after a completion script
            return DONE
        case BrokenPipeError() | SystemExit():  # click itself exits when a pipe is closed
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes once more at its end
            return PIPE_CLOSED
        case OSError(strerror=str()):  # without strerror, its text may come from a database engine
            return _say(f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror), REFUSED)
        case _:
            return _unexpected(error)


def _say(message: str, code: int) -> int:
    from confide.support import escape_text

    sys.stderr.write(f"error: {escape_text(' '.join(message.split()))}\n")
    return code


def _usage(error: click.ClickException) -> str:
    message = error.format_message().strip().rstrip(".")
    context = getattr(error, "ctx", None)
    if context is None:
        return message

    # An argument of the API that is no option is stated by `--set`.
    if isinstance(error, click.NoSuchOption):
        name = error.option_name.lstrip("-").replace("-", "_")
        names = getattr(context.command, "names", ())
        if PEOPLE in names and name in PEOPLE_NAMES:
            name = f"{PEOPLE}.{name}"
        if name.partition(".")[0] in names:
            message = f"No such option: {error.option_name}; state it as --set {name}=VALUE"
    return f"{message}; see `{context.command_path} --help`"


def _unexpected(error: BaseException) -> int:
    # The text of an internal error may contain data, so that only its type is shown.
    if os.environ.get("CONFIDE_TRACEBACK") == "1":
        raise error
    kind = type(error).__name__
    hint = "CONFIDE_TRACEBACK=1 shows where it occurred (and may show data)"
    return _say(f"internal error ({kind}), please report it; the environment variable {hint}", INTERNAL)
