"""The program: runs a command, and turns errors into an exit code and at most one line on stderr.

Messages of the library are translated: an argument is called by its option.
"""

import os
import re
import sys
from collections.abc import Mapping, Sequence
from difflib import get_close_matches

import click

from confide.cli.exit_codes import DONE, EXISTS, INTERNAL, PIPE_CLOSED, REFUSED, USAGE
from confide.cli.interruption import check_interruption, received, say_interrupted
from confide.errors import ConfideError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    arguments
        The arguments without the program's name; by default those of the process.
    """
    command = _command()
    words = sys.argv[1:] if arguments is None else arguments
    try:
        check_interruption()  # an import may have swallowed it
        code = command.main(args=arguments, prog_name="confide", standalone_mode=False)
        check_interruption()
        sys.stdout.flush()
        return code if isinstance(code, int) else DONE
    except BaseException as error:
        return say_interrupted() if received() else _answer(error, command, words)


def _command() -> click.Command:
    from confide.cli.app import app

    return app


def _answer(error: BaseException, command: click.Command, words: Sequence[str]) -> int:
    from confide.support import OutputExistsError

    match error:
        case click.ClickException():
            return _say(_usage(error), USAGE)
        case KeyboardInterrupt() | click.Abort():
            return say_interrupted()
        case ConfideError():
            message = in_options(str(error), options_of(command, words))
            return _say(message, EXISTS if isinstance(error, OutputExistsError) else REFUSED)
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
    context = getattr(error, "ctx", None)
    if isinstance(error, click.NoSuchOption) and context is not None:
        message = unknown_option(error.option_name, context.command, _command())
    else:
        message = error.format_message().strip().rstrip(".")
    return f"{message}; see `{context.command_path} --help`" if context else message


def _unexpected(error: BaseException) -> int:
    """An internal error: its text may contain data, so that only its type is shown."""
    if os.environ.get("CONFIDE_TRACEBACK") == "1":
        raise error
    kind = type(error).__name__
    hint = "CONFIDE_TRACEBACK=1 shows where it occurred (and may show data)"
    return _say(f"internal error ({kind}), please report it; the environment variable {hint}", INTERNAL)


# Messages


_GIVEN_BY = {
    "people": "person",
    "group_names": "groups",
    "answers": "answer",
    "silos": "silo",
    "methods": "allow",
    "peers": "peer",
    "missing": "arbitrary",
    "release": "calibration",
    "key": "ledger_key",
    "names": "groups",
    "previous": "calibration",
}
"""Arguments of the library by parameters of commands with another name."""

_OUTPUTS = ("out", "public", "out_folder")
"""The parameters that set an output; the first that a command has."""

_QUOTED = r"""(?<!\w)(?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")"""


def options_of(command: click.Command, words: Sequence[str]) -> dict[str, str]:
    """The options of the command in a command line, by the arguments that they set."""
    for word in words:
        if not isinstance(command, click.Group):
            break
        command = command.commands.get(word, command)
    own = {str(one.name): one.opts[0] for one in command.params if isinstance(one, click.Option)}
    given_by = {**_GIVEN_BY, "output": next((name for name in _OUTPUTS if name in own), "out")}
    return {argument: own[name] for argument, name in given_by.items() if name in own} | own


_AS_BEFORE = {"recalibrate": "calibrate"}
"""Commands that take a request from a release, and the command whose options stated the request."""


def unknown_option(name: str, command: click.Command, commands: click.Command) -> str:
    """The message about an unknown option: the release contains it, or options with similar names.

    Examples
    --------
    >>> command = click.Command("cut", params=[click.Option(["--length"]), click.Option(["--again"])])
    >>> unknown_option("--lenght", command, command), unknown_option("--calibration", command, command)
    ('No such option: --lenght; did you mean --length?', 'No such option: --calibration')
    """
    earlier = options_of(commands, [_AS_BEFORE.get(str(command.name), "")])
    if name in earlier.values():
        return f"{name} must be left out: it is taken from the release that is renewed"
    names = {opt.lstrip("-"): opt for one in command.params if isinstance(one, click.Option) for opt in one.opts}
    typed = name.lstrip("-")
    close = get_close_matches(typed, names, cutoff=0.65)
    if len(typed) > 2:
        close = [one for one in names if one.startswith(typed[:4])] or close
    hint = f"; did you mean {' or '.join(names[one] for one in close)}?" if close else ""
    return f"No such option: {name}{hint}"


def in_options(message: str, options: Mapping[str, str]) -> str:
    """Replace arguments in a message by their options; quoted parts, such as a column or a file, are not changed.

    A name that is also a word is an argument at the beginning, before "must", "belongs" or "=", and after "with". A
    table with invalid columns is the file argument, not `--table`.

    Examples
    --------
    >>> options = {"n": "--n", "n_min": "--n-min", "neighbors": "--neighbors", "rho": "--rho"}
    >>> in_options("n: must be given under neighbors='replace_one'; got n_min=3 in column 'n_min'", options)
    "--n: must be given under --neighbors replace_one; got --n-min 3 in column 'n_min'"
    >>> in_options("rho: epsilon or rho must be given, and not both", options | {"epsilon": "--epsilon"})
    '--rho: --epsilon or --rho must be given, and not both'
    """
    if not options:
        return message
    name = "|".join(map(re.escape, sorted(options, key=len, reverse=True)))
    more = rf"(?:(?:, | and | or )(?:{name}))*"
    pattern = re.compile(
        rf"(?P<quoted>{_QUOTED})"
        rf"|\b(?P<set>{name})=(?P<value>{_QUOTED}|\[[^\]]*\]|(?:[\w+-]|\.(?=\w))+)"
        rf"|^(?P<argument>{name})(?=: (?!columns? '))"
        rf"|(?:(?<=^)|(?<=; )|(?<=: ))(?P<subject>(?:{name}){more})(?= (?:must|belongs?)\b)"
        rf"|(?<=\bwith )(?P<other>{name})(?=[,;.]|$)"
        rf"|\b(?P<plain>(?=\w*_)(?:{name}))\b"
    )

    def reworded(found: re.Match[str]) -> str:
        if found["quoted"]:
            return found["quoted"]
        if found["set"]:
            value = found["value"].strip("[]")
            if re.fullmatch(r"[\w.+:-]+", bare := value.strip("'\"")):  # otherwise a shell needs the quotes
                value = bare
            return options[found["set"]] if value == "True" else f"{options[found['set']]} {value}"
        return re.sub(rf"\b(?:{name})\b", lambda word: options[word[0]], found[0])

    if "force" in options:
        message = message.replace("give overwrite=True", f"give {options['force']}")
    message = message.replace("; choose another name or give overwrite=True", "; choose another name")
    return pattern.sub(reworded, message)
