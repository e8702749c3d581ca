"""Commands as functions of options: each parameter is an option or an argument, or a dataclass with several.

A parameter, or a field of its dataclass, has the name of the argument of the Python API, and a row of
`confide.cli.options`. An option without a default is required.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, fields, is_dataclass
from inspect import Parameter, cleandoc, signature
from typing import Any, TypeAlias, cast, get_args, get_origin, get_type_hints

import click

from confide.cli.help import Argument, Command
from confide.cli.options import LOCAL, PLACE, row_of
from confide.errors import ConfideError


def command(path: str, names: Collection[str] = ()) -> Callable[[Callable[..., int | None]], Command]:
    """Turn a function into a command.

    Parameters
    ----------
    path
        The words after `confide`, such as `ledger show`.
    names
        The arguments of the Python API that the command takes by `--set`.
    """

    def build(function: Callable[..., int | None]) -> Command:
        hints = get_type_hints(function)
        parameters = {
            one.name: (hints[one.name], MISSING if one.default is Parameter.empty else one.default)
            for one in signature(function).parameters.values()
        }
        options = {name: _parameter(path, name, kind, default) for name, kind, default in _leaves(parameters)}

        def run(**given: object) -> int | None:
            with _named_as_typed(options.values()):
                return function(**_values(parameters, given))

        text = cleandoc(function.__doc__ or "")
        made = Command(path.rpartition(" ")[2], params=list(options.values()), callback=run, help=text)
        made.names = names
        return made

    return build


_STATED = "confide.stated"
_WORDS = ("table", "column")
"""Arguments whose errors are about an option only if they say what it must be; others are about what was read."""

_ALSO = {
    "output": ("out", "public", "out_folder"), "overwrite": ("force",), "release": ("previous",),
    "previous": ("release",), "calibration": ("release", "previous"), "groups": ("group_names",),
    "names": ("groups", "group_names"), "key": ("ledger_key",),
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
    options = {str(one.name): one.opts[0] for one in parameters if isinstance(one, click.Option)}
    for name, others in _ALSO.items():
        if name not in options and (sets_it := [other for other in others if other in options]):
            options[name] = options[sets_it[0]]
    try:
        yield
    except ConfideError as error:
        meta = _names()
        name = meta.get(error.argument, error.argument)
        is_option = name not in _WORDS or error.requirement.startswith("must")
        if is_option and name not in meta.get(_STATED, ()):
            error.argument = options.get(name, name)
        error.remedy = re.sub(r"\b(\w+)=True\b", lambda flag: options.get(flag[1], flag[0]), error.remedy)
        raise


_Fields: TypeAlias = Mapping[str, tuple[Any, Any]]
"""Types and defaults by name, of the parameters of a function or the fields of a dataclass."""


def _fields_of(group: type) -> _Fields:
    types = get_type_hints(group)
    return {one.name: (types[one.name], one.default) for one in fields(group)}


def _leaves(named: _Fields) -> Iterator[tuple[str, Any, Any]]:
    """The options among these, and in dataclasses: name, type and default."""
    for name, (kind, default) in named.items():
        if is_dataclass(kind):
            yield from _leaves(_fields_of(cast(type, kind)))
        else:
            yield name, kind, default


def _values(named: _Fields, given: Mapping[str, object]) -> dict[str, Any]:
    """The given options, as values of these types."""
    groups = {name: cast(type, kind) for name, (kind, _) in named.items() if is_dataclass(kind)}
    single = {name: given[name] for name in named if name in given}
    return single | {name: kind(**_values(_fields_of(kind), given)) for name, kind in groups.items()}


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
    flag = bool in (kind, *get_args(kind))
    more |= {"is_flag": True} if flag else {"type": taken, "multiple": several}
    names = row.names or (f"--{name.replace('_', '-')}",)
    return click.Option([*names, name], help=row.help, show_default=True, **more)
