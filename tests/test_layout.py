"""Packages import exported names alone, `import confide` is light, and the public API is the pinned one."""

import ast
import difflib
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import confide
from tests.surface.pinned import PLACE, text

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


@pytest.mark.slow
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


HEAVY = {
    "msgspec", "opendp", "scipy", "sklearn", "duckdb", "pyarrow", "pandas", "polars", "narwhals", "matplotlib", "torch",
    "click", "rich", "jinja2",
}  # fmt: skip
EXPENSIVE_STANDARD = {
    "asyncio", "multiprocessing", "email", "http", "ssl", "sqlite3", "tempfile", "unittest", "xml", "logging",
    "concurrent",
}  # fmt: skip


def modules_after(program: str) -> set[str]:
    """The modules that a program has loaded."""
    program += "; import sys; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return set(done.stdout.split())


@pytest.mark.slow
def test_import_loads_nothing_heavy_and_few_modules_beyond_numpy():
    """An annotation such as np.random.Generator would load numpy's random package."""
    added = modules_after("import confide") - modules_after("import numpy")
    assert "confide" in added
    assert not {name.split(".")[0] for name in added} & (HEAVY | EXPENSIVE_STANDARD)
    assert not [name for name in added if name.startswith("numpy.random")]


PREDICTION = """import confide, numpy as np
p = np.full((2, 2), 0.5)
scores = confide.lac_score(p, [0, 1])
confide.ScoreHistogram.from_scores(scores, confide.Candidates.unit(10))
confide.PredictionSets(p > 0.5).labels()"""
CALIBRATION = """import confide, numpy as np
confide.calibrate(np.linspace(0, 1, 500), 0.1, 1.0, score="lac", neighbors="replace_one")"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "needed"),
    [
        (PREDICTION, set()),  # reading a calibration needs more
        (CALIBRATION, {"opendp"}),  # whose prelude would import scikit-learn, pandas and polars, in over a second
        ("import confide; confide.plan(alpha=0.1, epsilon=1.0)", {"scipy"}),
    ],
    ids=["prediction", "calibration", "plan"],
)
def test_a_use_loads_nothing_heavy_that_it_does_not_need(program, needed):
    assert not {name.split(".")[0] for name in modules_after(program)} & (HEAVY - needed)


def test_errors_are_standard_errors_too():
    assert issubclass(confide.errors.InputError, ValueError)
    assert issubclass(confide.errors.InputTypeError, TypeError)
    assert issubclass(confide.errors.FormatError, confide.errors.InputError)
    assert issubclass(confide.CoverageWarning, UserWarning)
    assert issubclass(confide.errors.InputError, confide.ConfideError)
    assert issubclass(confide.errors.InputTypeError, confide.ConfideError)


def test_dir_is_what_there_is_to_use():
    listed = dir(confide)
    assert set(confide.__all__) <= set(listed)
    assert {"PrivateConformalClassifier", "Ledger", "__version__"} <= set(listed)
    assert not {"Any", "TYPE_CHECKING", "import_module", "blocks", "cells", "loops"} & set(listed)
    assert all(hasattr(confide, name) for name in listed)


@pytest.mark.long
def test_the_public_surface_is_the_committed_one():
    """What differs: docs/stability.md; `python -m tests.surface.pinned` accepts it."""
    pytest.importorskip("click")
    committed, today = PLACE.read_text(encoding="utf-8"), text()
    if committed != today:
        words = [[word for line in one.splitlines() for word in line.split("  ")] for one in (committed, today)]
        pytest.fail(
            "\n".join(
                [*difflib.unified_diff(*words, "committed", "today", lineterm="", n=1), "docs/stability.md: what to do"]
            )
        )
