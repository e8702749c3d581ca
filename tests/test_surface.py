"""The public API equals tests/surface/public.txt; the test shows differences."""

import difflib
import inspect
import re

import pytest

import confide
from tests.surface import python
from tests.surface.pinned import PLACE, text

ACCEPT = """
This is public, and people rely on it (docs/stability.md). What was added: accept it with

    python -m tests.surface.pinned

and name it in CHANGELOG.md. What was renamed or removed: keep it for two minor releases, let each
use give a `ConfideDeprecationWarning`, and name what takes its place in the changelog.
"""


def test_the_public_surface_is_the_committed_one():
    pytest.importorskip("click")
    committed, today = PLACE.read_text(encoding="utf-8"), text()
    if committed != today:
        words = [[word for line in one.splitlines() for word in line.split("  ")] for one in (committed, today)]
        pytest.fail("\n".join([*difflib.unified_diff(*words, "committed", "today", lineterm="", n=1), ACCEPT]))


@pytest.mark.parametrize("name", ["calibrate", "plan", "predict_set", "lac_score", "evaluate_sets", "recalibrate"])
def test_signatures_are_those_that_python_sees(name):
    """The source is read, nothing is imported: here both are compared, for functions that need no extras."""
    written = re.findall(r"\w+(?==?[,)])", python.described("confide", name))
    assert set(written) >= set(inspect.signature(getattr(confide, name)).parameters)


@pytest.mark.parametrize(("module", "name"), [("confide", "absent"), ("numpy", "ndarray")])
def test_every_name_is_found_where_it_is_defined(module, name):
    """A name whose definition is not found would be pinned without its arguments."""
    with pytest.raises(KeyError):
        python.described(module, name)
