"""Private and plain models of CIFAR-10: trained on the 50,000 training images, applied to the 10,000 test images."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tqdm import tqdm

from benchmarks.small import small
from experiments import cifar10
from experiments.cache import RESULTS
from experiments.models import Architecture, build, probabilities, train
from experiments.noise_images import Whitening, noise_images
from experiments.private_prediction_sets import published
from experiments.scattering import Scattering

EPSILON, DELTA = 8.0, 1e-5
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


def papers_accuracy(kind: str) -> str:
    """The accuracies of versions 3 and 1 of the paper, for tables."""
    return " / ".join(f"{published.ACCURACY[version][kind]:.2f}" for version in ("version 3", "version 1"))
