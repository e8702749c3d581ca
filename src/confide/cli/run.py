"""The program: runs a command and turns whatever happens into an exit code and at most one line on stderr."""

import os
import sys
from collections.abc import Mapping, Sequence

import click

from confide.cli.exit_codes import DONE, EXISTS, INTERNAL, PIPE_CLOSED, REFUSED, USAGE
from confide.cli.interruption import check_interruption, received, say_interrupted
from confide.cli.messages import in_options, options_of, unknown_option
from confide.errors import ConfideError
from confide.support import OutputExistsError, harmless


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    arguments
        Without the program's name; by default those of the process.
    """
    command = _command()
    options = options_of(command, sys.argv[1:] if arguments is None else arguments)
    try:
        check_interruption()  # an import may have swallowed it
        code = command.main(args=arguments, prog_name="confide", standalone_mode=False)
        check_interruption()
        sys.stdout.flush()
        return code if isinstance(code, int) else DONE
    except BaseException as error:
        return say_interrupted() if received() else _answer(error, options)


def _command() -> click.Command:
    from confide.cli.app import app

    return app


def _answer(error: BaseException, options: Mapping[str, str]) -> int:
    match error:
        case click.ClickException():
            return _say(_usage(error), USAGE)
        case KeyboardInterrupt() | click.Abort():
            return say_interrupted()
        case OutputExistsError():
            return _say(in_options(str(error), options), EXISTS)
        case ConfideError():
            return _say(in_options(str(error), options), REFUSED)
        case SystemExit(code=0):  # the shell was told how to complete
            return DONE
        case BrokenPipeError() | SystemExit():  # click itself exits when a pipe is closed
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes once more at its end
            return PIPE_CLOSED
        case OSError(strerror=str()):  # without one, its text may be an engine's own
            return _say(f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror), REFUSED)
        case _:
            return _unexpected(error)


def _say(message: str, code: int) -> int:
    line = harmless(" ".join(message.split()))
    sys.stderr.write(f"error: {line}\n")
    return code


def _usage(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    if isinstance(error, click.NoSuchOption) and context is not None:
        message = unknown_option(error.option_name, context.command, _command())
    else:
        message = error.format_message().strip().rstrip(".")
    return f"{message}; see `{context.command_path} --help`" if context else message


def _unexpected(error: BaseException) -> int:
    """An error of ours: its text may hold data, so only its type is named."""
    if os.environ.get("CONFIDE_TRACEBACK") == "1":
        raise error
    kind = type(error).__name__
    hint = "CONFIDE_TRACEBACK=1 shows where it arose (and may show data)"
    return _say(f"internal error ({kind}), please report it; the environment variable {hint}", INTERNAL)
