"""The program with its commands, shell completion, and logging on stderr by `--verbose` or CONFIDE_LOG."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from click.shell_completion import CompletionItem, ShellComplete, add_completion_class, get_completion_class

from confide.cli.command import Group, Imported
from confide.cli.exit_codes import IN_WORDS
from confide.cli.output import print_text
from confide.support import escape_line, escape_text

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

    class Lines(logging.Formatter):
        """One line for each event, with its time in UTC and without control characters."""

        def format(self, record: logging.LogRecord) -> str:
            """`2026-11-22T10:00:00Z INFO confide.ledger charged dataset=a`."""
            return escape_text(escape_line(super().format(record)))

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


# Completion by the shell: `confide --install-completion`, `--show-completion`


_PROGRAM = "confide"
_VARIABLE = f"_{_PROGRAM.upper()}_COMPLETE"  # as click has it

_POWERSHELL = """\
Register-ArgumentCompleter -Native -CommandName %(prog_name)s -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $Env:%(complete_var)s = "powershell_complete"
    $Env:COMP_WORDS = $commandAst.ToString()
    $Env:COMP_WORD = $wordToComplete
    %(prog_name)s | ForEach-Object {
        $value, $text = $_ -Split "`t", 2
        [System.Management.Automation.CompletionResult]::new($value, $value, 'ParameterValue', $text)
    }
    $Env:%(complete_var)s = $Env:COMP_WORDS = $Env:COMP_WORD = $null
}
"""


class PowerShell(ShellComplete):
    """Completion by PowerShell, which click does not support."""

    name = "powershell"
    source_template = _POWERSHELL

    def get_completion_args(self) -> tuple[list[str], str]:
        """The complete words, and the word being typed."""
        words, typed = os.environ.get("COMP_WORDS", "").split()[1:], os.environ.get("COMP_WORD", "")
        return (words[:-1] if typed and words else words), typed

    def format_completion(self, item: CompletionItem) -> str:
        """A word and its help, or the word again: PowerShell requires a text."""
        return f"{item.value}\t{(item.help or str(item.value)).splitlines()[0]}"


add_completion_class(PowerShell)


def _shell() -> str:
    """The name of the current shell: PowerShell by its environment variable, others by SHELL."""
    if os.environ.get("PSModulePath"):  # noqa: SIM112
        return "powershell"
    name = Path(os.environ.get("SHELL", "")).name
    if get_completion_class(name) is None:
        raise click.UsageError("the environment variable SHELL must name bash, zsh or fish; got another shell")
    return name


def _script(command: click.Command, shell: str) -> str:
    completion = get_completion_class(shell)
    assert completion is not None
    return completion(command, {}, _PROGRAM, _VARIABLE).source()


def _show(context: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        click.echo(_script(context.command, _shell()))
        context.exit()


def _install(context: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    """Write the script to the shell's folder, or to a file that a line of its start file reads."""
    if not wanted or context.resilient_parsing:
        return
    shell, home = _shell(), Path.home()
    script = _script(context.command, shell)
    if shell == "fish":
        place, start, line = home / ".config/fish/completions/confide.fish", None, ""
    elif shell == "powershell":
        place, start = _profile().with_name("confide-completion.ps1"), _profile()
        line = f'. "{place}"'
    else:
        place, start = home / f".config/confide/completion.{shell}", home / f".{shell}rc"
        line = f"source '{place}'"
        if shell == "zsh":
            line = f"autoload -Uz compinit && compinit && {line}"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(script, encoding="utf-8")
    if start is not None:
        before = start.read_text(encoding="utf-8") if start.is_file() else ""
        if line not in before:
            start.write_text(f"{before.rstrip()}\n{line}\n".lstrip(), encoding="utf-8")
    click.echo(f"{shell} completion installed in {place}; it takes effect after you restart the shell")
    context.exit()


def _profile() -> Path:
    """The start file of PowerShell, as PowerShell reports it."""
    for name in ("pwsh", "powershell"):
        try:
            process = subprocess.run([name, "-NoProfile", "-Command", "echo $PROFILE"], capture_output=True, text=True)  # noqa: S603
        except FileNotFoundError:
            continue
        if process.returncode == 0:
            return Path(process.stdout.strip())
    raise click.UsageError(
        "PowerShell does not report the path of its profile; use --show-completion to print the script"
    )


install_completion = click.Option(
    ["--install-completion"], is_flag=True, is_eager=True, expose_value=False, callback=_install,
    help="Install completion for the current shell.",
)  # fmt: skip
show_completion = click.Option(
    ["--show-completion"], is_flag=True, is_eager=True, expose_value=False, callback=_show,
    help="Show completion for the current shell, to copy it or customize the installation.",
)  # fmt: skip


# The program


_HELP = """Prediction sets with a coverage guarantee and a differential-privacy guarantee.

A typical order: plan, calibrate on records with true labels, predict for new records. Use evaluate, watch, show, verify
and report after a release."""

_EXIT_CODES = "Exit codes:\n" + "\n".join(f"{code:>5}  {meaning}" for code, meaning in IN_WORDS.items())


def _version(context: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        from importlib.metadata import version

        print_text(f"confide {version('confide')}")
        context.exit()


@click.pass_context
def _confide(context: click.Context, verbose: int) -> None:
    if level := log_level(verbose):
        context.with_resource(log_to_stderr(level))


_VERBOSE = f"Before a command: log on stderr, nothing private; -vv logs more. Or set {LOG}=info."

app = Group(
    "confide",
    commands=Imported({
        "plan": "plan:plan", "calibrate": "calibrate:calibrate", "recalibrate": "calibrate:recalibrate",
        "predict": "predict:predict", "evaluate": "evaluate:evaluate", "watch": "watch:watch",
        "show": "show:show", "verify": "show:verify", "sign": "show:sign_release", "report": "pages:report",
        "card": "pages:card", "sql": "calibrate:sql",
        "randomise-labels": "predict:randomise_labels", "audit": "machine:audit",
        "demo": "machine:demo", "budget": "plan:budget", "ledger": "ledger:ledger", "federated": "federated:federated",
    }),
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
