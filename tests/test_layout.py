"""Rules of the layout that the import contracts of pyproject.toml cannot state (`make check` runs those)."""

import ast
import importlib.util
import re
import sys
from functools import cache

import pytest

from tests.builders import slow
from tests.docs.blocks import ROOT

MOST_FILES_AT_THE_ROOT = 12


def _packages():
    spec = importlib.util.spec_from_file_location("packages", ROOT / "docs" / "_ext" / "packages.py")
    module = sys.modules["packages"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


packages = _packages()
MODULES = packages.modules()
_exported = cache(packages.exported)
FOLDERS = [package for package in packages.order() if (packages.PACKAGE / package).is_dir()]


def test_the_order_lists_every_package():
    """Every package and file at the root is in the order, and nothing else."""
    assert sorted(packages.order()) == sorted({packages.package_of(name) for name in MODULES} - {""})


def test_package_docstrings_name_existing_files():
    """No docstring names a file that was removed or merged."""
    listed = 0
    for init in packages.PACKAGE.rglob("__init__.py"):
        head = ast.get_docstring(ast.parse(init.read_text(encoding="utf-8"))) or ""
        named = set(re.findall(r"\b([a-z_0-9]+)\.py\b", head))
        there = {path.stem for path in init.parent.glob("*.py")} - {"__init__"}
        assert named <= there | {path.name for path in init.parent.iterdir()}, init.parent.name
        listed += bool(named)
    assert listed > 20


def test_few_files_at_the_root():
    assert len(list(packages.PACKAGE.glob("*.py"))) <= MOST_FILES_AT_THE_ROOT


def test_tests_mirror_the_packages():
    folders = {path.parent.relative_to(ROOT / "tests").parts[0] for path in (ROOT / "tests").glob("*/**/test_*.py")}
    assert folders <= {*FOLDERS, "docs", "fuzz", "golden", "mutation", "proofs", "vectors"}


CHANGING = {"AppendedGraph", "Round"}
"""Dataclasses that are not frozen: a round in progress, and the nodes of a graph under construction."""


def test_dataclasses_are_frozen():
    """Public dataclasses are frozen, except those in CHANGING."""
    found = {}
    for path in packages.PACKAGE.rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                made = [text for text in map(ast.unparse, node.decorator_list) if text.startswith("dataclass")]
                found |= dict.fromkeys([node.name] * len(made), "frozen=True" in "".join(made))
    assert len(found) > 100
    assert {name for name, frozen in found.items() if not frozen} == CHANGING


@pytest.mark.parametrize("package", FOLDERS)
def test_packages_have_a_docstring_and_exports(package):
    tree = ast.parse((packages.PACKAGE / package / "__init__.py").read_text(encoding="utf-8"))
    assert len(ast.get_docstring(tree) or "") > 30
    assert _exported(package)


@pytest.mark.parametrize("package", [*packages.order()[::2], *slow([*packages.order()[1::2], ""])])
def test_packages_import_exported_names(package):
    """Imports between packages take names that the other's `__init__.py` exports, from there."""
    wrong = []
    for name, path in MODULES.items():
        if packages.package_of(name) != package:
            continue
        for module, imported in _imports(path):
            other = packages.package_of(module)
            if other in (package, "") or other not in FOLDERS:
                continue
            if imported is None and module.removeprefix(f"confide.{other}.") in _exported(other):
                continue  # a module that the package exports as a whole
            if module != f"confide.{other}":
                wrong.append(f"{name} imports {module}, which {other} does not export")
            elif imported is not None and imported not in _exported(other):
                wrong.append(f"{name} imports {imported}, which {other} does not export")
    assert wrong == []


def test_names_are_imported_from_their_definition():
    """Inside a package, modules do not re-export names."""
    wrong = []
    for importing, path in MODULES.items():
        for module, name in _imports(path):
            if name is not None and MODULES[module].name != "__init__.py" and name not in _defined(module):
                wrong.append(f"{importing} imports {name} from {module}, which does not define it")
    assert wrong == []


@cache
def _imports(path):
    return list(packages.imports(path, MODULES))


@cache
def _defined(module):
    found = set()
    for node in ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    return found
