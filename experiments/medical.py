"""Figures 1 and 6: the same study on medical images, and example sets with their classes in ranked order."""

import numpy as np
from tqdm import tqdm

from benchmarks.small import small
from experiments.cache import cached, write_docs
from experiments.methods import NONE, OURS, PPS, quiet
from experiments.plots import figure, histograms, save
from experiments.scores import ScoreSet, blood, skin
from experiments.splits import means, study

SPLITS, BINS, EPSILON = small(1000, 2), 1000, 1.0
METHODS = (NONE, OURS, PPS)


def run() -> None:
    """The figures and their page."""
    fig, axes = figure(2, 2, 9.0, 5.6)
    tables, examples = [], []
    for row, data in enumerate(tqdm((blood(), skin()), desc="medical images")):
        n = len(data.labels) // 2
        result = cached(
            f"medical_{data.name}",
            lambda data=data, n=n: study(data, METHODS[1:], n, EPSILON, BINS, SPLITS),
        )
        histograms(axes[row], data.name, result, METHODS, (0.86, 1.0), 45)
        entries = [data.name, str(len(data.labels)), f"{data.accuracy:.3f}", str(n)]
        tables.append("| " + " | ".join(entries + means(result, [m.label for m in METHODS])) + " |")
        examples += cached(f"examples_{data.name}", lambda data=data, n=n: example_sets(data, n))
    axes[0, 0].legend(fontsize=8)
    save(fig, "figure6")
    write_docs("figures1-6.md", PAGE.format(table="\n".join(tables), examples="\n".join(examples)))


def example_sets(data: ScoreSet, n: int) -> list[str]:
    """Three records outside the calibration set, easy, medium and hard, with their sets in ranked order."""
    order = np.random.default_rng(0).permutation(len(data.labels))
    calibration, rest = order[:n], order[n:]
    released = quiet(data.scores[calibration], alpha=0.1, epsilon=EPSILON, score="lac")
    confidence = data.probabilities[rest].max(axis=1)
    lines = ["", f"**{data.name}**, threshold {released.threshold:.4f} released with epsilon = 1:", ""]
    for name, share in (("easy", 0.9), ("medium", 0.25), ("hard", 0.02)):
        i = rest[np.argsort(confidence)[int(share * len(rest))]]
        ranked = np.argsort(-data.probabilities[i])
        inside = [k for k in ranked if 1 - data.probabilities[i, k] <= released.threshold]
        names = [f"{data.classes[k]} ({data.probabilities[i, k]:.2f})" for k in inside]
        lines.append(f"- {name}: {{{', '.join(names) or 'empty'}}}; true: {data.classes[data.labels[i]]}")
    return lines


PAGE = """# Figures 1 and 6 at our settings: medical images

Made by `python -m experiments figures1-6`. The paper's chest X-rays are not distributed with scores. This study uses
blood cells and skin lesions instead (BloodMNIST, DermaMNIST; held-out logits of a small ResNet). alpha = 0.1, epsilon =
1, replace-one, 1000 candidates, half of the records calibrate, 1000 random splits. These are our settings; for the
papers', n = 1000 and epsilon = 10 with uniform bins, see [Figures 1 and 6](private-prediction-sets/figures1-6.md).

![Coverage and set sizes](figure6.png)

| data | records | accuracy | n | none (not private) | slopes (ours) | pps |
|---|---:|---:|---:|---:|---:|---:|
{table}

Entries: mean coverage / mean set size on the other half.

## Example sets

Classes in ranked order, the most probable first, with the model's probabilities.
{examples}
"""
