"""Results on disk, with which an interrupted run continues, and the pages that show them."""

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "experiments" / "results"
DOCS = ROOT / "docs" / "experiments"


def cached(name: str, compute: Callable[[], Any]) -> Any:
    """The JSON value stored under `name`, computed and stored if it is not there yet."""
    path = RESULTS / f"{name}.json"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.write_text(json.dumps(compute(), indent=1), encoding="utf-8")
        part.replace(path)
    return json.loads(path.read_text(encoding="utf-8"))


def write_docs(name: str, text: str, *, longest: int = 7) -> None:
    """Write a Markdown page into docs/experiments, as `write_page` does."""
    write_page(DOCS / name, text, longest=longest)


def write_page(path: Path, text: str, *, longest: int = 7) -> None:
    """Write a Markdown page; a table with more than `longest` rows becomes a CSV file that the page includes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines: list[str] = []
    block: list[str] = []
    heading, written = "", set[str]()
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            block.append(line)
            continue
        if block:
            is_long = len(block) > longest + 2 and "](" not in "".join(block)  # tables of links stay on the page
            lines += _include(path, heading, block, written) if is_long else block
            block = []
        if line.startswith("##"):
            heading = line.lstrip("# ")
        lines.append(line)
    path.write_text("\n".join(lines).rstrip("\n") + "\n", encoding="utf-8")


def _include(path: Path, heading: str, block: list[str], written: set[str]) -> list[str]:
    """Write the rows of a Markdown table as CSV, and return the lines that include the file."""
    stem = f"{path.stem}-{_slug(heading)}".rstrip("-")
    name = next(name for name in (stem, *(f"{stem}-{k}" for k in range(2, 100))) if name not in written)
    written.add(name)
    table = path.parent / "tables" / f"{name}.csv"
    table.parent.mkdir(exist_ok=True)
    rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))] for line in block]
    with table.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([rows[0], *rows[2:]])
    return ["```{csv-table}", f":file: tables/{table.name}", ":header-rows: 1", "```"]


def _slug(heading: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-")
