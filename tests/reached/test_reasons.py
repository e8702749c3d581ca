"""Reasons for what is not reached name places that exist."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.reached.unreached import REFUSED, ROOT, SOURCE, UNTESTED, Gap, page, reason_of, reasons

PLACES = [place for reason in reasons() for place in reason.places]


def functions(inside: ast.AST, before: str = "") -> Iterator[str]:
    """Names of functions, those in classes and in other functions included."""
    for node in ast.iter_child_nodes(inside):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield before + node.name
            yield from functions(node, f"{before}{node.name}.")
        else:
            yield from functions(node, before)


@pytest.mark.parametrize("place", PLACES)
def test_a_place_exists(place: str) -> None:
    path, _, function = place.partition(": ")
    found = ROOT / SOURCE / path
    assert found.is_dir() if path.endswith("/") else found.is_file()
    if function:
        assert function in set(functions(ast.parse(Path(found).read_text(encoding="utf-8"))))


def test_a_place_has_one_reason() -> None:
    assert len(PLACES) == len(set(PLACES))


def test_the_first_reason_that_fits_is_taken_and_what_raises_is_a_refusal() -> None:
    assert reason_of(Gap("tables/spark/table.py", "_packer.pack", 1, "yield", "")).title == "Run in another process"
    assert (
        reason_of(Gap("tables/spark/table.py", "_packers", 1, "yield", "")).title == "Servers, clusters and frameworks"
    )
    assert reason_of(Gap("sets/predict.py", "f", 1, "raise InputError(", "")) == REFUSED
    assert reason_of(Gap("sets/predict.py", "f", 1, "if wide:", "to `return`")) == UNTESTED


def test_a_line_and_the_jump_to_it_are_listed_once() -> None:
    part = {"missing_lines": [1], "missing_branches": [[2, 1], [2, 3], [1, 2]]}
    listed = "\n".join(page({"files": {"src/confide/errors.py": {"functions": {"": part}}}}))
    assert "| No test yet | 1 | 1 |" in listed
    assert "- outside functions: " in listed
