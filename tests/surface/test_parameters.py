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
    """The names of the parameters, and the fields of the type of `**options`, which may be described instead."""
    names, fields = set(), set()
    for name, parameter in inspect.signature(call).parameters.items():
        if name in ("self", "cls") or parameter.kind is parameter.VAR_POSITIONAL:  # such as those that must be named
            continue
        names.add(name)
        annotation = parameter.annotation
        if typed := re.fullmatch(r"Unpack\[(\w+)\]", str(annotation)):
            fields = set(inspect.unwrap(call).__globals__[typed[1]].__annotations__)
        elif parameter.kind is parameter.VAR_KEYWORD and not isinstance(annotation, str):
            fields = set(annotation.__args__[0].__annotations__)
    return names, fields


DOCUMENTED = {name: call for name, call in callables() if documented(call) is not None}


@pytest.mark.parametrize("name", DOCUMENTED)
def test_documented_parameters_are_the_declared_ones(name):
    call = DOCUMENTED[name]
    described = documented(call)
    parameters, fields = declared(call)
    keywords = {each.name for each in inspect.signature(call).parameters.values() if each.kind is each.VAR_KEYWORD}
    assert set(described) <= parameters | fields, "described, but not declared"
    missing = parameters - set(described)
    assert not missing or (missing == keywords and fields & set(described)), "declared, but not described"
    assert len(described) == len(set(described))
