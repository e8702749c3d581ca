"""Conformal masks in a MONAI pipeline: calibrate from a loader, predict with a transform, measure the guarantee.

    python examples/monai_masks.py

Needs `pip install monai 'confide[torch]'`. The images are MONAI's synthetic ones, and the network only blurs and scales
them: replace both by your own. One image is one record. With several channels that exclude each other, leave out
`sigmoid=True`; `background=0` leaves the background out of the area.
"""

import numpy as np
import torch
from monai.data import DataLoader, Dataset, create_test_image_2d
from monai.networks.layers import GaussianFilter
from monai.transforms import Compose, EnsureChannelFirstd, Lambdad, ToTensord

import confide.torch

CHANNEL = {"logits": True, "sigmoid": True}  # the network returns logits of one channel
KEYS = ["image", "label"]


class Network(torch.nn.Module):
    """A blur, in place of a trained network."""

    def __init__(self):
        super().__init__()
        self.blur = GaussianFilter(spatial_dims=2, sigma=1.0)

    def forward(self, image):
        """Logits of one channel."""
        return 12 * (self.blur(image) - 0.35)


def images(n, seed):
    """A loader of dictionaries, as MONAI's projects have them."""
    rng = np.random.RandomState(seed)
    shape = {"num_objs": 2, "rad_max": 6, "rad_min": 3, "num_seg_classes": 1, "random_state": rng}
    pairs = [dict(zip(KEYS, create_test_image_2d(32, 32, **shape), strict=True)) for _ in range(n)]
    return DataLoader(
        Dataset(pairs, Compose([EnsureChannelFirstd(KEYS, channel_dim="no_channel"), ToTensord(KEYS)])), batch_size=50
    )


def pairs_of(loader):
    """Images and true masks, without MONAI's metadata."""
    return [tuple(torch.as_tensor(batch[key]) for key in KEYS) for batch in loader]


def masks(released):
    """A transform from outputs to masks for `Compose`, in the place of `AsDiscrete`."""
    return Lambdad("pred", lambda outputs: confide.torch.predict_masks(outputs[None], released, **CHANNEL)[0])


def main():
    """Calibrate, predict one image, and evaluate other images."""
    network = Network()
    calibrating = pairs_of(images(400, seed=0))
    released = confide.torch.calibrate_masks(network, calibrating, risk=0.1, epsilon=1.0, progress=False, **CHANNEL)
    released.save("conformal.json")
    image, _ = pairs_of(images(1, seed=1))[0]
    mask = Compose([masks(released)])({"pred": network(image)[0]})["pred"]
    print(tuple(mask.shape), mask.dtype)
    print(confide.torch.evaluate_masks(network, pairs_of(images(100, seed=2)), released, **CHANNEL))


if __name__ == "__main__":
    main()
