"""Sets and intervals as tensors, on the device of what they are made from."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from confide.array_api import predict_mask
from confide.arrays import class_names
from confide.errors import InputError
from confide.releases import Calibration, warn_of
from confide.sets import PredictionSets, warn_of_widths
from confide.torch.outputs import probabilities, returned


def predict_set(outputs: Tensor, calibration: Calibration, *, logits: bool = True, u: Tensor | None = None) -> Tensor:
    """Prediction sets for a batch of model outputs: bool, shape (n, K), on the device of `outputs`.

    Parameters
    ----------
    outputs
        Shape (n, K): logits, or probabilities with `logits=False`; or an object that holds logits as `logits`.
    calibration
        Made from a classification score.
    u
        For randomised scores, where fresh numbers are drawn by default: shape (n,), in [0, 1].

    Examples
    --------
    >>> import confide
    >>> released = confide.calibrate(torch.linspace(0, 0.5, 2000), alpha=0.1, epsilon=1.0, score="lac")
    >>> predict_set(torch.tensor([[0.9, 0.1]]), released, logits=False)
    tensor([[ True, False]])
    """
    mask: Tensor = predict_mask(probabilities(returned(outputs), logits=logits), calibration, u=u)
    return mask


def predict_interval(predictions: Tensor, calibration: Calibration) -> tuple[Tensor, Tensor]:
    """Intervals of absolute residuals or CQR, as tensors on the device of `predictions`, rounded outwards.

    Examples
    --------
    >>> import confide
    >>> released = confide.calibrate(torch.linspace(0, 1, 2000), alpha=0.1, epsilon=1.0, score="absolute_residual")
    >>> lower, upper = predict_interval(torch.tensor([10.0]), released)
    >>> bool(8.9 < lower < 9.2), bool(10.8 < upper < 11.1)
    (True, True)
    """
    if calibration.score not in ("absolute_residual", "cqr"):
        raise InputError("calibration must be one of absolute residuals or CQR; use confide.predict_interval")
    pairs = calibration.score == "cqr"
    predictions = predictions.detach()
    if predictions.ndim != (2 if pairs else 1) or not bool(torch.isfinite(predictions).all()):
        raise InputError("predictions must be finite, of shape (n,), or (n, 2) for CQR")
    warn_of(calibration)
    low, high = (predictions[:, 0], predictions[:, 1]) if pairs else (predictions, predictions)
    far = torch.tensor(float("inf"), dtype=predictions.dtype, device=predictions.device)
    reach = torch.tensor(calibration.threshold, dtype=torch.float64).to(predictions.dtype)
    reach = torch.nextafter(reach, torch.tensor(float("inf"), dtype=predictions.dtype)).to(predictions.device)
    lower, upper = torch.nextafter(low - reach, -far), torch.nextafter(high + reach, far)
    if len(predictions):
        centres, apart = low / 2 + high / 2, float((high - low).min())
        width = 2 * calibration.threshold + apart
        warn_of_widths(len(predictions), width, float(centres.min()), float(centres.max()))
    return lower, upper


def to_prediction_sets(mask: Tensor, classes: Any = None) -> PredictionSets:
    """A mask as `confide.PredictionSets`, in the processor's memory.

    Examples
    --------
    >>> to_prediction_sets(torch.tensor([[True, False]]), ["cat", "dog"]).labels()
    [['cat']]
    """
    return PredictionSets(mask.cpu().numpy(), None if classes is None else class_names(classes, mask.shape[1]))
