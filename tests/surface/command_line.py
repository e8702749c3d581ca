"""Every command with its arguments and options, the same for every version of click; needs `standard`."""

from collections.abc import Iterator
from typing import Any


def lines() -> Iterator[str]:
    """A section per command; a line per argument and option: its names, what it takes, and what holds without it."""
    from confide.cli.app import app

    yield from _command("confide", app)


def _command(name: str, command: Any) -> Iterator[str]:
    yield f"[{name}]"
    yield from sorted(_parameter(one) for one in command.params)
    yield ""
    for own, sub in sorted(getattr(command, "commands", {}).items()):
        yield from _command(f"{name} {own}", sub)


def _parameter(one: Any) -> str:
    names = ", ".join([*one.opts, *one.secondary_opts])
    if one.param_type_name == "argument":
        words = [f"argument {one.human_readable_name.upper()}"]
    elif getattr(one, "is_flag", False) or getattr(one, "count", False):
        words = [names, "counted" if getattr(one, "count", False) else "flag"]
    else:
        words = [names, one.metavar or "", _type(one.type)]
    required = "required" if one.required else ""
    often = "several" if one.multiple or one.nargs == -1 else "" if one.nargs == 1 else f"{one.nargs} values"
    default = "" if one.required or not _stated(one.default) else f"default {_plain(one.default)}"
    environment = f"or {one.envvar}" if one.envvar else ""
    hidden = "hidden" if getattr(one, "hidden", False) else ""
    return "  ".join(word for word in (*words, required, often, default, environment, hidden) if word)


def _type(kind: Any) -> str:
    """A choice by its values, a range by its bounds, everything else by its name."""
    if hasattr(kind, "choices"):
        return "|".join(str(getattr(value, "value", value)) for value in kind.choices)
    least, most = getattr(kind, "min", None), getattr(kind, "max", None)
    bounds = (
        (" " + _bound(">", kind.min_open, least) + _bound("<", kind.max_open, most)).rstrip()
        if (least is not None or most is not None)
        else ""
    )
    return str(kind.name) + bounds


def _bound(sign: str, is_open: bool, value: Any) -> str:
    return "" if value is None else f"{sign}{'' if is_open else '='}{value:g} "


def _stated(default: Any) -> bool:
    """Not the marks for "none given", which differ between versions."""
    return isinstance(default, str | int | float | tuple | list) and default not in (False, (), [], "")


def _plain(default: Any) -> str:
    return ",".join(map(str, default)) if isinstance(default, tuple | list) else str(getattr(default, "value", default))
