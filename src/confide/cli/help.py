"""The help of commands: options by panel, every name whole, and few lines; a group that is called alone shows it."""

from inspect import cleandoc
from textwrap import indent

import click
import typer

_WIDEST = 22
"""Longer names have a line of their own."""


class Command(typer.core.TyperCommand):
    """A command whose examples stand as they are written, and whose options stand in their panels."""

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Arguments by their names, without those that help does not show."""
        shown = [one for one in self.get_params(ctx) if not getattr(one, "hidden", False)]
        return [str(self.options_metavar), *(piece for one in shown for piece in one.get_usage_pieces(ctx))]

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The docstring."""
        _write_text(self.help, formatter)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Arguments and options."""
        _write_parameters(self, ctx, formatter)


class Group(typer.core.TyperGroup):
    """Commands below a name of their own."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Whoever names no command asks what there is, which is no mistake."""
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help())
            ctx.exit()
        return super().parse_args(ctx, args)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The text."""
        _write_text(self.help, formatter)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands, each with its first sentence; then the options."""
        rows = [(name, self.commands[name].get_short_help_str(limit=200)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)
        _write_parameters(self, ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """What follows, as it is written."""
        if self.epilog:
            formatter.write(f"\n{self.epilog}\n")


def _write_text(text: str | None, formatter: click.HelpFormatter) -> None:
    """Paragraphs; those that are indented stay as they are."""
    for paragraph in cleandoc(text or "").split("\n\n"):
        formatter.write_paragraph()
        with formatter.indentation():
            if paragraph.startswith(" "):
                formatter.write(indent(paragraph, " " * formatter.current_indent) + "\n")
            else:
                formatter.write_text(paragraph)


def _write_parameters(command: click.Command, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    panels: dict[str, list[tuple[str, str]]] = {"Arguments": []}
    for one in command.get_params(ctx):
        title = "Arguments" if isinstance(one, click.Argument) else getattr(one, "rich_help_panel", None) or "Options"
        if record := one.get_help_record(ctx):
            name, text = record
            panels.setdefault(title, []).append((name, text.replace("\\[", "[")))  # escaped as if for rich
    for title, rows in ((title, rows) for title, rows in panels.items() if rows):
        with formatter.section(title):
            formatter.write_dl(rows, col_max=_WIDEST)
