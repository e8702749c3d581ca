"""`python -m experiments.price_picture` draws docs/images/price.svg from the first table of docs/experiments/cost.md.

The table is a CSV file, which `python -m experiments cost` writes: the coverage of each method over epsilon for one
number of records, where 90 % is requested.
"""

import csv
import io
import re
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "images" / "price.svg"
NUMBERS = ROOT / "docs" / "experiments" / "tables" / "cost-excess-coverage-times-n-epsilon.csv"
RECORDS, REQUESTED = 1000, 0.9
LINES = {
    "pps-laplace": ("Laplace histogram (Angelopoulos et al., v1)", "#b45309"),
    "pps": ("exponential mechanism (Angelopoulos et al., v3)", "#8a3b8f"),
    "slopes (ours)": ("confide", "#0b7a75"),
}
NUMBER = re.compile(r"\**(-?[\d.]+) ± [\d.]+\**([^(]*)")


def points(column: str) -> list[tuple[float, float, bool]]:
    """Epsilon, mean coverage in percent, and whether the method's claim is valid there."""
    with NUMBERS.open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if int(row["n"]) == RECORDS]
    found = [(float(row["epsilon"]), NUMBER.match(row[column])) for row in rows]
    return [(e, 100 * (REQUESTED + float(m[1]) / (RECORDS * e)), "†" not in m[2]) for e, m in found if m]


def draw() -> None:
    """Draw a line for each method; a hollow point has no valid claim."""
    fig, axis = plt.subplots(figsize=(6.2, 4.2), layout="constrained")
    for column, (name, color) in LINES.items():
        x, y, _ = zip(*(point for point in points(column) if point[2]), strict=True)
        axis.plot(x, y, "o-", color=color, label=name, linewidth=3 if column == "slopes (ours)" else 2)
        for e, coverage, holds in points(column):
            if not holds:
                axis.plot(e, coverage, "o", color=color, markerfacecolor="white")
                axis.annotate("proof void", (e, coverage), xytext=(8, -3), textcoords="offset points", fontsize=8)
    axis.axhline(100 * REQUESTED, color="black", linestyle="--", linewidth=1, label="no privacy")
    axis.set(xscale="log", xlabel="privacy budget ε (more private ← → less private)", ylabel="coverage in %")
    axis.set_xticks([0.1, 0.3, 1, 3, 10], ["0.1", "0.3", "1", "3", "10"])
    axis.set_title(f"Coverage where 90 % is requested, with {RECORDS:,} records", loc="left", fontsize=11)
    axis.spines[["top", "right"]].set_visible(False)
    fig.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    said = "; ".join(f"{name} {dict(p[:2] for p in points(column))[1.0]:.1f} %" for column, (name, _) in LINES.items())
    text = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "price", "svg.fonttype": "none"}):
        fig.savefig(text, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    label = f'<svg role="img" aria-label="Coverage over epsilon where 90 % is requested; at epsilon = 1: {said}"'
    PICTURE.write_text(
        label + text.getvalue().partition("<svg")[2], encoding="utf-8"
    )  # pages include it without a head


if __name__ == "__main__":
    draw()
