"""The parameters that a public docstring describes are those that the function declares."""

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import confide

SECTION = re.compile(r"^Parameters\n-+\n(.*?)(?=^\w[\w ]*\n-+\n|\Z)", re.DOTALL | re.MULTILINE)


def callables() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every public function and class of `confide`, and the public methods of its classes, by name."""
    for name in confide.__all__:
        value = getattr(confide, name)
        if callable(value):
            yield name, value
        for member, method in vars(value).items() if inspect.isclass(value) else ():
            method = getattr(method, "__func__", method)
            if inspect.isfunction(method) and not member.startswith("_"):
                yield f"{name}.{member}", method


def documented(call: Callable[..., Any]) -> list[str] | None:
    """The names in the section of parameters; None without one."""
    section = SECTION.search(inspect.getdoc(call) or "")
    if section is None:
        return None
    names = [name for line in section[1].splitlines() if line[:1].strip() for name in line.split(",")]
    return [name.strip().lstrip("*") for name in names]


def declared(call: Callable[..., Any]) -> tuple[set[str], set[str]]:
    """The parameters that must be described; and `**options` with the fields of its type, any of which may be."""
    required, optional = set(), set()
    for name, parameter in inspect.signature(call).parameters.items():
        if name in ("self", "cls") or parameter.kind is parameter.VAR_POSITIONAL:  # such as those that must be named
            continue
        if parameter.kind is not parameter.VAR_KEYWORD:
            required.add(name)
            continue
        optional.add(name)
        annotation = parameter.annotation
        if typed := re.fullmatch(r"Unpack\[(\w+)\]", str(annotation)):
            optional |= set(inspect.unwrap(call).__globals__[typed[1]].__annotations__)
        elif not isinstance(annotation, str):
            optional |= set(annotation.__args__[0].__annotations__)
    return required, optional


DOCUMENTED = {name: call for name, call in callables() if documented(call) is not None}


@pytest.mark.parametrize("name", DOCUMENTED)
def test_documented_parameters_are_the_declared_ones(name):
    described = documented(DOCUMENTED[name])
    required, optional = declared(DOCUMENTED[name])
    assert set(described) <= required | optional, "described, but not declared"
    assert required <= set(described), "declared, but not described"
    assert not optional or optional & set(described), "options that are not described"
    assert len(described) == len(set(described))
