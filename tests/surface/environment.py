"""What a deployment names besides: extras, programs, Pythons, environment variables, loggers and their events."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]


def lines() -> Iterator[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    yield from section("extras", project["optional-dependencies"])
    yield from section("programs", project["scripts"])
    yield from section("Pythons", [one for one in project["classifiers"] if re.search(r":: 3\.\d+$", one)])
    texts = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "src").rglob("*.py"))]
    yield from section(
        "environment variables", {name for text in texts for name in re.findall(r"CONFIDE_[A-Z]+", text)}
    )
    yield from section("loggers: events", {line for text in texts if "tell(" in text for line in events(text)})


def section(title: str, found: object) -> Iterator[str]:
    yield f"[{title}]"
    yield from sorted(found)  # type: ignore[call-overload]
    yield ""


def events(text: str) -> Iterator[str]:
    """Calls of `tell(room, event, level, fact=...)`."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "tell":
            words = [one.value for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
            if len(words) == 2:
                facts = sorted(one.arg for one in node.keywords if one.arg)
                yield f"confide.{words[0]}: {words[1]} ({', '.join(facts)})"
