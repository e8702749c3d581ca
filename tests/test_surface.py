"""The public API equals tests/surface/public.txt; the test shows differences."""

import difflib
import re

import pytest

import confide
from tests.docs.blocks import ROOT
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


def test_names_of_the_next_version_are_at_most_sixty_and_most_exist():
    """The list only shrinks; `Release` will be a name of its own."""
    text = (ROOT / "docs/stability.md").read_text(encoding="utf-8")
    listed = re.findall(r"`(\w+)`", text.partition("- calibrate and plan:")[2].partition("## ")[0])
    assert len(listed) == len(set(listed)) <= 60
    assert set(listed) - {"Release"} <= set(confide.__all__)
