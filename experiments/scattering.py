"""Fixed image features: a scattering transform of two scales and eight orientations, with nothing learned from data.

Oyallon and Mallat, CVPR 2015; its use under DP-SGD: Tramer and Boneh, "Differentially private learning needs better
features (or much more data)", ICLR 2021. 81 paths per colour on an 8 x 8 grid.

An image and its mirror image have the same label, so their features are averaged. All grids are symmetric about the
middle of the image, which makes mirroring a permutation of the features (the column turns around, the orientation t
becomes -t), and the average is exact: the right half of the grid repeats the left half and is left out.
"""

import math

import numpy as np
import torch

SCALES, ORIENTATIONS, SIDE = 2, 8, 32


def filters() -> tuple[torch.Tensor, torch.Tensor]:
    """Morlet wavelets, shape (2, 8, 32, 32), and a Gaussian low-pass, (32, 32), in the Fourier domain."""
    wavelets = torch.stack(
        [torch.stack([_morlet(2**j, math.pi * t / ORIENTATIONS) for t in range(ORIENTATIONS)]) for j in range(SCALES)]
    )
    low = torch.fft.fft2(_gabor(0.8 * 2 ** (SCALES - 1), 0.0, 0.0, 1.0)).real
    return wavelets, low


def _gabor(sigma: float, theta: float, frequency: float, slant: float) -> torch.Tensor:
    """A Gaussian of width sigma times a plane wave, summed over the periodic images of the square."""
    total = torch.zeros(SIDE, SIDE, dtype=torch.complex64)
    rotation = np.array([[math.cos(theta), math.sin(theta)], [-math.sin(theta), math.cos(theta)]])
    shape = torch.tensor(rotation.T @ np.diag([1, slant**2]) @ rotation / (2 * sigma**2), dtype=torch.float32)
    for row in (-1, 0, 1):
        for column in (-1, 0, 1):
            y, x = torch.meshgrid(torch.arange(SIDE) + row * SIDE, torch.arange(SIDE) + column * SIDE, indexing="ij")
            square = shape[0, 0] * x**2 + 2 * shape[0, 1] * x * y + shape[1, 1] * y**2
            wave = frequency * (x * math.cos(theta) + y * math.sin(theta))
            total += torch.polar(torch.exp(-square), wave.to(torch.float32))
    return total * (slant / (2 * math.pi * sigma**2))


def _morlet(scale: float, theta: float) -> torch.Tensor:
    """A Gabor filter minus the Gaussian that gives it mean zero, in the Fourier domain (real)."""
    sigma, frequency, slant = 0.8 * scale, 3 * math.pi / 4 / scale, 4 / ORIENTATIONS
    wave, envelope = _gabor(sigma, theta, frequency, slant), _gabor(sigma, theta, 0.0, slant)
    return torch.fft.fft2(wave - envelope * (wave.sum() / envelope.sum())).real


class Scattering:
    """Images of shape (n, 32, 32, 3) to float32 features of shape (n, 243, 8, 4), equal for an image and its mirror image.

    Examples
    --------
    >>> Scattering()(np.zeros((1, 32, 32, 3), np.uint8)).shape
    torch.Size([1, 243, 8, 4])
    """

    shape = (3 * (1 + SCALES * ORIENTATIONS + ORIENTATIONS**2), 8, 4)

    def __init__(self) -> None:
        wavelets, low = filters()
        # Pixels 0..31 are symmetric about 15.5; so are 0.5, 2.5, ... (half resolution) and 1.5, 5.5, ... (the grid).
        self.fine, self.coarse = wavelets[0], wavelets[1] * _shift(0.5)
        self.low, self.half_low = low * _shift(1.5), _fold(low * _shift(1.0), 2) * 4

    def __call__(self, images: np.ndarray) -> torch.Tensor:
        """Scattering coefficients of orders 0, 1 and 2, averaged over the image and its mirror image."""
        with torch.no_grad():
            x = torch.fft.fft2(torch.tensor(images, dtype=torch.float32).permute(0, 3, 1, 2) / 255)[:, :, None]
            first = _whole(torch.fft.rfft2(torch.fft.ifft2(x * self.fine).abs()))
            # The coarse wavelets are band-limited: half the resolution holds what they pass.
            second = torch.fft.ifft2(_fold(first[:, :, :, None] * self.coarse, 2)).abs()
            other = torch.fft.ifft2(_fold(x * self.coarse, 2)).abs()
            paths = [_smooth(x, self.low, 4), _smooth(first, self.low, 4)]
            paths += [_smooth(torch.fft.fft2(waves), self.half_low, 2) for waves in (other, second)]
            return torch.cat([_with_mirror_image(path).flatten(2, -3) for path in paths], dim=2).flatten(1, 2)


def _shift(pixels: float) -> torch.Tensor:
    """The factor that moves the samples by as many pixels, down and to the right, in the Fourier domain."""
    wave = torch.exp(2j * math.pi * pixels * torch.fft.fftfreq(SIDE))
    return wave[:, None] * wave


def _smooth(spectrum: torch.Tensor, low: torch.Tensor, step: int) -> torch.Tensor:
    """Low-pass and keep every `step`-th pixel, which leaves 8 x 8."""
    return torch.fft.ifft2(_fold(spectrum * low, step)).real


def _with_mirror_image(path: torch.Tensor) -> torch.Tensor:
    """The mean of features (n, 3, [orientation, ...] 8, 8) and those of the mirror image; the left half of the grid."""
    mirrored = path.flip(-1)
    turn = -torch.arange(ORIENTATIONS) % ORIENTATIONS
    for axis in range(2, path.dim() - 2):
        if path.shape[axis] == ORIENTATIONS:
            mirrored = mirrored.index_select(axis, turn)
    return ((path + mirrored) / 2)[..., :4]


def _fold(spectrum: torch.Tensor, step: int) -> torch.Tensor:
    """The spectrum of every `step`-th pixel."""
    side = spectrum.shape[-1] // step
    return spectrum.unflatten(-1, (step, side)).mean(-2).unflatten(-2, (step, side)).mean(-3)


def _whole(half: torch.Tensor) -> torch.Tensor:
    """The full spectrum of a real image from the half that rfft2 gives."""
    mirrored = half[..., 1:-1].conj().flip(-1)
    mirrored = torch.cat([mirrored[..., :1, :], mirrored[..., 1:, :].flip(-2)], dim=-2)
    return torch.cat([half, mirrored], dim=-1)
