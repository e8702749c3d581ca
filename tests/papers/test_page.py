"""docs/papers.md and its tables: every item of every paper, under its number, with names that exist."""

import importlib
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "papers.md"
LINK = re.compile(r"\[`(\w+)`\]\(#([\w.]+)\)")
TEST = re.compile(r"`((?:tests/[\w/]+\.py::)?test_\w+)`")
FILE = re.compile(r"\]\(((?!#|https?:)[^)#]+)(#[\w-]*)?\)")


@cache
def tables():
    """The CSV files that the page includes, by section."""
    found, section = {}, ""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            section = line[3:]
        elif line.startswith(":file: "):
            found[section] = PAGE.parent / line.removeprefix(":file: ")
    return found


@cache
def page_text():
    """The page with the tables that it includes."""
    return "\n".join(path.read_text(encoding="utf-8") for path in (PAGE, *tables().values()))


@cache
def known_tests():
    """The names of all tests, with the files that have them."""
    found = {}
    for path in (ROOT / "tests").rglob("test_*.py"):
        for name in re.findall(r"^def (test_\w+)\(", path.read_text(encoding="utf-8"), re.MULTILINE):
            found.setdefault(name, []).append(path.relative_to(ROOT).as_posix())
    return found


def test_names_on_the_page_exist():
    text = page_text()
    links, named = LINK.findall(text), TEST.findall(text)
    assert len(links) > 80
    assert len(named) > 80
    for shown, full in links:
        module, _, name = full.rpartition(".")
        assert shown == name
        assert getattr(importlib.import_module(module), name) is not None, full
    for name in named:
        path, _, short = name.rpartition("::")
        files = known_tests().get(short, [])
        assert path in files if path else len(files) == 1, (name, files)
    for path, place in FILE.findall(text):
        page = PAGE.parent / path
        assert page.is_file(), path
        if place:
            heads = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
            assert place[1:] in [re.sub(r"[^\w -]", "", head).lower().replace(" ", "-") for head in heads], (
                path,
                place,
            )
