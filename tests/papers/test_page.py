"""docs/papers.md and its tables: every item of every paper, under its number, with names that exist."""

import csv
import importlib
import inspect
import pkgutil
import re
from functools import cache
from pathlib import Path

import pytest

import confide.papers

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "papers.md"
LINK = re.compile(r"\[`(\w+)`\]\(#([\w.]+)\)")
TEST = re.compile(r"`((?:tests/[\w/]+\.py::)?test_\w+)`")
FILE = re.compile(r"\]\(((?!#|https?:)[^)#]+)(#[\w-]*)?\)")


def numbered(word, count):
    return [f"{word} {i}" for i in range(1, count + 1)]


def equations(first, last):
    return [f"({i})" for i in range(first, last + 1)]


PPS = ["Definition 1", "Theorem 1", "Theorem 2", "Theorem 3", "Proposition 1", "Corollary 1", "Lemma 1", "Lemma 2"]
PPS += [*numbered("Algorithm", 5), *numbered("Figure", 6), *(f"Section {s}" for s in ("4.1", "4.2", "4.3", "4.4", "5"))]
ITEMS = {
    "Private Prediction Sets, versions 2 and 3": [
        *PPS, *equations(1, 10), "Remark 1", "Appendix A", "B.1", "B.2", "Appendix C",
    ],
    "Private Prediction Sets, version 1": [
        *PPS, *equations(1, 14), "Corollary 2", "Lemma 3", "Lemma 4", "B.1", "B.2", "B.3", "C.1", "C.2",
    ],
    "One-shot federated conformal prediction": [
        *equations(1, 21), *numbered("Figure", 18), *numbered("Algorithm", 3),
        "Theorem 2.1", "Theorem 3.2", "Theorem 3.3", "Theorem 4.1", "Theorem C.3", "Definition 3.1",
        "Proposition 3.4", "Proposition A.1", "Remark 4.2", "Remark C.2", "Lemma C.1", "Lemma C.4", "Lemma C.5",
        '"Choosing gamma"', '"Privacy amplification"', "Section 2.2", "Section 3.2", "Section 3.3", "Section 5.1",
        "Section 5.2", "Section 6", "A.1", "A.2", "A.3", "B.1", "B.2", "C.1", "C.2", "C.3", "C.4", "C.5",
    ],
    "OpenDP's note on quantile scores": [
        *equations(1, 4), "Comparison with Smith",
        *(f"Section {s}" for s in ("1", "1.1", "2", "2.1", "2.2", "2.3", "2.4", "3", "3.1", "3.2", "3.3", "3.4")),
    ],
}  # fmt: skip


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
def rows():
    """The rows of the page's tables by section: lists of cells."""
    return {section: read(path) for section, path in tables().items()}


def read(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))[1:]


@cache
def known_tests():
    """The names of all tests, with the files that have them."""
    found = {}
    for path in (ROOT / "tests").rglob("test_*.py"):
        for name in re.findall(r"^def (test_\w+)\(", path.read_text(encoding="utf-8"), re.MULTILINE):
            found.setdefault(name, []).append(path.relative_to(ROOT).as_posix())
    return found


@pytest.mark.parametrize("section", ITEMS)
def test_every_item_of_the_paper_has_a_row_and_no_other(section):
    listed = [row[0] for row in rows()[section]]
    assert sorted(listed) == sorted(ITEMS[section])


def test_every_row_has_a_place_or_a_reason():
    for section in ITEMS:
        assert rows()[section], section
        for number, says, here, _, figure in rows()[section]:
            assert says, (section, number)
            assert here or figure, (section, number)
            if "confide.papers" in here:
                assert TEST.search(rows_of(section, number)), (section, number)


def rows_of(section, number):
    return " ".join(next(row for row in rows()[section] if row[0] == number))


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


def test_every_public_name_of_the_papers_is_on_the_page():
    """Everything a module defines (functions, classes) or exports."""
    text, found = page_text(), 0
    for info in pkgutil.iter_modules(confide.papers.__path__, "confide.papers."):
        if info.name == "confide.papers.checked":
            continue  # of no paper
        module = importlib.import_module(info.name)
        for name in getattr(module, "__all__", vars(module)):
            value = getattr(module, name)
            if name.startswith("_") or inspect.ismodule(value):
                continue
            if (inspect.isfunction(value) or inspect.isclass(value)) and not value.__module__.startswith(info.name):
                continue  # another's
            if inspect.isfunction(value) or inspect.isclass(value):
                assert f"(#{info.name}.{name})" in text, f"{info.name}.{name}"
                found += 1
    assert found > 50
