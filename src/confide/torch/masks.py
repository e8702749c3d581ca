"""Segmentation: masks that miss a bounded share of the true area, from a loader and on the device of the model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import Tensor

from confide.array_api import above_threshold
from confide.arrays import ExperimentalUniforms, image_by_image
from confide.calibration import calibrate_areas, missed_area, true_pixels
from confide.candidates import AnyCandidates
from confide.errors import InputError, InputTypeError
from confide.evaluation import MaskEvaluation, area_counts, evaluation_of_areas
from confide.releases import RiskCalibration, area_of, names_for, warn_of
from confide.support import Level
from confide.torch.outputs import answered, look_like_probabilities


def calibrate_masks(
    model: Callable[..., Any],
    loader: Iterable[Any],
    risk: Level | None = None,
    epsilon: float | None = None,
    *,
    background: int | None = None,
    average: str = "pixels",
    logits: bool = True,
    sigmoid: bool = False,
    classes: Iterable[Any] | int | None = None,
    device: torch.device | str | None = None,
    ignore_index: int = -100,
    candidates: AnyCandidates = None,
    u: ExperimentalUniforms | None = None,
    progress: bool = True,
    **options: Any,
) -> RiskCalibration:
    """`confide.calibrate_masks` of a model and a loader: one pass, and one number of each image leaves the device.

    Parameters
    ----------
    model
        Called on each batch, without gradients, in evaluation mode; returns shape `(batch, K, *pixels)`, or an object
        with such a tensor as `logits`, as models of Hugging Face, or `out`, as those of torchvision.
    loader
        Yields pairs (inputs, masks), or mappings with `labels` (or `label`): class numbers, shape `(batch, *pixels)` or
        `(batch, 1, *pixels)`, or one mask per class, shape `(batch, K, *pixels)`. Batches may differ in size.
    risk, epsilon, background, average, ignore_index, classes, candidates, u, **options
        As in `confide.calibrate_masks`.
    logits, sigmoid
        Whether the model returns logits: one channel, or several with `sigmoid`, each is a mask of its own; else they
        are classes that exclude each other, and softmax is taken over them.
    device, progress
        As in `calibrate`.

    Examples
    --------
    >>> _ = torch.manual_seed(0)
    >>> logits = torch.randn(20, 100, 1, 4, 4)
    >>> batches = [(z, torch.rand(z.shape) < z.sigmoid()) for z in logits]
    >>> released = calibrate_masks(torch.nn.Identity(), batches, 0.1, 1.0, progress=False)
    >>> predict_masks(logits[0], released).shape
    torch.Size([100, 1, 4, 4])
    """
    area = missed_area(background, average)

    def found(p: Tensor, truth: Tensor) -> tuple[int, list[Any]]:
        return len(p), [own.cpu().numpy() for own in true_pixels(p, truth, area, ignore_index)]

    with answered(model, loader, device, progress=progress) as answers:
        areas = image_by_image(_images(answers, logits=logits, sigmoid=sigmoid), found)
        return calibrate_areas(areas, area, risk, epsilon, classes=classes, candidates=candidates, u=u, **options)


def predict_masks(
    outputs: Tensor, calibration: RiskCalibration, *, logits: bool = True, sigmoid: bool = False
) -> Tensor:
    """The masks of a batch of model outputs: bool, shape `(batch, K, *pixels)`, on the device of `outputs`.

    Arguments as in `calibrate_masks`; the masks are those of `confide.predict_masks`, bit for bit.

    Examples
    --------
    >>> import confide
    >>> p = torch.rand(2000, 1, 4, 4)
    >>> released = confide.calibrate_masks(zip(p, torch.rand(p.shape) < p), 0.1, 1.0)
    >>> predict_masks(torch.tensor([[[0.95, 0.01]]]), released, logits=False)
    tensor([[[ True, False]]])
    """
    area_of(calibration)
    p = pixel_probabilities(outputs, logits=logits, sigmoid=sigmoid)
    names_for(calibration, None, p.shape[1])
    warn_of(calibration)
    inside = (p >= 0) & (p <= 1)
    if not bool(inside.all()):
        raise InputError("probabilities of every pixel must lie in [0, 1]; found NaN or values outside")
    mask: Tensor = above_threshold(p, calibration.threshold)
    return mask


def evaluate_masks(
    model: Callable[..., Any],
    loader: Iterable[Any],
    calibration: RiskCalibration,
    *,
    logits: bool = True,
    sigmoid: bool = False,
    device: torch.device | str | None = None,
    ignore_index: int = -100,
    progress: bool = True,
) -> MaskEvaluation:
    """`confide.evaluate_masks` of a model and a loader of other images: area missed, and predicted. Not private.

    Examples
    --------
    >>> import confide
    >>> p = torch.rand(3000, 1, 4, 4)
    >>> truth = torch.rand(p.shape) < p
    >>> released = confide.calibrate_masks(zip(p[:2000], truth), 0.1, 1.0)
    >>> loader = [(p[2000:], truth[2000:])]
    >>> found = evaluate_masks(torch.nn.Identity(), loader, released, logits=False, progress=False)
    >>> 0.05 < found.missed_area < 0.12
    True
    """
    area_of(calibration)

    def counts(p: Tensor, truth: Tensor) -> Any:
        return area_counts(predict_masks(p[None], calibration, logits=False)[0], truth, ignore_index)

    with answered(model, loader, device, progress=progress) as answers:
        return evaluation_of_areas(
            image_by_image(_images(answers, logits=logits, sigmoid=sigmoid), counts), calibration
        )


def pixel_probabilities(outputs: Any, *, logits: bool, sigmoid: bool) -> Tensor:
    """Probabilities of pixels, in float32 for half precision, on the device of the outputs."""
    if not isinstance(outputs, torch.Tensor) or outputs.ndim < 3 or not outputs.is_floating_point():
        raise InputTypeError("outputs must be a floating tensor of shape (batch, classes, *pixels)")
    p = outputs.detach()
    p = p.float() if p.dtype in (torch.float16, torch.bfloat16) else p
    if not logits:
        return p
    each = sigmoid or p.shape[1] == 1
    if p.numel() and (_in_unit(p) if each else look_like_probabilities(p[0].flatten(1).T)):
        raise InputError(
            "outputs must be logits; found only numbers as probabilities are, in [0, 1] or summing to 1; pass "
            "logits=False"
        )
    return torch.sigmoid(p) if each else torch.softmax(p, dim=1).clamp_(max=1.0)


def _in_unit(p: Tensor) -> bool:
    return bool(p.min() >= 0) and bool(p.max() <= 1)


def _images(
    answers: Iterator[tuple[Tensor, Tensor]], *, logits: bool, sigmoid: bool
) -> Iterator[tuple[Tensor, Tensor]]:
    """Image by image, the probabilities, shape `(K, *pixels)`, and the truth."""
    for outputs, truth in answers:
        p = pixel_probabilities(outputs, logits=logits, sigmoid=sigmoid)
        if len(p) != len(truth):
            raise InputError(f"labels must hold one truth per image; found {len(truth)} for {len(p)} of a batch")
        whole = truth if truth.is_floating_point() or truth.dtype == torch.bool else truth.long()
        yield from zip(p, whole.to(p.device), strict=True)
