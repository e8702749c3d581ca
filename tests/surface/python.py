"""The public names of Python and the names of their arguments, a line for each.

griffe reads them from the source without imports, so that every Python and every set of extras gives the same text.
Public are the names in `__all__` of `confide` and of the packages that `docs/stability.md` lists; of classes their
fields, methods and properties, also those inherited within the package; of `**options` the fields of their type.
"""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from griffe import Attribute, Class, Extensions, Function, ModulesCollection, Parameter, ParameterKind, Parameters, load

ROOT = Path(__file__).parents[2]
SPECIAL = ("__init__", "__call__", "__contains__", "__getitem__", "__iter__", "__len__", "__add__")


def lines() -> Iterator[str]:
    """One line per public name, sorted by module."""
    users = {defined("confide", name): name for name in public_names("confide")}
    for module in promised_modules():
        yield f"[{module}]"
        for name in sorted(public_names(module)):
            same = users.get(defined(module, name)) if module != "confide" else None
            yield f"{name} is confide.{same}" if same else described(module, name)
        yield ""


def promised_modules() -> list[str]:
    page = (ROOT / "docs" / "stability.md").read_text(encoding="utf-8")
    listed = page.partition("## Public packages")[2].partition("\n## ")[0]
    return ["confide", *sorted(set(re.findall(r"`(confide\.[\w.]+)`", listed)))]


@cache
def source() -> ModulesCollection:
    """All definitions by path; without extensions, of which one gives dataclasses their `__init__`."""
    package = load("confide", search_paths=[ROOT / "src"], extensions=Extensions(), allow_inspection=False)
    return package.modules_collection


def public_names(module: str) -> list[str]:
    """Its `__all__`; for `confide` the names in its stub; otherwise its public functions and classes."""
    found = source()[module]
    if module == "confide":
        return [name for name, path in found.imports.items() if path.startswith("confide.")]
    if found.exports is not None:
        return [str(name) for name in found.exports]
    return [one.name for one in found.members.values() if one.is_public and (one.is_function or one.is_class)]


def defined(module: str, name: str) -> str:
    """The path of a definition, after all imports; griffe's own aliases lead to modules of the same name instead."""
    path = f"{module}.{name}"
    imported = source()[module].imports.get(name, path)
    return path if imported == path else defined(*imported.rsplit(".", 1))


def described(module: str, name: str) -> str:
    """A call with the names of its arguments; a class with its members."""
    found = source()[defined(module, name)]
    if found.is_class:
        bases = ", ".join(sorted(str(base) for base in found.bases))
        return "  ".join([f"class {name}({bases})", *members(found).values()])
    if found.is_function:
        return signature(name, found)
    return f"module {name}" if found.is_module else name


def signature(name: str, call: Function) -> str:
    """Its arguments without `self`, `=` after optional ones; after `**options` the fields of their type."""
    shown = []
    for one in call.parameters:
        shown.append(Parameter(one.name, kind=one.kind, default=None if one.required else ""))
        if typed := re.fullmatch(r"Unpack\[(\w+)\]", str(one.annotation)):
            fields = members(source()[defined(call.module.path, typed[1])])
            shown += [Parameter(field, kind=ParameterKind.positional_or_keyword) for field in fields]
    return Function(name, parameters=Parameters(*shown), parent=call.parent).signature()


def members(found: Class) -> dict[str, str]:
    """Annotated fields, methods and properties; a class overrides those of its bases."""
    listed = {}
    for one in [one for owner in [*reversed(found.mro()), found] for one in owner.members.values()]:
        if isinstance(one, Function) and (one.name in SPECIAL or not one.name.startswith("_")):
            listed[one.name] = signature(one.name, one)
        elif isinstance(one, Attribute) and one.annotation and one.runtime and one.is_public:
            listed[one.name] = one.name + "=" * (one.value is not None)
    return listed
