"""Calibrate classifiers, regressors and masks from a loader, and predict sets, intervals and masks as tensors."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, Unpack

import torch
from torch import Tensor

from confide.array_api import above_threshold, predict_mask, true_scores
from confide.arrays import ExperimentalUniforms, class_names, first_and_all, image_by_image
from confide.candidates import AnyCandidates
from confide.core import (
    Batches,
    MaskOptions,
    MissedAreaLoss,
    Options,
    Release,
    Request,
    area_of,
    calibrate_areas,
    names_for,
    release,
    split_options,
    true_pixels,
    warn_about,
)
from confide.errors import InputError, InputTypeError
from confide.evaluation import Evaluation, area_counts, evaluation_of_areas
from confide.scores import interval_score, score_kind, unregistered
from confide.sets import PredictionSets
from confide.sets import predict_interval as intervals_of_arrays
from confide.support import Classes, Level, caller_stacklevel, class_count, public_classes, require
from confide.torch.outputs import (
    look_like_probabilities,
    model_outputs,
    output_tensor,
    probabilities,
    single_precision,
    softmax,
)

_MUST_YIELD = "must yield at least one record"


def calibrate(
    model: Callable[..., Any],
    loader: Iterable[Any],
    alpha: Level,
    epsilon: float | None = None,
    *,
    score: str = "lac",
    candidates: AnyCandidates = None,
    logits: bool = True,
    classes: Iterable[Any] | int | None = None,
    device: torch.device | str | None = None,
    ignore_index: int = -100,
    u: ExperimentalUniforms | None = None,
    progress: bool = True,
    **options: Unpack[Options],
) -> Release:
    """Calibrate a classifier or a regressor from batches, in one streaming pass.

    Parameters
    ----------
    model
        Called on each batch of inputs, without gradients and in evaluation mode. It returns shape (batch, K), or
        (batch,) for regression, (batch, 2) for `cqr`, or an object with such a tensor as `logits`, as models of
        Hugging Face do. For tokens, shape (batch, length, K) with labels (batch, length), each token with a label is a
        record, and `records_per_person` bounds their number in a row.
    loader
        Yields pairs (inputs, labels), or mappings with `labels` (or `label`) among the arguments of the model: a
        DataLoader or any iterable.
    alpha, epsilon, candidates, **options
        As in `confide.calibrate`. Under `replace_one` default candidates suit the number of records from the loader,
        as those of `confide.plan(n=...)` do.
    score
        A classification score, as in `confide.class_score`, or `absolute_residual`, `gamma` or `cqr`.
    logits
        Whether a classifier returns logits; they are converted to probabilities in float32 or better.
    classes
        The names of a classifier's outputs, or their number, public; by default the number in the batches. They are
        required if there may be no record, because a loader without a batch does not determine the number.
    device
        Inputs and labels are moved to it before the call.
    ignore_index
        Records with this label are ignored, as torch's losses do. Each is ignored because of its own label alone, so
        nothing else changes. Under `replace_one`, where n is public, a warning states their number. Under `add_remove`
        there is no warning, because their number is as secret as n.
    u
        For randomised scores: random numbers are drawn by default; give others only in experiments.
    progress
        Show a progress bar on standard error, if rich is installed, as it is with `confide[standard]`.

    Raises
    ------
    InputError, InputTypeError
        If a batch cannot be used, looks like probabilities although logits are stated, or like logits although
        probabilities are; then nothing was released.

    Examples
    --------
    >>> _ = torch.manual_seed(0)
    >>> batches = [(torch.randn(500, 4), torch.randint(0, 4, (500,))) for _ in range(4)]
    >>> released = calibrate(torch.nn.Identity(), batches, 0.1, 1.0, progress=False)
    >>> released.classes
    4
    """
    # The request, before the model is called.
    kind = score_kind(score)
    if kind.score is None:
        raise unregistered(score)
    require("score", not kind.score.difficulty, "must be a score that needs no difficulty", got=repr(score))
    payer, fields = split_options("confide.torch.calibrate", options)
    class_names = None if classes is None else public_classes("classes", classes)
    request = Request(alpha=alpha, epsilon=epsilon, score=score, candidates=candidates, classes=class_names, **fields)

    # The scores of each batch; the first batch shows the number of classes, if it is not given.
    most_tokens = options.get("records_per_person")
    scores: Iterable[Any]
    with model_outputs(model, loader, device, progress=progress) as answers:
        if kind.task == "regression":
            scores = (_residuals(outputs, targets, score) for outputs, targets in answers)
        else:
            first, batches = first_and_all(_classified(answers, request, most_tokens, ignore_index, logits=logits))
            if class_names is None:
                if first is None:
                    require("loader", not request.public_n, _MUST_YIELD, got="none")
                    must = "must be given, their names or number: loader yields no batch that shows how many"
                    raise InputError("classes", must)
                class_names = first[0].shape[1]
                request = replace(request, classes=class_names)
            scores = _true_scores(batches, class_names, score, u)
        return release(Batches(scores, _MUST_YIELD), request, payer)


def _classified(
    answers: Iterator[tuple[Tensor, Tensor]], request: Request, most_tokens: Any, ignore_index: int, *, logits: bool
) -> Iterator[tuple[Tensor, Tensor]]:
    """Probabilities and labels of the records of each batch; ignored ones are counted, and reported if n is public."""
    ignored = 0
    for outputs, labels in answers:
        outputs, labels = _records(outputs, labels, ignore_index, most_tokens)
        labelled = labels != ignore_index
        ignored += int((~labelled).sum())
        yield probabilities(outputs[labelled], logits=logits), labels[labelled]
    if ignored and request.public_n:
        warnings.warn(f"{ignored} records with the label {ignore_index} were ignored", stacklevel=caller_stacklevel())


def _true_scores(
    batches: Iterator[tuple[Tensor, Tensor]], classes: Classes, score: str, u: ExperimentalUniforms | None
) -> Iterator[Any]:
    number = class_count(classes)
    for p, labels in batches:
        must = f"must return the same {number} classes for every batch"
        require("model", p.shape[1] == number, must, got=f"{p.shape[1]} outputs")
        yield true_scores(p, labels, score, u=u).cpu().numpy()


def _records(outputs: Tensor, labels: Tensor, ignore_index: int, most_tokens: Any) -> tuple[Tensor, Tensor]:
    """Outputs (n, K) and integer labels (n,), on one device; for texts, whose tokens are the records, by token."""
    # One label for each record.
    labels = labels.to(outputs.device)
    if labels.dtype in (torch.uint8, torch.int8, torch.int16, torch.int32):
        labels = labels.long()
    if outputs.ndim == 2 and labels.shape == (len(outputs), 1):
        labels = labels[:, 0]
    must = f"must have one class number per record, shape ({len(outputs)},)"
    require("labels", outputs.ndim != 2 or labels.shape == outputs.shape[:1], must, got=f"shape {tuple(labels.shape)}")
    if outputs.ndim != 3 or labels.ndim != 2 or outputs.shape[:2] != labels.shape:
        return outputs, labels

    # Tokens: each one with a label is a record of its row.
    must = "must be given for token labels, shape (n, length): the largest number of labelled tokens of a row"
    require("records_per_person", isinstance(most_tokens, int), f"{must}, because each is a record")
    longer = (labels != ignore_index).sum(dim=1) > most_tokens
    if bool(longer.any()):
        rows = f"{int(longer.sum())} rows of a batch have more"
        remedy = f"{rows}; label fewer, the others as ignore_index, or state a larger number"
        must = f"must have at most records_per_person={most_tokens} tokens in every row"
        raise InputError("labels", must, remedy=remedy)
    return outputs.flatten(0, 1), labels.flatten()


def _residuals(outputs: Tensor, targets: Tensor, score: str) -> Any:
    f, y = (tensor.detach().cpu().to(torch.float64) for tensor in (outputs, targets))
    return interval_score(f.numpy(), y.numpy(), score)


# Sets and intervals as tensors, on the device of their inputs.


def predict_set(outputs: Tensor, calibration: Release, *, logits: bool = True, u: Tensor | None = None) -> Tensor:
    """Prediction sets for a batch of model outputs: bool, shape (n, K), on the device of `outputs`.

    Parameters
    ----------
    outputs
        Shape (n, K): logits, or probabilities with `logits=False`; or an object with logits as `logits`.
    calibration
        From a classification score.
    u
        For randomised scores: one random number per record, shape (n,), in [0, 1]; drawn by default.

    Examples
    --------
    >>> import confide
    >>> released = confide.calibrate(torch.linspace(0, 0.5, 2000), alpha=0.1, epsilon=1.0, score="lac")
    >>> predict_set(torch.tensor([[0.9, 0.1]]), released, logits=False)
    tensor([[ True, False]])
    """
    mask: Tensor = predict_mask(probabilities(output_tensor(outputs), logits=logits), calibration, u=u)
    return mask


def predict_interval(predictions: Tensor, calibration: Release) -> tuple[Tensor, Tensor]:
    """Intervals as tensors on the device of `predictions`: those of `confide.predict_interval`, rounded outwards.

    Only for scores without a difficulty, and releases with one threshold or one per side.

    Examples
    --------
    >>> import confide
    >>> released = confide.calibrate(torch.linspace(0, 1, 2000), alpha=0.1, epsilon=1.0, score="absolute_residual")
    >>> lower, upper = predict_interval(torch.tensor([10.0]), released)
    >>> bool(8.9 < lower < 9.2), bool(10.8 < upper < 11.1)
    (True, True)
    """
    # The ends in float64, rounded outwards to the type of the predictions.
    lower, upper = intervals_of_arrays(predictions.detach().cpu().double(), calibration)

    def outwards(end: Any, outward: float) -> Tensor:
        exact = torch.as_tensor(end)
        rounded = exact.to(predictions.dtype)
        beyond = torch.nextafter(rounded, torch.full_like(rounded, outward))
        is_inside = rounded.double() > exact if outward < 0 else rounded.double() < exact
        return torch.where(is_inside, beyond, rounded).to(predictions.device)

    return outwards(lower, -math.inf), outwards(upper, math.inf)


def to_prediction_sets(mask: Tensor, classes: Any = None) -> PredictionSets:
    """A mask as `confide.PredictionSets`, in main memory.

    Examples
    --------
    >>> to_prediction_sets(torch.tensor([[True, False]]), ["cat", "dog"]).labels()
    [['cat']]
    """
    return PredictionSets(mask.cpu().numpy(), None if classes is None else class_names(classes, mask.shape[1]))


def calibrate_masks(
    model: Callable[..., Any],
    loader: Iterable[Any],
    risk: Level | None = None,
    epsilon: float | None = None,
    *,
    logits: bool = True,
    sigmoid: bool = False,
    device: torch.device | str | None = None,
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

    def pixels(p: Tensor, truth: Tensor, area: MissedAreaLoss, ignored: int) -> tuple[int, list[Any]]:
        return len(p), [inside.cpu().numpy() for inside in true_pixels(p, truth, area, ignored)]

    with model_outputs(model, loader, device, progress=progress) as answers:
        images = _images(answers, logits=logits, sigmoid=sigmoid)
        return calibrate_areas(images, pixels, risk, epsilon, **options)


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
    device: torch.device | str | None = None,
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
    if are_probabilities:
        got = "only numbers that could be probabilities, in [0, 1] or summing to 1"
        raise InputError("outputs", "must be logits", got=got, remedy="Pass logits=False")
    return torch.sigmoid(p) if by_channel else softmax(p)


def _images(
    answers: Iterator[tuple[Tensor, Tensor]], *, logits: bool, sigmoid: bool
) -> Iterator[tuple[Tensor, Tensor]]:
    for outputs, truth in answers:
        p = pixel_probabilities(outputs, logits=logits, sigmoid=sigmoid)
        if len(p) != len(truth):
            raise InputError("labels", "must contain one truth per image", got=f"{len(truth)} for {len(p)} of a batch")
        # Class numbers may have any integer type.
        true = truth if truth.is_floating_point() or truth.dtype == torch.bool else truth.long()
        yield from zip(p, true.to(p.device), strict=True)
