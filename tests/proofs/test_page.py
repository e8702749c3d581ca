"""docs/proofs.md states how every theorem is checked."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_every_statement_has_a_status():
    """Each theorem, lemma or proposition is one row of the table, on its page, and each row is one.

    A statement is a heading, or a paragraph that begins with its label in bold type.
    """
    heading = re.compile(r"^(?:#+ |\*\*)((?:Theorem|Lemma|Proposition|Corollary)\b.*?)(?:\.\*\*.*)?$", re.M)
    pages = {page.name: page.read_text("utf-8") for page in DOCS.glob("theory*.md")}
    stated = {(name, page) for page, text in pages.items() for name in heading.findall(text)}
    row = re.compile(r"^\| (.+?) \| \[[^\]]+\]\((theory[\w-]*\.md)\) \| \S.* \|$", re.M)
    assert len(stated) >= 20
    assert sorted(row.findall((DOCS / "proofs.md").read_text("utf-8"))) == sorted(stated)


def test_the_files_it_names_are_there():
    text = (DOCS / "proofs.md").read_text("utf-8")
    named = set(re.findall(r"`(\w+\.v)`", text))
    assert named == {file.name for file in (DOCS.parent / "proofs").glob("*.v")}
    tests = "".join(file.read_text("utf-8") for file in Path(__file__).parent.glob("test_*.py"))
    assert all(f"def {name}(" in tests for name in re.findall(r"`(test_\w+)`", text))
