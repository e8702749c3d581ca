"""Packages import from one another only the names that the other's `__init__.py` exports."""

import ast
from functools import cache
from pathlib import Path

import confide

PACKAGE = Path(confide.__file__).parent


def modules():
    """All modules by their full names; a package's own is its `__init__.py`."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        *parts, last = path.relative_to(PACKAGE.parent).with_suffix("").parts
        found[".".join(parts if last == "__init__" else [*parts, last])] = path
    return found


MODULES = modules()
FOLDERS = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()}


def imports(path):
    """Every import of a module of the library in a file: (module, name), the name None if the module is imported."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names if alias.name in MODULES)
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None, f"{path} has a relative import"
            for alias in node.names:
                if f"{node.module}.{alias.name}" in MODULES:
                    yield f"{node.module}.{alias.name}", None
                elif node.module in MODULES:
                    yield node.module, alias.name


@cache
def exported(package):
    """The names that a package's `__init__.py` imports from within the package, or defines."""
    tree = ast.parse((PACKAGE / package / "__init__.py").read_text(encoding="utf-8"))
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith(f"confide.{package}."):
            names |= {alias.name for alias in node.names}
    return names


def package_of(module):
    return [*module.split("."), ""][1]


def test_packages_import_exported_names():
    wrong, checked = [], 0
    for name, path in MODULES.items():
        for module, imported in imports(path):
            other = package_of(module)
            if other in (package_of(name), "") or other not in FOLDERS:
                continue
            checked += 1
            if imported is None and module.removeprefix(f"confide.{other}.") in exported(other):
                continue  # a module that the package exports as a whole
            if module != f"confide.{other}" or (imported is not None and imported not in exported(other)):
                wrong.append(f"{name} imports {imported or module}, which {other} does not export")
    assert wrong == []
    assert checked > 100
