"""The rooms of the package: their order, what imports what, and the picture of it.

`python docs/_ext/rooms.py` draws docs/images/rooms.svg anew; with `--check` it fails if that is not the picture which the
imports give. The order is the contract in pyproject.toml that import-linter checks; what imports what is read from the
source, imports inside functions and under TYPE_CHECKING counted.
"""

import ast
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "confide"
Graph = dict[str, set[str]]


def modules(package: Path = PACKAGE) -> dict[str, Path]:
    """All modules of a package by their full names; a package's own is its `__init__.py`."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        *parts, last = path.relative_to(package.parent).with_suffix("").parts
        found[".".join(parts if last == "__init__" else [*parts, last])] = path
    return found


def imports(path: Path, known: Mapping[str, Path]) -> Iterator[tuple[str, str | None]]:
    """Every import of a known module in a file: (module, name), the name None if the module itself is imported."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level and node.module, f"{path} has a relative import"
            for alias in node.names:
                if f"{node.module}.{alias.name}" in known:
                    yield f"{node.module}.{alias.name}", None
                elif node.module in known:
                    yield node.module, alias.name


def import_graph(package: Path = PACKAGE) -> Graph:
    """Module to the modules that it imports, anywhere in its file."""
    known = modules(package)
    return {name: {module for module, _ in imports(path, known)} - {name} for name, path in known.items()}


def circles(graph: Graph) -> list[list[str]]:
    """The strongly connected components of more than one module (Tarjan 1972)."""
    found: list[list[str]] = []
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []

    def visit(module: str) -> None:
        order[module] = low[module] = len(order)
        stack.append(module)
        for other in sorted(graph[module]):
            if other not in order:
                visit(other)
                low[module] = min(low[module], low[other])
            elif other in stack:
                low[module] = min(low[module], order[other])
        if low[module] == order[module]:
            circle = stack[stack.index(module) :]
            del stack[stack.index(module) :]
            if len(circle) > 1:
                found.append(sorted(circle))

    for module in sorted(graph):
        if module not in order:
            visit(module)
    return found


def order() -> list[str]:
    """The rooms from the ground up, as the contract in pyproject.toml has them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    layers = next(contract["layers"] for contract in settings["contracts"] if contract["type"] == "layers")
    return [room for layer in reversed(layers) for room in layer.replace("|", " ").split()]


def room_of(module: str) -> str:
    """The room that a module stands in: the folder or the file below the package; "" for the package itself."""
    return (module.split(".") + [""])[1]


def room_graph(graph: Graph) -> Graph:
    """Room to the rooms that its modules import."""
    found: Graph = {room_of(module): set() for module in graph}
    for module, others in graph.items():
        found[room_of(module)] |= {room_of(other) for other in others} - {room_of(module)}
    return found
