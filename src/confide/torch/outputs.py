"""From batches of a loader to outputs of a model, labels and probabilities, as tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from confide.array_api import rows_unlike_one
from confide.errors import InputError, InputTypeError

_CHECKED_ROWS = 1000
"""The number of rows of a batch that are checked."""

_ROUNDING = 0.005
"""The largest change of a sum of probabilities by rounding to bfloat16."""


def probabilities(outputs: Tensor, *, logits: bool) -> Tensor:
    """Softmax over the last dimension, in float32 for half precision; probabilities pass unchanged.

    Examples
    --------
    >>> probabilities(torch.tensor([[0.75, 0.25]]), logits=True)
    Traceback (most recent call last):
        ...
    confide.errors.InputError: outputs: must be logits; got rows that are non-negative and sum to 1, as ...
    """
    if not isinstance(outputs, torch.Tensor) or outputs.ndim != 2:
        raise InputTypeError("outputs", "must be a tensor of shape (n, classes)")
    outputs = outputs.detach()
    if not logits:
        _refuse_rows_unlike_one(outputs)
        return outputs
    if len(outputs) and look_like_probabilities(outputs):
        got = "rows that are non-negative and sum to 1, as probabilities do"
        remedy = "Pass logits=False; if they are logits nevertheless, pass their softmax"
        raise InputError("outputs", "must be logits", got=got, remedy=remedy)
    return softmax(single_precision(outputs))


def single_precision(outputs: Tensor) -> Tensor:
    """Half precision as float32; other types unchanged."""
    return outputs.float() if outputs.dtype in (torch.float16, torch.bfloat16) else outputs


def softmax(logits: Tensor) -> Tensor:
    """Softmax over the classes; rounding can raise a probability above 1 by one float, which becomes 1."""
    return torch.softmax(logits, dim=1).clamp_(max=1.0)


def look_like_probabilities(rows: Tensor) -> bool:
    """Whether all of the first rows are non-negative and sum to 1, within the precision of softmax in any dtype."""
    first = rows[:_CHECKED_ROWS].detach().float()
    return bool(((first >= 0).all(dim=1) & ((first.sum(dim=1) - 1).abs() < _ROUNDING)).all())


def _refuse_rows_unlike_one(rows: Tensor) -> None:
    # Only large deviations: `predict_mask` checks small ones.
    marked = rows_unlike_one(rows)
    marked |= (rows[: len(marked)] < 0).any(dim=1)
    if bool(marked.any()):
        first = f"the first at row {int(marked.int().argmax())}"
        got = f"{int(marked.sum())} of the first {len(marked)} rows that do not, {first}"
        must = "must be probabilities that sum to 1 with logits=False"
        remedy = "Pass logits=True for logits"
        raise InputError("outputs", must, got=got, remedy=f"{remedy}, or apply softmax")


@contextmanager
def model_outputs(
    model: Callable[..., Any], loader: Iterable[Any], device: torch.device | str | None, *, progress: bool
) -> Iterator[Iterator[tuple[Tensor, Tensor]]]:
    """The outputs of a model for each batch, and the labels: in evaluation mode, without gradients, with a bar."""
    if not callable(model):
        must = "must be a module or a function, the first argument, and loader the second"
        raise InputTypeError("model", must, got=f"{type(model).__name__} as the model")
    if not (hasattr(loader, "__iter__") or hasattr(loader, "__getitem__")):
        raise InputTypeError("loader", "must be an iterable of batches, the second argument", got=type(loader).__name__)
    with evaluating(model), torch.no_grad(), _bar(loader, progress) as batches:
        yield (_outputs_and_labels(model, batch, device) for batch in batches)


@contextmanager
def evaluating(model: Callable[..., Any]) -> Iterator[None]:
    """Set a model to evaluation mode, and then back to its earlier mode."""
    training = getattr(model, "training", False)
    if training:
        model.eval()  # type: ignore[attr-defined]
    try:
        yield
    finally:
        if training:
            model.train()  # type: ignore[attr-defined]


def output_tensor(outputs: Any) -> Tensor:
    """A tensor, or the one in a model's output as `logits`, for Hugging Face, or `out`, for torchvision."""
    # An attribute, or an entry.
    tensor = getattr(outputs, "logits", outputs)
    if isinstance(tensor, Mapping):
        tensor = next((tensor[name] for name in ("logits", "out") if name in tensor), tensor)
        tensor = getattr(tensor, "logits", tensor)

    # A tensor with numbers.
    if not isinstance(tensor, torch.Tensor):
        several = isinstance(tensor, tuple | list | Mapping)
        remedy = "; pass a function that returns the one to use, such as model=lambda batch: net(batch)[0]"
        got = f"{type(tensor).__name__}{remedy if several else ''}"
        raise InputTypeError("outputs", "outputs and labels must be tensors", got=got)
    if tensor.is_meta:
        got = "a tensor on the device meta: load the model"
        raise InputTypeError("outputs", "outputs and labels must contain numbers", got=got)
    return tensor.detach()


def _outputs_and_labels(
    model: Callable[..., Any], batch: Any, device: torch.device | str | None
) -> tuple[Tensor, Tensor]:
    # Keyword arguments of the model, with the labels among them.
    if isinstance(batch, Mapping):
        arguments = {name: _move(value, device) for name, value in batch.items()}
        key = next((name for name in ("labels", "label") if name in arguments), None)
        if key is None:
            raise InputTypeError("loader", "must yield mappings with 'labels'", got="one without")
        labels = output_tensor(arguments.pop(key))
        return output_tensor(model(**arguments)), labels

    # A pair.
    if not isinstance(batch, tuple | list) or len(batch) != 2:
        raise InputTypeError("loader", "must yield pairs (inputs, labels), or mappings with 'labels'")
    inputs, labels = (_move(values, device) for values in batch)
    labels = output_tensor(labels)
    return output_tensor(model(**inputs) if isinstance(inputs, Mapping) else model(inputs)), labels


def _move(value: Any, device: torch.device | str | None) -> Any:
    """The same on a device, including tensors in lists and mappings."""
    if device is None:
        return value
    if hasattr(value, "to"):
        return value.to(device)
    if isinstance(value, Mapping):
        return {name: _move(item, device) for name, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_move(item, device) for item in value)
    return value


@contextmanager
def _bar(loader: Iterable[Any], shown: bool) -> Iterator[Iterable[Any]]:
    if not shown or find_spec("rich") is None:
        yield loader
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        yield bar.track(loader, description="Reading batches")
