"""Figure 2: the level at which a mechanism aims, over n and epsilon."""

from fractions import Fraction
from typing import Any

import numpy as np
from tqdm import tqdm

from benchmarks.small import small
from experiments.cache import cached, write_docs
from experiments.methods import NOISY, OURS, PPS, PPS_LAPLACE
from experiments.plots import figure, save

ALPHA = Fraction(1, 10)
METHODS = (OURS, PPS, NOISY, PPS_LAPLACE)
SIZES = np.geomspace(100, 100_000, small(19, 2)).astype(int).tolist()
LOSSES = np.geomspace(0.1, 10, small(15, 2)).tolist()


def aimed(method: Any, n: int, epsilon: float) -> float | None:
    """The target rank over n, None if the answer is +inf for all data."""
    m = min(method.bins(n, ALPHA, epsilon, 1000), 2000)
    mechanism = method.mechanism(n, ALPHA, epsilon, m)
    if mechanism is None:
        return None
    return float(mechanism.level) if hasattr(mechanism, "level") else float(mechanism.target(n)) / n


def levels() -> dict[str, Any]:
    """Levels over n at epsilon = 1, and over epsilon at n = 1000."""
    return {
        method.label: {
            "n": [aimed(method, n, 1.0) for n in tqdm(SIZES, desc=f"levels of {method.label}")],
            "epsilon": [aimed(method, 1000, e) for e in LOSSES],
        }
        for method in METHODS
    }


def run() -> None:
    """Make the figure and its page."""
    results = cached("figure2", levels)
    fig, axes = figure(1, 2)
    for axis, key, x, name in (
        (axes[0, 0], "n", SIZES, "number of calibration records n   (epsilon = 1)"),
        (axes[0, 1], "epsilon", LOSSES, "privacy loss epsilon   (n = 1000)"),
    ):
        for method in METHODS:
            y = [np.nan if v is None else v for v in results[method.label][key]]
            axis.plot(x, y, color=method.color, label=method.label, marker="o", markersize=3, linewidth=1.6)
        plain = [-(-9 * (n + 1) // 10) / n if n >= 10 else np.nan for n in (SIZES if key == "n" else [1000] * len(x))]
        axis.plot(x, plain, color="black", linewidth=0.9, linestyle=(0, (4, 3)), label="no privacy")
        axis.set(xscale="log", xlabel=name, ylabel="level aimed at", ylim=(0.895, 1.003))
    axes[0, 0].legend()
    save(fig, "figure2")
    write_docs("figure2.md", PAGE.format(q=results["pps"], table="\n".join(rows(results))))


def rows(results: dict[str, Any]) -> list[str]:
    """A table of levels at epsilon = 1."""
    lines = ["| n | " + " | ".join(m.label for m in METHODS) + " |", "|---:|" + "---:|" * len(METHODS)]
    for i in range(0, len(SIZES), 3):
        values = [results[m.label]["n"][i] for m in METHODS]
        lines.append(f"| {SIZES[i]} | " + " | ".join("+inf" if v is None else f"{v:.4f}" for v in values) + " |")
    return lines


PAGE = """# Figure 2 at our settings: the adjusted level

Made by `python -m experiments figure2`. alpha = 0.1. `slopes` and `pps` have 1000 candidates, noisy histograms their own
number near (n epsilon)^(2/3), at most 2000. Lower is cheaper; at 1 the target is the largest score, or +inf. Lines end
where the answer is +inf for all data.

![Adjusted level](figure2.png)

{table}

[Figure 2 at the papers' settings](private-prediction-sets/figure2.md) has m* instead of 1000 bins, all n and epsilon of
the papers, and the authors' curves. The level is not the whole price: `pps` is flat above its target and moves further
to the right, see [cost.md](cost.md).
"""
