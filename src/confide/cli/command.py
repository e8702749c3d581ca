"""Commands as dataclasses: each field is an option or an argument, or a dataclass with several.

An option without a default is required. Options are shown in the order of their rows in `confide.cli.options`.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from inspect import cleandoc
from pkgutil import resolve_name
from typing import Any, TypeVar, cast, dataclass_transform, get_origin, get_type_hints

import click

from confide.cli.help import Argument, Command, Declared
from confide.cli.options import LOCAL, OPTIONS, PLACE, row_of
from confide.errors import ConfideError

COMMANDS: dict[str, Declared] = {}
"""The commands by their words after `confide`."""

_Options = TypeVar("_Options")


@dataclass_transform(frozen_default=True, kw_only_default=True)
def command(path: str, place: str, names: Collection[str] = ()) -> Callable[[type[_Options]], type[_Options]]:
    """Register the command of a class of options, such as `ledger show`; the class becomes a dataclass when it is used.

    The function that runs it, `module:name`, is imported when the command runs. `names` are the arguments of the Python
    API that it takes by options or by `--set`.
    """

    def build(plain: type[_Options]) -> type[_Options]:
        text = cleandoc(plain.__doc__ or "")
        COMMANDS[path] = Declared(text.partition("\n")[0], cache(lambda: _build(path, plain, text, place, names)))
        return plain

    return build


def _build(path: str, plain: type, text: str, place: str, names: Collection[str]) -> Command:
    options: type = dataclass(frozen=True, kw_only=True, eq=False, repr=False)(plain)
    # Arguments first, then options in the order of their rows.
    order = {name: place for place, name in enumerate(OPTIONS)}
    parameters = [_parameter(path, *leaf) for leaf in _leaves(options)]
    parameters.sort(key=lambda parameter: -1 if isinstance(parameter, click.Argument) else order[str(parameter.name)])

    def run(**given: object) -> int | None:
        with _named_as_typed(parameters):
            code: int | None = resolve_name(f"confide.cli.{place}")(_value(options, given))
            return code

    command = Command(path.rpartition(" ")[2], params=parameters, callback=run, help=text)
    command.names = names
    return command


_STATED = "confide.stated"
_WORDS = ("table", "column")
"""Arguments whose errors are about an option only if they say what it must be; others are about what was read."""

_ALSO = {
    "output": ("out", "public"), "overwrite": ("force",), "previous": ("release",),
    "calibration": ("release",), "groups": ("group_names",), "names": ("groups", "group_names"),
}  # fmt: skip
"""Other names of arguments in the API, and the parameters that set them; the first that a command has."""


def stated_elsewhere(names: Collection[str]) -> None:
    """Let errors about these arguments name no option: a file or `--set` states them."""
    _names()[_STATED] = names


def named_by(argument: str, option: str) -> None:
    """Let errors about an argument of the API name the option of another one."""
    _names()[argument] = option


def _names() -> dict[str, Any]:
    """What errors of the running command call arguments of the API."""
    context = click.get_current_context(silent=True)
    return {} if context is None else context.meta


@contextmanager
def _named_as_typed(parameters: Collection[click.Parameter]) -> Iterator[None]:
    """Call the argument of an error by the option that sets it."""
    # The option of each argument, also under its other names in the API.
    typed = [parameter for parameter in parameters if isinstance(parameter, click.Option)]
    options = {str(option.name): option.opts[0] for option in typed}
    for name, others in _ALSO.items():
        if name not in options and (sets_it := [other for other in others if other in options]):
            options[name] = options[sets_it[0]]
    try:
        yield
    except ConfideError as error:
        # A file or `--set` states some arguments; errors about tables are often about what was read.
        meta = _names()
        name = meta.get(error.argument, error.argument)
        is_option = name not in _WORDS or error.requirement.startswith("must")
        if is_option:
            error.argument = name if name in meta.get(_STATED, ()) else options.get(name, name)
        error.remedy = re.sub(r"\b(\w+)=True\b", lambda flag: options.get(flag[1], flag[0]), error.remedy)
        raise


def _typed_fields(group: type) -> Iterator[tuple[str, Any, Any]]:
    types = get_type_hints(group)
    for field in fields(group):
        yield field.name, types[field.name], field.default


def _leaves(group: type) -> Iterator[tuple[str, Any, Any]]:
    """The options among the fields of a dataclass, and of the dataclasses in it."""
    for name, kind, default in _typed_fields(group):
        if is_dataclass(kind):
            yield from _leaves(cast(type, kind))
        else:
            yield name, kind, default


def _value(group: type, given: Mapping[str, object]) -> Any:
    return group(
        **{
            name: _value(cast(type, kind), given) if is_dataclass(kind) else given[name]
            for name, kind, _ in _typed_fields(group)
        }
    )


def _parameter(path: str, name: str, kind: Any, default: Any) -> click.Parameter:
    """The option or argument of a field, by its row; a tuple type may be repeated."""
    row, required = row_of(path, name), default is MISSING
    several = get_origin(kind) is tuple
    taken = LOCAL if row.kind is PLACE and (" " in path or path == "demo") else row.kind
    more: dict[str, Any] = {"metavar": row.metavar, "required": required}
    more |= {} if default in (MISSING, None, ()) else {"default": default}
    if row.argument:
        argument = Argument([name], type=taken, nargs=-1 if several else 1, **more)
        argument.help = row.help
        return argument
    more |= {"is_flag": True} if kind is bool else {"type": taken, "multiple": several}
    names = row.names or (f"--{name.replace('_', '-')}",)
    return click.Option([*names, name], help=row.help, show_default=True, **more)
