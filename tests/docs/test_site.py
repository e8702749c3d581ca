"""Pages: what they name exists, statements name a test, and pictures and steps are those of the code."""

import ast
import csv
import importlib
import importlib.util
import inspect
import re
import sys
from functools import cache
from pathlib import Path

import pytest

import confide
from confide.core import release
from tests.docs.blocks import ROOT
from tests.docs.gallery import FOLDER, PAGE, draw, unlike

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


@pytest.mark.long
def test_every_test_named_in_a_document_exists():
    named = 0
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "docs" / "tables").glob("papers*.csv")]:
        if "_build" not in page.parts and page.name not in ("CHANGELOG.md", "changelog.md"):
            names = TEST.findall(page.read_text(encoding="utf-8"))
            assert [name for name in names if not names_a_test(name)] == [], page
            named += len(names)
    assert named > 150


def test_functions_linked_for_the_papers_exist():
    text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "tables").glob("papers*.csv"))
    links = re.findall(r"\[`(\w+)`\]\(#([\w.]+)\)", text)
    assert len(links) > 80
    for shown, full in links:
        module, _, name = full.rpartition(".")
        assert shown == name
        assert getattr(importlib.import_module(module), name) is not None, full


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


MOST_UNLIKE = 0.35
"""Pictures that are drawn again differ by up to 0.15: thresholds contain noise, and colours are fewer. Other data give
pictures that differ by more than 0.4."""


def test_the_page_shows_every_picture_that_it_saves():
    text = PAGE.read_text(encoding="utf-8")
    shown, saved = (re.findall(form, text) for form in (r"images/gallery/([\w-]+\.png)", r"savefig\(\"([\w-]+\.png)"))
    assert shown == saved
    assert sorted(shown) == sorted(path.name for path in FOLDER.iterdir())


@pytest.mark.long
def test_pictures_match_the_blocks(tmp_path):
    pytest.importorskip("matplotlib", reason="needs the extra plots: pip install 'confide[plots]'")
    made = draw(tmp_path)
    assert [path.name for path in made] == sorted(path.name for path in FOLDER.iterdir())
    assert {path.name: off for path in made if (off := unlike(FOLDER / path.name, path)) > MOST_UNLIKE} == {}


VERBS = ["prepare", "check", "read", "compare", "charge", "draw", "store"]


def test_code_document_and_picture_have_the_same_steps():
    code = re.findall(r"^ {4,8}# (\w+)", inspect.getsource(release), re.MULTILINE)
    document = re.findall(r"^\d\. \*\*(\w+)\*\*", (ROOT / "docs/inside.md").read_text(encoding="utf-8"), re.MULTILINE)
    picture = re.findall(r">\d  (\w+)", (ROOT / "docs/images/inside.svg").read_text(encoding="utf-8"))
    for named in (code, document, picture):
        assert [verb.lower() for verb in named] == VERBS


DOCS = Path(__file__).parents[2] / "docs"


def test_every_statement_has_a_status():
    """Each theorem, lemma or proposition is one row of docs/tables/proofs.csv, on its page, and each row is one.

    A statement is a heading, or a paragraph that begins with its label in bold type.
    """
    heading = re.compile(r"^(?:#+ |\*\*)((?:Theorem|Lemma|Proposition|Corollary)\b.*?)(?:\.\*\*.*)?$", re.M)
    pages = {page.name: page.read_text("utf-8") for page in DOCS.glob("theory*.md")}
    stated = {(name, page) for page, text in pages.items() for name in heading.findall(text)}
    with (DOCS / "tables" / "proofs.csv").open(encoding="utf-8", newline="") as file:
        listed = [
            (name, re.fullmatch(r"\[[^\]]+\]\((.+)\)", page)[1])
            for name, page, status in list(csv.reader(file))[1:]
            if status
        ]
    assert len(stated) >= 20
    assert sorted(listed) == sorted(stated)


def test_the_files_it_names_are_there():
    text = (DOCS / "proofs.md").read_text("utf-8")
    named = set(re.findall(r"`(\w+\.v)`", text))
    assert named == {file.name for file in (DOCS.parent / "proofs").glob("*.v")}
