"""Figure 3: private or plain model, private or plain calibration, on CIFAR-10.

Trains on the 50,000 training images, calibrates on 5,000 of the 10,000 test images, evaluates on the other 5,000.
"""

import importlib.metadata
import math
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tqdm import tqdm

from benchmarks.small import small
from experiments import cifar10
from experiments.cache import RESULTS, cached, write_docs
from experiments.methods import NONE, OURS, PPS
from experiments.models import Architecture, build, probabilities, train
from experiments.noise_images import Whitening, noise_images
from experiments.plots import figure, histograms, save
from experiments.private_prediction_sets import published
from experiments.scattering import Scattering
from experiments.scores import ScoreSet
from experiments.splits import study

EPSILON, DELTA, N, SPLITS, BINS = 8.0, 1e-5, *small((5000, 1000, 5000), (50, 2, 50))
ALPHA = Fraction(1, 10)
METHODS = (NONE, OURS, PPS)
SETTINGS: dict[str, dict[str, Any]] = {
    "scattering private": {"epochs": 40, "batch": 8192, "rate": 4.0, "epsilon": EPSILON, "delta": DELTA},
    "scattering plain": {"epochs": 12, "batch": 512, "rate": 0.003},
    "cnn private": {
        "epochs": 24,
        "batch": 512,
        "rate": 0.2,
        "schedule": "cosine",
        "clip": 1.0,
        "epsilon": EPSILON,
        "delta": DELTA,
        "gradients": "ew",
        "physical": 128,
    },
    "cnn plain": {"epochs": 10, "batch": 256, "rate": 0.05, "schedule": "cosine"},
    "stock private": {
        "epochs": 90,
        "batch": 2000,
        "rate": 0.1,
        "schedule": "cosine",
        "clip": 10.0,
        "epsilon": EPSILON,
        "delta": DELTA,
        "gradients": "ew",
        "physical": 128,
    },
    "stock plain": {"epochs": 90, "batch": 2000, "rate": 0.1, "schedule": "cosine"},
}
"""Per architecture and kind. `stock` has the defaults of the Opacus example, whose 90 epochs take hours on one core."""

KINDS = ("private", "plain")
BLOCK = 20
"""Images whose intermediate results fit into the processor's cache."""


def features(part: str) -> NDArray[np.float16]:
    """Whitened scattering features of all images of a part, shape (n, 243, 8, 4), stored once."""
    path = RESULTS / f"scattering_{part}.npy"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        images, _ = cifar10.load(part)
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # small blocks on one thread each: no thread waits for another
        transform = Scattering()
        whiten = Whitening(transform, noise_images(small(2000, 100), np.random.default_rng(0)))
        temporary = path.with_name(f"part_{path.name}")
        stored = np.lib.format.open_memmap(temporary, "w+", np.float16, (len(images), *Scattering.shape))

        def block(start: int) -> None:
            stored[start : start + BLOCK] = whiten(transform(images[start : start + BLOCK])).numpy()

        starts = range(0, len(images), BLOCK)
        with ThreadPoolExecutor(threads) as pool:
            list(tqdm(pool.map(block, starts), total=len(starts), desc=f"scattering, {part}"))
        torch.set_num_threads(threads)
        stored.flush()
        temporary.replace(path)
    return np.load(path, mmap_mode="r")


def inputs(part: str, architecture: Architecture) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs of the model, and the labels."""
    if architecture != "scattering":
        images, labels = cifar10.load(part)
        pixels = torch.tensor(images, dtype=torch.float32).permute(0, 3, 1, 2)
        return pixels / 127.5 - 1, torch.tensor(labels)
    stored = features(part)
    whole = np.empty(stored.shape, dtype=np.float32)
    for i in range(0, len(whole), 1000):
        whole[i : i + 1000] = stored[i : i + 1000]
    return torch.from_numpy(whole), torch.tensor(cifar10.labels(part))


def model(kind: str, architecture: Architecture) -> dict[str, Any]:
    """Train one model and return its test probabilities and the privacy that it spent."""
    x, y = inputs("train", architecture)
    network = build(architecture)
    checkpoint = RESULTS / f"training_{architecture}_{kind}.pt"
    settings = SETTINGS[f"{architecture} {kind}"]
    spent = train(network, x, y, **settings, stop=small(None, 1), checkpoint=checkpoint)
    x, y = inputs("test", architecture)
    return {"spent": spent, "labels": y.tolist(), "probabilities": np.round(probabilities(network, x), 7).tolist()}


def run() -> None:
    """The figure and its page."""
    fig, axes = figure(2, 2, 9.0, 5.6)
    rows, spent = [], {}
    for row, kind in enumerate(KINDS):
        made = cached(f"model_scattering_{kind}", lambda kind=kind: model(kind, "scattering"))
        data = ScoreSet(kind, np.array(made["probabilities"]).clip(0, 1), np.array(made["labels"]))
        spent[kind] = made["spent"]
        result = cached(
            f"figure3_scattering_{kind}",
            lambda data=data: study(data, METHODS[1:], N, EPSILON, BINS, SPLITS),
        )
        histograms(axes[row], f"{kind} model", result, METHODS, (0.88, 0.93), 26)
        for method in METHODS:
            coverage, size = np.array(result[method.label]["coverage"]), np.array(result[method.label]["size"])
            rows.append(
                f"| {kind} | {data.accuracy:.3f} | {papers_accuracy(kind)} | {method.label} | {coverage.mean():.4f} ± "
                f"{coverage.std():.4f} | {size.mean():.3f} | {_protected(kind, method.name, made['spent'])} |"
            )
    axes[0, 0].legend(fontsize=8)
    save(fig, "figure3")
    write_docs("figure3.md", page(rows, **spent["private"]))


def papers_accuracy(kind: str) -> str:
    """The accuracies of versions 3 and 1 of the paper, for tables."""
    return " / ".join(f"{published.ACCURACY[version][kind]:.2f}" for version in ("version 3", "version 1"))


def _protected(kind: str, calibration: str, spent: dict[str, float]) -> str:
    """What a person with one image has, by the set that the image is in."""
    training = f"({spent['epsilon']:.2f}, {spent['delta']:g})" if kind == "private" else "nothing"
    return f"training: {training}; calibration: " + ("nothing" if calibration == "none" else f"{EPSILON:g}")


def page(rows: list[str], *, epsilon: float, delta: float, noise: float) -> str:
    """The page as Markdown."""
    proven = PPS.mechanism(N, ALPHA, EPSILON, BINS).replace_one
    return PAGE.format(
        table="\n".join(rows),
        opacus=importlib.metadata.version("opacus"),
        epsilon=epsilon,
        delta=delta,
        noise=noise,
        calibration=EPSILON,
        proven=proven,
        both=epsilon + EPSILON,
        group=2 * epsilon,
        group_delta=(1 + math.exp(epsilon)) * delta,
    )


PAGE = """# Figure 3 at our settings: private model, private calibration

Made by `python -m experiments figure3`. CIFAR-10, alpha = 0.1, n = 5000 calibration images, epsilon = 8 for the
calibration (replace-one), 1000 random splits of the 10,000 test images; the other 5000 of each split evaluate. The
private model is trained by Opacus {opacus} with DP-SGD at epsilon = {epsilon:.2f}, delta = {delta:g} (noise multiplier
{noise:.2f}, Poisson sampling). The non-private model has the same architecture and is trained by SGD.

Architecture: a linear layer on fixed scattering features (two scales, eight orientations, 243 channels on an 8 x 8
grid, averaged over the image and its mirror image). They are whitened with their covariance on images of pure noise with
a 1/f spectrum. Only the linear layer is trained. It trains on two cores in minutes. Under DP-SGD such features are
better than a small network trained from scratch (Tramer and Boneh, ICLR 2021). The whitening, batch size, rate and epochs
were chosen by the accuracy on 5,000 held-out *training* images; the final models are trained on all 50,000, once. The
stock convolutional network of the Opacus example, and the papers' uniform bins, are in [Figure 3 at the papers'
settings](private-prediction-sets/figure3.md).

![Coverage and set sizes](figure3.png)

| model | accuracy | papers | calibration | coverage (mean ± deviation over splits) | mean set size | guarantee for one image |
|---|---:|---:|---|---:|---:|---|
{table}

The column *papers* has the accuracies of the convolutional networks in versions 3 and 1 of *Private Prediction Sets*. Our
non-private model does not reach them, because it uses other features. Our private model is trained by the DP-SGD of
Opacus, with Poisson sampling and ghost clipping.

## The total guarantee of the pipeline

- The model is ({epsilon:.2f}, {delta:g})-differentially private in its training images (adding or removing one).
- The threshold is {calibration:g}-differentially private in its calibration images (replacing one), for any fixed model.
- Training and calibration images are different images. One image in one of the two sets affects one mechanism only. For
  a training image the threshold is post-processing of the model (and of other people's images). A calibration image does
  not affect the model. So the two do **not** add up (parallel composition): model and threshold together give a training
  image ({epsilon:.2f}, {delta:g}) and a calibration image {calibration:g}. `slopes` spends all of its {calibration:g};
  `pps` claims {calibration:g} and spends {proven:.1f}.
- A person with an image in each of the two sets has the sum, by basic composition: ({both:.2f}, {delta:g}). With k images
  in a set, the loss of that set is that of a group of k.
- The two adjacencies differ. In units of *replacing* one training image the model costs at most twice, by group privacy:
  ({group:.2f}, {group_delta:.3f}). This bound is crude; the accountant states adding or removing.
- Not included: the choice of whitening, batch size, rate and epochs, which used training images.
- Not protected: the images on which sets are predicted, and the accuracies and coverages on this page.
- Both releases of this page draw their noise from seeded generators, so that they can be reproduced. A reader of the seed
  can subtract the noise. A model for publication needs `train(..., secure=True)` and no seed; `confide.calibrate` cannot
  be seeded.
- With a non-private model the training images are not protected, for any calibration. Without private calibration the
  calibration images are not protected.
"""
