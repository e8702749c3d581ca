"""Commands as functions of values: their options are the rows of one table, their help is short until all is asked for.

A parameter of a command is a group of options, which is a frozen dataclass, or one option. The fields of the group, or
the parameter, name rows of `confide.cli.options`; what has no default is required.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from inspect import Parameter, cleandoc, signature
from textwrap import indent
from typing import Any, TypeAlias, cast, get_args, get_origin, get_type_hints

import click
from click.core import ParameterSource

from confide.cli.options import LOCAL, PANELS, PLACE, Row, row_of
from confide.cli.rules import check_together

_WIDEST = 22
"""Longer names have a line of their own."""

_FEW = 12
"""A command with at most so many options shows all of them at once."""

_ALL = "show all options"


class Argument(click.Argument):
    """An argument with its help."""

    def __init__(self, row: Row, name: str, **more: Any) -> None:
        super().__init__([name], metavar=row.metavar, **more)
        self.row, self.help, self.hidden, self.everyday = row, row.help, row.hidden, True

    def get_usage_pieces(self, ctx: click.Context) -> list[str]:
        """The name, in brackets where it may be left out; nothing if help does not show it."""
        name = str(self.metavar)
        return [] if self.hidden else [name if self.required else f"[{name}]"]

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """The name, and what it is for."""
        text = f"{self.help}  [required]" if self.required else self.help
        return None if self.hidden else (self.get_usage_pieces(ctx)[0], text)


class Option(click.Option):
    """An option with its panel."""

    def __init__(self, row: Row, name: str, **more: Any) -> None:
        names = row.names or (f"--{name.replace('_', '-')}",)
        super().__init__([*names, name], metavar=row.metavar, help=row.help, show_default=True, **more)
        self.row, self.everyday = row, row.everyday or self.required


class Command(click.Command):
    """A command whose examples stand as they are written, and whose options stand in their panels."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Its own, `--help`, and `--help-all`, if `--help` does not show all."""
        found = super().get_params(ctx)
        if len(self.everyday) == len(self.shown) or ctx.meta.get(_ALL):
            return found
        text = f"Show all {len(self.shown)} arguments and options, and exit."
        more: dict[str, Any] = {"is_flag": True, "is_eager": True, "expose_value": False, "callback": _show_all}
        return [*found, click.Option(["--help-all"], help=text, **more)]

    @property
    def shown(self) -> list[click.Parameter]:
        """All that help may show."""
        return [one for one in self.params if not getattr(one, "hidden", False)]

    @property
    def everyday(self) -> list[click.Parameter]:
        """What `--help` shows: arguments, what is required, and what is used every day; all of few."""
        if len(self.shown) <= _FEW:
            return self.shown
        return [one for one in self.shown if getattr(one, "everyday", True)]

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The usage, the docstring and the panels; later versions of click would show arguments twice."""
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        self.format_options(ctx, formatter)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The docstring."""
        _write_text(self.help, formatter)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Arguments and options, panel by panel."""
        own = self.shown if ctx.meta.get(_ALL) else self.everyday
        _write_parameters([*own, *(one for one in self.get_params(ctx) if one not in self.params)], ctx, formatter)


class Group(click.Group):
    """Commands below a name of their own."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Whoever names no command asks what there is, which is no mistake."""
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help())
            ctx.exit()
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """What the command returns; an interruption is an end like others, before which click prints an empty line."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise click.Abort from None

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands, in the order in which they are used."""
        return list(self.commands)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The text."""
        _write_text(self.help, formatter)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands, each with its first sentence; then the options."""
        rows = [(name, self.commands[name].get_short_help_str(limit=200)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)
        _write_parameters(self.get_params(ctx), ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """What follows, as it is written."""
        if self.epilog:
            formatter.write(f"\n{self.epilog}\n")


def command(path: str, *, without: str = "", required: str = "") -> Callable[[Callable[..., int | None]], Command]:
    """Make a command of a function.

    Parameters
    ----------
    path
        What is typed after `confide`, such as `ledger show`.
    without
        Fields of its groups that are no options of this command, between spaces; their defaults hold.
    required
        Fields that have a default elsewhere, and none here.
    """
    left_out, demanded = frozenset(without.split()), frozenset(required.split())

    def made(function: Callable[..., int | None]) -> Command:
        hints = get_type_hints(function)
        parameters = {
            one.name: (hints[one.name], MISSING if one.default is Parameter.empty else one.default)
            for one in signature(function).parameters.values()
        }
        options = {  # what two groups have is one option
            name: _parameter(path, name, kind, MISSING if name in demanded else default)
            for name, kind, default in _leaves(parameters)
            if name not in left_out
        }

        def run(**given: Any) -> int | None:
            check_together(path, typed_here(), click.get_current_context().command)
            return function(**_values(parameters, given))

        name = path.rpartition(" ")[2]
        return Command(name, params=list(options.values()), callback=run, help=cleandoc(function.__doc__ or ""))

    return made


_Fields: TypeAlias = Mapping[str, tuple[Any, Any]]
"""Types and defaults by name, of the parameters of a function or the fields of a group."""


def _fields_of(group: type) -> _Fields:
    types = get_type_hints(group)
    return {one.name: (types[one.name], one.default) for one in fields(group)}


def _leaves(named: _Fields) -> Iterator[tuple[str, Any, Any]]:
    """The options among these, and in groups among these, however deep: name, type and default."""
    for name, (kind, default) in named.items():
        if is_dataclass(kind):
            yield from _leaves(_fields_of(cast(type, kind)))
        else:
            yield name, kind, default


def _values(named: _Fields, given: Mapping[str, Any]) -> dict[str, Any]:
    """What was given, as values of these types."""
    groups = {name: cast(type, kind) for name, (kind, _) in named.items() if is_dataclass(kind)}
    single = {name: given[name] for name in named if name in given}
    return single | {name: kind(**_values(_fields_of(kind), given)) for name, kind in groups.items()}


def typed_here() -> frozenset[str]:
    """The fields of the command that runs whose options or arguments were typed, be it with their defaults."""
    context = click.get_current_context()
    return frozenset(
        name for name in context.params if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    )


def _parameter(path: str, name: str, kind: Any, default: Any) -> click.Parameter:
    """The option or argument of a field, of which its row says what is typed, and its type how often."""
    row, required = row_of(path, name), default is MISSING
    several = get_origin(kind) is tuple
    taken = LOCAL if row.kind is PLACE and (" " in path or path in ("doctor", "demo")) else row.kind
    more: dict[str, Any] = {"required": required} | ({} if default in (MISSING, None, ()) else {"default": default})
    if row.argument:
        return Argument(row, name, type=taken, nargs=-1 if several else 1, **more)
    if bool in (kind, *get_args(kind)):
        return Option(row, name, is_flag=True, **more)
    return Option(row, name, type=taken, multiple=several, **more)


def _show_all(ctx: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        ctx.meta[_ALL] = True
        click.echo(ctx.get_help())
        ctx.exit()


def _write_text(text: str | None, formatter: click.HelpFormatter) -> None:
    """Paragraphs; those that are indented stay as they are."""
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
        title = "Arguments" if isinstance(one, click.Argument) else one.row.panel if isinstance(one, Option) else ""
        if record := one.get_help_record(ctx):
            panels[title or "Options"].append(record)
    for title, rows in panels.items():
        if rows:
            with formatter.section(title):
                formatter.write_dl(rows, col_max=_WIDEST)


def walk(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """The command, and all below it, each with the words that name it."""
    yield words, command
    for name, below in getattr(command, "commands", {}).items():
        yield from walk(below, (*words, name))
