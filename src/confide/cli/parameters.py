"""Groups of options that commands share, and what their files may be.

Each group is a dataclass, and stands for its fields on the command line.
"""

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import click

from confide.support import ObjectPath, as_place


def command(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, in which every parameter whose type is a dataclass is replaced by that dataclass's fields."""
    hints, parameters, groups = get_type_hints(function, include_extras=True), [], {}
    for parameter in inspect.signature(function).parameters.values():
        kind = hints[parameter.name]
        if not (isinstance(kind, type) and is_dataclass(kind)):
            parameters.append(parameter.replace(annotation=kind))
            continue
        own = get_type_hints(kind, include_extras=True)
        groups[parameter.name] = (kind, [field.name for field in fields(kind)])
        for field in fields(kind):
            default = inspect.Parameter.empty if field.default is MISSING else field.default
            parameters.append(
                inspect.Parameter(field.name, parameter.KEYWORD_ONLY, default=default, annotation=own[field.name])
            )

    @wraps(function)
    def run(**given: Any) -> Any:
        made = {name: kind(**{field: given.pop(field) for field in names}) for name, (kind, names) in groups.items()}
        return function(**given, **made)

    positional = [one for one in parameters if one.kind is not inspect.Parameter.KEYWORD_ONLY]
    others = [one for one in parameters if one.kind is inspect.Parameter.KEYWORD_ONLY]
    run.__signature__ = inspect.Signature([*positional, *others])  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run


class PlaceType(click.Path):
    """A file, or an object of a store by its address."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The file of this name, or the object of this address."""
        return value if isinstance(value, ObjectPath | Path) else as_place(value)


_FILES: dict[Any, Any] = {
    Path: str, Path | None: str | None, list[Path]: list[str], list[Path] | None: list[str] | None,
}  # fmt: skip
"""What typer is told of each annotation: it would make a path of everything that is annotated as one."""


def with_places(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, of which every file may be an object of a store."""

    @wraps(function)
    def run(*given: Any, **named: Any) -> Any:
        return function(*given, **named)

    signature, parameters = inspect.signature(function), []
    hints = get_type_hints(function, include_extras=True)
    for parameter in signature.parameters.values():
        kind, *more = get_args(hints[parameter.name]) if hasattr(hints[parameter.name], "__metadata__") else (None,)
        if kind in _FILES:
            (info,) = more
            info.click_type = PlaceType()
            parameter = parameter.replace(annotation=Annotated[_FILES[kind], info])
        parameters.append(parameter)
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run
