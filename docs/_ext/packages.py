"""The subpackages of confide: their order, their imports, and a picture of both.

`python docs/_ext/packages.py` draws docs/images/packages.svg; with `--check` it fails if the file differs from the
picture that the imports give. The order is the contract in pyproject.toml that import-linter checks. Imports are read
from the source, including those inside functions and under TYPE_CHECKING. A built page contains the picture inline, so
that it follows the theme and its packages are links.
"""

import ast
import sys
import tomllib
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "confide"
PICTURE = ROOT / "docs" / "images" / "packages.svg"
Graph = dict[str, set[str]]

# Layers from the top, and what each package provides.
LAYERS: Mapping[str, Mapping[str, str]] = {
    "integrations": {
        "cli": "the command line",
        "demo": "the main task on real data",
        "monai": "transforms, metrics, loaders of MONAI",
        "torch": "tensors and loaders",
        "mlflow": "registered models that serve sets",
        "onnx": "graphs with sets appended",
        "array_api": "any array library",
        "estimators": "scikit-learn",
    },
    "analysis": {
        "reports": "HTML pages of releases, plans, silos",
        "plots": "pictures in one call",
        "audit": "checks of any mechanism",
        "papers": "published statements, by number",
    },
    "data sources": {
        "federated": "silos answer, a coordinator aggregates",
        "watching": "coverage of each batch of new records",
        "warehouse": "SQL that counts in a warehouse",
        "tables": "files, databases, Spark, batches",
    },
    "use of a release": {
        "evaluation": "coverage and sizes of sets",
        "sets": "prediction sets, intervals",
    },
    "releases": {
        "calibration": "calibrate, with all packages below",
        "ledger": "charges, limits, budget spent",
        "releases": "thresholds with their guarantees, JSON",
    },
    "mechanisms and guarantees": {
        "planning": "mechanism and cost of a request",
        "mechanisms": "private mechanisms, one a module",
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
    "foundations": {
        "support": "exact numbers, files, strict JSON",
        "errors": "exceptions",
    },
}
# The data flow: from, to, and the kind of data.
FLOW = (
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


def exported(package: str) -> list[str]:
    """The names that a package's `__init__.py` imports from within the package, or defines."""
    tree = ast.parse((PACKAGE / package / "__init__.py").read_text(encoding="utf-8"))
    found = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith(f"confide.{package.replace('/', '.')}."):
            found += [alias.name for alias in node.names]
    return sorted({name for name in found if not name.startswith("_")})


def import_graph(package: Path = PACKAGE) -> Graph:
    """Module to the modules that it imports, anywhere in its file."""
    known = modules(package)
    return {name: {module for module, _ in imports(path, known)} - {name} for name, path in known.items()}


def order() -> list[str]:
    """The packages from the bottom up, in the order of the contract in pyproject.toml."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    layers = next(contract["layers"] for contract in settings["contracts"] if contract["type"] == "layers")
    return [package for layer in reversed(layers) for package in layer.replace("|", " ").split()]


def package_of(module: str) -> str:
    """The folder or file of `confide` that contains a module; "" for `confide` itself."""
    return [*module.split("."), ""][1]


def package_graph(graph: Graph) -> Graph:
    """Package to the packages that its modules import."""
    found: Graph = {package_of(module): set() for module in graph}
    for module, others in graph.items():
        found[package_of(module)] |= {package_of(other) for other in others} - {package_of(module)}
    return found


def needed(graph: Graph) -> Graph:
    """The transitive reduction of a graph without cycles."""

    def below(package: str) -> set[str]:
        return graph[package].union(*map(below, graph[package]))

    return {package: others - set().union(*map(below, others)) for package, others in graph.items()}


def picture() -> str:
    """The picture as SVG: packages from the bottom up, imports on the left, the data flow on the right."""
    packages = [package for package in order() if package != "__main__"]
    drawn = [package for layer in LAYERS.values() for package in layer]
    if drawn[::-1] != packages:
        raise SystemExit(
            f"LAYERS in {Path(__file__).name} must list the packages in the order of pyproject.toml:\n{packages}"
        )
    place = {package: i for i, package in enumerate(packages)}
    graph = {
        package: {o for o in others if o in place}
        for package, others in package_graph(import_graph()).items()
        if package in place
    }
    graph = {package: {o for o in others if place[o] < place[package]} for package, others in graph.items()}
    return _Drawing(graph).svg()


class _Drawing:
    """Positions in pixels, at a width of 720."""

    width, left, right, row, gap, layer = 720, 168, 552, 26, 4, 20

    def __init__(self, graph: Graph) -> None:
        self.graph, self.needed = graph, needed(graph)
        self.top: dict[str, int] = {}
        self.titles: dict[str, int] = {}
        y = 50
        for title, packages in LAYERS.items():
            self.titles[title] = y + 14
            y += self.layer
            for package in packages:
                self.top[package] = y
                y += self.row + self.gap
            y += 4
        self.height = y + 4

    def middle(self, package: str) -> float:
        return self.top[package] + self.row / 2

    def svg(self) -> str:
        lines = [_STYLE.format(width=self.width, height=self.height), *self.legend()]
        lines += [f'<text class="layer" x="{self.left + 2}" y="{y}">{escape(t)}</text>' for t, y in self.titles.items()]
        lines += self.boundary()
        lines += [self.package(package, text) for layer in LAYERS.values() for package, text in layer.items()]
        lines += [self.step(*step) for step in FLOW]
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
            f'<text class="head" x="{self.left + 86}" y="24">data flow</text>',
            *dots,
        ]

    def boundary(self) -> list[str]:
        y = self.titles["private records"]
        return [
            f'<path class="boundary" d="M{self.left} {y - 17}H{self.right}"/>',
            f'<text class="small boundary-name" x="{self.right}" y="{y}">no private record passes this line</text>',
        ]

    def package(self, package: str, text: str) -> str:
        y, x = self.top[package], self.left
        kinds = {o: "arc" if o in self.needed[package] else "arc more" for o in sorted(self.graph[package])}
        arcs = "".join(self.arc(package, other, kind) for other, kind in kinds.items())
        page = ROOT / "docs" / "reference" / f"{package}.md"
        link = f"reference/{package}.html" if page.is_file() else "command-line.html"
        box = f'<rect x="{x}" y="{y}" width="{self.right - x}" height="{self.row}" rx="6"/>'
        name = f'<text class="name" x="{x + 12}" y="{y + 18}">{package}</text>'
        words = f'<text class="small" x="{x + 112}" y="{y + 18}">{escape(text)}</text>'
        return f'<g class="package">{arcs}<a href="{link}">{box}{name}{words}</a></g>'

    def arc(self, package: str, other: str, kind: str) -> str:
        a, b, x = self.middle(package) + 4, self.middle(other) - 4, self.left - 7
        bulge = x - (14 + (x - 22) * min(1.0, (b - a) / (self.height - 220))) * 4 / 3
        curve = f"M{x + 7} {a:g}C{bulge:.0f} {a:g} {bulge:.0f} {b:g} {x} {b:g}"
        return f'<path class="{kind}" d="{curve}"/><path class="tip {kind}" d="M{x + 7} {b:g}l-7 -3.5v7z"/>'

    def step(self, package: str, other: str, kind: str) -> str:
        from_below = self.top[package] > self.top[other]
        a, b = self.middle(package) + (-2 if from_below else 3), self.middle(other) + (7 if from_below else -9)
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
    '<svg xmlns="http://www.w3.org/2000/svg" class="packages" viewBox="0 0 {width} {height}" width="{width}" '
    'aria-label="The packages of confide from the bottom up, their imports, and the data flow">\n<style>\n'
    f".packages {{{{{_COLOURS['light']}}}}}\n"
    f'html[data-theme="dark"] .packages {{{{{_COLOURS["dark"]}}}}}\n'
    f"@media (prefers-color-scheme: dark) {{{{ .packages:root {{{{{_COLOURS['dark']};background:#14181e}}}} }}}}\n"
    """.packages text {{font-family: system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: var(--ink)}}
.packages a {{text-decoration: none}}
.packages .name {{font: 600 13px ui-monospace, SFMono-Regular, Menlo, "DejaVu Sans Mono", monospace}}
.packages .small {{font-size: 12.5px; fill: var(--soft)}}
.packages .head {{font-size: 13px; font-weight: 600}}
.packages .layer {{font-size: 11px; letter-spacing: .08em; text-transform: uppercase; fill: var(--soft)}}
.packages rect {{fill: var(--box); stroke: var(--edge)}}
.packages path {{fill: none}}
.packages .arc {{stroke: var(--arc); stroke-width: 1.2}}
.packages .tip {{fill: var(--arc); stroke: none}}
.packages .more {{visibility: hidden}}
.packages .package:hover .more {{visibility: visible}}
.packages .package:hover .arc {{stroke: var(--lit); stroke-width: 1.8}}
.packages .package:hover .tip {{fill: var(--lit); stroke: none}}
.packages .package:hover rect {{stroke: var(--lit)}}
.packages .way {{stroke-width: 2.6}}
.packages .private {{stroke: var(--private)}} .packages .private.tip {{fill: var(--private)}}
.packages .counts {{stroke: var(--counts)}} .packages .counts.tip {{fill: var(--counts)}}
.packages .public {{stroke: var(--public)}} .packages .public.tip {{fill: var(--public)}}
.packages .way {{fill: none}} .packages .tip {{stroke: none}}
.packages .boundary {{stroke: var(--private); stroke-width: 1.6; stroke-dasharray: 5 4}}
.packages .boundary-name {{text-anchor: end; fill: var(--private)}}
</style>"""
)


if __name__ == "__main__":
    drawn = picture()
    if sys.argv[1:] != ["--check"]:
        PICTURE.write_text(drawn, encoding="utf-8")
    elif not PICTURE.is_file() or PICTURE.read_text(encoding="utf-8") != drawn:
        sys.exit(f"{PICTURE.relative_to(ROOT)} is out of date; run `python docs/_ext/packages.py`")
