"""What files and messages hold: every kind and schema with its fields and their types, as the files that are kept have
them, from all versions; and the fields that today's readers know, by room.

The files below `samples` are read and written again by other tests, character by character, so that no writer can
change alone.
"""

import ast
import json
import re
import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
OPEN = {"about", "parts", "counts", "sent", "versions", "weights", "parameters", "shares", "models"}
"""Objects whose keys are names that somebody chose."""


def lines() -> Iterator[str]:
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for path in kept("json"):
        for document in documents(json.loads(path.read_text(encoding="utf-8"))):
            collect(document, "", found[f"{document['kind']}, schema {document.get('schema', 'without number')}"])
    for kind in sorted(found):
        yield f"[{kind}]"
        yield from (f"{field}: {'|'.join(sorted(types))}" for field, types in sorted(found[kind].items()))
        yield ""
    yield "[ledger, a file]"
    yield from ledger_tables()
    yield ""
    yield "[kinds in the source]"
    yield from sorted(kinds_in_source())
    yield ""
    for room, names in sorted(fields_read().items()):
        yield f"[fields that {room} reads]"
        yield from sorted(names)
        yield ""


def kept(ending: str) -> list[Path]:
    return sorted((ROOT / "tests").glob(f"**/samples/**/*.{ending}"))


def documents(value: Any) -> Iterator[dict[str, Any]]:
    """All documents that state their kind, also those inside others and in texts."""
    if isinstance(value, dict):
        if str(value.get("kind", "")).startswith("confide."):
            yield value
        for one in value.values():
            yield from documents(one)
    elif isinstance(value, list):
        for one in value:
            yield from documents(one)
    elif isinstance(value, str) and value.startswith("{"):
        try:
            inner = json.loads(value)
        except ValueError:
            return  # a text for people, or damaged on purpose
        yield from documents(inner)


def collect(value: Any, path: str, fields: dict[str, set[str]]) -> None:
    """Field paths with the types of their values; documents inside have a section of their own."""
    if isinstance(value, dict) and path and str(value.get("kind", "")).startswith("confide."):
        fields[path].add(value["kind"])
    elif isinstance(value, dict):
        chosen = path.rsplit(".", 1)[-1] in OPEN or not all(re.fullmatch(r"[a-z][a-z_0-9]*", key) for key in value)
        for key, one in value.items():
            collect(one, f"{path}.{'*' if chosen else key}".lstrip("."), fields)
    elif isinstance(value, list) and path:
        fields[path].add("list")
        for one in value:
            if isinstance(one, dict):
                collect(one, f"{path}[]", fields)
    else:
        fields[path].add({"NoneType": "null", "str": "text", "bool": "bool"}.get(type(value).__name__, "number"))


def ledger_tables() -> Iterator[str]:
    """Tables and columns of the ledgers that are kept."""
    found = set()
    for path in kept("ledger"):
        with sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True) as ledger:
            for (table,) in ledger.execute("select name from sqlite_master where type = 'table'"):
                columns = [
                    f"{name} {kind}".strip() for _, name, kind, *_ in ledger.execute(f"pragma table_info({table})")
                ]
                found.add(f"{table}: {', '.join(columns)}")
        ledger.close()
    yield from sorted(found)


KIND = re.compile(r"confide(\.[a-z]+(-[a-z]+)*)+")
NO_KINDS = {
    "import_module",
    "needs_extra",
    "getLogger",
    "Logger",
    "files",
    "fromkeys",
}
"""Calls whose texts are names of modules and loggers."""


@cache
def kinds_in_source() -> set[str]:
    """The kinds of documents, of which every one begins with `confide.`, and those of signed messages."""
    found = set()
    for _, tree in trees():
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        others = {id(one) for call in calls if called(call) in NO_KINDS for one in call.args}
        others |= {id(one) for node in ast.walk(tree) if isinstance(node, ast.Dict) for one in modules_of_kinds(node)}
        for node in ast.walk(tree):
            text = node.value if isinstance(node, ast.Constant) and id(node) not in others else None
            if isinstance(text, str) and KIND.fullmatch(text) and not text.endswith((".json", ".log")):
                found.add(text)
        sealing = [call for call in calls if called(call) in ("seal", "unseal", "parse", "envelope") and call.args]
        sealed = [call.args[0] for call in sealing]
        sums = [node for node in ast.walk(tree) if isinstance(node, ast.BinOp)]
        sealed += [node.right for node in sums if getattr(node.left, "id", "") == "PREFIX"]
        named = {name.id: node.value for node in tree.body if isinstance(node, ast.Assign) for name in names(node)}
        messages = [named.get(getattr(one, "id", ""), one) for one in sealed]
        found |= {f"confide.federated.{one.value}" for one in messages if isinstance(one, ast.Constant)}
    return found


def modules_of_kinds(node: ast.Dict) -> list[ast.expr]:
    """The values of a table from kinds to modules."""
    return [value for key, value in zip(node.keys, node.values, strict=True) if getattr(key, "value", "kind") != "kind"]


def names(node: ast.Assign) -> list[ast.Name]:
    return [one for one in node.targets if isinstance(one, ast.Name)]


def called(call: ast.Call) -> str:
    return str(getattr(call.func, "id", getattr(call.func, "attr", "")))


def fields_read() -> dict[str, set[str]]:
    """The names that readers take out of JSON, by room."""
    found: dict[str, set[str]] = defaultdict(set)
    for room, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in (
                "take",
                "optional",
                "group",
                "fraction",
            ):
                first = node.args[0] if node.args else None
                if isinstance(first, ast.Constant) and str(first.value).isidentifier():
                    found[room].add(first.value)
            if isinstance(node, ast.Dict) and any(of_shape(value) for value in node.values):
                keys = [one for key in node.keys if key is not None for one in ast.walk(key)]
                texts = {str(one.value) for one in keys if isinstance(one, ast.Constant)}
                found[room] |= {text for text in texts if text.isidentifier()}
    return found


def of_shape(value: ast.expr) -> bool:
    """Whether this is how a field is read and written (`confide.support.shapes`)."""
    return any(isinstance(node, ast.Name) and node.id == "shapes" for node in ast.walk(value))


@cache
def trees() -> tuple[tuple[str, ast.Module], ...]:
    """The files that could read or write documents, with their rooms."""
    package, found = ROOT / "src" / "confide", []
    for path in sorted(package.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if '"confide.' in text or "Fields" in text or "shapes." in text or "seal(" in text or "PREFIX" in text:
            found.append((path.relative_to(package).parts[0].removesuffix(".py"), ast.parse(text)))
    return tuple(found)
