"""Names of tests and of files on a page become links to their source: `test_x`, `tests/a/test_x.py`, `slopes.py`.

Pages name the test that checks a statement. This extension turns the name into a link to the test in a highlighted copy
of the file. A name that does not exist, or that is in two files of which none is named before it in the paragraph, is a
warning, and a strict build fails.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging

ROOT = Path(__file__).parents[2]
FOLDERS = ("", "src", "src/confide", "tests")
TEST = re.compile(r"test_\w+")
FILE = re.compile(r"(?P<file>[\w/.-]+\.py)(?:::(?P<name>\w+))?")
log = logging.getLogger(__name__)


@cache
def definitions(file: Path) -> dict[str, int]:
    """The functions and classes at the top level of a Python file, and their first lines."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {node.name: node.lineno for node in tree.body if isinstance(node, kinds)}


@cache
def source_files() -> tuple[Path, ...]:
    """All files of the library and of its tests."""
    return tuple(sorted(path for folder in ("src", "tests") for path in (ROOT / folder).rglob("*.py")))


def find_file(text: str) -> Path | None:
    """The project's file with this path or with this unique name."""
    here = [ROOT / folder / text for folder in FOLDERS]
    named = [path for path in source_files() if path.name == text]
    return next((path for path in here if path.is_file()), named[0] if len(named) == 1 else None)


def target(text: str, named: list[Path]) -> tuple[Path, str] | None:
    """The file and the definition ("" for none) of a name on a page; `named` are the files named before it.

    Raises
    ------
    LookupError
        If the text has the form of a name of a test, but matches no test or more than one.
    """
    if whole := FILE.fullmatch(text):
        file, name = find_file(whole["file"]), whole["name"] or ""
        if file is None or (name and name not in definitions(file)):
            raise LookupError(f"{text} does not exist")
        return file, name
    if not TEST.fullmatch(text):
        return None
    having = [file for file in source_files() if file.name.startswith("test_") and text in definitions(file)]
    if len(having) > 1:
        having = [file for file in reversed(named) if file in having][:1]
    if not having:
        raise LookupError(f"{text} is not the name of exactly one test")
    return having[0], text


def link(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Make the links of one page."""
    wanted: set[str] = app.env.__dict__.setdefault("confide_source_pages", set())
    named: list[Path] = []
    place: nodes.Node | None = None
    for literal in list(doctree.findall(nodes.literal)):
        if isinstance(literal.parent, nodes.reference):
            continue
        if literal.parent is not place:
            place, named = literal.parent, []
        try:
            found = target(literal.astext(), named)
        except LookupError as error:
            log.warning("%s", error, location=literal)
            continue
        if found:
            file, name = found
            named.append(file)
            page = "source/" + file.relative_to(ROOT).with_suffix("").as_posix()
            wanted.add(page)
            address = app.builder.get_relative_uri(docname, page) + (f"#{name}" if name else "")
            around = nodes.reference("", "", internal=True, refuri=address)
            literal.replace_self(around)
            around += literal


def make(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """One page per linked file, with an anchor at each definition."""
    for page in sorted(app.env.__dict__.get("confide_source_pages", set())):
        file = ROOT / f"{page.removeprefix('source/')}.py"
        lines = app.builder.highlighter.highlight_block(file.read_text(encoding="utf-8"), "python").splitlines()
        for name, line in definitions(file).items():
            before, pre, after = lines[line - 1].rpartition("<pre>")
            lines[line - 1] = f'{before}{pre}<span id="{name}"></span>{after}'
        title = file.relative_to(ROOT).as_posix()
        yield page, {"title": title, "body": f"<h1>{title}</h1>\n" + "\n".join(lines)}, "page.html"


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect to the build."""
    app.connect("doctree-resolved", link)
    app.connect("html-collect-pages", make)
    return {"parallel_read_safe": True, "parallel_write_safe": False}
