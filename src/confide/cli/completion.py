"""Completion by the shell: `confide --install-completion`, `--show-completion`."""

import os
import subprocess
from pathlib import Path

import click
from click.shell_completion import CompletionItem, ShellComplete, add_completion_class, get_completion_class

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
    """What click lacks: completion by PowerShell."""

    name = "powershell"
    source_template = _POWERSHELL

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the one that is typed, and that one."""
        words, typed = os.environ.get("COMP_WORDS", "").split()[1:], os.environ.get("COMP_WORD", "")
        return (words[:-1] if typed and words else words), typed

    def format_completion(self, item: CompletionItem) -> str:
        """A word and its help; PowerShell wants some text."""
        return f"{item.value}\t{(item.help or str(item.value)).splitlines()[0]}"


add_completion_class(PowerShell)


def _shell() -> str:
    """The shell that runs: PowerShell says so, others are the user's."""
    if os.environ.get("PSModulePath"):  # noqa: SIM112
        return "powershell"
    name = Path(os.environ.get("SHELL", "")).name
    if get_completion_class(name) is None:
        raise click.UsageError("the environment variable SHELL must name bash, zsh or fish; found another shell")
    return name


def _script(command: click.Command, shell: str) -> str:
    found = get_completion_class(shell)
    assert found is not None
    return found(command, {}, _PROGRAM, _VARIABLE).source()


def _show(context: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        click.echo(_script(context.command, _shell()))
        context.exit()


def _install(context: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    """Write the script where the shell looks, or where a line of its start file then looks."""
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
    click.echo(f"{shell} completion installed in {place}; it takes effect once the shell is started anew")
    context.exit()


def _profile() -> Path:
    """The start file of PowerShell, which alone knows where it is."""
    for name in ("pwsh", "powershell"):
        try:
            told = subprocess.run([name, "-NoProfile", "-Command", "echo $PROFILE"], capture_output=True, text=True)  # noqa: S603
        except FileNotFoundError:
            continue
        if told.returncode == 0:
            return Path(told.stdout.strip())
    raise click.UsageError("PowerShell does not say where its profile is; --show-completion prints the script")


install_completion = click.Option(
    ["--install-completion"], is_flag=True, is_eager=True, expose_value=False, callback=_install,
    help="Install completion for the current shell.",
)  # fmt: skip
show_completion = click.Option(
    ["--show-completion"], is_flag=True, is_eager=True, expose_value=False, callback=_show,
    help="Show completion for the current shell, to copy it or customize the installation.",
)  # fmt: skip
