"""The program: runs a command and turns whatever happens into an exit code and at most one line on stderr."""

import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

import click
import typer

from confide.cli.exit_codes import DONE, EXISTS, INTERNAL, INTERRUPTED, PIPE_CLOSED, REFUSED, TERMINATED, USAGE
from confide.errors import ConfideError
from confide.files import OutputExistsError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    arguments
        Without the program's name; by default those of the process.
    """
    from confide.cli.app import app

    command = typer.main.get_command(app)
    try:
        with _ending_on_sigterm():
            code = command.main(args=arguments, prog_name="confide", standalone_mode=False)
            sys.stdout.flush()
            return code if isinstance(code, int) else DONE
    except click.exceptions.NoArgsIsHelpError:  # the help is printed by then
        return USAGE
    except click.ClickException as error:
        return _say(_usage(error), USAGE)
    except (KeyboardInterrupt, click.Abort):
        return _say("interrupted; nothing was written", INTERRUPTED)
    except _Terminated:
        return _say("terminated; nothing was written", TERMINATED)
    except OutputExistsError as error:
        return _say(str(error).replace("allow overwriting", "give --force"), EXISTS)
    except ConfideError as error:
        return _say(str(error), REFUSED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains when it flushes at exit
        return PIPE_CLOSED
    except OSError as error:  # its text may be an engine's own, so only what the system says is shown
        return _unexpected(error) if error.strerror is None else _say(_of_system(error), REFUSED)
    except Exception as error:
        return _unexpected(error)


def _say(message: str, code: int) -> int:
    line = " ".join(message.split())
    sys.stderr.write(f"error: {line}\n")
    return code


def _usage(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    message = error.format_message().strip().rstrip(".")
    return f"{message}; see `{context.command_path} --help`" if context else message


def _of_system(error: OSError) -> str:
    return f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror)


def _unexpected(error: Exception) -> int:
    """An error of ours: its text may hold data, so only its type is named."""
    if os.environ.get("CONFIDE_TRACEBACK") == "1":
        raise error
    kind = type(error).__name__
    hint = "CONFIDE_TRACEBACK=1 shows where it arose (and may show data)"
    return _say(f"internal error ({kind}), please report it; the environment variable {hint}", INTERNAL)


class _Terminated(BaseException):
    """SIGTERM was received."""


@contextmanager
def _ending_on_sigterm() -> Iterator[None]:
    """Unwind on SIGTERM, so that unfinished files are removed."""

    def end(number: int, frame: FrameType | None) -> NoReturn:
        raise _Terminated

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
