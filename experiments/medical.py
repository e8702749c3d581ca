"""Figures 1 and 6: the same study on medical images, and example sets with their classes in ranked order."""

import numpy as np
from tqdm import tqdm

from experiments.cache import cached, write_docs
from experiments.methods import OURS, PPS, quiet
from experiments.plots import bars, figure, save
from experiments.scores import ScoreSet, blood, skin
from experiments.splits import means, study

SPLITS, BINS, EPSILON = 1000, 1000, 1.0
METHODS = (OURS, PPS)


def run() -> None:
    """The figures and their page."""
    sets = (blood(), skin())
    fig, axes = figure(2, 2, 9.0, 5.6)
    tables, examples = [], []
    for row, data in enumerate(sets):
        n = len(data.labels) // 2
        result = cached(
            f"medical_{data.name}",
            lambda data=data, n=n: study(data, METHODS, n, EPSILON, BINS, SPLITS),
        )
        tqdm.write(f"{data.name}: done")
        top = max(np.quantile(r["size"], 0.995) for r in result.values())
        bottom = min(min(r["size"]) for r in result.values())
        for column, (key, limits) in enumerate((("coverage", (0.86, 1.0)), ("size", (bottom, top)))):
            axis = axes[row, column]
            for label, color in [("none (not private)", "#22223b"), *((m.label, m.color) for m in METHODS)]:
                bars(axis, result[label][key], color, label, limits)
            axis.set(xlabel=("coverage", "mean set size")[column], ylabel="density over splits", title=data.name)
            if key == "coverage":
                axis.axvline(0.9, color="black", linewidth=0.9, linestyle=(0, (4, 3)))
        labels = ["none (not private)", *(m.label for m in METHODS)]
        tables += [
            f"| {data.name} | {len(data.labels)} | {data.accuracy:.3f} | {n} | "
            + " | ".join(means(result, labels))
            + " |"
        ]
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


PAGE = """# Figures 1 and 6: medical images

Made by `python -m experiments figures1-6`. The paper's chest X-rays are not distributed with scores; the same study is
made here with blood cells and skin lesions (BloodMNIST, DermaMNIST; held-out logits of a small ResNet). alpha = .1,
epsilon = 1, replace-one, 1000 candidates, half of the records calibrate, 1000 random splits.

![Coverage and set sizes](figure6.png)

| data | records | accuracy | n | none (not private) | slopes (ours) | pps |
|---|---:|---:|---:|---:|---:|---:|
{table}

Entries: mean coverage / mean set size on the other half.

## Example sets

Classes in ranked order, the most probable first, with the model's probabilities.
{examples}
"""
