"""What no test reaches: written to .coverage-unreached.md, below a table of rooms.

`coverage json -o .coverage-report.json && python -m tests.reached.unreached .coverage-report.json`
"""

import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
SOURCE = "src/confide/"


class Gap(NamedTuple):
    """A line that is not reached, or one that is reached and from which a jump is missing."""

    file: str
    line: int
    text: str
    to: str

    def __str__(self) -> str:
        return f"`{self.text}`" + (f", never {self.to}" if self.to else "")


def main(report: Path) -> None:
    measured = json.loads(report.read_text(encoding="utf-8"))
    (ROOT / ".coverage-unreached.md").write_text("\n".join(page(measured)) + "\n", encoding="utf-8")
    print("\n".join(table(measured)))


def gaps(measured: dict[str, Any]) -> Iterator[Gap]:
    """Lines that are not reached, and jumps that are not taken from lines that are."""
    for path, file in sorted(measured["files"].items()):
        lines, name = (ROOT / path).read_text(encoding="utf-8").splitlines(), path.removeprefix(SOURCE)
        for number in file["missing_lines"]:
            yield Gap(name, number, lines[number - 1].strip(), "")
        for begin, end in file["missing_branches"]:
            if begin not in file["missing_lines"]:
                to = f"to `{lines[end - 1].strip()}`" if end > 0 else "to the end"
                yield Gap(name, begin, lines[begin - 1].strip(), to)


def page(measured: dict[str, Any]) -> Iterator[str]:
    """The list by file, below a table of rooms."""
    yield "# What no test reaches\n"
    yield from table(measured)
    for file, found in groupby(gaps(measured), key=lambda gap: gap.file):
        yield f"\n## {file}\n"
        yield from (f"- {gap.line}: {gap}" for gap in found)


def table(measured: dict[str, Any]) -> Iterator[str]:
    """Per room, how many lines and branches there are and how many of them are reached."""
    rooms: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for path, file in measured["files"].items():
        parts, found = Path(path.removeprefix(SOURCE)).parts, file["summary"]
        numbers = [found[name] for name in ("covered_lines", "num_statements", "covered_branches", "num_branches")]
        for room in (parts[0] if len(parts) > 1 else "the root", "together"):
            rooms[room] = [a + b for a, b in zip(rooms[room], numbers, strict=True)]
    yield "| room | lines | reached | branches | taken |\n|---|---|---|---|---|"
    for room in sorted(rooms, key=lambda name: (name == "together", name)):
        lines, statements, taken, branches = rooms[room]
        yield f"| {room} | {statements} | {share(lines, statements)} | {branches} | {share(taken, branches)} |"


def share(part: int, whole: int) -> str:
    """In per cent, rounded down: 100 % is all of them."""
    return f"{part * 1000 // whole / 10} %" if whole else "-"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
