"""What no test reaches, and why: written to a page, below a table of rooms and one of reasons.

`coverage json -o .coverage-report.json && python -m tests.reached.unreached .coverage-report.json PAGE`
"""

import json
import sys
import tomllib
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
    function: str
    line: int
    text: str
    to: str

    def __str__(self) -> str:
        return f"`{self.text}`" + (f", never {self.to}" if self.to else "")


class Reason(NamedTuple):
    """Why places are not reached: folders, files, or functions of files, with all that is defined inside them."""

    title: str
    why: str
    places: tuple[str, ...]

    def fits(self, gap: Gap) -> bool:
        return any(_within(gap, place) for place in self.places)


REFUSED = Reason(
    "Refusals without a test", "An error is raised there; the words and the way to it are tested nowhere.", ()
)
UNTESTED = Reason("No test yet", "Nothing speaks against a test.", ())


def main(report: Path, out: Path) -> None:
    measured = json.loads(report.read_text(encoding="utf-8"))
    out.write_text("\n".join(page(measured)) + "\n", encoding="utf-8")
    print("\n".join(table(measured)))


def reasons() -> tuple[Reason, ...]:
    """Those of reasons.toml, in its order."""
    read = tomllib.loads(Path(__file__).with_name("reasons.toml").read_text(encoding="utf-8"))
    return tuple(Reason(each["title"], each["why"].strip(), tuple(each["places"])) for each in read["reason"])


def reason_of(gap: Gap) -> Reason:
    """The first reason whose place fits; an error that is raised, or not reached from its condition, is a refusal."""
    refusal = REFUSED if "raise " in (gap.text + " " + gap.to) else UNTESTED
    return next((reason for reason in reasons() if reason.fits(gap)), refusal)


def gaps(measured: dict[str, Any]) -> Iterator[Gap]:
    """Lines that are not reached, and jumps to lines that are reached otherwise."""
    for path, file in sorted(measured["files"].items()):
        lines, name = (ROOT / path).read_text(encoding="utf-8").splitlines(), path.removeprefix(SOURCE)
        for function, part in file["functions"].items():
            missing = part["missing_lines"]
            for number in missing:
                yield Gap(name, function, number, lines[number - 1].strip(), "")
            for begin, end in part["missing_branches"]:
                if begin not in missing and end not in missing:
                    to = f"to `{lines[end - 1].strip()}`" if end > 0 else "to the end"
                    yield Gap(name, function, begin, lines[begin - 1].strip(), to)


def page(measured: dict[str, Any]) -> Iterator[str]:
    """Reasons with their numbers, then what each of them stands for, by file and function."""
    found = defaultdict(list)
    for gap in gaps(measured):
        found[reason_of(gap)].append(gap)
    ordered = [reason for reason in (*reasons(), UNTESTED, REFUSED) if reason in found]
    yield "# What no test reaches, and why\n"
    yield "| reason | lines | jumps alone |\n|---|---|---|"
    for reason in ordered:
        alone = sum(bool(gap.to) for gap in found[reason])
        yield f"| {reason.title} | {len(found[reason]) - alone} | {alone} |"
    for reason in ordered:
        yield f"\n## {reason.title}\n\n{reason.why}"
        for file, inside in groupby(sorted(found[reason]), key=lambda gap: gap.file):
            yield f"\n`{file}`\n"
            for function, each in groupby(inside, key=lambda gap: gap.function):
                yield f"- {function or 'outside functions'}: " + "; ".join(_shortly(list(each)))


def _shortly(found: list[Gap]) -> Iterator[str]:
    """The first three of them: a function of which nothing is reached is not repeated line by line."""
    yield from map(str, found[:3])
    if len(found) > 3:
        yield f"and {len(found) - 3} more"


def _within(gap: Gap, place: str) -> bool:
    path, _, function = place.partition(": ")
    inside = not function or gap.function == function or gap.function.startswith(function + ".")
    return inside and (gap.file == path or (path.endswith("/") and gap.file.startswith(path)))


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
    main(Path(sys.argv[1]), Path(sys.argv[2]))
