"""The torch front: calibrate from a DataLoader in one pass, predict on tensors where they are. Extra `torch`.

A score of each record and nothing else is brought to the processor's memory while calibrating, and counted at once;
while predicting, large tensors stay on their device and only the sets come back, as tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from typing import Any

from confide.array_api import predict_mask, true_scores
from confide.calibration import calibrate_histogram
from confide.candidates import Candidates
from confide.counting import ScoreHistogram
from confide.errors import InputError, InputTypeError
from confide.releases import Calibration
from confide.scores import score_kind
from confide.sets import PredictionSets
from confide.support import Level, needs_extra

with needs_extra("confide.torch", "torch"):
    import torch
    from torch import Tensor

__all__ = ["calibrate", "predict_interval", "predict_set", "to_prediction_sets"]


def calibrate(
    model: Callable[[Any], Tensor],
    loader: Iterable[Any],
    alpha: Level,
    epsilon: float | None = None,
    *,
    score: str = "lac",
    candidates: Candidates | None = None,
    logits: bool = True,
    device: torch.device | str | None = None,
    generator: torch.Generator | None = None,
    progress: bool = True,
    **options: Any,
) -> Calibration:
    """Calibrate a classifier from batches (inputs, labels), in one streaming pass.

    Parameters
    ----------
    model
        Called on each batch of inputs, without gradients and in evaluation mode; returns shape (batch, K).
    loader
        Yields pairs (inputs, labels): a DataLoader or any iterable.
    alpha, epsilon, candidates, **options
        As in `confide.calibrate`.
    score
        A classification score, as in `confide.class_score`.
    logits
        Whether the model returns logits; they are turned into probabilities in float32 or better.
    device
        Where inputs and labels are moved to before the call.
    generator
        For randomised scores: draws the number of each record; fresh by default.
    progress
        Show a progress bar on standard error.

    Raises
    ------
    InputError, InputTypeError
        If a batch cannot be used; then nothing was released.

    Examples
    --------
    >>> _ = torch.manual_seed(0)
    >>> batches = [(torch.randn(500, 4), torch.randint(0, 4, (500,))) for _ in range(4)]
    >>> released = calibrate(torch.nn.Identity(), batches, 0.1, 1.0, progress=False)
    >>> predict_set(torch.randn(3, 4), released).shape
    torch.Size([3, 4])
    """
    kind = score_kind(score)
    if kind.task != "classification":
        raise InputError(f"score must be a classification score; found {score!r}")
    total = ScoreHistogram.empty(kind.candidates() if candidates is None else candidates)
    training = getattr(model, "training", False)
    if training:
        model.eval()  # type: ignore[attr-defined]
    try:
        with torch.no_grad(), _bar(loader, progress) as batches:
            for batch in batches:
                if not isinstance(batch, tuple | list) or len(batch) != 2:
                    raise InputTypeError("loader must yield pairs (inputs, labels)")
                inputs, labels = (
                    part.to(device) if device is not None and hasattr(part, "to") else part for part in batch
                )
                p = probabilities(model(inputs), logits=logits)
                u = _uniforms(len(p), generator, p.device) if kind.randomised else None
                scores = true_scores(p, labels.to(p.device), score, u=u)
                total = total + ScoreHistogram.from_scores(scores.cpu().numpy(), total.candidates, score)
    finally:
        if training:
            model.train()  # type: ignore[attr-defined]
    if total.total == 0:
        raise InputError("loader must yield at least one batch; found none")
    return calibrate_histogram(total, alpha, epsilon, score=score, **options)


def predict_set(outputs: Tensor, calibration: Calibration, *, logits: bool = True, u: Tensor | None = None) -> Tensor:
    """Prediction sets for a batch of model outputs: bool, shape (n, K), on the device of `outputs`.

    Parameters
    ----------
    outputs
        Shape (n, K): logits, or probabilities with `logits=False`.
    calibration
        Made from a classification score.
    u
        For randomised scores: shape (n,), in [0, 1].

    Examples
    --------
    >>> import confide
    >>> released = confide.calibrate(torch.linspace(0, 0.5, 2000), alpha=0.1, epsilon=1.0, score="lac")
    >>> predict_set(torch.tensor([[0.9, 0.1]]), released, logits=False)
    tensor([[ True, False]])
    """
    mask: Tensor = predict_mask(probabilities(outputs, logits=logits), calibration, u=u)
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
    if calibration.score not in ("absolute_residual", "cqr", None):
        raise InputError("calibration must be one of absolute residuals or CQR; use confide.predict_interval")
    pairs = calibration.score == "cqr"
    if predictions.ndim != (2 if pairs else 1) or not bool(torch.isfinite(predictions).all()):
        raise InputError("predictions must be finite, of shape (n,), or (n, 2) for CQR")
    low, high = (predictions[:, 0], predictions[:, 1]) if pairs else (predictions, predictions)
    far = torch.tensor(float("inf"), dtype=predictions.dtype, device=predictions.device)
    reach = torch.tensor(calibration.threshold, dtype=torch.float64).to(predictions.dtype)
    reach = torch.nextafter(reach, torch.tensor(float("inf"), dtype=predictions.dtype)).to(predictions.device)
    return torch.nextafter(low - reach, -far), torch.nextafter(high + reach, far)


def to_prediction_sets(mask: Tensor, classes: Any = None) -> PredictionSets:
    """A mask as `confide.PredictionSets`, in the processor's memory.

    Examples
    --------
    >>> to_prediction_sets(torch.tensor([[True, False]]), ["cat", "dog"]).labels()
    [['cat']]
    """
    return PredictionSets(mask.cpu().numpy(), None if classes is None else tuple(classes))


def probabilities(outputs: Tensor, *, logits: bool) -> Tensor:
    """Softmax over the last dimension, in float32 for half precision; probabilities pass unchanged."""
    if not isinstance(outputs, torch.Tensor) or outputs.ndim != 2:
        raise InputTypeError("outputs must be a tensor of shape (n, classes)")
    if not logits:
        return outputs
    wide = outputs.float() if outputs.dtype in (torch.float16, torch.bfloat16) else outputs
    # Rounding can lift a probability above 1 by one float.
    return torch.softmax(wide, dim=1).clamp_(max=1.0)


def _uniforms(n: int, generator: torch.Generator | None, device: torch.device) -> Tensor:
    source = "cpu" if generator is None else generator.device
    return torch.rand(n, generator=generator, dtype=torch.float64, device=source).to(device)


@contextmanager
def _bar(loader: Iterable[Any], shown: bool) -> Iterator[Iterable[Any]]:
    """The batches, with a progress bar on standard error."""
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), disable=not shown, transient=True) as bar:
        total = len(loader) if isinstance(loader, Sized) else None
        yield bar.track(loader, total=total, description="Calibrating")
