"""Calibrate classifiers and regressors from a loader, and predict sets and intervals as tensors."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, Unpack

import torch
from torch import Tensor

from confide.array_api import predict_mask, true_scores
from confide.arrays import ExperimentalUniforms, class_names, first_and_all
from confide.candidates import AnyCandidates
from confide.core import Batches, Options, Release, Request, release, split_options
from confide.errors import InputError
from confide.scores import interval_score, score_kind, unregistered
from confide.sets import PredictionSets
from confide.sets import predict_interval as intervals_of_arrays
from confide.support import Level, caller_stacklevel, class_count, public_classes, require
from confide.torch.outputs import model_outputs, output_tensor
from confide.torch.softmax import probabilities

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
    public = None if classes is None else public_classes("classes", classes)
    request = Request(alpha=alpha, epsilon=epsilon, score=score, candidates=candidates, classes=public, **fields)

    with model_outputs(model, loader, device, progress=progress) as answers:
        # The scores of targets.
        if kind.task == "regression":
            residuals = (_residuals(outputs, targets, score) for outputs, targets in answers)
            return release(Batches(residuals, _MUST_YIELD), request, payer)

        # The scores of labels; the first batch shows the number of classes, if it is not given.
        most_tokens = options.get("records_per_person")
        first, batches = first_and_all(_classified(answers, request, most_tokens, ignore_index, logits=logits))
        if public is None:
            public = _classes_of(first, request)
            request = replace(request, classes=public)
        scores = _true_scores(batches, class_count(public), score, u)
        return release(Batches(scores, _MUST_YIELD), request, payer)


def _classes_of(first: tuple[Tensor, Tensor] | None, request: Request) -> int:
    if first is None:
        require("loader", not request.public_n, _MUST_YIELD, got="none")
        must = "must be given, their names or number: loader yields no batch that shows how many"
        raise InputError("classes", must)
    p, _ = first
    return int(p.shape[1])


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
    batches: Iterator[tuple[Tensor, Tensor]], number: int, score: str, u: ExperimentalUniforms | None
) -> Iterator[Any]:
    must = f"must return the same {number} classes for every batch"
    for p, labels in batches:
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
        must = f"must have at most records_per_person={most_tokens} tokens in every row"
        rows = f"{int(longer.sum())} rows of a batch have more"
        remedy = f"{rows}; label fewer, the others as ignore_index, or state a larger number"
        raise InputError("labels", must, remedy=remedy)
    return outputs.flatten(0, 1), labels.flatten()


def _residuals(outputs: Tensor, targets: Tensor, score: str) -> Any:
    predictions, true_values = (tensor.detach().cpu().to(torch.float64).numpy() for tensor in (outputs, targets))
    return interval_score(predictions, true_values, score)


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
