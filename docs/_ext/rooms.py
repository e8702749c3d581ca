"""The rooms of the package: their order, what imports what, and the picture of it.

`python docs/_ext/rooms.py` draws docs/images/rooms.svg anew; with `--check` it fails if the file is not the picture
that the imports give. The order is the contract in pyproject.toml that import-linter checks; what imports what is read
from the source, imports inside functions and under TYPE_CHECKING counted. On a built page the picture stands within the
page, so that it follows the theme and its rooms are links.
"""

import ast
import sys
import tomllib
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "confide"
PICTURE = ROOT / "docs" / "images" / "rooms.svg"
Graph = dict[str, set[str]]

# Floors from the top; what leaves each room, in a few words.
FLOORS: Mapping[str, Mapping[str, str]] = {
    "fronts": {
        "cli": "the same as commands",
        "demo": "the whole way on real data",
        "monai": "transforms, metrics, loaders of MONAI",
        "torch": "tensors and loaders",
        "mlflow": "models of a registry that serve sets",
        "onnx": "graphs with sets appended",
        "array_api": "any array library",
        "estimators": "scikit-learn",
    },
    "for people": {
        "checkup": "what is known against versions",
        "reports": "HTML pages of releases, plans, silos",
        "plots": "pictures in one call",
        "audit": "checks of anybody's mechanism",
        "papers": "published statements, by number",
    },
    "where the records are": {
        "federated": "silos answer, a coordinator aggregates",
        "watching": "whether coverage still holds, batch by batch",
        "warehouse": "queries that count elsewhere",
        "tables": "files, databases, Spark, batches",
    },
    "in use": {
        "evaluation": "what sets are worth: coverage, sizes",
        "sets": "prediction sets, intervals",
    },
    "releases": {
        "calibration": "the calls that join all below",
        "ledger": "charges, limits, what was spent",
        "releases": "thresholds with their promises, JSON",
    },
    "mechanisms and promises": {
        "planning": "what was asked, what it will cost",
        "mechanisms": "one private mechanism a file",
        "guarantee": "coverage statements, certificates",
        "noisy_counts": "intervals from counts with noise",
        "selection": "one candidate, drawn privately",
    },
    "private records": {
        "counting": "counts over candidates",
        "scores": "one number per record",
        "candidates": "public thresholds to choose from",
        "arrays": "checked arrays, in blocks",
    },
    "ground": {
        "support": "exact numbers, files, strict JSON",
        "errors": "what went wrong, and what to do",
    },
}
# The way of the data: from, to, and what is handed over.
WAY = (
    ("arrays", "scores", "private"),
    ("scores", "counting", "private"),
    ("tables", "counting", "private"),
    ("federated", "counting", "private"),
    ("counting", "selection", "counts"),
    ("selection", "releases", "public"),
    ("releases", "ledger", "public"),
    ("releases", "sets", "public"),
    ("sets", "evaluation", "public"),
    ("releases", "reports", "public"),
    ("evaluation", "reports", "public"),
)


def modules(package: Path = PACKAGE) -> dict[str, Path]:
    """All modules of a package by their full names; a package's own is its `__init__.py`."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        *parts, last = path.relative_to(package.parent).with_suffix("").parts
        found[".".join(parts if last == "__init__" else [*parts, last])] = path
    return found


def imports(path: Path, known: Mapping[str, Path]) -> Iterator[tuple[str, str | None]]:
    """Every import of a known module in a file: (module, name), the name None if the module itself is imported."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom):
            if node.level or node.module is None:
                raise ValueError(f"{path} has a relative import; write it out")
            for alias in node.names:
                if f"{node.module}.{alias.name}" in known:
                    yield f"{node.module}.{alias.name}", None
                elif node.module in known:
                    yield node.module, alias.name


def exported(room: str) -> list[str]:
    """The names at a package's door: what its `__init__.py` imports from within, or defines."""
    tree = ast.parse((PACKAGE / room / "__init__.py").read_text(encoding="utf-8"))
    found = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith(f"confide.{room.replace('/', '.')}."):
            found += [alias.name for alias in node.names]
    return sorted({name for name in found if not name.startswith("_")})


def import_graph(package: Path = PACKAGE) -> Graph:
    """Module to the modules that it imports, anywhere in its file."""
    known = modules(package)
    return {name: {module for module, _ in imports(path, known)} - {name} for name, path in known.items()}


def order() -> list[str]:
    """The rooms from the ground up, as the contract in pyproject.toml has them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    layers = next(contract["layers"] for contract in settings["contracts"] if contract["type"] == "layers")
    return [room for layer in reversed(layers) for room in layer.replace("|", " ").split()]


def room_of(module: str) -> str:
    """The room that a module stands in: the folder or the file below the package; "" for the package itself."""
    return [*module.split("."), ""][1]


def room_graph(graph: Graph) -> Graph:
    """Room to the rooms that its modules import."""
    found: Graph = {room_of(module): set() for module in graph}
    for module, others in graph.items():
        found[room_of(module)] |= {room_of(other) for other in others} - {room_of(module)}
    return found


def needed(graph: Graph) -> Graph:
    """The imports that others do not imply: the transitive reduction of a graph without circles."""

    def below(room: str) -> set[str]:
        return graph[room].union(*map(below, graph[room]))

    return {room: others - set().union(*map(below, others)) for room, others in graph.items()}


def picture() -> str:
    """The picture as SVG: rooms from the ground up, what imports what on the left, the way of the data on the right."""
    rooms = [room for room in order() if room != "__main__"]
    drawn = [room for floor in FLOORS.values() for room in floor]
    if drawn[::-1] != rooms:
        raise SystemExit(
            f"FLOORS in {Path(__file__).name} must list the rooms in the order of pyproject.toml:\n{rooms}"
        )
    place = {room: i for i, room in enumerate(rooms)}
    graph = {
        room: {o for o in others if o in place} for room, others in room_graph(import_graph()).items() if room in place
    }
    graph = {room: {o for o in others if place[o] < place[room]} for room, others in graph.items()}
    return _Drawing(graph).svg()


class _Drawing:
    """Where things stand, in pixels at a width of 720."""

    width, left, right, row, gap, floor = 720, 168, 552, 26, 4, 20

    def __init__(self, graph: Graph) -> None:
        self.graph, self.needed = graph, needed(graph)
        self.top: dict[str, int] = {}
        self.titles: dict[str, int] = {}
        y = 50
        for title, rooms in FLOORS.items():
            self.titles[title] = y + 14
            y += self.floor
            for room in rooms:
                self.top[room] = y
                y += self.row + self.gap
            y += 4
        self.height = y + 4

    def middle(self, room: str) -> float:
        return self.top[room] + self.row / 2

    def svg(self) -> str:
        lines = [_STYLE.format(width=self.width, height=self.height), *self.legend()]
        lines += [f'<text class="floor" x="{self.left + 2}" y="{y}">{escape(t)}</text>' for t, y in self.titles.items()]
        lines += self.door()
        lines += [self.room(room, text) for floor in FLOORS.values() for room, text in floor.items()]
        lines += [self.step(*step) for step in WAY]
        return "\n".join([*lines, "</svg>", ""])

    def legend(self) -> list[str]:
        kinds = (("private", "private records"), ("counts", "counts"), ("public", "released"))
        dots = []
        for i, (kind, text) in enumerate(kinds):
            x = self.right - 176 + (0, 136, 216)[i]
            dots.append(
                f'<path class="{kind} way" d="M{x} 20h16"/><text class="small" x="{x + 21}" y="24">{text}</text>'
            )
        return [
            '<text class="head" x="0" y="24">imports</text>',
            '<path class="arc" d="M68 20h24"/><path class="tip" d="M98 20l-7 -3.5v7z"/>',
            f'<text class="head" x="{self.left + 86}" y="24">way of the data</text>',
            *dots,
        ]

    def door(self) -> list[str]:
        y = self.titles["private records"]
        return [
            f'<path class="door" d="M{self.left} {y - 17}H{self.right}"/>',
            f'<text class="small door-name" x="{self.right}" y="{y}">the door: nothing private goes further</text>',
        ]

    def room(self, room: str, text: str) -> str:
        y, x, own = self.top[room], self.left, sorted(self.graph[room])
        arcs = "".join(self.arc(room, other, "arc" if other in self.needed[room] else "arc more") for other in own)
        page = ROOT / "docs" / "reference" / f"{room}.md"
        link = f"reference/{room}.html" if page.is_file() else "command-line.html"
        box = f'<rect x="{x}" y="{y}" width="{self.right - x}" height="{self.row}" rx="6"/>'
        name = f'<text class="name" x="{x + 12}" y="{y + 18}">{room}</text>'
        words = f'<text class="small" x="{x + 112}" y="{y + 18}">{escape(text)}</text>'
        return f'<g class="room">{arcs}<a href="{link}">{box}{name}{words}</a></g>'

    def arc(self, room: str, other: str, kind: str) -> str:
        a, b, x = self.middle(room) + 4, self.middle(other) - 4, self.left - 7
        bulge = x - (14 + (x - 22) * min(1.0, (b - a) / (self.height - 220))) * 4 / 3
        curve = f"M{x + 7} {a:g}C{bulge:.0f} {a:g} {bulge:.0f} {b:g} {x} {b:g}"
        return f'<path class="{kind}" d="{curve}"/><path class="tip {kind}" d="M{x + 7} {b:g}l-7 -3.5v7z"/>'

    def step(self, room: str, other: str, kind: str) -> str:
        from_below = self.top[room] > self.top[other]
        a, b = self.middle(room) + (-2 if from_below else 3), self.middle(other) + (7 if from_below else -9)
        x = self.right + 8
        bulge = x + (20 + (self.width - x - 30) * min(1.0, abs(a - b) / (self.height - 420))) * 4 / 3
        curve = f"M{x - 8} {a:g}C{bulge:.0f} {a:g} {bulge:.0f} {b:g} {x} {b:g}"
        return f'<path class="{kind} way" d="{curve}"/><path class="{kind} tip" d="M{x - 8} {b:g}l9 -4.5v9z"/>'


_COLOURS = {
    "light": "--ink:#1f2328;--soft:#59636e;--box:#f6f8fa;--edge:#d1d9e0;--arc:#a9b4bf;--lit:#0969da;"
    "--private:#c2410c;--counts:#a16207;--public:#15803d",
    "dark": "--ink:#e6edf3;--soft:#a3abb5;--box:#1f252d;--edge:#3d444d;--arc:#5b646f;--lit:#6cb6ff;"
    "--private:#ff9466;--counts:#e3b341;--public:#57d27c",
}
_STYLE = (
    '<svg xmlns="http://www.w3.org/2000/svg" class="rooms" viewBox="0 0 {width} {height}" width="{width}" '
    'aria-label="The rooms of confide from the ground up, what imports what, and the way of the data">\n<style>\n'
    f".rooms {{{{{_COLOURS['light']}}}}}\n"
    f'html[data-theme="dark"] .rooms {{{{{_COLOURS["dark"]}}}}}\n'
    f"@media (prefers-color-scheme: dark) {{{{ .rooms:root {{{{{_COLOURS['dark']};background:#14181e}}}} }}}}\n"
    """.rooms text {{font-family: system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: var(--ink)}}
.rooms a {{text-decoration: none}}
.rooms .name {{font: 600 13px ui-monospace, SFMono-Regular, Menlo, "DejaVu Sans Mono", monospace}}
.rooms .small {{font-size: 12.5px; fill: var(--soft)}}
.rooms .head {{font-size: 13px; font-weight: 600}}
.rooms .floor {{font-size: 11px; letter-spacing: .08em; text-transform: uppercase; fill: var(--soft)}}
.rooms rect {{fill: var(--box); stroke: var(--edge)}}
.rooms path {{fill: none}}
.rooms .arc {{stroke: var(--arc); stroke-width: 1.2}}
.rooms .tip {{fill: var(--arc); stroke: none}}
.rooms .more {{visibility: hidden}}
.rooms .room:hover .more {{visibility: visible}}
.rooms .room:hover .arc {{stroke: var(--lit); stroke-width: 1.8}}
.rooms .room:hover .tip {{fill: var(--lit); stroke: none}}
.rooms .room:hover rect {{stroke: var(--lit)}}
.rooms .way {{stroke-width: 2.6}}
.rooms .private {{stroke: var(--private)}} .rooms .private.tip {{fill: var(--private)}}
.rooms .counts {{stroke: var(--counts)}} .rooms .counts.tip {{fill: var(--counts)}}
.rooms .public {{stroke: var(--public)}} .rooms .public.tip {{fill: var(--public)}}
.rooms .way {{fill: none}} .rooms .tip {{stroke: none}}
.rooms .door {{stroke: var(--private); stroke-width: 1.6; stroke-dasharray: 5 4}}
.rooms .door-name {{text-anchor: end; fill: var(--private)}}
</style>"""
)


if __name__ == "__main__":
    drawn = picture()
    if sys.argv[1:] != ["--check"]:
        PICTURE.write_text(drawn, encoding="utf-8")
    elif not PICTURE.is_file() or PICTURE.read_text(encoding="utf-8") != drawn:
        sys.exit(f"{PICTURE.relative_to(ROOT)} is not the picture of today's imports; run `python docs/_ext/rooms.py`")
