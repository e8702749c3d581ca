"""Figure 3: private or plain model, private or plain calibration, on CIFAR-10.

Trains on the 50,000 training images, calibrates on 5,000 of the 10,000 test images, evaluates on the other 5,000.
"""

import os
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from tqdm import tqdm

from experiments import cifar10
from experiments.cache import RESULTS, cached, write_docs
from experiments.methods import OURS, PPS
from experiments.models import Architecture, build, normalised, probabilities, train
from experiments.plots import bars, figure, save
from experiments.scattering import Scattering
from experiments.scores import ScoreSet
from experiments.splits import study

EPSILON, DELTA, N, SPLITS, BINS, GRID = 8.0, 1e-5, 5000, 1000, 5000, 4
SETTINGS: dict[str, dict[str, Any]] = {
    "scattering private": {"epochs": 8, "batch": 4096, "rate": 4.0, "epsilon": EPSILON, "delta": DELTA},
    "scattering plain": {"epochs": 8, "batch": 512, "rate": 0.01},
    "cnn private": {"epochs": 20, "batch": 1024, "rate": 0.5, "epsilon": EPSILON, "delta": DELTA, "clip": 1.0},
    "cnn plain": {"epochs": 20, "batch": 256, "rate": 0.05},
}
PAPER = {"private": 0.67, "plain": 0.73}


def features(part: str) -> NDArray[np.float16]:
    """Scattering features of all images of a part, stored once."""
    path = RESULTS / f"scattering_{part}_{GRID}.npy"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        images, _ = cifar10.load(part)
        transform = Scattering(GRID)
        blocks = tqdm(range(0, len(images), 250), desc=f"scattering, {part}")
        done = np.concatenate([transform(images[i : i + 250]).numpy() for i in blocks])
        temporary = path.with_name(f"part_{path.name}")
        np.save(temporary, done)
        temporary.replace(path)
    return cast(NDArray[np.float16], np.load(path))


def inputs(part: str, architecture: Architecture) -> tuple[torch.Tensor, torch.Tensor]:
    """What the model sees, and the labels."""
    images, labels = cifar10.load(part)
    if architecture == "cnn":
        pixels = torch.tensor(images, dtype=torch.float32).permute(0, 3, 1, 2)
        return pixels / 127.5 - 1, torch.tensor(labels)
    stored = torch.from_numpy(features(part))
    return torch.cat([normalised(block) for block in stored.split(5000)]), torch.tensor(labels)


def model(kind: str, architecture: Architecture) -> dict[str, Any]:
    """Train one model and return its test probabilities and the privacy that it spent."""
    x, y = inputs("train", architecture)
    network = build(architecture, grid=GRID)
    spent = train(network, x, y, **SETTINGS[f"{architecture} {kind}"])
    x, y = inputs("test", architecture)
    return {"spent": spent, "labels": y.tolist(), "probabilities": np.round(probabilities(network, x), 7).tolist()}


def run() -> None:
    """The figure and its page."""
    architecture: Architecture = "cnn" if os.environ.get("CONFIDE_MODEL") == "cnn" else "scattering"
    fig, axes = figure(2, 2, 9.0, 5.6)
    rows, spent = [], {}
    for row, kind in enumerate(("plain", "private")):
        made = cached(f"model_{architecture}_{kind}", lambda kind=kind: model(kind, architecture))
        data = ScoreSet(kind, np.array(made["probabilities"]).clip(0, 1), np.array(made["labels"]))
        spent[kind] = made["spent"]
        result = cached(
            f"figure3_{architecture}_{kind}",
            lambda data=data: study(data, (OURS, PPS), N, EPSILON, BINS, SPLITS),
        )
        shown = [("none (not private)", "#22223b"), (OURS.label, OURS.color), (PPS.label, PPS.color)]
        sizes = np.concatenate([result[label]["size"] for label, _ in shown])
        for column, (key, limits) in enumerate((("coverage", (0.88, 0.93)), ("size", (sizes.min(), sizes.max())))):
            axis = axes[row, column]
            for label, color in shown:
                bars(axis, result[label][key], color, label, limits, bins=26)
            axis.set(xlabel=("coverage", "mean set size")[column], ylabel="density over splits", title=f"{kind} model")
            if key == "coverage":
                axis.axvline(0.9, color="black", linewidth=0.9, linestyle=(0, (4, 3)))
        for label, _ in shown:
            coverage, size = np.array(result[label]["coverage"]), np.array(result[label]["size"])
            total = "not private" if kind == "plain" or label.startswith("none") else "see below"
            rows.append(
                f"| {kind} | {data.accuracy:.3f} | {PAPER[kind]:.2f} | {label} | {coverage.mean():.4f} ± "
                f"{coverage.std():.4f} | {size.mean():.3f} | {total} |"
            )
    axes[0, 0].legend(fontsize=8)
    save(fig, "figure3")
    write_docs("figure3.md", PAGE.format(table="\n".join(rows), what=WHAT[architecture], **spent["private"]))


WHAT = {
    "scattering": """a linear layer on fixed scattering features (two scales, eight orientations, 243 channels on a 4 x 4
grid), normalised within each image. Nothing but the linear layer is learned. It trains on two cores in minutes, and
under DP-SGD such features do better than a small network learned from scratch (Tramer and Boneh, ICLR 2021). The stock
convolutional network of the Opacus example is there too: `CONFIDE_MODEL=cnn python -m experiments figure3`""",
    "cnn": "the convolutional network of the Opacus CIFAR-10 example",
}

PAGE = """# Figure 3: private model, private calibration

Made by `python -m experiments figure3`. CIFAR-10, alpha = .1, n = 5000 calibration images, epsilon = 8 for the
calibration (replace-one), 1000 random splits of the 10,000 test images; the other 5000 of each split evaluate. The
private model is trained by Opacus 1.6 with DP-SGD at epsilon = {epsilon:.2f}, delta = {delta:g} (noise multiplier
{noise:.2f}, Poisson sampling, seeded for repeatability); the plain model is the same architecture trained by SGD.
Architecture: {what}.

![Coverage and set sizes](figure3.png)

| model | accuracy | paper | calibration | coverage (mean ± deviation over splits) | mean set size | total guarantee |
|---|---:|---:|---|---:|---:|---|
{table}

The paper's accuracies belong to another network, trained longer on other hardware; both of ours are lower, and the gap
between them is about the same. The features are pooled to 4 x 4 so that training takes minutes on two cores; the finer
grid (`GRID = 8`) of the literature takes about four times as long and was not run. No setting was tuned.

## The total guarantee of the pipeline

- The model is ({epsilon:.2f}, {delta:g})-differentially private in its training images (adding or removing one).
- The threshold is 8-differentially private in its calibration images (replacing one), for any fixed model.
- Training and calibration images are different images. Whoever has one image in one of the two sets is affected by one
  release only; the other is post-processing or does not touch that image. So the two do not add up (parallel
  composition): an image in training has ({epsilon:.2f}, {delta:g}), an image in calibration has 8. `slopes` spends all
  of its 8; `pps` claims 8 and really spends 4.4.
- A person with images in both sets has the sum: ({epsilon:.2f} + 8, {delta:g}). The relations differ, too: in units of
  replacing one image the model costs at most twice, (2 x {epsilon:.2f}, (1 + e^{epsilon:.2f}) {delta:g}), by group privacy.
- Not protected: the images on which sets are predicted, the accuracies and coverages on this page.
- With a plain model nothing about the training images is protected, whatever the calibration does.
"""
