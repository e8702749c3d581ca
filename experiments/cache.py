"""Results on disk, with which an interrupted run continues, and the tables that pages of docs/experiments include."""

import csv
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "experiments" / "results"
DOCS = ROOT / "docs" / "experiments"
LONGEST = 6
"""The most rows of a table that stays on its page."""


def cached(name: str, compute: Callable[[], Any]) -> Any:
    """The JSON value stored under `name`, computed and stored if it is not there yet."""
    path = RESULTS / f"{name}.json"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.write_text(json.dumps(compute(), indent=1), encoding="utf-8")
        part.replace(path)
    return json.loads(path.read_text(encoding="utf-8"))


def write_tables(page: str, text: str) -> None:
    """Write the long tables of a Markdown text as CSV files for a page of docs/experiments, and print the rest."""
    path = DOCS / page
    block: list[str] = []
    heading, written = "", set[str]()
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            block.append(line)
            continue
        if block:
            lines = _include(path, heading, block, written) if len(block) > LONGEST + 2 else block
            sys.stdout.write("\n".join(lines) + "\n")
            block = []
        if line.startswith("##"):
            heading = line.lstrip("# ")
        sys.stdout.write(line + "\n")


def _include(path: Path, heading: str, block: list[str], written: set[str]) -> list[str]:
    """Write the rows of a Markdown table as CSV, and return the lines that include the file."""
    stem = f"{path.stem}-{_slug(heading)}".rstrip("-")
    name = next(name for name in (stem, *(f"{stem}-{k}" for k in range(2, 100))) if name not in written)
    written.add(name)
    table = path.parent / "tables" / f"{name}.csv"
    table.parent.mkdir(parents=True, exist_ok=True)
    rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))] for line in block]
    with table.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([rows[0], *rows[2:]])
    return ["```{csv-table}", f":file: tables/{table.name}", ":header-rows: 1", "```"]


def _slug(heading: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-")
