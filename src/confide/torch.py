"""The torch front: calibrate from a DataLoader in one pass, predict on tensors where they are. Extra `torch`.

A score of each record is brought to the processor's memory while calibrating, or its prediction and target, and counted
at once; while predicting, large tensors stay on their device and only the sets come back, as tensors.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from contextlib import contextmanager
from typing import Any

from confide.array_api import predict_mask, rows_unlike_one, true_scores
from confide.arrays import ExperimentalUniforms, class_names
from confide.calibration import calibrate_histogram, refuse_weights, suited_candidates
from confide.candidates import Candidates, Spread
from confide.counting import ScoreHistogram
from confide.errors import InputError, InputTypeError
from confide.releases import Calibration, warn_of
from confide.scores import interval_score, score_kind
from confide.sets import PredictionSets
from confide.support import Classes, Level, needs_extra, outside, public_classes

with needs_extra("confide.torch", "torch"):
    import torch
    from torch import Tensor

_LOOKED_AT, _ROUNDED = 1000, 0.005
"""How many rows of a batch are looked at, and by how much bfloat16 changes the sum of probabilities at most."""

__all__ = ["calibrate", "predict_interval", "predict_set", "to_prediction_sets"]


def calibrate(
    model: Callable[..., Any],
    loader: Iterable[Any],
    alpha: Level,
    epsilon: float | None = None,
    *,
    score: str = "lac",
    candidates: Candidates | Spread | None = None,
    unit: float | None = None,
    logits: bool = True,
    classes: Iterable[Any] | int | None = None,
    device: torch.device | str | None = None,
    ignore_index: int = -100,
    u: ExperimentalUniforms | None = None,
    progress: bool = True,
    **options: Any,
) -> Calibration:
    """Calibrate a classifier or a regressor from batches, in one streaming pass.

    Parameters
    ----------
    model
        Called on each batch of inputs, without gradients and in evaluation mode; returns shape (batch, K), or
        (batch,) for regression, (batch, 2) for `cqr`, or an object with such a tensor as `logits`, as models of
        Hugging Face do.
    loader
        Yields pairs (inputs, labels), or mappings with `labels` (or `label`) among the arguments of the model: a
        DataLoader or any iterable.
    alpha, epsilon, candidates, unit, **options
        As in `confide.calibrate`. Under `replace_one` default candidates suit the number of records that the loader
        yields, as those of `confide.plan(n=...)` do; under `add_remove` they suit `n_typical` records.
    score
        A classification score, as in `confide.class_score`, or `absolute_residual`, `gamma` or `cqr`.
    logits
        Whether a classifier returns logits; they are turned into probabilities in float32 or better.
    classes
        The names of a classifier's outputs, or their number, public; by default the number that batches show. A loader
        without a batch shows none: give them if there may be no record.
    device
        Where inputs and labels are moved to before the call.
    ignore_index
        Records with this label are left out, as torch's losses do. Each is left out for its own label alone, so
        nothing else changes. Under `replace_one`, where n is public, a warning says how many there were; under
        `add_remove` nobody is told, for their number is as secret as n.
    u
        For randomised scores, where fresh numbers are drawn by default; other numbers are for experiments.
    progress
        Show a progress bar on standard error.

    Raises
    ------
    InputError, InputTypeError
        If a batch cannot be used, or looks like probabilities where logits are stated, or the other way round; then
        nothing was released.

    Examples
    --------
    >>> _ = torch.manual_seed(0)
    >>> batches = [(torch.randn(500, 4), torch.randint(0, 4, (500,))) for _ in range(4)]
    >>> released = calibrate(torch.nn.Identity(), batches, 0.1, 1.0, progress=False)
    >>> predict_set(torch.randn(3, 4), released).shape
    torch.Size([3, 4])
    """
    kind = score_kind(score)
    if kind.task == "any" or kind.family == "normalised_residual":
        raise InputError(f"score must be a score of classes, absolute_residual, gamma or cqr; found {score!r}")
    refuse_weights(options, "here: give `calibrate` the scores of your model, with labels or weights")
    public = options.get("neighbors") == "replace_one"

    def suited(n: int | None) -> Candidates:
        later = public and n is None
        return suited_candidates(candidates, score, alpha, epsilon, n, unit=unit, known_later=later, **options)

    total = ScoreHistogram.empty(suited(None))
    ignored, known = 0, None if classes is None else public_classes("classes", classes)
    training = getattr(model, "training", False)
    if training:
        model.eval()  # type: ignore[attr-defined]
    try:
        with torch.no_grad(), _bar(loader, progress) as batches:
            for batch in batches:
                inputs, labels = _pair(batch, device)
                outputs = _tensor(model(**inputs) if isinstance(inputs, Mapping) else model(inputs))
                if kind.task == "regression":
                    scores = _residuals(outputs, labels, score)
                else:
                    kept = labels.to(outputs.device) != ignore_index
                    ignored += int((~kept).sum())
                    p = probabilities(outputs[kept], logits=logits)
                    known = _same_number(known, p.shape[1])
                    scores = true_scores(p, labels.to(p.device)[kept], score, u=u).cpu().numpy()
                total = total + ScoreHistogram.from_scores(scores, total.candidates, score)
    finally:
        if training:
            model.train()  # type: ignore[attr-defined]
    if public:
        if total.total == 0:
            raise InputError("loader must yield at least one record; found none")
        total = total.over(suited(total.total))
        if ignored:
            warnings.warn(f"{ignored} records with the label {ignore_index} were left out", stacklevel=outside())
    if kind.task == "classification" and known is None:
        raise InputError("classes must be given, their names or number: loader yields no batch that shows how many")
    return calibrate_histogram(total, alpha, epsilon, score=score, classes=known, **options)


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
    mask: Tensor = predict_mask(probabilities(_tensor(outputs), logits=logits), calibration, u=u)
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
    return torch.nextafter(low - reach, -far), torch.nextafter(high + reach, far)


def to_prediction_sets(mask: Tensor, classes: Any = None) -> PredictionSets:
    """A mask as `confide.PredictionSets`, in the processor's memory.

    Examples
    --------
    >>> to_prediction_sets(torch.tensor([[True, False]]), ["cat", "dog"]).labels()
    [['cat']]
    """
    return PredictionSets(mask.cpu().numpy(), None if classes is None else class_names(classes, mask.shape[1]))


def probabilities(outputs: Tensor, *, logits: bool) -> Tensor:
    """Softmax over the last dimension, in float32 for half precision; probabilities pass unchanged.

    Examples
    --------
    >>> probabilities(torch.tensor([[0.75, 0.25]]), logits=True)
    Traceback (most recent call last):
        ...
    confide.errors.InputError: outputs must be logits; found rows that are non-negative and sum to 1, as ...
    """
    if not isinstance(outputs, torch.Tensor) or outputs.ndim != 2:
        raise InputTypeError("outputs must be a tensor of shape (n, classes)")
    if not logits:
        _refuse_rows_unlike_one(outputs)
        return outputs
    if len(outputs) and _are_probabilities(outputs):
        raise InputError(
            "outputs must be logits; found rows that are non-negative and sum to 1, as probabilities do; pass "
            "logits=False, and should they be logits all the same, their softmax"
        )
    wide = outputs.float() if outputs.dtype in (torch.float16, torch.bfloat16) else outputs
    # Rounding can lift a probability above 1 by one float.
    return torch.softmax(wide, dim=1).clamp_(max=1.0)


def _are_probabilities(rows: Tensor) -> bool:
    """Whether all of the first rows are non-negative and sum to 1, as nearly as softmax does in any precision."""
    first = rows[:_LOOKED_AT].detach().float()
    return bool(((first >= 0).all(dim=1) & ((first.sum(dim=1) - 1).abs() < _ROUNDED)).all())


def _refuse_rows_unlike_one(rows: Tensor) -> None:
    """Refuse what is not even nearly probabilities; numbers that are a little outside are left to `predict_mask`."""
    wrong = rows_unlike_one(rows)
    wrong |= (rows[: len(wrong)] < 0).any(dim=1)
    if bool(wrong.any()):
        raise InputError(
            f"outputs must be probabilities that sum to 1 with logits=False; found {int(wrong.sum())} of the first "
            f"{len(wrong)} rows that do not, the first at row {int(wrong.int().argmax())}; pass logits=True for "
            "logits, or apply softmax"
        )


def _same_number(known: Classes | None, found: int) -> Classes:
    """The classes as they are known, or their number."""
    number = found if known is None else known if isinstance(known, int) else len(known)
    if number != found:
        raise InputError(f"model must return the same {number} classes for every batch; found {found} outputs")
    return found if known is None else known


def _pair(batch: Any, device: torch.device | str | None) -> tuple[Any, Tensor]:
    """Inputs, or the arguments of the model by their names, and labels, on a device."""
    if isinstance(batch, Mapping):
        parts = {name: _moved(part, device) for name, part in batch.items()}
        key = next((name for name in ("labels", "label") if name in parts), None)
        if key is None:
            raise InputTypeError("loader must yield mappings with 'labels'; found one without")
        labels = parts.pop(key)
        return parts, _tensor(labels)
    if not isinstance(batch, tuple | list) or len(batch) != 2:
        raise InputTypeError("loader must yield pairs (inputs, labels), or mappings with 'labels'")
    inputs, labels = batch
    if isinstance(inputs, Mapping):
        inputs = {name: _moved(part, device) for name, part in inputs.items()}
    return _moved(inputs, device), _tensor(_moved(labels, device))


def _moved(part: Any, device: torch.device | str | None) -> Any:
    return part.to(device) if device is not None and hasattr(part, "to") else part


def _tensor(outputs: Any) -> Tensor:
    """A tensor, or the one that an output of Hugging Face's models holds as `logits`."""
    found = getattr(outputs, "logits", outputs)
    if not isinstance(found, torch.Tensor):
        raise InputTypeError(f"outputs and labels must be tensors; found {type(found).__name__}")
    return found


def _residuals(outputs: Tensor, targets: Tensor, score: str) -> Any:
    """A regression score of each record; a last dimension of 1 is dropped."""
    f, y = (one.squeeze(-1) if one.ndim == 2 and one.shape[1] == 1 else one for one in (outputs, targets))
    f, y = (one.detach().cpu().to(torch.float64) for one in (f, y))
    return interval_score(f.numpy(), y.numpy(), score)


@contextmanager
def _bar(loader: Iterable[Any], shown: bool) -> Iterator[Iterable[Any]]:
    """The batches, with a progress bar on standard error."""
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), disable=not shown, transient=True) as bar:
        total = len(loader) if isinstance(loader, Sized) else None
        yield bar.track(loader, total=total, description="Calibrating")
