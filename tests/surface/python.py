"""The public names of Python with their signatures, read from the source, so that every Python and every set of extras
gives the same text: nothing is imported.

Public are the names of `confide.__all__`, and those in the `__all__` of the packages that `docs/stability.md` lists; of
classes their fields, methods and properties, those that they inherit within the package, too; of calls that take
`**options` the fields of their type.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
SPECIAL = ("__init__", "__call__", "__contains__", "__getitem__", "__iter__", "__len__", "__add__")


@dataclass(frozen=True)
class Defined:
    """Where a name is defined, after all imports were followed: `node` is None for what comes from elsewhere."""

    module: str
    name: str
    node: ast.AST | None


def lines() -> Iterator[str]:
    """One line per public name, sorted by module."""
    users = {find("confide", name): name for name in public_names("confide")}
    for module in promised_modules():
        yield f"[{module}]"
        for name in sorted(public_names(module)):
            found = find(module, name)
            same = users.get(found) if module != "confide" else None
            yield from [f"{name} is confide.{same}"] if same else described(name, found)
        yield ""


def promised_modules() -> list[str]:
    page = (ROOT / "docs" / "stability.md").read_text(encoding="utf-8")
    listed = page.partition("## Public packages")[2].partition("\n## ")[0]
    return ["confide", *sorted(set(re.findall(r"^\| `(confide\.[\w.]+)`", listed, flags=re.MULTILINE)))]


def public_names(module: str) -> list[str]:
    """Its `__all__`, of `confide` the names in its stub; else the public functions and classes that it defines."""
    body = parsed(module).body
    if module == "confide":
        return [alias.name for node in body if isinstance(node, ast.ImportFrom) for alias in node.names]
    for node in body:
        if isinstance(node, ast.Assign) and names_of(node) == ["__all__"]:
            return ast.literal_eval(node.value)
    return [n.name for n in body if isinstance(n, ast.FunctionDef | ast.ClassDef) and not n.name.startswith("_")]


def described(name: str, found: Defined) -> Iterator[str]:
    node = found.node
    if isinstance(node, ast.FunctionDef):
        yield f"{name}{signature(node)}"
        yield from (f"    {line}" for line in options(found.module, node.args.kwarg))
    elif isinstance(node, ast.ClassDef):
        yield f"class {name}({', '.join(sorted(ast.unparse(base) for base in node.bases))})"
        own = members(found)
        fields = [line for name, line in own.items() if line.startswith(f"{name}: ") and name in fields_of(found)]
        yield from (f"    {line}" for line in [*fields, *sorted(set(own.values()) - set(fields))])
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        kind = f": {ast.unparse(node.annotation)}" if isinstance(node, ast.AnnAssign) else ""
        yield f"{name}{kind}"
    else:
        yield f"module {name}" if file_of(f"{found.module}.{name}") else f"{name}, of {found.module}"


def options(module: str, kwarg: ast.arg | None) -> Iterator[str]:
    """The fields of what a call takes by name, where `Unpack` says of which type it is."""
    if (
        kwarg is not None
        and isinstance(kwarg.annotation, ast.Subscript)
        and isinstance(kwarg.annotation.slice, ast.Name)
    ):
        yield from members(find(module, kwarg.annotation.slice.id)).values()


def signature(node: ast.FunctionDef, *, method: bool = False) -> str:
    """Arguments as they are written, without `self`, and what comes back."""
    arguments = node.args
    if method:
        positional = arguments.posonlyargs or arguments.args
        drop = len(positional[:1])
        arguments = ast.arguments(
            arguments.posonlyargs[drop:],
            arguments.args[drop:] if not arguments.posonlyargs else arguments.args,
            arguments.vararg,
            arguments.kwonlyargs,
            arguments.kw_defaults,
            arguments.kwarg,
            arguments.defaults,
        )
    back = f" -> {ast.unparse(node.returns)}" if node.returns is not None else ""
    return f"({ast.unparse(arguments)}){back}"


def members(found: Defined) -> dict[str, str]:
    """Fields, methods and properties by name; a class's own stand for those of its bases."""
    node, described_members = found.node, {}
    assert isinstance(node, ast.ClassDef)
    for base in reversed(node.bases):
        base = base.value if isinstance(base, ast.Subscript) else base
        inherited = find(found.module, base.id) if isinstance(base, ast.Name) else None
        if inherited is not None and isinstance(inherited.node, ast.ClassDef):
            described_members |= members(inherited)
    for own in node.body:
        if isinstance(own, ast.FunctionDef) and (own.name in SPECIAL or not own.name.startswith("_")):
            described_members[own.name] = member(own)
        elif isinstance(own, ast.AnnAssign) and isinstance(own.target, ast.Name) and own.target.id[0] != "_":
            value = "" if own.value is None else f" = {ast.unparse(own.value)}"
            described_members[own.target.id] = f"{own.target.id}: {ast.unparse(own.annotation)}{value}"
    return described_members


def fields_of(found: Defined) -> set[str]:
    """The names of fields, of which the order counts where an instance is made by position."""
    assert isinstance(found.node, ast.ClassDef)
    bases = [find(found.module, base.id) for base in found.node.bases if isinstance(base, ast.Name)]
    own = {n.target.id for n in found.node.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)}
    return own.union(*(fields_of(base) for base in bases if isinstance(base.node, ast.ClassDef)))


def member(own: ast.FunctionDef) -> str:
    how = {ast.unparse(one) for one in own.decorator_list}
    if how & {"property", "cached_property"}:
        return f"{own.name}{'' if own.returns is None else f': {ast.unparse(own.returns)}'}"
    kind = "classmethod " if "classmethod" in how else "staticmethod " if "staticmethod" in how else ""
    return f"{kind}{own.name}{signature(own, method=kind != 'staticmethod ')}"


@cache
def find(module: str, name: str) -> Defined:
    """Follow imports, also those of the stub of `confide`, to where a name is defined."""
    for node in definitions(module):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            return Defined(module, name, node)
        if isinstance(node, ast.Assign | ast.AnnAssign) and name in names_of(node):
            return Defined(module, name, node)
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    inside = node.module.split(".")[0] == "confide" and node.module != module
                    found = find(node.module, alias.name) if inside else None
                    return Defined(node.module, name, None) if found is None or found.node is None else found
    return Defined("builtins", name, None)


def definitions(module: str) -> Iterator[ast.stmt]:
    """The statements of a module, those below `if`, `try` and `with` at its top, too."""
    stack = list(reversed(parsed(module).body))
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, ast.If | ast.Try | ast.With):
            stack += reversed([*node.body, *getattr(node, "orelse", ())])


def names_of(node: ast.Assign | ast.AnnAssign) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    targets = [part for one in targets for part in (one.elts if isinstance(one, ast.Tuple) else [one])]
    return [one.id for one in targets if isinstance(one, ast.Name)]


def file_of(module: str) -> Path | None:
    place = SOURCE.joinpath(*module.split("."))
    places = (place / "__init__.pyi", place / "__init__.py", place.with_suffix(".py"))
    return next((path for path in places if path.is_file()), None)


@cache
def parsed(module: str) -> ast.Module:
    return ast.parse(source_of(module))


def source_of(module: str) -> str:
    path = file_of(module)
    if path is None:
        raise LookupError(f"{module} is listed as public and has no file")
    return path.read_text(encoding="utf-8")
