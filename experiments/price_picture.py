"""`python -m experiments.price_picture` draws docs/images/price.svg, the price of privacy, from docs/experiments/cost.md.

The numbers are those of the page's first table (a CSV file), which `python -m experiments cost` makes: the coverage of
each method over epsilon for one number of records, where 90 % is requested.
"""

import csv
import math
import re
from dataclasses import dataclass
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "images" / "price.svg"
NUMBERS = ROOT / "docs" / "experiments" / "tables" / "cost-excess-coverage-times-n-epsilon.csv"
RECORDS, REQUESTED = 1000, 0.9
WIDTH, HEIGHT = 600, 452
LEFT, RIGHT, TOP, BOTTOM = 64, 590, 92, 392
LOWEST, HIGHEST = 0.89, 1.0

NUMBER = re.compile(r"\**(-?[\d.]+) ± [\d.]+\**([^(]*)")


@dataclass(frozen=True)
class Line:
    """One method: its column, its label, and the place of the label: next to which point, and its offset."""

    column: str
    name: str
    words: str
    kind: str
    at: float
    dx: float
    dy: float


LINES = (
    Line("pps-laplace", "Laplace histogram", "Angelopoulos et al., v1", "laplace", 1.0, 16, -12),
    Line("pps", "exponential mechanism", "Angelopoulos et al., v3", "exponential", 1.0, -22, 2),
    Line("slopes (ours)", "confide", "", "ours", 0.3, 14, -12),
)


def read(text: str) -> dict[str, dict[float, tuple[float, bool]]]:
    """For each column: epsilon to (mean coverage, whether the method's claim is valid there)."""
    head, *body = csv.reader(text.splitlines())
    out: dict[str, dict[float, tuple[float, bool]]] = {column: {} for column in head[2:-1]}
    for row in body:
        n, epsilon = int(row[0]), float(row[1])
        for column, cell in zip(head[2:-1], row[2:-1], strict=True):
            found = NUMBER.match(cell)
            if found is None:
                raise ValueError(f"{NUMBERS.name}: {cell!r} must be a number with its error")
            if n == RECORDS:
                out[column][epsilon] = REQUESTED + float(found[1]) / (n * epsilon), "†" not in found[2]
    return out


def x_of(epsilon: float) -> float:
    """The x coordinate of an epsilon."""
    return LEFT + 26 + (RIGHT - LEFT - 60) * (math.log10(epsilon) + 1) / 2


def y_of(coverage: float) -> float:
    """The y coordinate of a coverage."""
    return BOTTOM - (BOTTOM - TOP) * (coverage - LOWEST) / (HIGHEST - LOWEST)


def draw(line: Line, points: dict[float, tuple[float, bool]]) -> list[str]:
    """A line, its points (hollow if the claim is invalid), and its name next to it."""
    places = [(x_of(epsilon), y_of(coverage), holds) for epsilon, (coverage, holds) in sorted(points.items())]
    drawn = [f'<path class="{line.kind}" d="M{"L".join(f"{x:.1f} {y:.1f}" for x, y, holds in places if holds)}"/>']
    for x, y, holds in places:
        drawn.append(f'<circle class="{line.kind}{"" if holds else " lost"}" cx="{x:.1f}" cy="{y:.1f}" r="4.5"/>')
        if not holds:
            drawn.append(f'<text class="small" x="{x + 10:.1f}" y="{y + 5:.1f}">proof void</text>')
    x, y, side = x_of(line.at) + line.dx, y_of(points[line.at][0]) + line.dy, " right" if line.dx < 0 else ""
    drawn.append(f'<text class="{line.kind} name{side}" x="{x:.1f}" y="{y:.1f}">{escape(line.name)}</text>')
    if line.words:
        drawn.append(f'<text class="{line.kind} small{side}" x="{x:.1f}" y="{y + 16:.1f}">{escape(line.words)}</text>')
    return drawn


def frame() -> list[str]:
    """The title, the axes, and the dashed line of the requested coverage."""
    out = [
        '<text class="head" x="4" y="24">The price of privacy</text>',
        f'<text class="sub" x="4" y="47">Coverage where 90 % is requested, with {RECORDS:,} records:</text>',
        '<text class="sub" x="4" y="66">higher coverage means larger prediction sets.</text>',
    ]
    for coverage in (0.9, 0.92, 0.94, 0.96, 0.98, 1.0):
        y = y_of(coverage)
        out.append(f'<path class="{"asked" if coverage == REQUESTED else "grid"}" d="M{LEFT} {y:.1f}H{RIGHT}"/>')
        out.append(f'<text class="tick right" x="{LEFT - 8}" y="{y + 5:.1f}">{coverage * 100:.0f} %</text>')
    out.append(f'<text class="small right" x="{RIGHT}" y="{y_of(REQUESTED) + 20:.1f}">no privacy</text>')
    for epsilon in (0.1, 0.3, 1, 3, 10):
        out.append(f'<text class="tick middle" x="{x_of(epsilon):.1f}" y="{BOTTOM + 22}">{epsilon:g}</text>')
    out += [
        f'<text class="small" x="{LEFT}" y="{BOTTOM + 46}">← more private</text>',
        f'<text class="small middle" x="{(LEFT + RIGHT) / 2}" y="{BOTTOM + 46}">privacy budget ε</text>',
        f'<text class="small right" x="{RIGHT}" y="{BOTTOM + 46}">less private →</text>',
    ]
    return out


def picture() -> str:
    """The whole picture."""
    points = read(NUMBERS.read_text(encoding="utf-8"))
    drawn = [part for line in LINES for part in draw(line, points[line.column])]
    said = "; ".join(f"{line.name} {points[line.column][1.0][0] * 100:.1f} %" for line in LINES)
    label = f"Coverage over epsilon where 90 % is requested; at epsilon = 1: {said}"
    return "\n".join([STYLE.replace("LABEL", escape(label, quote=True)), *frame(), *drawn, "</svg>\n"])


COLOURS = {
    "light": "--ink:#1f2328;--soft:#59636e;--line:#dde2e7;--ground:#fff;"
    "--laplace:#b45309;--exponential:#8a3b8f;--ours:#0b7a75",
    "dark": "--ink:#e6edf3;--soft:#a3abb5;--line:#3a414a;--ground:#14181e;"
    "--laplace:#f0a35e;--exponential:#d99be0;--ours:#4fd1c5",
}
KINDS = "\n".join(
    f".price :is(path, .lost).{kind} {{stroke: var(--{kind})}} .price :is(circle, text).{kind} {{fill: var(--{kind})}}"
    for kind in ("laplace", "exponential", "ours")
)
STYLE = f"""<svg xmlns="http://www.w3.org/2000/svg" class="price" viewBox="0 0 {WIDTH} {HEIGHT}" role="img"
 aria-label="LABEL">
<style>
.price {{{COLOURS["light"]}}}
html[data-theme="dark"] .price {{{COLOURS["dark"]}}}
@media (prefers-color-scheme: dark) {{ .price:root {{{COLOURS["dark"]};background:#14181e}} }}
.price text {{font: 15px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: var(--ink)}}
.price .head {{font-size: 21px; font-weight: 650}} .price .sub {{fill: var(--soft)}}
.price .small {{font-size: 14px; fill: var(--soft)}} .price .tick {{fill: var(--soft)}}
.price .right {{text-anchor: end}} .price .middle {{text-anchor: middle}}
.price .name {{font-weight: 650; font-size: 16px}}
.price path {{fill: none; stroke-width: 2.6}} .price .grid {{stroke: var(--line); stroke-width: 1}}
.price .asked {{stroke: var(--ink); stroke-width: 1.5; stroke-dasharray: 6 4}}
.price path.ours {{stroke-width: 4}} .price circle {{stroke: var(--ground); stroke-width: 1.5}}
{KINDS}
.price circle.lost {{fill: var(--ground); stroke-width: 2}}
</style>"""


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
