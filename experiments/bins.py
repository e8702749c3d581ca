"""Figure 4: the number of candidates over four orders of magnitude, CIFAR-10 and CIFAR-100 (and ImageNet, if given)."""

import numpy as np
from tqdm import tqdm

from experiments.cache import cached, write_docs
from experiments.methods import NOISY, OURS, PPS, PPS_LAPLACE, Method
from experiments.plots import band, figure, save, target
from experiments.scores import ScoreSet, cifar10, cifar100, imagenet
from experiments.splits import means, study

N, EPSILON, SPLITS = 1000, 1.0, 100
BINS = (10, 100, 1000, 10_000, 100_000)
METHODS = (OURS, PPS, NOISY, PPS_LAPLACE)


def fitting(m: int) -> tuple[Method, ...]:
    """Noisy histograms stop at 1000 bins, where they have long lost."""
    return METHODS if m <= 1000 else (OURS, PPS)


def run() -> None:
    """The figure and its page."""
    sets: list[ScoreSet] = [s for s in (cifar10(), cifar100(), imagenet()) if s is not None]
    fig, axes = figure(2, len(sets), 4.6 * len(sets), 5.6)
    tables = []
    for column, data in enumerate(sets):
        results = [
            cached(
                f"figure4_{data.name}_{m}",
                lambda m=m, data=data: study(data, fitting(m), N, EPSILON, m, SPLITS, own_bins=False),
            )
            for m in tqdm(BINS, desc=f"bins, {data.name}")
        ]
        for row, key in enumerate(("coverage", "size")):
            axis = axes[row, column]
            for method in METHODS:
                shown = [(m, r[method.label][key]) for m, r in zip(BINS, results, strict=True) if method.label in r]
                band(axis, [m for m, _ in shown], [v for _, v in shown], method.label, method.color)
            plain = np.mean([r["none (not private)"][key] for r in results])
            axis.axhline(plain, color="black", linewidth=0.9, linestyle=":", label="no privacy")
            axis.set(
                xscale="log", xlabel="number of candidates m" if row else "", ylabel=("coverage", "mean set size")[row]
            )
            if row:
                axis.set_yscale("log")
        target(axes[0, column])
        axes[0, column].set_title(data.name)
        tables += table(data, results)
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=6, fontsize=8.5)
    save(fig, "figure4")
    write_docs("figure4.md", PAGE + "\n".join(tables) + "\n")


def table(data: ScoreSet, results: list[dict]) -> list[str]:
    """Coverage and set size by number of candidates."""
    labels = [m.label for m in METHODS]
    lines = ["", f"## {data.name}", "", "| m | " + " | ".join(labels) + " |", "|---:|" + "---:|" * len(labels)]
    for m, result in zip(BINS, results, strict=True):
        known = dict(zip(labels, [None] * len(labels), strict=True))
        known.update({k: means(result, [k])[0] for k in labels if k in result})
        lines.append(f"| {m} | " + " | ".join(v or "" for v in known.values()) + " |")
    return lines


PAGE = """# Figure 4: the number of candidates

Made by `python -m experiments figure4`. alpha = .1, n = 1000, epsilon = 1, LAC scores, logit-spaced candidates, 100 random
splits; line: mean over the splits, band: 5 % to 95 %. Dotted: no privacy. The paper varies the bins over the same
orders of magnitude; what it finds, that too few bins round the threshold up and more cost only a logarithm, holds for
`pps` and `slopes`; noise in every bin makes histograms lose with each further bin.

![Number of candidates](figure4.png)

Entries: mean coverage / mean set size.
"""
