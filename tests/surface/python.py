"""The public names of Python and the names of their arguments, a line for each.

They are read from the source without imports, so that every Python and every set of extras gives the same text. Public
are the names of `confide.__all__`, and those in the `__all__` of the packages that `docs/stability.md` lists; of
classes their fields, methods and properties, those that they inherit within the package, too; of calls that take
`**options` the fields of their type.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
SPECIAL = ("__init__", "__call__", "__contains__", "__getitem__", "__iter__", "__len__", "__add__")


@dataclass(frozen=True)
class Defined:
    """The definition of a name after all imports were followed; `node` is None if it is external."""

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
            yield f"{name} is confide.{same}" if same else described(name, found)
        yield ""


def promised_modules() -> list[str]:
    page = (ROOT / "docs" / "stability.md").read_text(encoding="utf-8")
    listed = page.partition("## Public packages")[2].partition("\n## ")[0]
    return ["confide", *sorted(set(re.findall(r"^\| `(confide\.[\w.]+)`", listed, flags=re.MULTILINE)))]


def public_names(module: str) -> list[str]:
    """Its `__all__`; for `confide` the names in its stub; otherwise its public functions and classes."""
    body = parsed(module).body
    if module == "confide":
        return [alias.name for node in body if isinstance(node, ast.ImportFrom) for alias in node.names]
    for node in body:
        if isinstance(node, ast.Assign) and names_of(node) == ["__all__"]:
            return ast.literal_eval(node.value)
    return [n.name for n in body if isinstance(n, ast.FunctionDef | ast.ClassDef) and not n.name.startswith("_")]


def described(name: str, found: Defined) -> str:
    """A call with the names of its arguments, `=` after optional ones; a class with its members."""
    node = found.node
    if isinstance(node, ast.FunctionDef):
        return f"{name}{signature(node, options(found.module, node.args.kwarg))}"
    if isinstance(node, ast.ClassDef):
        bases = ", ".join(sorted(ast.unparse(base) for base in node.bases))
        return "  ".join([f"class {name}({bases})", *members(found).values()])
    if isinstance(node, ast.Assign | ast.AnnAssign):
        return name
    return f"module {name}" if file_of(f"{found.module}.{name}") else f"{name}, of {found.module}"


def options(module: str, kwarg: ast.arg | None) -> list[str]:
    """The fields of the keyword arguments of a call, if `Unpack` states their type."""
    if kwarg is None:
        return []
    typed = kwarg.annotation.slice if isinstance(kwarg.annotation, ast.Subscript) else None
    return [f"**{kwarg.arg}", *(members(find(module, typed.id)) if isinstance(typed, ast.Name) else ())]


def signature(node: ast.FunctionDef, more: Sequence[str] = (), *, method: bool = False) -> str:
    """Arguments without `self`: `/` after positional-only ones, `*` before keyword-only ones."""
    by_place = [*node.args.posonlyargs, *node.args.args]
    optional = {one.arg for one in by_place[len(by_place) - len(node.args.defaults) :]}
    optional |= {one.arg for one, value in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True) if value}

    def shown(those: Iterable[ast.arg]) -> list[str]:
        return [one.arg + "=" * (one.arg in optional) for one in those]

    first, then = shown(node.args.posonlyargs), shown(node.args.args)
    if method:
        first, then = (first[1:], then) if first else (first, then[1:])
    star = [f"*{node.args.vararg.arg}"] if node.args.vararg else ["*"] * bool(node.args.kwonlyargs)
    return f"({', '.join([*first, *['/'] * bool(first), *then, *star, *shown(node.args.kwonlyargs), *more])})"


def members(found: Defined) -> dict[str, str]:
    """Fields in their order, methods and properties by name; a class overrides those of its bases."""
    node, listed = found.node, {}
    assert isinstance(node, ast.ClassDef)
    for base in reversed(node.bases):
        base = base.value if isinstance(base, ast.Subscript) else base
        inherited = find(found.module, base.id) if isinstance(base, ast.Name) else None
        if inherited is not None and isinstance(inherited.node, ast.ClassDef):
            listed |= members(inherited)
    for own in node.body:
        if isinstance(own, ast.FunctionDef) and (own.name in SPECIAL or not own.name.startswith("_")):
            how = {ast.unparse(one) for one in own.decorator_list}
            call = "" if how & {"property", "cached_property"} else signature(own, method="staticmethod" not in how)
            listed[own.name] = own.name + call
        elif isinstance(own, ast.AnnAssign) and isinstance(own.target, ast.Name) and own.target.id[0] != "_":
            listed[own.target.id] = own.target.id + "=" * (own.value is not None)
    return listed


@cache
def find(module: str, name: str) -> Defined:
    """Follow imports, also those of the stub of `confide`, to the definition of a name."""
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
    """The statements of a module, including those below `if`, `try` and `with` at its top."""
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
