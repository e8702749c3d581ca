"""How the code is laid out: packages are imported by what their `__init__.py` exports, and few files lie at the root.

`make check` runs the contracts of pyproject.toml, which give every import its direction and allow no circle; here is
what they cannot say.
"""

import ast
import importlib.util
import re
import sys
from functools import cache

import pytest

from tests.builders import slow
from tests.docs.blocks import ROOT

MOST_FILES_AT_THE_ROOT = 12


def _rooms():
    spec = importlib.util.spec_from_file_location("rooms", ROOT / "docs" / "_ext" / "rooms.py")
    module = sys.modules["rooms"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


rooms = _rooms()
MODULES = rooms.modules()
FOLDERS = [room for room in rooms.order() if (rooms.PACKAGE / room).is_dir()]


def test_the_order_names_every_room():
    """Whatever lies at the root has its place in the order, and nothing else does."""
    assert sorted(rooms.order()) == sorted({rooms.room_of(name) for name in MODULES} - {""})


def test_heads_of_packages_name_files_that_are_there():
    """No head names a file that went, or was merged into another."""
    listed = 0
    for door in rooms.PACKAGE.rglob("__init__.py"):
        head = ast.get_docstring(ast.parse(door.read_text(encoding="utf-8"))) or ""
        named = set(re.findall(r"\b([a-z_0-9]+)\.py\b", head))
        there = {path.stem for path in door.parent.glob("*.py")} - {"__init__"}
        assert named <= there | {path.name for path in door.parent.iterdir()}, door.parent.name
        listed += bool(named)
    assert listed > 20


def test_few_files_lie_at_the_root():
    assert len(list(rooms.PACKAGE.glob("*.py"))) <= MOST_FILES_AT_THE_ROOT


def test_tests_lie_as_the_code_does():
    folders = {path.parent.relative_to(ROOT / "tests").parts[0] for path in (ROOT / "tests").glob("*/**/test_*.py")}
    assert folders <= {*FOLDERS, "docs", "fuzz", "golden", "mutation", "proofs", "vectors"}


CHANGING = {"Round", "Tail"}
"""A round of a session that goes on, and nodes that are being put together."""


def test_values_cannot_be_changed():
    """Dataclasses are frozen, but those with a leading underscore and those that are named here."""
    found = {}
    for path in rooms.PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                made = [text for text in map(ast.unparse, node.decorator_list) if text.startswith("dataclass")]
                found |= dict.fromkeys([node.name] * len(made), "frozen=True" in "".join(made))
    assert len(found) > 100
    assert {name for name, frozen in found.items() if not frozen} == CHANGING


@pytest.mark.parametrize("room", FOLDERS)
def test_a_room_says_what_it_is_and_what_it_exports(room):
    tree = ast.parse((rooms.PACKAGE / room / "__init__.py").read_text(encoding="utf-8"))
    assert len(ast.get_docstring(tree) or "") > 30
    assert rooms.exported(room)


@pytest.mark.parametrize("room", [*rooms.order()[::2], *slow([*rooms.order()[1::2], ""])])
def test_a_room_is_entered_by_its_door(room):
    """Other rooms import names that a room's `__init__.py` exports, from the room itself."""
    wrong = []
    for name, path in MODULES.items():
        if rooms.room_of(name) != room:
            continue
        for module, imported in rooms.imports(path, MODULES):
            other = rooms.room_of(module)
            if other in (room, "") or other not in FOLDERS:
                continue
            if imported is None and module.removeprefix(f"confide.{other}.") in rooms.exported(other):
                continue  # a module that the room exports as a whole
            if module != f"confide.{other}":
                wrong.append(f"{name} imports {module}, which lies behind the door of {other}")
            elif imported is not None and imported not in rooms.exported(other):
                wrong.append(f"{name} imports {imported}, which {other} does not export")
    assert wrong == []


def test_a_name_is_imported_from_where_it_is_defined():
    """Inside a room; a module that only imports a name does not hand it on."""
    wrong = []
    for importing, path in MODULES.items():
        for module, name in rooms.imports(path, MODULES):
            if name is not None and MODULES[module].name != "__init__.py" and name not in _defined(module):
                wrong.append(f"{importing} imports {name} from {module}, which does not define it")
    assert wrong == []


@cache
def _defined(module):
    found = set()
    for node in ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    return found
