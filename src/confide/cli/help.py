"""Commands and groups with their help."""

from collections import UserDict
from collections.abc import Callable, Collection, Mapping, Sequence
from inspect import cleandoc
from textwrap import indent
from typing import Any, NamedTuple

import click

DEFAULT_LEDGER = "CONFIDE_LEDGER"
"""The environment variable that names a default ledger."""

_WIDEST = 22
"""Longest name with its help on the same line."""


class Argument(click.Argument):
    """An argument with its help."""

    help = ""

    def get_usage_pieces(self, ctx: click.Context) -> list[str]:
        """The name, in brackets if it is optional."""
        return [str(self.metavar) if self.required else f"[{self.metavar}]"]

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        """The name, and its help."""
        return self.get_usage_pieces(ctx)[0], f"{self.help}  [required]" if self.required else self.help


class Command(click.Command):
    """A command whose help has verbatim examples, its arguments before its options, and the names for `--set`."""

    names: Collection[str] = ()

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write usage, docstring and parameters; later versions of click would show arguments twice."""
        self.format_usage(ctx, formatter)
        _write_text(self.help, formatter)
        _write_parameters(self.get_params(ctx), ctx, formatter)
        if others := sorted(set(self.names) - {str(parameter.name) for parameter in self.params}):
            with formatter.section("Names for --set"):
                formatter.write_text(", ".join(others))


class Declared(NamedTuple):
    """A command or a group with its first sentence; it is built when it is used."""

    summary: str
    build: Callable[[], click.Command]


class Declarations(UserDict[str, Any]):
    """Commands by name, each built when it is used."""

    def __getitem__(self, name: str) -> click.Command:
        declared: Declared = super().__getitem__(name)
        return declared.build()


class Group(click.Group):
    """A group of commands."""

    def __init__(self, name: str, commands: Mapping[str, Declared], **options: Any) -> None:
        super().__init__(name, **options)
        self.declared = commands
        self.commands = Declarations(commands)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Show help if no command is given."""
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help())
            ctx.exit()
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; turn an interruption into `click.Abort` before click prints an empty line."""
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
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.summary) for name, command in self.declared.items()])
        _write_parameters(self.get_params(ctx), ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the epilog verbatim."""
        if self.epilog:
            formatter.write(f"\n{self.epilog}\n")


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
    for title, kind in (("Arguments", click.Argument), ("Options", click.Option)):
        records = [parameter.get_help_record(ctx) for parameter in parameters if isinstance(parameter, kind)]
        if rows := [record for record in records if record]:
            with formatter.section(title):
                formatter.write_dl(rows, col_max=_WIDEST)
