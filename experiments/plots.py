"""The look of all figures, and how they are saved."""

from typing import Any

import matplotlib as mpl

from experiments.cache import DOCS

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
