"""What no test reaches, and why: writes unreached.md, and refuses what reasons.toml gives no reason for.

    coverage json -o .coverage.json && python -m tests.reached.unreached .coverage.json

A line is named by its file and its text, so that the list does not go stale with every line that is added above.
"""

import json
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SOURCE = "src/confide/"


class Gap(NamedTuple):
    """A line that is not reached, or one that is reached and from which a jump is missing."""

    file: str
    line: int
    text: str
    to: str

    def __str__(self) -> str:
        return f"`{self.text}`" + (f", never {self.to}" if self.to else "")


def main(report: Path) -> int:
    measured = json.loads(report.read_text(encoding="utf-8"))
    reasons = tomllib.loads((HERE / "reasons.toml").read_text(encoding="utf-8"))["group"]
    listed, nameless = grouped(gaps(measured), reasons)
    for gap in nameless:
        print(f"{SOURCE}{gap.file}:{gap.line}: {gap}")
    (HERE / "unreached.md").write_text("\n".join(page(measured, listed)) + "\n", encoding="utf-8")
    return 1 if nameless else 0


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


def grouped(found: Iterator[Gap], reasons: list[dict[str, Any]]) -> tuple[dict[str, list[Gap]], list[Gap]]:
    """Gaps by the reason given for their file, or for their text in it; and those without one."""
    listed: defaultdict[str, list[Gap]] = defaultdict(list)
    nameless = []
    for gap in found:
        why = [one["reason"] for one in reasons if _fits(gap, one["where"])]
        if why:
            listed[why[0]].append(gap)
        else:
            nameless.append(gap)
    return {one["reason"]: listed[one["reason"]] for one in reasons if one["reason"] in listed}, nameless


def _fits(gap: Gap, where: list[str]) -> bool:
    """Whether one of `file`, `folder/` or `file: text` is that of a gap."""
    for one in where:
        path, _, text = one.partition(": ")
        here = gap.file.startswith(path) if path.endswith("/") else gap.file == path
        if here and text in (str(gap), ""):
            return True
    return False


def page(measured: dict[str, Any], listed: dict[str, list[Gap]]) -> Iterator[str]:
    """The list, below a table of rooms."""
    yield "# What no test reaches\n"
    yield "Written by `make coverage`; the reasons stand in `tests/reached/reasons.toml`.\n"
    yield from table(measured)
    for reason, found in listed.items():
        yield f"\n## {reason}\n"
        for file in sorted({gap.file for gap in found}):
            yield f"- `{file}`"
            yield from (f"  - {gap}" for gap in found if gap.file == file)


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
    sys.exit(main(Path(sys.argv[1])))
