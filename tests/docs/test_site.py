"""Names on pages lead to what they name, theorems to their tests; the check of the built site finds what is wrong."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

import confide
import confide.tables
from tests.docs.blocks import ROOT

pytest.importorskip("sphinx", reason="needs the documentation's tools: make docs")

STATEMENT = re.compile(r"^#+ ((?:Theorem|Lemma|Proposition)\b.*)$|^\*\*(Lemma .*?)\.\*\*", re.MULTILINE)
TEST = re.compile(r"`((?:tests/)?[\w/]*test_\w+(?:\.py)?(?:::\w+)?)`")
THEORY = ("docs/theory.md", "docs/theory-groups.md", "docs/theory-risk.md", "docs/federated.md", "docs/ledger.md")


def load(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / "_ext" / f"{name}.py")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


source_pages, site_check = load("source_pages"), load("site_check")


def checks_named(text):
    """The tests that a text names, as (file, definition); LookupError where one does not exist."""
    found = []
    for paragraph in text.split("\n\n"):
        named = []
        for name in TEST.findall(paragraph):
            target = source_pages.target(name, named)
            named.append(target[0])
            found.append(target)
    return found


@pytest.mark.parametrize("page", THEORY)
def test_every_statement_is_linked_to_a_test(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    begins = [match.start() for match in STATEMENT.finditer(text)]
    assert begins, page
    # What checks a statement is named before the second next one: statements may share a paragraph of checks.
    sections = [text[begin:end] for begin, end in zip(begins, [*begins[2:], len(text), len(text)], strict=False)]
    for section in sections:
        assert [name for _, name in checks_named(section)], section.splitlines()[0]


def test_every_test_named_in_a_document_exists():
    found = []
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        if "_build" not in page.parts:
            found += checks_named(page.read_text(encoding="utf-8"))
    assert len(found) > 60


def test_names_that_do_not_exist_are_refused():
    for name in (
        "test_nothing_of_this_name",
        "tests/test_nothing.py",
        "tests/mechanisms/test_privacy_exact.py::test_nothing",
    ):
        with pytest.raises(LookupError):
            source_pages.target(name, [])
    assert source_pages.target("alpha", []) is None


def test_every_public_name_is_in_the_reference():
    pages = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "reference").glob("*.md"))
    listed = set(re.findall(r"auto\w+:: confide\.([\w.]+)$", pages, flags=re.MULTILINE))
    assert set(confide.__all__) <= listed
    assert {f"engines.{name}" for name in confide.tables.__all__} <= listed


def test_site_check_finds_what_is_wrong(tmp_path):
    good = '<h1 id="top">x</h1><a href="#top">t</a><a href="b.html#place">b</a><a href="https://example.org">e</a>'
    (tmp_path / "a.html").write_text(good)
    (tmp_path / "b.html").write_text('<p id="place">')
    (tmp_path / "s.css").write_text("p { background: url(data:image/png;base64,AA) }")
    assert site_check.problems(tmp_path) == []
    (tmp_path / "b.html").write_text("<p>")
    (tmp_path / "a.html").write_text(good + '<script src="https://cdn.example.org/x.js"></script><img src="none.png">')
    (tmp_path / "s.css").write_text("@import 'https://fonts.example.org/f';")
    assert [line.split(" ", 1) for line in site_check.problems(tmp_path)] == [
        ["a.html", "loads https://cdn.example.org/x.js"],
        ["a.html", "refers to none.png, which does not exist"],
        ["a.html", "refers to b.html#place, which has no such place"],
        ["s.css", "loads from the network"],
    ]
    assert site_check.problems(Path(tmp_path / "nothing")) != []
