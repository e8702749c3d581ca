"""Images of pure noise whose spectrum falls like that of photographs: public data with public statistics.

The power of natural images falls with the square of the frequency and their colours go together (Field, "Relations
between the statistics of natural images and the response properties of cortical cells", 1987). Features are whitened
with the covariance that they have on such images, so that no image of anyone is needed for it.
"""

import numpy as np
import torch
from numpy.typing import NDArray

from experiments.scattering import Scattering

MEAN, DEVIATION, SHARED = 120.0, 60.0, 0.9
"""Brightness, its spread, and the correlation of a colour with the common part."""


def noise_images(n: int, rng: np.random.Generator, side: int = 32) -> NDArray[np.uint8]:
    """Images of shape (n, side, side, 3), cut out of noise fields with a 1/f spectrum.

    Examples
    --------
    >>> noise_images(2, np.random.default_rng(0)).shape
    (2, 32, 32, 3)
    """
    wide = 4 * side
    frequency = np.hypot(np.fft.fftfreq(wide)[:, None], np.fft.fftfreq(wide))
    frequency[0, 0] = np.inf

    def field() -> NDArray[np.float64]:
        white = rng.normal(size=(n, wide, wide))
        return np.fft.ifft2(np.fft.fft2(white) / frequency).real[:, :side, :side]

    common = field()
    colours = np.stack([SHARED * common + np.sqrt(1 - SHARED**2) * field() for _ in range(3)], axis=-1)
    return np.clip(MEAN + DEVIATION * colours / colours.std(), 0, 255).astype(np.uint8)


class Whitening:
    """A fixed linear map of the channels, after which they are uncorrelated with variance 1 on noise images.

    Each channel is scaled first, and `floor` is added to all variances, so that no direction grows without limit.
    """

    def __init__(self, transform: Scattering, images: NDArray[np.uint8], floor: float = 0.01) -> None:
        features = torch.cat([transform(block) for block in np.array_split(images, max(1, len(images) // 20))])
        self.mean = features.mean(dim=(0, 2, 3))
        scale = features.std(dim=(0, 2, 3))
        scaled = ((features - self.mean[:, None, None]) / scale[:, None, None]).movedim(1, -1).flatten(0, -2).double()
        variances, directions = torch.linalg.eigh(scaled.T @ scaled / len(scaled))
        self.matrix = ((directions * (variances + floor) ** -0.5) @ directions.T).float() / scale

    def __call__(self, features: torch.Tensor) -> torch.Tensor:
        """Whitened features of the same shape (n, channels, rows, columns)."""
        return torch.einsum("cd,ndij->ncij", self.matrix, features - self.mean[:, None, None])
