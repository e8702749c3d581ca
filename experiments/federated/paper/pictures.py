"""Pictures of the paper's figures, in docs/experiments/federated/paper."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments import plots
from experiments.cache import DOCS

FOLDER = "federated/paper"
THEIRS, OURS = "#c7d3e3", "#f3c9b0"


def save(fig: Any, name: str) -> None:
    """Write the figure into the folder of the paper's figures."""
    (DOCS / FOLDER).mkdir(parents=True, exist_ok=True)
    plots.save(fig, f"{FOLDER}/{name}")


def boxes(axis: Any, values: Mapping[str, Sequence[float]], ours: Sequence[str], bold: str, label: str) -> None:
    """Box plots as the paper draws them: whiskers to the ends, every split a dot, the mean a white circle."""
    names = list(values)[::-1]
    kept = [np.asarray(values[name], dtype=float) for name in names]
    kept = [one[np.isfinite(one)] for one in kept]
    drawn = axis.boxplot(
        kept,
        orientation="horizontal",
        whis=(0, 100),
        widths=0.6,
        patch_artist=True,
        showmeans=True,
        meanprops={"marker": "o", "markerfacecolor": "white", "markeredgecolor": "black", "markersize": 5.5},
        medianprops={"color": "#555555"},
    )
    rng = np.random.default_rng(0)
    for i, (name, box, dots) in enumerate(zip(names, drawn["boxes"], kept, strict=True), 1):
        box.set_facecolor(OURS if any(name.endswith(one) for one in ours) else THEIRS)
        axis.plot(dots, i + rng.uniform(-0.12, 0.12, len(dots)), ".", color="#333333", markersize=3, alpha=0.5)
    axis.set_yticks(range(1, len(names) + 1), names, fontsize=7.5)
    for tick, name in zip(axis.get_yticklabels(), names, strict=True):
        tick.set_fontweight("bold" if name.endswith(bold) else "normal")
    axis.set_xlabel(label)
