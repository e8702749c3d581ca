"""Tests that pages name exist, every statement names one, and the reference has every public name."""

import ast
import importlib
import importlib.util
import re
import sys
from functools import cache

import pytest

import confide
from tests.docs.blocks import ROOT

STATEMENT = re.compile(r"^\*\*((?:Theorem|Lemma|Proposition|Corollary)\b.*?)\.\*\*", re.MULTILINE)
TEST = re.compile(r"`((?:tests/)?[\w/]*test_\w+(?:\.py)?(?:::\w+)?)`")
THEORY = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("theory*.md"))


@cache
def functions_of_tests():
    """The functions of each test file."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    files = (ROOT / "tests").rglob("test_*.py")
    return {
        path.relative_to(ROOT).as_posix(): {
            node.name for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, kinds)
        }
        for path in files
    }


def names_a_test(name):
    """Whether the name of a file or of a function is that of one that exists."""
    file, _, function = name.partition("::")
    if not file.endswith(".py"):
        file, function = "", file
    within = [
        functions for path, functions in functions_of_tests().items() if not file or f"/{path}".endswith(f"/{file}")
    ]
    return any(not function or function in functions for functions in within)


@pytest.mark.parametrize("page", THEORY)
def test_every_statement_names_a_test(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    begins = [match.start() for match in STATEMENT.finditer(text)]
    # The checks of a statement are named before the second next one: statements may share a paragraph of checks.
    sections = [text[begin:end] for begin, end in zip(begins, [*begins[2:], len(text), len(text)], strict=False)]
    for section in sections:
        assert TEST.findall(section), section.splitlines()[0]


@pytest.mark.slow
def test_every_test_named_in_a_document_exists():
    named = 0
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        if "_build" not in page.parts and page.name not in ("CHANGELOG.md", "changelog.md"):
            names = TEST.findall(page.read_text(encoding="utf-8"))
            assert [name for name in names if not names_a_test(name)] == [], page
            named += len(names)
    assert named > 60


@pytest.mark.slow
def test_every_public_name_is_in_the_reference():
    """Every package has a page with its exports; together they have all exports of `confide`."""
    pytest.importorskip("sphinx", reason="needs the documentation's tools: make docs")
    place = ROOT / "docs" / "_ext" / "package_pages.py"
    spec = importlib.util.spec_from_file_location("package_pages", place)
    package_pages = sys.modules["package_pages"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(package_pages)
    pages = {page.stem: page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "reference").glob("*.md")}
    shown = set(pages) - {"index"}
    assert all(f".. package:: confide.{package}\n" in pages[package] for package in shown)
    others = {"torch", "array_api", "onnx"}  # these need packages that may be missing
    modules = [importlib.import_module(f"confide.{package}") for package in sorted(shown - others)]
    listed = {full for module in modules for full in package_pages.exported(module).values()}
    assert {f"confide.{name}" for name in confide.__all__} <= listed
