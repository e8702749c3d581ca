"""Results on disk, so that an interrupted run goes on where it stopped."""

import json
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


def write_docs(name: str, text: str) -> None:
    """Write a Markdown page into docs/experiments."""
    DOCS.mkdir(parents=True, exist_ok=True)
    (DOCS / name).write_text(text, encoding="utf-8")
