"""Fixed image features: a scattering transform of two scales and eight orientations, with nothing learned from data.

Oyallon and Mallat, CVPR 2015; its use under DP-SGD: Tramer and Boneh, "Differentially private learning needs better
features (or much more data)", ICLR 2021. 81 paths per colour on an 8 x 8 grid, pooled here to `grid` x `grid`.
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
    """Images of shape (n, 32, 32, 3) to float16 features of shape (n, 243, grid, grid)."""

    def __init__(self, grid: int = 8) -> None:
        self.wavelets, self.low = filters()
        self.grid = grid

    @property
    def channels(self) -> int:
        """Paths times colours."""
        return 3 * (1 + SCALES * ORIENTATIONS + ORIENTATIONS**2)

    def __call__(self, images: np.ndarray) -> torch.Tensor:
        """Scattering coefficients of orders 0, 1 and 2."""
        with torch.no_grad():
            x = torch.fft.fft2(torch.tensor(images, dtype=torch.float32).permute(0, 3, 1, 2) / 255)[:, :, None]
            fine, coarse = self.wavelets
            first = torch.fft.rfft2(torch.fft.ifft2(x * fine).abs())  # (n, 3, 8, 32, 17)
            first = _whole(first)
            # The coarse wavelets are band-limited: half the resolution holds what they pass.
            second = torch.fft.ifft2(_fold(first[:, :, :, None] * coarse, 2)).abs().flatten(2, 3)
            other = torch.fft.ifft2(_fold(x * coarse, 2)).abs()
            paths = [self._smooth(x, 4), self._smooth(first, 4)]
            paths += [self._smooth(torch.fft.fft2(waves), 2) for waves in (other, second)]
            features = torch.cat(paths, dim=2).flatten(1, 2)
            if self.grid < 8:
                features = torch.nn.functional.avg_pool2d(features, 8 // self.grid)
            return features.to(torch.float16)

    def _smooth(self, spectrum: torch.Tensor, step: int) -> torch.Tensor:
        """Low-pass and keep every `step`-th pixel, which leaves 8 x 8."""
        low = self.low if step == 4 else _fold(self.low, 2) * 4
        return torch.fft.ifft2(_fold(spectrum * low, step)).real


def _fold(spectrum: torch.Tensor, step: int) -> torch.Tensor:
    """The spectrum of every `step`-th pixel."""
    side = spectrum.shape[-1] // step
    return spectrum.unflatten(-1, (step, side)).mean(-2).unflatten(-2, (step, side)).mean(-3)


def _whole(half: torch.Tensor) -> torch.Tensor:
    """The full spectrum of a real image from the half that rfft2 gives."""
    mirrored = half[..., 1:-1].conj().flip(-1)
    mirrored = torch.cat([mirrored[..., :1, :], mirrored[..., 1:, :].flip(-2)], dim=-2)
    return torch.cat([half, mirrored], dim=-1)
