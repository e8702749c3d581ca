"""The program: runs a command, and turns errors into an exit code and at most one line on stderr."""

import os
import sys
from collections.abc import Sequence

import click

from confide.cli.exit_codes import DONE, EXISTS, INTERNAL, PIPE_CLOSED, REFUSED, USAGE
from confide.cli.interruption import check_interruption, received, say_interrupted
from confide.errors import ConfideError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    from confide.cli.app import app

    try:
        check_interruption()  # an import may have swallowed it
        code = app.main(args=arguments, prog_name="confide", standalone_mode=False)
        check_interruption()
        sys.stdout.flush()
        return code if isinstance(code, int) else DONE
    except BaseException as error:
        return say_interrupted() if received() else _answer(error)


def _answer(error: BaseException) -> int:
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

    line = escape_text(" ".join(message.split()))
    sys.stderr.write(f"error: {line}\n")
    return code


def _usage(error: click.ClickException) -> str:
    message, context = error.format_message().strip().rstrip("."), getattr(error, "ctx", None)
    if context is None:
        return message

    # An argument of the API that is no option is stated by `--set`.
    if isinstance(error, click.NoSuchOption):
        name = error.option_name.lstrip("-").replace("-", "_")
        names = getattr(context.command, "names", ())
        if "people" in names and name in ("person", "most", "order", "sample"):
            name = f"people.{name}"
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
