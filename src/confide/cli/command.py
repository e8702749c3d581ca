"""Commands as dataclasses: each field is an option or an argument, or a dataclass with several; and their help.

An option without a default is required. Options are shown in the order of their rows in `confide.cli.options`.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from inspect import cleandoc
from pkgutil import resolve_name
from textwrap import indent
from typing import Any, TypeVar, dataclass_transform, get_origin

import click

from confide.cli.options import LOCAL, OPTIONS, PLACE, row_of
from confide.errors import ConfideError

# Help

# Longest name with its help on the same line
_WIDEST = 22


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
        """Write all parts; later versions of click would show arguments twice."""
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        self.format_options(ctx, formatter)
        self.format_epilog(ctx, formatter)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write paragraphs; indented ones verbatim."""
        for paragraph in cleandoc(self.help or "").split("\n\n"):
            formatter.write_paragraph()
            with formatter.indentation():
                if paragraph.startswith(" "):
                    formatter.write(indent(paragraph, " " * formatter.current_indent) + "\n")
                else:
                    formatter.write_text(paragraph)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write arguments, options, and names."""
        for title, kind in (("Arguments", click.Argument), ("Options", click.Option)):
            records = [
                parameter.get_help_record(ctx) for parameter in self.get_params(ctx) if isinstance(parameter, kind)
            ]
            if rows := [record for record in records if record]:
                with formatter.section(title):
                    formatter.write_dl(rows, col_max=_WIDEST)
        if others := sorted(set(self.names) - {str(parameter.name) for parameter in self.params}):
            with formatter.section("Names for --set"):
                formatter.write_text(", ".join(others))


class Group(Command, click.Group):
    """A group of commands, shown in their order."""

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

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, each with its first sentence; then the options."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, str(each.help).partition("\n")[0]) for name, each in self.commands.items()])
        super().format_options(ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the epilog verbatim."""
        if self.epilog:
            formatter.write(f"\n{self.epilog}\n")


# Commands from dataclasses

# The commands of each group, in the order of their declaration; those of the program have the group ""
COMMANDS = defaultdict[str, list[click.Command]](list)

_Options = TypeVar("_Options")


@dataclass_transform(frozen_default=True, kw_only_default=True)
def command(path: str, place: str, names: Collection[str] = ()) -> Callable[[type[_Options]], type[_Options]]:
    """Make a class of options a dataclass, and register its command, such as `ledger show`.

    The function that runs it, `module:name`, is imported when the command runs. `names` are the arguments of the Python
    API that the command takes by options or by `--set`.
    """

    def register(undecorated: type[_Options]) -> type[_Options]:
        options = dataclass(frozen=True, kw_only=True, eq=False, repr=False)(undecorated)
        COMMANDS[path.rpartition(" ")[0]].append(_build(path, options, place, names))
        return options

    return register


def _build(path: str, options: type, place: str, names: Collection[str]) -> Command:
    # Arguments first, in the order of their fields, then options in that of their rows.
    rows = list(OPTIONS)
    parameters = [_parameter(path, option) for option in _nested_fields(options)]
    parameters.sort(key=lambda parameter: -1 if isinstance(parameter, Argument) else rows.index(str(parameter.name)))

    def run(**values: object) -> int | None:
        with _named_as_typed(parameters):
            code: int | None = resolve_name(f"confide.cli.{place}")(_instance(options, values))
            return code

    command = Command(path.rpartition(" ")[2], params=parameters, callback=run, help=cleandoc(options.__doc__ or ""))
    command.names = names
    return command


def _parameter(path: str, option: Field[Any]) -> click.Parameter:
    """The option or argument of a field, by its row; a tuple type may be repeated."""
    name = option.name
    row = row_of(path, name)
    several = get_origin(option.type) is tuple
    # Commands of groups, and the demo, read and write files of this machine only.
    value_type = LOCAL if row.kind is PLACE and (" " in path or path == "demo") else row.kind
    settings: dict[str, Any] = {"metavar": row.metavar, "required": option.default is MISSING}
    if option.default not in (MISSING, None, ()):
        settings["default"] = option.default
    if row.argument:
        argument = Argument([name], type=value_type, nargs=-1 if several else 1, **settings)
        argument.help = row.help
        return argument
    settings |= {"is_flag": True} if option.type is bool else {"type": value_type, "multiple": several}
    names = row.names or (f"--{name.replace('_', '-')}",)
    return click.Option([*names, name], help=row.help, show_default=True, **settings)


def _nested_fields(group: Any) -> Iterator[Field[Any]]:
    for option in fields(group):
        if is_dataclass(option.type):
            yield from _nested_fields(option.type)
        else:
            yield option


def _instance(group: Any, values: Mapping[str, object]) -> Any:
    """A dataclass, and the dataclasses in it, with these values of their fields."""
    arguments = {}
    for option in fields(group):
        is_nested = is_dataclass(option.type)
        arguments[option.name] = _instance(option.type, values) if is_nested else values[option.name]
    return group(**arguments)


# Errors, which name the option that was typed

# Arguments whose errors are about an option only if they say what it must be; others are about what was read
_WORDS = ("table", "column")

# Other names of arguments in the API, and the parameters that set them; the first that a command has
_ALSO = {
    "output": ("out", "public"), "overwrite": ("force",), "previous": ("release",),
    "calibration": ("release",), "groups": ("group_names",), "names": ("groups", "group_names"),
}  # fmt: skip


@contextmanager
def renamed(argument: str, option: str) -> Iterator[None]:
    """Let errors about an argument of the API, raised in the block, name the option of another one."""
    try:
        yield
    except ConfideError as error:
        error.argument = option if error.argument == argument else error.argument
        raise


@dataclass
class StatedArguments:
    """How the arguments of the running command were stated, which determines the names in its errors.

    Errors about arguments that are stated `elsewhere`, in a file or by `--set`, name no option. Errors about an unknown
    column name the argument `of_column`, and those about `what`, the columns of a score, the argument `of_score`.
    """

    elsewhere: Collection[str] = ()
    of_column: Mapping[str, str] = field(default_factory=dict)
    of_score: str = "what"


def stated_arguments() -> StatedArguments:
    """Those of the running command: the object of click's context."""
    context = click.get_current_context(silent=True)
    return StatedArguments() if context is None else context.ensure_object(StatedArguments)


@contextmanager
def _named_as_typed(parameters: Collection[click.Parameter]) -> Iterator[None]:
    """Call the argument of an error by the option that sets it."""
    # The option of each argument, also under its other names in the API.
    options = {str(option.name): option.opts[0] for option in parameters if isinstance(option, click.Option)}
    for name, others in _ALSO.items():
        if name not in options and (sets_it := [other for other in others if other in options]):
            options[name] = options[sets_it[0]]
    try:
        yield
    except ConfideError as error:
        # A file or `--set` states some arguments; errors about tables are often about what was read.
        stated = stated_arguments()
        of_column = stated.of_column.get(error._column or "")
        name = of_column or (stated.of_score if error.argument == "what" else error.argument)
        is_option = of_column or name not in _WORDS or error.requirement.startswith("must")
        if is_option:
            error.argument = name if name in stated.elsewhere else options.get(name, name)
        error.remedy = re.sub(r"\b(\w+)=True\b", lambda flag: options.get(flag[1], flag[0]), error.remedy)
        raise
