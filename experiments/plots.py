"""The look of all figures, and how they are saved."""

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from numpy.typing import ArrayLike

from experiments.cache import DOCS
from experiments.methods import Method

mpl.use("Agg")
mpl.rcParams.update(
    {
        "figure.dpi": 110,
        "font.size": 9.5,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.alpha": 0.25,
        "legend.frameon": False,
        "axes.axisbelow": True,
    }
)


def figure(rows: int, columns: int, width: float = 9.0, height: float = 3.4) -> tuple[Any, Any]:
    """A figure with a grid of axes, shape (rows, columns)."""
    import matplotlib.pyplot as plt

    return plt.subplots(rows, columns, figsize=(width, height), squeeze=False, layout="constrained")


def save(fig: Any, name: str) -> None:
    """Write the figure as PNG into docs/experiments."""
    import matplotlib.pyplot as plt

    DOCS.mkdir(parents=True, exist_ok=True)
    fig.savefig(DOCS / f"{name}.png", dpi=130, metadata={"Software": None})
    plt.close(fig)


def band(axis: Any, x: Sequence[float], samples: ArrayLike, label: str, color: str) -> None:
    """Mean of samples of shape (len(x), repeats) over x, and the band between their 5 % and 95 % quantiles."""
    values = np.asarray(samples, dtype=float)
    low, high = np.quantile(values, [0.05, 0.95], axis=1)
    axis.fill_between(x, low, high, color=color, alpha=0.15, linewidth=0)
    axis.plot(x, values.mean(axis=1), color=color, label=label, marker="o", markersize=3.5, linewidth=1.6)


def target(axis: Any, level: float = 0.9) -> None:
    """A line at the requested coverage."""
    axis.axhline(level, color="black", linewidth=0.9, linestyle=(0, (4, 3)))


def histograms(
    axes: Any, title: str, results: dict[str, Any], methods: Sequence[Method], coverage: tuple[float, float], bins: int
) -> None:
    """Coverage and set size over the splits, on two axes; set sizes up to the 99.5 % quantile of the widest."""
    sizes = [results[m.label]["size"] for m in methods]
    limits = (min(map(min, sizes)), max(np.quantile(s, 0.995) for s in sizes))
    for axis, key, name, (low, high) in zip(
        axes, ("coverage", "size"), ("coverage", "mean set size"), (coverage, limits), strict=True
    ):
        edges = np.linspace(low, high, bins + 1)
        for method in methods:
            samples = np.clip(results[method.label][key], low, high)
            axis.hist(samples, bins=edges, color=method.color, alpha=0.55, label=method.label, density=True)
        axis.set(xlabel=name, ylabel="density over splits", title=title)
    axes[0].axvline(0.9, color="black", linewidth=0.9, linestyle=(0, (4, 3)))
