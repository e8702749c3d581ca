"""The public interface as one committed text: `python -m tests.surface.pinned` rewrites public.txt."""

import ast
import re
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.surface import python

ROOT = Path(__file__).parents[2]
PLACE = Path(__file__).parent / "public.txt"


def text() -> str:
    return "\n".join([*python.lines(), *commands(), *exit_codes(), *environment()]).strip() + "\n"


def section(title: str, found: Iterable[str]) -> Iterator[str]:
    yield from (f"[{title}]", *sorted(found), "")


def commands() -> Iterator[str]:
    """Every command with its arguments and options; needs `standard`."""
    from confide.cli.app import app

    def below(name: str, command: Any) -> Iterator[str]:
        yield "  ".join([name, *sorted(map(parameter, command.params))])
        for own, sub in getattr(command, "commands", {}).items():
            yield from below(f"{name} {own}", sub)

    return section("commands", below("confide", app))


def parameter(one: Any) -> str:
    """Its names; `!` after required ones, `...` after repeatable ones, and the values of a choice."""
    argument = one.param_type_name == "argument"
    names = one.human_readable_name.upper() if argument else "/".join([*one.opts, *one.secondary_opts])
    values = [str(getattr(value, "value", value)) for value in getattr(one.type, "choices", ())]
    choice = f"={'|'.join(values)}" if values else ""
    return names + choice + "!" * one.required + "..." * (one.multiple or one.nargs == -1)


def exit_codes() -> Iterator[str]:
    from confide.cli import exit_codes

    named = {value: name for name, value in vars(exit_codes).items() if name.isupper() and isinstance(value, int)}
    return section("exit codes", (f"{value} {name}" for value, name in named.items()))


def environment() -> Iterator[str]:
    """Other names of deployments: extras, programs, Pythons, environment variables, loggers and their events."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    yield from section("extras", project["optional-dependencies"])
    yield from section("programs", project["scripts"])
    yield from section("Pythons", [one for one in project["classifiers"] if re.search(r":: 3\.\d+$", one)])
    texts = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "src").rglob("*.py"))]
    variables = {name for one in texts for name in re.findall(r"CONFIDE_[A-Z]+", one)}
    yield from section("environment variables", variables)
    yield from section("loggers: events", {line for one in texts if "log_event(" in one for line in events(one)})


def events(source: str) -> Iterator[str]:
    """Calls of `log_event(package, event, level, fact=...)`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "log_event":
            words = [one.value for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
            if len(words) == 2:
                facts = sorted(one.arg for one in node.keywords if one.arg)
                yield f"confide.{words[0]}: {words[1]} ({', '.join(facts)})"


if __name__ == "__main__":
    PLACE.write_text(text(), encoding="utf-8")
    print(PLACE)
