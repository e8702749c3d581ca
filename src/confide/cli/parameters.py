"""Groups of options that commands share: each is a dataclass, and stands for its fields on the command line."""

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from typing import Any, get_type_hints


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
