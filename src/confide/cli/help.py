"""Commands and groups with their help, and commands that are imported when they run.

`confide --help` imports this module and click, and neither NumPy nor a command.
"""

from collections import UserDict
from collections.abc import Iterator, Mapping, Sequence
from inspect import cleandoc
from pkgutil import resolve_name
from textwrap import indent
from typing import Any

import click

COLUMNS, PROMISE, PRIVACY, THRESHOLD = "Columns", "Coverage guarantee", "Privacy", "Threshold"
PEOPLE, GROUPS, SHIFT = "People with several records", "Groups", "Known shift"
DEFAULT_LEDGER = "CONFIDE_LEDGER"
"""The environment variable that names a default ledger."""

WATCH, PLANNED, LEDGER = "Monitor", "Planned releases", "Budget ledger"
FEDERATION, CONTENT, OUTPUT = "Federation", "Content", "Output"
CONDITIONS = "Conditions"

PANELS = (
    COLUMNS, PROMISE, PRIVACY, THRESHOLD, PEOPLE, GROUPS, SHIFT, WATCH, PLANNED, FEDERATION, LEDGER, CONTENT,
    CONDITIONS, OUTPUT,
)  # fmt: skip
"""The panels in the order of the help."""


_WIDEST = 22
"""Longest name with its help on the same line."""

_FEW = 12
"""Largest number of options that `--help` shows all at once."""

_ALL = "show all options"


class Argument(click.Argument):
    """An argument with its help."""

    help = ""
    panel = ""
    everyday = True
    hidden = False

    def get_usage_pieces(self, ctx: click.Context) -> list[str]:
        """The name, in brackets if it is optional; empty if hidden."""
        name = str(self.metavar)
        return [] if self.hidden else [name if self.required else f"[{name}]"]

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """The name, and its help."""
        text = f"{self.help}  [required]" if self.required else self.help
        return None if self.hidden else (self.get_usage_pieces(ctx)[0], text)


class Option(click.Option):
    """An option with its panel; `--help` shows it if it is an everyday one."""

    panel = ""
    everyday = False


class Command(click.Command):
    """A command whose help has verbatim examples, and options in panels."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The options of the command, `--help`, and `--help-all` if `--help` does not show all."""
        parameters = super().get_params(ctx)
        if len(self.everyday) == len(self.shown) or ctx.meta.get(_ALL):
            return parameters
        text = f"Show all {len(self.shown)} arguments and options, and exit."
        more: dict[str, Any] = {"is_flag": True, "is_eager": True, "expose_value": False, "callback": _show_all}
        return [*parameters, click.Option(["--help-all"], help=text, **more)]

    @property
    def shown(self) -> list[click.Parameter]:
        """All options and arguments that are not hidden."""
        return [one for one in self.params if not getattr(one, "hidden", False)]

    @property
    def everyday(self) -> list[click.Parameter]:
        """The parameters that `--help` shows: arguments, required and everyday options; all if there are few."""
        if len(self.shown) <= _FEW:
            return self.shown
        return [one for one in self.shown if not isinstance(one, Option) or one.required or one.everyday]

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write usage, docstring and panels; later versions of click would show arguments twice."""
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        self.format_options(ctx, formatter)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the docstring."""
        _write_text(self.help, formatter)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write arguments and options, panel by panel."""
        own = self.shown if ctx.meta.get(_ALL) else self.everyday
        _write_parameters([*own, *(one for one in self.get_params(ctx) if one not in self.params)], ctx, formatter)


class Group(click.Group):
    """A group of commands."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Show help if no command is given."""
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help())
            ctx.exit()
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Import and run the command; turn an interruption into `click.Abort` before click prints an empty line."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise click.Abort from None

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order of their use."""
        return list(self.commands)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the text."""
        _write_text(self.help, formatter)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, each with its first sentence; then the options."""
        rows = [(name, self.summary(name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)
        _write_parameters(self.get_params(ctx), ctx, formatter)

    def summary(self, name: str) -> str:
        """The first sentence about a command; of a command that is not yet imported, from `Imported`."""
        if isinstance(self.commands, Imported):
            return self.commands.summaries[name]
        return self.commands[name].get_short_help_str(limit=200)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the epilog verbatim."""
        if self.epilog:
            formatter.write(f"\n{self.epilog}\n")


class Imported(UserDict[str, Any]):
    """Commands by name, each imported from `module:name` in this package when it is used; and their first sentences."""

    def __init__(self, commands: Mapping[str, tuple[str, str]]) -> None:
        super().__init__({name: place for name, (place, _) in commands.items()})
        self.summaries = {name: sentence for name, (_, sentence) in commands.items()}

    def __getitem__(self, name: str) -> click.Command:
        found: click.Command = resolve_name(f"confide.cli.{super().__getitem__(name)}")
        return found


def _show_all(ctx: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        ctx.meta[_ALL] = True
        click.echo(ctx.get_help())
        ctx.exit()


def _write_text(text: str | None, formatter: click.HelpFormatter) -> None:
    """Write paragraphs; indented ones verbatim."""
    for paragraph in cleandoc(text or "").split("\n\n"):
        formatter.write_paragraph()
        with formatter.indentation():
            if paragraph.startswith(" "):
                formatter.write(indent(paragraph, " " * formatter.current_indent) + "\n")
            else:
                formatter.write_text(paragraph)


def _write_parameters(
    parameters: Sequence[click.Parameter], ctx: click.Context, formatter: click.HelpFormatter
) -> None:
    panels: Mapping[str, list[tuple[str, str]]] = {title: [] for title in ("Arguments", *PANELS, "Options")}
    for one in parameters:
        title = "Arguments" if isinstance(one, click.Argument) else getattr(one, "panel", "")
        if record := one.get_help_record(ctx):
            panels[title or "Options"].append(record)
    for title, rows in panels.items():
        if rows:
            with formatter.section(title):
                formatter.write_dl(rows, col_max=_WIDEST)


def all_commands(
    command: click.Command, words: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield the command and all below it, each with its words."""
    yield words, command
    for name, below in getattr(command, "commands", {}).items():
        yield from all_commands(below, (*words, name))
