"""Figure 5: epsilon from .1 to 10, CIFAR-10 and CIFAR-100 (and ImageNet, if given)."""

import numpy as np
from tqdm import tqdm

from experiments.cache import cached, write_docs
from experiments.methods import NOISY, OPENDP, OURS, PPS, PPS_LAPLACE
from experiments.plots import band, figure, save, target
from experiments.scores import ScoreSet, cifar10, cifar100, imagenet
from experiments.splits import means, study

N, BINS, SPLITS = 2000, 1000, 100
LOSSES = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
METHODS = (OURS, PPS, NOISY, PPS_LAPLACE, OPENDP)


def run() -> None:
    """The figure and its page."""
    sets: list[ScoreSet] = [s for s in (cifar10(), cifar100(), imagenet()) if s is not None]
    fig, axes = figure(2, len(sets), 4.6 * len(sets), 5.6)
    tables = []
    for column, data in enumerate(sets):
        results = [
            cached(f"figure5_{data.name}_{e}", lambda e=e, data=data: study(data, METHODS, N, e, BINS, SPLITS))
            for e in tqdm(LOSSES, desc=f"epsilon, {data.name}")
        ]
        for row, key in enumerate(("coverage", "size")):
            axis = axes[row, column]
            for method in METHODS:
                band(axis, LOSSES, [r[method.label][key] for r in results], method.label, method.color)
            plain = np.mean([r["none (not private)"][key] for r in results])
            axis.axhline(plain, color="black", linewidth=0.9, linestyle=":", label="no privacy")
            axis.set(
                xscale="log", xlabel="privacy loss epsilon" if row else "", ylabel=("coverage", "mean set size")[row]
            )
            if row:
                axis.set_yscale("log")
        target(axes[0, column])
        axes[0, column].set_title(data.name)
        tables += table(data, results)
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=6, fontsize=8.5)
    save(fig, "figure5")
    write_docs("figure5.md", PAGE + "\n".join(tables) + "\n")


def table(data: ScoreSet, results: list[dict]) -> list[str]:
    """Coverage and set size by epsilon."""
    labels = [*(m.label for m in METHODS), "none (not private)"]
    lines = ["", f"## {data.name}", "", "| epsilon | " + " | ".join(labels) + " |", "|---:|" + "---:|" * len(labels)]
    lines += [f"| {e:g} | " + " | ".join(means(r, labels)) + " |" for e, r in zip(LOSSES, results, strict=True)]
    return lines


PAGE = """# Figure 5: the privacy loss

Made by `python -m experiments figure5`. alpha = .1, n = 2000, LAC scores, logit-spaced candidates (1000; noisy histograms
near (n epsilon)^(2/3)), 100 random splits; line: mean over the splits, band: 5 % to 95 %. Dotted: no privacy.
`opendp-quantile` claims no coverage; epsilon is add/remove for it and replace-one for the others.

![Privacy loss](figure5.png)

Entries: mean coverage / mean set size. A coverage of 1 with all classes in every set is the answer +inf.
"""
