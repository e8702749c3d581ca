"""What is public is what the committed texts in `tests/surface` say; where it is not, the difference is shown."""

import re

import pytest

from tests.surface import formats, python
from tests.surface.pinned import PARTS, change_of, place_of, text_of


@pytest.mark.parametrize("part", PARTS)
def test_the_public_surface_is_the_committed_one(part):
    if part == "command_line":
        pytest.importorskip("click")
    if changes := change_of(part, text_of(part)):
        pytest.fail(changes, pytrace=False)


def test_a_change_is_shown_with_how_to_accept_it():
    committed = place_of("exit_codes").read_text(encoding="utf-8")
    assert change_of("exit_codes", committed) == ""
    changes = change_of("exit_codes", committed.replace("6 ALARM", "7 ALARM"))
    assert "\n-6 ALARM\n+7 ALARM\n" in changes
    assert "python -m tests.surface.pinned" in changes
    assert "CHANGELOG.md" in changes


def test_every_name_is_found_where_it_is_defined():
    """A name whose definition is not found would be pinned without its signature."""
    lines = place_of("python").read_text(encoding="utf-8").splitlines()
    assert not [line for line in lines if line.endswith(", of builtins")]
    assert {"[confide]", "[confide.federated]", "[confide.tables]", "[confide.torch]"} <= set(lines)


def test_signatures_are_those_that_python_sees():
    """The source is read, nothing is imported: here both are compared, for functions that need no extras."""
    import inspect

    import confide

    for name in ("calibrate", "plan", "predict_set", "lac_score", "evaluate_sets", "recalibrate"):
        line, *_ = python.described(name, python.find("confide", name))
        written = re.findall(r"(?:^\w+\(|, )\*{0,2}(\w+)(?=[:=,)])", re.sub(r"\[[^]]*\]", "", line))
        assert [one for one in inspect.signature(getattr(confide, name)).parameters if one not in written] == []


def test_fields_are_those_of_kinds_that_the_source_has():
    kinds = set(re.findall(r"^\[(confide\.[a-z.-]+), schema", text_of("file_formats"), flags=re.MULTILINE))
    assert kinds
    assert kinds <= formats.kinds_in_source()


def test_commands_below_commands_are_pinned():
    pytest.importorskip("click")
    sections = [line for line in text_of("command_line").splitlines() if line.startswith("[")]
    assert {"[confide calibrate]", "[confide federated answer]", "[confide ledger show]"} <= set(sections)
