"""Calibrate and evaluate segmentation models from a loader, and predict masks as tensors."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Unpack

import torch
from torch import Tensor

from confide.array_api import above_threshold
from confide.arrays import image_by_image
from confide.core import (
    MaskOptions,
    MissedAreaLoss,
    Release,
    TrueAreas,
    area_of,
    calibrate_areas,
    names_for,
    true_pixels,
    warn_about,
)
from confide.errors import InputError, InputTypeError
from confide.evaluation import Evaluation, area_counts, evaluation_of_areas
from confide.support import Level, require
from confide.torch.outputs import model_outputs
from confide.torch.softmax import look_like_probabilities, single_precision, softmax


def calibrate_masks(
    model: Callable[..., Any],
    loader: Iterable[Any],
    risk: Level | None = None,
    epsilon: float | None = None,
    *,
    logits: bool = True,
    sigmoid: bool = False,
    device: "torch.device | str | None" = None,
    progress: bool = True,
    **options: Unpack[MaskOptions],
) -> Release:
    """Calibrate masks from a model and a loader, in one pass; one number of each image leaves the device.

    Parameters
    ----------
    model
        Called on each batch, without gradients, in evaluation mode. It returns shape `(batch, K, *pixels)`, or an
        object with such a tensor as `logits`, as models of Hugging Face, or `out`, as those of torchvision.
    loader
        Yields pairs (inputs, masks), or mappings with `labels` (or `label`): class numbers, shape `(batch, *pixels)` or
        `(batch, 1, *pixels)`, or one mask per class, shape `(batch, K, *pixels)`. Batches may differ in size.
    risk, epsilon, **options
        As in `confide.calibrate_masks`.
    logits, sigmoid
        Whether the model returns logits. With one channel, or several and `sigmoid`, each channel is a separate mask;
        otherwise the channels are classes that exclude each other, and softmax is applied.
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

    def areas(p: Tensor, truth: Tensor, area: MissedAreaLoss, ignored: int) -> TrueAreas:
        return TrueAreas(len(p), [inside.cpu().numpy() for inside in true_pixels(p, truth, area, ignored)])

    with model_outputs(model, loader, device, progress=progress) as answers:
        images = _images(answers, logits=logits, sigmoid=sigmoid)
        return calibrate_areas(images, areas, risk, epsilon, **options)


def predict_masks(outputs: Tensor, calibration: Release, *, logits: bool = True, sigmoid: bool = False) -> Tensor:
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
    warn_about(calibration)
    if not bool(((p >= 0) & (p <= 1)).all()):
        raise InputError("probabilities", "of every pixel must lie in [0, 1]", got="NaN or values outside")
    mask: Tensor = above_threshold(p, calibration.threshold)
    return mask


def evaluate_masks(
    model: Callable[..., Any],
    loader: Iterable[Any],
    calibration: Release,
    *,
    logits: bool = True,
    sigmoid: bool = False,
    device: "torch.device | str | None" = None,
    ignore_index: int = -100,
    progress: bool = True,
) -> Evaluation:
    """Evaluate masks from a model and a loader of other images: area missed, and predicted. Not private.

    Examples
    --------
    >>> import confide
    >>> p = torch.rand(3000, 1, 4, 4)
    >>> truth = torch.rand(p.shape) < p
    >>> released = confide.calibrate_masks(zip(p[:2000], truth), 0.1, 1.0)
    >>> loader = [(p[2000:], truth[2000:])]
    >>> found = evaluate_masks(torch.nn.Identity(), loader, released, logits=False, progress=False)
    >>> 0.05 < found.loss < 0.12
    True
    """
    area_of(calibration)

    def counts(p: Tensor, truth: Tensor) -> Any:
        return area_counts(predict_masks(p[None], calibration, logits=False)[0], truth, ignore_index)

    with model_outputs(model, loader, device, progress=progress) as answers:
        images = _images(answers, logits=logits, sigmoid=sigmoid)
        return evaluation_of_areas(image_by_image(images, counts), calibration)


def pixel_probabilities(outputs: Any, *, logits: bool, sigmoid: bool) -> Tensor:
    """Probabilities of pixels, in float32 for half precision, on the device of the outputs."""
    if not isinstance(outputs, torch.Tensor) or outputs.ndim < 3 or not outputs.is_floating_point():
        raise InputTypeError("outputs", "must be a floating tensor of shape (batch, classes, *pixels)")
    p = single_precision(outputs.detach())
    if not logits:
        return p

    # One mask for each channel, or classes that exclude each other; logits must not look like probabilities.
    by_channel = sigmoid or p.shape[1] == 1
    if by_channel:
        are_probabilities = p.numel() and bool(p.min() >= 0) and bool(p.max() <= 1)
    else:
        are_probabilities = p.numel() and look_like_probabilities(p[0].flatten(1).T)  # pixels of the first image
    got = "only numbers that could be probabilities, in [0, 1] or summing to 1"
    require("outputs", not are_probabilities, "must be logits", got=got, remedy="Pass logits=False")
    return torch.sigmoid(p) if by_channel else softmax(p)


def _images(
    answers: Iterator[tuple[Tensor, Tensor]], *, logits: bool, sigmoid: bool
) -> Iterator[tuple[Tensor, Tensor]]:
    """The probabilities and the truth of each image, on one device."""
    for outputs, truth in answers:
        p = pixel_probabilities(outputs, logits=logits, sigmoid=sigmoid)
        if len(p) != len(truth):
            raise InputError("labels", "must contain one truth per image", got=f"{len(truth)} for {len(p)} of a batch")
        if not truth.is_floating_point() and truth.dtype != torch.bool:
            truth = truth.long()  # class numbers of any integer type
        yield from zip(p, truth.to(p.device), strict=True)
