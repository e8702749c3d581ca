"""Synthetic images, a network that blurs them, and the measurement of the missed area; replace the first two."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from monai.data import create_test_image_2d, decollate_batch
from monai.metrics import CumulativeIterationMetric
from monai.networks.layers import GaussianFilter


class Blur(torch.nn.Module):
    """A network of one channel: logits from the blurred image."""

    def __init__(self) -> None:
        super().__init__()
        self.blur = GaussianFilter(spatial_dims=2, sigma=1.0)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """Return logits of the shape of the images."""
        return 12 * (self.blur(image) - 0.35)


def images(n: int, seed: int) -> list[dict[str, torch.Tensor]]:
    """Return n images with discs, and their masks, of shape (1, 32, 32)."""
    rng, made = np.random.RandomState(seed), []
    for _ in range(n):
        image, label = create_test_image_2d(
            32, 32, num_objs=2, rad_max=6, rad_min=3, num_seg_classes=1, random_state=rng
        )
        made.append({"image": torch.tensor(image)[None].float(), "label": torch.tensor(label.astype(np.uint8))[None]})
    return made


def measured(
    network: torch.nn.Module,
    loader: Iterable[dict[str, Any]],
    postprocessing: Callable[[Any], Any],
    metric: CumulativeIterationMetric,
) -> float:
    """Predict masks for all images of a loader, and return the mean missed share of the true area."""
    with torch.no_grad():
        for batch in loader:
            batch["pred"] = network(batch["image"])
            done = [postprocessing(one) for one in decollate_batch(batch)]
            metric(y_pred=[one["pred"] for one in done], y=[one["label"] for one in done])
    return float(metric.aggregate())
