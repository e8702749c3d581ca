"""Figures and tables of a study."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np


def figure(path: Path, title: str, rows) -> None:
    """One box per method: coverage over draws; the line is 1 - alpha."""
    fig, axis = plt.subplots(figsize=(8, 0.42 * len(rows) + 1.4), constrained_layout=True)
    names = [row.method + (f"\n+inf in {row.infinite:.0%}" if row.infinite else "") for row in rows][::-1]
    axis.boxplot(
        [row.coverage for row in rows][::-1],
        orientation="horizontal",
        tick_labels=names,
        widths=0.6,
        showmeans=True,
        flierprops={"markersize": 2},
    )
    axis.axvline(0.9, color="tab:red", linewidth=1)
    axis.set_xlabel("coverage on records that were not used (triangle: mean)")
    axis.set_title(title)
    axis.tick_params(axis="y", labelsize=8)
    fig.savefig(path, dpi=110)
    plt.close(fig)


def table(rows) -> str:
    """Mean coverage with its standard error, and mean width over finite thresholds."""
    lines = ["| method | mean coverage | worst tenth of draws | mean width | +inf |", "|---|---|---|---|---|"]
    for row in rows:
        error = row.coverage.std() / np.sqrt(len(row.coverage))
        width = "" if np.isnan(row.width) else f"{row.width:.4g}"
        lines.append(
            f"| {row.method} | {row.coverage.mean():.4f} ± {error:.4f} | {np.quantile(row.coverage, 0.1):.3f} "
            f"| {width} | {row.infinite:.0%} |"
        )
    return "\n".join(lines)
