"""The public surface as committed texts, one per part; `python -m tests.surface.pinned` writes them anew."""

import difflib
from functools import cache
from pathlib import Path

from tests.surface import command_line, environment, exit_codes, formats, python

FOLDER = Path(__file__).parent
PARTS = {
    "python": python.lines,
    "command_line": command_line.lines,
    "exit_codes": exit_codes.lines,
    "file_formats": formats.lines,
    "environment": environment.lines,
}
ACCEPT = """
This is public, and people rely on it (docs/stability.md). What was added: accept it with

    python -m tests.surface.pinned

and name it in CHANGELOG.md. What was renamed or removed: keep it for two minor releases, let each
use give a `ConfideDeprecationWarning`, and name what takes its place in the changelog. What files hold is read for
ever: a field or a kind does not go.
"""


@cache
def text_of(part: str) -> str:
    return "\n".join(PARTS[part]()).strip() + "\n"


def place_of(part: str) -> Path:
    return FOLDER / f"{part}.txt"


def change_of(part: str, today: str) -> str:
    """The difference to what is committed, and how to accept it; empty if there is none."""
    committed = place_of(part).read_text(encoding="utf-8")
    names = f"{place_of(part).name} (committed)", f"{place_of(part).name} (today)"
    lines = difflib.unified_diff(committed.splitlines(), today.splitlines(), *names, lineterm="", n=2)
    changes = "\n".join(lines)
    return f"{changes}\n{ACCEPT}" if changes else ""


if __name__ == "__main__":
    for name in PARTS:
        place_of(name).write_text(text_of(name), encoding="utf-8")
        print(place_of(name))
