"""The public API equals tests/surface/public.txt; the test shows differences."""

import difflib

import pytest

import confide
from tests.surface.pinned import PLACE, text

ACCEPT = """
This is public, and people rely on it (docs/stability.md). What was added: accept it with

    python -m tests.surface.pinned

and name it in CHANGELOG.md. What was renamed or removed: keep it for two minor releases, let each
use give a `ConfideDeprecationWarning`, and name what takes its place in the changelog.
"""


@pytest.mark.slow
def test_the_public_surface_is_the_committed_one():
    pytest.importorskip("click")
    committed, today = PLACE.read_text(encoding="utf-8"), text()
    if committed != today:
        words = [[word for line in one.splitlines() for word in line.split("  ")] for one in (committed, today)]
        pytest.fail("\n".join([*difflib.unified_diff(*words, "committed", "today", lineterm="", n=1), ACCEPT]))


def test_there_are_at_most_sixty_names():
    assert len(set(confide.__all__)) == len(confide.__all__) <= 60
